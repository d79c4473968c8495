import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct ChildProcessTests {
    private let pool = BlockingPool(name: "child", threads: 2)

    private func run(
        _ script: String, _ arguments: String..., environment: [(name: String, value: [UInt8])] = [],
        input: [UInt8] = [],
        timeout: Duration = .seconds(60), grace: Duration = .seconds(60)
    ) async throws -> ChildProcess.Outcome {
        try await ChildProcess(
            ["/bin/sh", "-c", script, "sh"] + arguments, environment: environment, input: input, timeout: timeout,
            grace: grace
        ).run(on: pool)
    }

    private func text(_ outcome: ChildProcess.Outcome) -> String { String(decoding: outcome.errors, as: UTF8.self) }

    @Test(arguments: [0, 1, 75, 255] as [Int32]) func `a program's exit code comes back`(_ code: Int32) async throws {
        #expect(try await run("exit $1", String(code)).end == .exited(code))
    }

    @Test func `it gives way, and writes no larger file than it may`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("out")
        // It begins when its input has ended: it is held back by then.
        var child = ChildProcess(
            ["/bin/sh", "-c", "cat > /dev/null; nice >&2; exec head -c 100000 /dev/zero > \"$1\"", "sh", file.string],
            environment: [("PATH", Array("/usr/bin:/bin".utf8))], input: [UInt8](repeating: 0, count: 300_000),
            timeout: .seconds(60))
        child.niceness = 10
        child.largestFile = 4096
        let outcome = try await child.run(on: pool)
        let own = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        #expect(outcome.end == .signalled(SIGXFSZ) && text(outcome) == "\(min(own + 10, 19))\n")
        #expect(try FileLook.look(at: file).identity?.size == 4096)
    }

    @Test func `a program that a signal ends says which`() async throws {
        #expect(try await run("kill -KILL $$").end == .signalled(SIGKILL))
    }

    @Test func `it reads its input whole, more than a pipe holds`() async throws {
        let input = [UInt8](repeating: UInt8(ascii: "x"), count: 300_000)
        let outcome = try await run("wc -c >&2", environment: [("PATH", Array("/usr/bin:/bin".utf8))], input: input)
        #expect(outcome.end == .exited(0) && text(outcome).contains("300000"))
    }

    @Test func `one that reads nothing is fine, and no signal hits us`() async throws {
        let input = [UInt8](repeating: 0, count: 1 << 20)
        #expect(try await run("exec <&-; exit 7", input: input).end == .exited(7))
    }

    @Test func `of what it says the end is kept, and what it prints goes nowhere`() async throws {
        let outcome = try await run(
            "echo out; i=0; while [ $i -lt 2000 ]; do echo line$i >&2; i=$((i+1)); done")
        #expect(outcome.errors.count == ChildProcess.mostErrors)
        #expect(text(outcome).hasSuffix("line1999\n") && !text(outcome).contains("out"))
    }

    @Test func `its arguments and environment reach it as they are, and nothing of ours does`() async throws {
        let hostile = "$(touch /x) ; `id` 'a\"b*"
        let outcome = try await run(
            #"printf '%s\n' "$1" "$NAME" "${USER-none}" "${HOME-none}" >&2"#, hostile,
            environment: [("NAME", Array("b c".utf8))])
        #expect(text(outcome) == "\(hostile)\nb c\nnone\nnone\n")
    }

    @Test func `it has no descriptor of ours, no signal blocked, and none ignored`() async throws {
        let inherited = open("/dev/null", O_RDONLY)
        defer { close(inherited) }
        let outcome = try await run(
            "while read -r l; do case $l in SigBlk* | SigIgn*) echo \"$l\" >&2 ;; esac; done </proc/$$/status; "
                + "exec ls /proc/self/fd >&2",
            environment: [("PATH", Array("/usr/bin:/bin".utf8))])
        let lines = text(outcome).split(separator: "\n")
        // The last one is the folder that `ls` reads.
        #expect(lines.filter { Int($0) != nil } == ["0", "1", "2", "3"], "\(lines)")
        let masks = lines.filter { $0.hasPrefix("Sig") }.compactMap { UInt64($0.suffix(16), radix: 16) }
        // Signals 32 and 33 belong to the C library.
        #expect(masks.count == 2 && masks.allSatisfy { $0 & 0x7FFF_FFFF == 0 }, "\(lines)")
    }

    @Test func `one that takes too long is ended with all that it started`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("grandchild")
        var id: Int32?
        // On a busy machine the time may be over before it has begun.
        for seconds in [1, 8, 64] where id == nil {
            // The grandchild does not react to SIGTERM: only its group's SIGKILL ends it.
            let outcome = try await run(
                #"sh -c 'trap "" TERM; echo $$. > "$1"; while :; do sleep 1; done' sh "$1" & wait"#, file.string,
                environment: [("PATH", Array("/usr/bin:/bin".utf8))], timeout: .seconds(seconds))
            #expect(outcome.end == .timedOut)
            let said = (try? String(contentsOfFile: file.string, encoding: .utf8)) ?? ""
            if said.contains(".") { id = Int32(said.filter(\.isNumber)) }
        }
        let grandchild = try #require(id)
        try await eventually("the grandchild is gone") {
            !Leash.isRunning(grandchild)
        }
    }

    @Test func `one that does not heed SIGTERM is killed`() async throws {
        let outcome = try await run(
            "trap '' TERM; while :; do :; done", timeout: .milliseconds(300), grace: .milliseconds(100))
        #expect(outcome.end == .timedOut)
    }

    @Test(arguments: [ChildProcess.End.stuck, .cancelled])
    func `one that cannot be ended is left alone, and collected when it has gone`(_ end: ChildProcess.End) async throws
    {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("id")
        let child = ChildProcess(
            ["/bin/sh", "-c", #"echo "$$." > "$1"; exec sleep 600"#, "sh", file.string],
            environment: [("PATH", Array("/usr/bin:/bin".utf8))],
            timeout: end == .cancelled ? .seconds(600) : .milliseconds(10), grace: .milliseconds(10),
            patience: .milliseconds(10))
        let waker = try Waker()
        if end == .cancelled { waker.wake() }
        // As if it had another user's rights.
        let outcome = try await pool.run { () throws(SystemError) in try RunningChild.run(child, waker) { _, _ in -1 } }
        #expect(outcome.end == end)
        try await eventually("it has begun") {
            (try? String(contentsOfFile: file.string, encoding: .utf8))?.contains(".") == true
        }
        let id = try #require(Int32(String(contentsOfFile: file.string, encoding: .utf8).filter(\.isNumber)))
        #expect(kill(id, SIGKILL) == 0)
        try await eventually("it is collected") {
            _ = try await run("exit 0")
            return !FileManager.default.fileExists(atPath: "/proc/\(id)")
        }
    }

    @Test func `it ends when its task is cancelled`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("started")
        let end = try await withThrowingTaskGroup(of: ChildProcess.End.self) { group in
            group.addTask {
                try await run(
                    "echo > \"$1\"; exec sleep 600", file.string, environment: [("PATH", Array("/usr/bin:/bin".utf8))]
                ).end
            }
            try await eventually("it runs") { FileManager.default.fileExists(atPath: file.string) }
            group.cancelAll()
            return try await group.next()
        }
        #expect(end == .cancelled)
    }

    @Test func `what is not there cannot be started, and is not executable`() async throws {
        let folder = try TemporaryDirectory()
        let missing = folder.path.appending("none")
        let error = await #expect(throws: SystemError.self) {
            _ = try await ChildProcess([missing.string], timeout: .seconds(1)).run(on: pool)
        }
        #expect(error?.isMissing == true)
        #expect(!ChildProcess.isExecutable(missing) && !ChildProcess.isExecutable(folder.path))
        #expect(!ChildProcess.isExecutable(try folder.write(Array("x".utf8), to: "plain")))
        #expect(ChildProcess.isExecutable("/bin/sh"))
    }
}

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

        func ask(_ child: ChildProcess) throws -> HostResponse {
            try HostRequest.run(1, child).message.send(to: number)
            return try answer()
        }

        func answer() throws -> HostResponse {
            let message = try #require(HostMessage.receive(from: number))
            return try #require(HostResponse.parse(message)).answer
        }

        func end() {
            shutdown(number, CInt(SHUT_RDWR))
            thread.join()
        }

        deinit { close(number) }
    }

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func code(_ answer: HostResponse) -> Int32? {
        if case .ended(let outcome) = answer, case .exited(let code) = outcome.end { code } else { nil }
    }

    private func isRefused(_ answer: HostResponse) -> Bool {
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
        #expect(lines.contains("PATH=\(ProgramFinder.path)") && !lines.contains("HOME=/theirs"), "\(lines)")
        hook.arguments[2] = script + "; : /in"
        #expect(code(try host.ask(hook)) == 0)
        #expect(try String(contentsOfFile: file.string, encoding: .utf8).contains("HOME=/theirs"))
        host.end()
    }

    /// Tries to write all over `folder`, and ends with 0 when it could write to its own.
    private func derive(_ run: FilePath, home: FilePath? = nil, on host: Conversation) throws -> HostResponse {
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

@Suite struct HostMessageTests {
    private var child: ChildProcess {
        var child = ChildProcess(
            ["/bin/sh", "-c", "é \u{1F600}"], environment: [(name: "INLET_PATH", value: [0xFF, 0x2F, 0x0A])],
            input: Array(0...255), timeout: .seconds(7), grace: .milliseconds(3), patience: .seconds(5))
        (child.niceness, child.largestFile, child.yieldsMemory, child.leavesNobody) = (10, 1 << 40, true, false)
        return child
    }

    @Test func `a request is on the other side what it was`() throws {
        let identity = FileIdentity(size: -1, modified: .min, changed: .max, inode: .max, device: 7)
        let requests: [HostRequest] = [
            .commands([CommandPattern(["a", ""], place: "/b/"), CommandPattern([])]), .run(.max, child), .cancel(0),
            .holders(9, [ProbedFile(identity, FilePath(bytes: [0x2F, 0xFF]))], isFresh: true),
            .users(4, device: .max),
        ]
        for request in requests {
            let read = try #require(HostRequest(request.message))
            #expect(read.message == request.message)
            #expect("\(read)" == "\(request)")
        }
    }

    @Test func `an answer is on the other side what it was`() throws {
        let ends: [ChildProcess.End] = [.exited(3), .signalled(9), .timedOut, .stuck, .cancelled]
        let answers: [HostResponse] =
            ends.map { .ended(ChildProcess.Outcome(end: $0, errors: [0, 0xFF])) } + [
                .failed(SystemError(call: "posix_spawn", path: "/bin/x", code: .noSuchFileOrDirectory)),
                .failed(SystemError(call: "pipe", code: .tooManyOpenFiles)),
                .holders([nil, OpenWriters.WriterProcess(process: 7, name: "a\nb", isMapping: true)]),
            ]
        for answer in answers {
            let read = try #require(HostResponse.parse(answer.message(to: 5)))
            #expect(read.number == 5 && "\(read.answer)" == "\(answer)")
        }
    }

    @Test func `what is cut off or changed is no message, and ends nothing`() throws {
        var random = SeededGenerator(seed: 41)
        let message = HostRequest.run(3, child).message
        for _ in 0..<2000 {
            var broken = message
            switch Int.random(in: 0..<3, using: &random) {
            case 0: broken.fields.removeLast(Int.random(in: 1..<broken.fields.count, using: &random))
            case 1: broken.fields.remove(at: Int.random(in: 0..<broken.fields.count, using: &random))
            default:
                let field = Int.random(in: 0..<broken.fields.count, using: &random)
                broken.fields[field] = [UInt8].random(using: &random)
            }
            // Read or not, it is read to the end.
            if let read = HostRequest(broken) { #expect(HostRequest(read.message) != nil) }
            _ = HostResponse.parse(broken)
        }
        #expect(HostRequest(HostMessage()) == nil && HostResponse.parse(HostMessage()) == nil)
    }
}

extension [UInt8] {
    fileprivate static func random(using random: inout SeededGenerator) -> [UInt8] {
        (0..<Int.random(in: 0..<12, using: &random)).map { _ in UInt8.random(in: 0x20...0x39, using: &random) }
    }
}
