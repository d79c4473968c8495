import CHost
import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// A helper, asked over its socket as an agent asks it that may have been taken over.
private final class Conversation {
    let number: CInt
    let process: pid_t

    /// - Parameter environment: added to the helper's own.
    init(_ commands: [[String]], place: String = "", environment: [String: String] = [:]) throws {
        let added = environment.map { (name: $0.key, value: Array($0.value.utf8)) }
        (number, process) = try HostProgram.start(HostProgram.candidates(), HostProgram.environment + added)
        try send(.commands(commands.map { CommandPattern($0, place: place) }))
    }

    func send(_ request: HostRequest, files: [CInt] = []) throws {
        try request.message.send(to: number, files: files)
    }

    func answer() throws -> HostResponse { try Self.answer(from: number) }

    static func answer(from number: CInt) throws -> HostResponse {
        let message = try #require(HostMessage.receive(from: number))
        return try #require(HostResponse.parse(message)).answer
    }

    /// Asks for a program that reads and writes nothing.
    func run(_ child: ChildProcess, as number: UInt64) throws {
        let nothing = try FileDescriptor.open("/dev/null", .readWrite, options: .closeOnExec)
        try nothing.closeAfter {
            try send(.run(number: number, child), files: [nothing.rawValue, nothing.rawValue])
        }
    }

    /// The first answer to that.
    func start(_ child: ChildProcess, as number: UInt64) throws -> HostResponse {
        try run(child, as: number)
        return try answer()
    }

    /// The end of a program, or why it was not started.
    func ask(_ child: ChildProcess) throws -> HostResponse {
        let first = try start(child, as: 1)
        guard first == .started else { return first }
        let end = try answer()
        try send(.end(number: 1, endsGroup: false))
        return end
    }

    var children: [Int32] {
        get throws {
            try String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
                .split(separator: " ").compactMap { Int32($0) }
        }
    }

    private var isOver = false

    /// Returns when the helper has ended.
    func end() {
        isOver = true
        HostProgram.end(number, process)
    }

    deinit {
        if !isOver { end() }
        close(number)
    }
}

@Suite struct ProcessHostServerTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func code(_ answer: HostResponse) -> Int32? {
        if case .ended(.exited(let code)) = answer { code } else { nil }
    }

    private func isRefused(_ answer: HostResponse) -> Bool {
        if case .failed(let error) = answer { error.code == .notPermitted } else { false }
    }

    @Test func `only what was named first is started`() throws {
        let host = try Conversation([["/bin/true"], ["/bin/sh", "-c", "exit 7"]])
        #expect(code(try host.ask(ChildProcess(["/bin/true"], timeout: .seconds(60)))) == 0)
        #expect(code(try host.ask(ChildProcess(["/bin/sh", "-c", "exit 7"], timeout: .seconds(60)))) == 7)
        #expect(isRefused(try host.ask(ChildProcess(["/bin/sh", "-c", "exit 8"], timeout: .seconds(60)))))
        try host.send(.commands([CommandPattern(["/bin/sh", "-c", "exit 8"])]))
        try host.send(.everything)
        #expect(isRefused(try host.ask(ChildProcess(["/bin/sh", "-c", "exit 8"], timeout: .seconds(60)))))
        host.end()
    }

    @Test(.enabled(if: getuid() == 0, "needs root"))
    func `a helper that another user has put beside the program is not started`() throws {
        let program = try folder.write([], to: "inlet")
        let helper = try folder.write([], to: "inlet-host")
        try #require(chmod(helper.string, 0o755) == 0)
        func candidates() -> [String?] { HostProgram.candidates(for: program).map { $0.lastComponent?.string } }
        #expect(candidates() == ["inlet-host", "inlet"])
        try #require(chown(helper.string, 4711, 4711) == 0)
        #expect(candidates() == ["inlet"])
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
            if case .ended(let end) = try derive(run, home: home, on: host) { Issue.record("\(home): \(end)") }
        }
        // It may also put a link in the place of all of them.
        let derived = folder.path.appending("derived").string
        try FileManager.default.moveItem(atPath: derived, toPath: derived + ".old")
        try FileManager.default.createSymbolicLink(atPath: derived, withDestinationPath: derived + ".old")
        if case .ended(let end) = try derive(run, on: host) { Issue.record("\(end)") }
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
        #expect(try host.start(sleeper, as: 1) == .started)
        try host.send(.signal(number: 1, SIGTERM))
        #expect(try host.answer() == .ended(.signalled(SIGTERM)))
        try host.send(.end(number: 1, endsGroup: true))
        // A signal that comes before the program has begun is not lost.
        try host.run(sleeper, as: 3)
        try host.send(.signal(number: 3, SIGTERM))
        #expect(try host.answer() == .started)
        #expect(try host.answer() == .ended(.signalled(SIGTERM)))
        try host.send(.end(number: 3, endsGroup: true))
        #expect(try host.start(sleeper, as: 2) == .started)
        let program = try #require(host.children.first)
        // It ends once no program of it runs.
        host.end()
        #expect(!Leash.isRunning(program))
    }

    @Test func `a program that is not there is reported, and leaves no process`() throws {
        let missing = folder.path.appending("missing").string
        let host = try Conversation([[missing]])
        let failure = SystemError(call: "execve", path: FilePath(missing), code: .noSuchFileOrDirectory)
        #expect(try host.ask(ChildProcess([missing], timeout: .seconds(60))) == .failed(failure))
        #expect(try host.children == [])
        host.end()
    }

    @Test(.enabled(if: TestMount.hasBindfs, "needs bindfs"))
    func `a program on a disk that does not answer holds up nothing else`() throws {
        let disk = try TestMount(bindfs: folder.makeDirectory("disk"), at: folder.makeDirectory("point"))
        try FileManager.default.copyItem(atPath: "/bin/true", toPath: folder.path.pushing("disk/true").string)
        let program = disk.path.appending("true").string
        let host = try Conversation([[program], ["/bin/true"]])
        disk.freeze()
        defer { disk.thaw() }
        #expect(try host.start(ChildProcess([program], timeout: .seconds(60)), as: 1) == .started)
        #expect(try host.start(ChildProcess(["/bin/true"], timeout: .seconds(60)), as: 2) == .started)
        #expect(code(try host.answer()) == 0)
        try host.send(.signal(number: 1, SIGKILL))
        // It works in order: once a later program has ended, the signal has been sent. The kernel may end the first one
        // before the disk answers.
        try host.run(ChildProcess(["/bin/true"], timeout: .seconds(60)), as: 3)
        var answers: [HostResponse] = []
        while answers.count < 3 {
            let answer = try host.answer()
            if code(answer) == 0 { disk.thaw() }
            answers.append(answer)
        }
        #expect(answers.contains(.started) && answers.contains(.ended(.signalled(SIGKILL))))
        #expect(answers.contains { code($0) == 0 })
        host.end()
    }

    @Test func `what the agent asks of a program that it did not start reaches none`() throws {
        let host = try Conversation([["/bin/sleep", "600"]])
        #expect(try host.start(ChildProcess(["/bin/sleep", "600"], timeout: .seconds(600)), as: 1) == .started)
        for number in [0, 2, UInt64.max] {
            try host.send(.signal(number: number, SIGKILL))
            try host.send(.end(number: number, endsGroup: true))
        }
        // No other signal either: a stopped program would hold the agent up.
        try host.send(.signal(number: 1, SIGSTOP))
        try host.send(.users(number: 3, device: .max))
        #expect(try host.answer() == .holders([]))
        let program = try #require(host.children.first)
        #expect(try String(contentsOfFile: "/proc/\(program)/stat", encoding: .utf8).contains(") S "))
        host.end()
    }
}

/// Which arguments are a command of the configuration: asked of the helper's own code.
@Suite struct HostPatternTests {
    private func matches(_ words: [String], place: String = "", _ arguments: [String]) -> Bool {
        CommandPattern(words, place: place).matches(arguments)
    }

    @Test(
        arguments: [
            (["/bin/hook", "-q"], ["/bin/hook", "-q"], true), (["/bin/hook", "-q"], ["/bin/hook", "-v"], false),
            (["/bin/hook", "-q"], ["/bin/hook"], false), (["/bin/hook"], ["/bin/hook", "-q"], false),
            (["/bin/hook"], ["/other/bin/hook"], false),
            (["vips", "{in}", "{out}[Q=80]"], ["/usr/bin/vips", "/s/in.jpg", "/s/out.jpg[Q=80]"], true),
            (["vips", "{in}", "{out}[Q=80]"], ["/usr/bin/vips", "/s/in.jpg", "/s/out.jpg[Q=90]"], false),
            (["vips", "{in}"], ["./vips", "/s/in.jpg"], false),
            (["vips", "{in}"], ["/usr/bin/notvips", "/s/in.jpg"], false),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat /a > /b"], true),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat /a"], false),
            (["sh", "-c", "cat {in}"], ["/bin/sh", "-c", "rm /a"], false),
            (["sh", "-c", "cat {in}"], ["/bin/sh", "-c", "cat /a;id"], false),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat /a > /b$(id)"], false),
            (["sh", "-c", "cat {in} > {out}"], ["/bin/sh", "-c", "cat `id` > /b"], false),
            (["cp", "{in}", "{out}"], ["/bin/cp", "/my files/é;", "/b"], true),
            (["cp", "{in}", "{out}"], ["/bin/cp", "-r", "/b"], false), (["sh", "{in}{out}"], ["/bin/sh", ""], true),
            ([], [], false), ([], ["/bin/sh"], false), (["sh"], [], false),
        ] as [([String], [String], Bool)]
    )
    func `arguments are a command of the configuration, or not`(
        _ words: [String], _ arguments: [String], _ isMatch: Bool
    ) {
        #expect(matches(words, arguments) == isMatch)
    }

    @Test(
        arguments: [
            ("/my state/derived/a/.work1/in.jpg", true), ("/my state/derived/in", true), ("/etc/passwd", false),
            ("/my state/derived/../journal.sqlite", false), ("/my state/derived/a --to-command=/bin/sh", false),
            ("/my state/derived", false), ("", false),
        ])
    func `a path that a program is given lies in its place, and is one word`(_ path: String, _ isMatch: Bool) {
        let place = "/my state/derived/"
        #expect(matches(["cp", "{in}"], place: place, ["/bin/cp", path]) == isMatch)
        let words = ["sh", "-c", "tar -xf '{in}'"]
        #expect(matches(words, place: place, ["/bin/sh", "-c", "tar -xf '\(path)'"]) == isMatch)
    }

    @Test func `a place with spaces in it is no end of a path`() {
        let (words, place) = (["sh", "-c", "cat {in} > {out}"], "/my state/derived/")
        let (input, output) = ("/my state/derived/.work1/in", "/my state/derived/.work1/out.x")
        #expect(matches(words, place: place, ["/bin/sh", "-c", "cat \(input) > \(output)"]))
        #expect(!matches(words, place: place, ["/bin/sh", "-c", "cat \(input) /etc/passwd > \(output)"]))
        #expect(!matches(words, place: place, ["/bin/sh", "-c", "cat \(input) > /etc/cron.d/x"]))
    }

    @Test func `what a derive rule makes of its words is that command`() {
        let rule = DeriveRule(name: "x", command: ["cp", "a{in}b{out}c{in}", "{out}"], suffix: ".x")
        #expect(matches(rule.command, ["/bin/cp"] + rule.arguments(in: "/i-n", out: "/o u,t").dropFirst()))
    }
}

@Suite struct HostMessageTests {
    private func message(_ fields: String...) -> HostMessage {
        var message = HostMessage()
        for field in fields { message.add(field) }
        return message
    }

    @Test func `an answer is on this side what the helper said`() throws {
        let missing = SystemError(call: "execve", path: "/bin/x", code: .noSuchFileOrDirectory)
        let writer = OpenWriters.WriterProcess(process: 7, name: "a\nb", isMapping: true)
        let answers: [(HostMessage, HostResponse)] = [
            (message("5", "started"), .started), (message("5", "ended", "exited", "3"), .ended(.exited(3))),
            (message("5", "ended", "signalled", "9"), .ended(.signalled(9))),
            (message("5", "failed", "execve", "/bin/x", "2"), .failed(missing)),
            (message("5", "failed", "pipe", "", "24"), .failed(SystemError(call: "pipe", code: .tooManyOpenFiles))),
            (message("5", "holders", "2", "0", "", "0", "7", "a\nb", "1"), .holders([nil, writer])),
            (message("5", "type", "image/png"), .type("image/png")),
            (message("5", "unavailable", "none"), .unavailable("none")),
        ]
        for (message, answer) in answers {
            let read = try #require(HostResponse.parse(message))
            #expect(read.number == 5 && read.answer == answer)
            var short = message
            short.fields.removeLast()
            #expect(HostResponse.parse(short) == nil)
        }
        #expect(HostResponse.parse(HostMessage()) == nil)
    }

    @Test func `both sides read the same of any bytes`() {
        for seed in 0..<2000 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            // Small lengths, so that some of them fit.
            let bytes = (0..<Int.random(in: 0..<40, using: &random)).map { _ in UInt8.random(in: 0...3, using: &random)
            }
            #expect(inlet_host_count_fields(bytes, bytes.count) == HostMessage(body: bytes)?.fields.count ?? -1)
        }
    }
}

/// The reader of contents, with a library that a hostile file has taken over: it tries everything at once.
@Suite(.enabled(if: HostileLibrary.compiler != nil, "needs a C compiler")) struct ContentReaderTests {
    private func reader(_ host: Conversation) throws -> CInt {
        let (ours, theirs) = try HostProgram.conversation()
        try host.send(.reader(number: 1), files: [theirs])
        close(theirs)
        #expect(try host.answer() == .started)
        return ours
    }

    private func ask(_ reader: CInt, _ head: String) throws -> HostResponse? {
        var question = HostMessage()
        question.add(head)
        try question.send(to: reader)
        return HostMessage.receive(from: reader).flatMap { HostResponse.parse($0)?.answer }
    }

    @Test func `it opens, writes, starts, signals and sends nothing, which it could before`() throws {
        let folder = try TemporaryDirectory()
        let environment = try HostileLibrary.make(in: folder)
        let host = try Conversation([], environment: environment)
        let reader = try reader(host)
        defer { close(reader) }
        #expect(try ask(reader, "all") == .type("open write socket local start signal/"))
        let process = try #require(host.children.first)
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
        #expect(descriptors == ["0"])
        host.end()
    }

    @Test func `a content that ends it ends nothing else`() throws {
        let folder = try TemporaryDirectory()
        let host = try Conversation([], environment: try HostileLibrary.make(in: folder))
        let first = try reader(host)
        #expect(try ask(first, "die") == nil)
        let second = try reader(host)
        #expect(try ask(second, "all") != nil)
        for number in [first, second] { close(number) }
        host.end()
    }
}

/// A library in libmagic's place, which tells what it could do before its reader was confined and what it can do then.
private enum HostileLibrary {
    static let compiler = ProgramFinder.find("cc") ?? ProgramFinder.find("clang")

    /// - Returns: the environment in which it is found.
    static func make(in folder: TemporaryDirectory) throws -> [String: String] {
        let code = try folder.write(Array(source.utf8), to: "magic.c")
        let library = folder.path.appending("libmagic.so.1")
        try run(try #require(compiler).string, "-shared", "-fPIC", "-o", library.string, code.string)
        return ["LD_LIBRARY_PATH": folder.path.string, "TMPDIR": folder.path.string]
    }

    private static let source = """
        #include <fcntl.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/socket.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static char told[200];
        static void tell(const char *what, int could) {
            if (could) strcat(strcat(told, *told && told[strlen(told) - 1] != '/' ? " " : ""), what);
        }
        static void try_all(void) {
            char path[4096];
            snprintf(path, sizeof path, "%s/made-%d", getenv("TMPDIR"), *told != 0);
            tell("open", open("/etc/passwd", O_RDONLY) >= 0);
            tell("write", open(path, O_WRONLY | O_CREAT, 0600) >= 0);
            tell("socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
            tell("local", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
            int child = fork();
            if (child == 0) _exit(0);
            tell("start", child > 0);
            if (child > 0) waitpid(child, NULL, 0);
            tell("signal", kill(getppid(), 0) == 0);
        }
        void *magic_open(int flags) { return told; }
        int magic_load(void *cookie, const char *database) { return try_all(), 0; }
        const char *magic_error(void *cookie) { return "none"; }
        const char *magic_buffer(void *cookie, const void *bytes, size_t count) {
            if (count == 3 && memcmp(bytes, "die", 3) == 0) abort();
            strcat(told, "/");
            return try_all(), told;
        }
        """
}
