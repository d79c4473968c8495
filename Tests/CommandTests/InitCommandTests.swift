import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// `inlet init` as people and scripts run it.
@Suite struct InitCommandTests {
    private func mode(_ path: FilePath) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path.string)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue
    }

    private func exists(_ path: FilePath) -> Bool { FileManager.default.fileExists(atPath: path.string) }

    @Test func `flags alone make a configuration that shows, and that a dry run takes files by`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("etc").appending("inlet.yaml")
        let wanted = [
            "--config", file.string, "--watch", "drop", "--to", "folder", "--path", "library", "--on-success",
            "archive",
        ]
        try await InletProcess.run(
            ["init"] + wanted + ["--yes"], in: folder.path, code: 0, says: "inlet run --dry-run --config")
        #expect(try mode(file) == 0o600)
        #expect(exists(folder.path.appending("drop")) && exists(folder.path.appending("library")))
        try await InletProcess.run(
            ["config", "show", "--config", file.string], in: folder.path, code: 0, says: "on_success: archive")
        try folder.write(Data("hello".utf8), to: "drop/hello.txt")
        try await InletProcess.run(
            ["run", "--dry-run", "--config", file.string], in: folder.path, says: "1 file would be sent, 5 bytes")
    }

    @Test func `what is missing is 64 and named, and nothing is written`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("inlet.yaml")
        for (arguments, flag) in [
            (["--to", "folder"], "--watch DIR"), (["--watch", "drop"], "--to TYPE"),
            (["--watch", "drop", "--to", "s3"], "--bucket"), (["--watch", "drop", "--to", "ftp"], "'ftp' is none of"),
            (["--watch", "drop", "--to", "folder", "--path", "drop/in"], "drop"),
            (["--watch", "drop", "--to", "folder", "--path", "lib", "--bucket", "x"], "--bucket is not for"),
        ] {
            try await InletProcess.run(
                ["init", "--config", file.string] + arguments, in: folder.path, code: 64, errors: flag)
            #expect(!exists(file))
        }
    }

    @Test func `a configuration that is there stays, unless it is to be replaced`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("# mine\n".utf8, to: "inlet.yaml")
        let arguments = ["init", "--config", file.string, "--watch", "drop", "--to", "folder", "--path", "library"]
        try await InletProcess.run(arguments, in: folder.path, code: 64, errors: "--force")
        #expect(try String(contentsOfFile: file.string, encoding: .utf8) == "# mine\n")
        try await InletProcess.run(arguments + ["--force"], in: folder.path, code: 0)
        #expect(try String(contentsOfFile: file.string, encoding: .utf8).contains("type: folder"))
        #expect(!exists(folder.path.appending("drop")), "nobody said that it shall be made")
    }

    @Test func `in a folder that hands on its group, the group can read it`() async throws {
        let folder = try TemporaryDirectory()
        try folder.makeDirectory("etc")
        let etc = folder.path.appending("etc")
        #expect(chmod(etc.string, 0o2750) == 0)
        let file = etc.appending("inlet.yaml")
        let made = try await InletProcess.run(
            ["init", "--config", file.string, "--watch", "a/drop", "--to", "folder", "--path", "library", "--yes"],
            in: folder.path, launcher: ["/bin/sh", "-c", "umask 077; exec \"$0\" \"$@\""], code: 0)
        #expect(try mode(file) == 0o640)
        if getuid() == 0 {
            #expect(try mode(folder.path.appending("a").appending("drop")) == 0o2770)
            #expect(try mode(folder.path.appending("a")) == 0o2750 && mode(folder.path.appending("library")) == 0o2770)
            #expect(made.output.contains("sudo -u inlet inlet check"), "\(made.output)")
        }
    }

    @Test func `a folder that cannot be made leaves no configuration in the way`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write("x".utf8, to: "file")
        let file = folder.path.appending("inlet.yaml")
        let refused = try await inlet(
            ["init", "--config", file.string, "--watch", "file/drop", "--to", "folder", "--path", "library", "--yes"],
            in: folder)
        #expect(try await refused.ending() == .code(1), "\(refused.errors)")
        #expect(!exists(file))
    }

    /// Types each line once its question is there; exits as the program does.
    private static let typist = """
        import os, pty, sys
        lines = sys.argv[2].split("|")
        child, terminal = pty.fork()
        if child == 0:
            os.execv(sys.argv[3], sys.argv[3:])
        seen = b""
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            os.write(1, more)
            seen += more
            if lines and seen.endswith((b"? ", b"] ", b": ", b"folder ")):
                os.write(terminal, lines.pop(0).encode() + b"\\n")
                seen = b""
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """

    @Test func `on a terminal it asks, keeps a typed secret out of sight, and checks at the end`() async throws {
        let folder = try TemporaryDirectory()
        let script = try folder.write(Self.typist.utf8, to: "typist.py")
        let file = folder.path.appending("inlet.yaml")
        // Folder, where to, address, the key typed, keep, make the folder, no check now.
        let answers = "drop|r2|http://127.0.0.1:9|=|hunter2||y|n"
        let process = try await InletProcess.run(
            ["init", "--config", file.string], in: folder.path, environment: ["TERM": "dumb"],
            launcher: ["/usr/bin/python3", script.string, "typist", answers], code: 0)
        #expect(!process.output.contains("hunter2"))
        #expect(exists(folder.path.appending("drop")))
        let text = try String(contentsOfFile: file.string, encoding: .utf8)
        #expect(!text.contains("hunter2"))
        #expect(text.contains("${file:r2.api_key}"))
        let secret = folder.path.appending("r2.api_key")
        #expect(try String(contentsOfFile: secret.string, encoding: .utf8) == "hunter2\n")
        #expect(try mode(secret) == 0o600 && mode(file) == 0o600)
        try await InletProcess.run(["config", "show", "--config", file.string], in: folder.path, code: 0)
    }

    /// `init` on `terminal`, at the question for the secret, whose answer is not shown.
    private func atSecret(
        _ folder: TemporaryDirectory, _ terminal: PseudoTerminal, _ seen: DrawnText
    ) async throws -> InletProcess {
        try folder.makeDirectory("drop")
        let process = try InletProcess(
            ["init", "--config", "inlet.yaml", "--watch", "drop", "--to", "r2", "--api", "http://127.0.0.1:9"],
            in: folder.path, environment: ["TERM": "xterm"], terminal: terminal)
        try await seen.wait("= to type it", process)
        #expect(try terminal.echoes())
        try terminal.press("=\n")
        try await seen.wait("(not shown): ", process)
        #expect(try !terminal.echoes())
        return process
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a signal at a hidden question ends it with a terminal that shows what is typed`(_ signal: Int32) async throws
    {
        let folder = try TemporaryDirectory()
        let terminal = try PseudoTerminal(columns: 120, rows: 30)
        let process = try await atSecret(folder, terminal, DrawnText(terminal))
        process.signal(signal)
        #expect(try await process.ending() == .signal(signal))
        #expect(try terminal.echoes())
        #expect(!exists(folder.path.appending("inlet.yaml")))
    }

    @Test func `stopped at a hidden question it asks again when it goes on`() async throws {
        let folder = try TemporaryDirectory()
        let terminal = try PseudoTerminal(columns: 120, rows: 30)
        let seen = DrawnText(terminal)
        let process = try await atSecret(folder, terminal, seen)
        process.signal(SIGTSTP)
        try await process.wait("it is stopped") { process.isStopped }
        #expect(try terminal.echoes())
        seen.forget()
        process.signal(SIGCONT)
        try await seen.wait("(not shown): ", process)
        #expect(try !terminal.echoes())
        try terminal.press("hunter2\n")
        try await seen.wait("What becomes of a file", process)
        #expect(try terminal.echoes() && !seen.all.contains("hunter2"))
        try terminal.press("\n")
        try await seen.wait("Check it now?", process)
        try terminal.press("n\n")
        #expect(try await process.ending() == .code(0), "\(process.errors)")
        #expect(try String(contentsOfFile: folder.path.appending("r2.api_key").string, encoding: .utf8) == "hunter2\n")
    }

    @Test func `the version is told with the program's name`() async throws {
        let folder = try TemporaryDirectory()
        let said = try await InletProcess.run(["--version"], in: folder.path, code: 0)
        #expect(said.output.contains(/^inlet \d+\.\d+\.\d+( \([0-9a-f]+\+?, \d{4}-\d\d-\d\d\))?\n$/), "\(said.output)")
    }
}
