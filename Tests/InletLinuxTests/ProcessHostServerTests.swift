import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// The side of the process host, asked over a real socket as a confined agent asks it.
@Suite struct ProcessHostServerTests {
    /// The agent's end; the server ends when it is closed.
    private final class Conversation {
        let number: CInt
        private let thread: LoopThread

        init(_ commands: [[String]], place: String = "") throws {
            var ends: [CInt] = [-1, -1]
            try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
            let other = ends[1]
            number = ends[0]
            thread = try LoopThread(name: "host") {
                ProcessHostServer.answer(on: other)
                close(other)
            }
            try HostRequest.commands(commands.map { CommandPattern($0, place: place) }).message.send(to: number)
        }

        func ask(_ child: ChildProcess) throws -> HostAnswer {
            try HostRequest.run(1, child).message.send(to: number)
            return try answer()
        }

        func answer() throws -> HostAnswer {
            let message = try #require(HostMessage.receive(from: number))
            return try #require(HostAnswer.parse(message)).answer
        }

        func end() {
            shutdown(number, CInt(SHUT_RDWR))
            thread.join()
        }

        deinit { close(number) }
    }

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func code(_ answer: HostAnswer) -> Int32? {
        if case .ended(let outcome) = answer, case .exited(let code) = outcome.end { code } else { nil }
    }

    private func isRefused(_ answer: HostAnswer) -> Bool {
        if case .failed(let error) = answer { error.code == .notPermitted } else { false }
    }

    @Test func `only what was named first is started`() throws {
        let host = try Conversation([["/bin/true"], ["/bin/sh", "-c", "exit 7"]])
        #expect(code(try host.ask(ChildProcess(["/bin/true"], timeout: .seconds(60)))) == 0)
        #expect(code(try host.ask(ChildProcess(["/bin/sh", "-c", "exit 7"], timeout: .seconds(60)))) == 7)
        #expect(isRefused(try host.ask(ChildProcess(["/bin/sh", "-c", "exit 8"], timeout: .seconds(60)))))
        try HostRequest.commands([CommandPattern(["/bin/sh", "-c", "exit 8"])]).message.send(to: host.number)
        #expect(isRefused(try host.ask(ChildProcess(["/bin/sh", "-c", "exit 8"], timeout: .seconds(60)))))
        host.end()
    }

    @Test func `a program without a path is looked for by the host, whatever path it is given by`() throws {
        let fake = try folder.write("#!/bin/sh\nexit 9\n".utf8, to: "true")
        try #require(chmod(fake.string, 0o755) == 0)
        let host = try Conversation([["true"]])
        #expect(code(try host.ask(ChildProcess([fake.string], timeout: .seconds(60)))) == 0)
        host.end()
    }

    @Test func `of the environment comes what a program needs, hooks have the host's own home`() throws {
        let file = folder.path.appending("env")
        let script = "env > '\(file)'"
        let host = try Conversation([["/bin/sh", "-c", script], ["/bin/sh", "-c", script + "; : {in}"]])
        let given: [(name: String, value: [UInt8])] = [
            ("LD_DEBUG_OUTPUT", Array("/x".utf8)), ("HOME", Array("/theirs".utf8)), ("PATH", Array("/evil".utf8)),
            ("INLET_KEY", Array("k".utf8)),
        ]
        var hook = ChildProcess(["/bin/sh", "-c", script], environment: given, timeout: .seconds(60))
        #expect(code(try host.ask(hook)) == 0)
        let lines = try Set(
            String(contentsOfFile: file.string, encoding: .utf8).split(separator: "\n").map(String.init))
        #expect(lines.contains("INLET_KEY=k") && !lines.contains { $0.hasPrefix("LD_DEBUG") }, "\(lines)")
        #expect(lines.contains("PATH=\(ProgramSearch.path)") && !lines.contains("HOME=/theirs"), "\(lines)")
        hook.arguments[2] = script + "; : /in"
        #expect(code(try host.ask(hook)) == 0)
        #expect(try String(contentsOfFile: file.string, encoding: .utf8).contains("HOME=/theirs"))
        host.end()
    }

    /// Tries to write all over `folder`, and ends with 0 when it could write to its own.
    private func derive(_ run: FilePath, home: FilePath? = nil, on host: Conversation) throws -> HostAnswer {
        try host.ask(
            ChildProcess(
                ["/bin/sh", "-c", script, "sh", run.appending("out").string],
                environment: [("TMPDIR", (home ?? run).bytes)], timeout: .seconds(60)))
    }

    private var script: String {
        "{ echo > '\(folder.path)/journal'; rm -r '\(folder.path)/derived/other'; mkdir '\(folder.path)/made'; "
            + "echo > '\(folder.path)/derived/made'; } 2>/dev/null; kill -0 \(getpid()) 2>/dev/null; echo $? > \"$1\" && "
            + "cat '\(folder.path)/journal' > \"$TMPDIR/read\" && echo ok > /dev/null && mkdir \"$TMPDIR/sub\" && "
            + "grep -q 'NoNewPrivs:.1' /proc/self/status || exit 2"
    }

    private func conversation() throws -> Conversation {
        try Conversation(
            [["/bin/sh", "-c", script, "sh", "{out}"]], place: folder.path.appending("derived").string + "/")
    }

    @Test(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
    func `a program that reads strangers' files writes in the folder of its run alone`() throws {
        let run = try folder.makeDirectory("derived/run")
        try folder.write([1], to: "derived/other/kept")
        try folder.write([1], to: "journal")
        let host = try conversation()
        #expect(code(try derive(run, on: host)) == 0)
        // Of this process, which was there before it.
        let reaches = try String(contentsOfFile: run.appending("out").string, encoding: .utf8) == "0\n"
        #expect(reaches == ((Landlock.version ?? 0) < 6))
        #expect(try Data(contentsOf: URL(filePath: run.appending("read").string)) == Data([1]))
        let left = try Set(FileManager.default.subpathsOfDirectory(atPath: folder.path.string))
        let own = ["out", "read", "sub"].map { "derived/run/\($0)" }
        #expect(left == Set(["journal", "derived", "derived/run", "derived/other", "derived/other/kept"] + own))
        #expect(try Data(contentsOf: URL(filePath: folder.path.appending("journal").string)) == Data([1]))
        host.end()
    }

    @Test(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
    func `an agent that lies about where that folder is has nothing started`() throws {
        let run = try folder.makeDirectory("derived/run")
        try folder.write([1], to: "journal")
        let host = try conversation()
        let link = folder.path.appending("derived/link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: folder.path.string)
        for home in [folder.path, folder.path.appending("derived"), link, run.appending("../.."), FilePath("relative")]
        {
            if case .ended(let outcome) = try derive(run, home: home, on: host) { Issue.record("\(home): \(outcome)") }
        }
        // It may also put a link in the place of all of them.
        let derived = folder.path.appending("derived").string
        try FileManager.default.moveItem(atPath: derived, toPath: derived + ".old")
        try FileManager.default.createSymbolicLink(atPath: derived, withDestinationPath: derived + ".old")
        if case .ended(let outcome) = try derive(run, on: host) { Issue.record("\(outcome)") }
        #expect(access(run.appending("out").string, F_OK) != 0)
        host.end()
    }

    @Test func `a program has a session of its own, and so no terminal to type into`() throws {
        // proc(5): the sixth field.
        let script = "read -r id name state parent group session rest < /proc/$$/stat; test $session = $$"
        let host = try Conversation([["/bin/sh", "-c", script]])
        #expect(code(try host.ask(ChildProcess(["/bin/sh", "-c", script], timeout: .seconds(60)))) == 0)
        host.end()
    }

    @Test func `a program is ended when it is cancelled, and when the agent ends`() throws {
        let host = try Conversation([["/bin/sleep", "600"]])
        let sleeper = ChildProcess(["/bin/sleep", "600"], timeout: .seconds(600))
        try HostRequest.run(1, sleeper).message.send(to: host.number)
        try HostRequest.cancel(1).message.send(to: host.number)
        guard case .ended(let outcome) = try host.answer() else { throw Errno.badMessage }
        #expect(outcome.end == .cancelled)
        try HostRequest.run(2, sleeper).message.send(to: host.number)
        // It returns once no program of it runs.
        host.end()
    }
}
