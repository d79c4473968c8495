import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A person who types a line for each question of a program on a terminal.
private struct Typist {
    /// Types each line once its question is there; ends as the program does.
    private static let script = """
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
            if lines and seen.endswith((b"? ", b"] ", b": ")):
                os.write(terminal, lines.pop(0).encode() + b"\\n")
                seen = b""
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """

    let folder: TemporaryDirectory
    var launcher: [String] = []

    /// Runs `inlet init` with these answers.
    func initialize(
        _ arguments: [String] = [], _ lines: String..., code: Int32 = 0,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let script = try folder.write(Self.script.utf8, to: "typist.py")
        let process = try await InletProcess.run(
            ["init"] + arguments, in: folder.path, environment: ["TERM": "dumb"],
            launcher: launcher + ["/usr/bin/python3", script.string, "typist", lines.joined(separator: "|")],
            code: code, sourceLocation: sourceLocation)
        return process.output.replacing("\r\n", with: "\n")
    }
}

/// `inlet init` as a person at a terminal meets it.
@Suite struct InitDialogTests {
    private func text(_ path: FilePath) throws -> String { try String(contentsOfFile: path.string, encoding: .utf8) }

    @Test func `a typed secret stays out of sight, and a server that is away may be kept`() async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("inlet.yaml")
        // What, address, the key typed, keep it though nothing listens, folder, keep files, make the folder, no check.
        let said = try await Typist(folder: folder).initialize(
            ["--config", file.string], "r2", "http://127.0.0.1:\(try FreePort.any())", "=", "hunter2", "keep", "drop",
            "",
            "y", "n")
        #expect(said.contains("✗ ") && said.contains("→ check the server") && !said.contains("hunter2"), "\(said)")
        #expect(FileManager.default.fileExists(atPath: folder.path.appending("drop").string))
        #expect(try !text(file).contains("hunter2") && text(file).contains("${file:r2.api_key}"))
        let secret = folder.path.appending("r2.api_key")
        #expect(try text(secret) == "hunter2\n")
        for path in [file, secret] {
            let mode = try FileManager.default.attributesOfItem(atPath: path.string)[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o600, "\(path)")
        }
        try await InletProcess.run(["config", "show", "--config", file.string], in: folder.path, code: 0)
    }

    @Test(arguments: [("", "ingest"), ("adopt", "adopt"), ("leave", "skip")])
    func `files that are there are counted, and go the way that a person says`(
        _ answer: String, _ existing: String
    ) async throws {
        let folder = try TemporaryDirectory()
        let file = folder.path.appending("inlet.yaml")
        for name in ["a.jpg", "in/b.jpg", "c.tmp"] { try folder.write("x".utf8, to: FilePath("drop/\(name)")) }
        let said = try await Typist(folder: folder).initialize(
            ["--config", file.string], "1", "library", "drop", answer, "", "y", "n")
        #expect(
            said.contains("\(folder.path.appending("library").display) is not there yet; it can be made"), "\(said)")
        #expect(said.contains("\(folder.path.appending("drop").display): readable, "), "\(said)")
        #expect(said.contains("watched by inotify") || said.contains("polled every"), "\(said)")
        #expect(said.contains("It holds 2 files already."), "\(said)")
        try await InletProcess.run(
            ["config", "show", "--config", file.string], in: folder.path, code: 0, says: "existing: \(existing)")
        let rehearsed = try await InletProcess.run(
            ["run", "--dry-run", "--config", file.string], in: folder.path, code: 0)
        #expect(rehearsed.output.contains("2 files would be sent") == answer.isEmpty, "\(rehearsed.output)")
    }

    @Test func `a bucket's wrong key is told at once, and only that answer is given again`() async throws {
        try await withS3 { place, sandbox in
            let file = place.folder.path.appending("first.yaml")
            let address = "http://127.0.0.1:\(try await sandbox.port())"
            let said = try await Typist(folder: place.folder).initialize(
                ["--config", file.string], "bucket", address, "sandbox", "", "=", "AKIDEXAMPLE", "=", "wrong-canary",
                // Each of the earlier answers stays where the line is empty.
                "change", "", "", "", "", "=", "sandbox-secret-93f1", "drop", "", "n")
            #expect(said.contains("check access_key and secret_key"), "\(said)")
            #expect(said.contains("✓ \(address)/sandbox, region us-east-1 answers"), "\(said)")
            #expect(!said.contains("canary") && !said.contains("sandbox-secret"), "\(said)")
            #expect(try text(place.folder.path.appending("bucket.secret_key")) == "sandbox-secret-93f1\n")
            #expect(try text(file).contains("endpoint: \"\(address)\"") || text(file).contains("endpoint: \(address)"))
            try await InletProcess.run(
                ["check", "--config", file.string], in: place.folder.path, says: "✓ destination bucket")
        }
    }

    @Test func `a call of the Spiral API that was typed for a bucket goes on as that API, and is tested`() async throws
    {
        let folder = try TemporaryDirectory()
        try await withSandbox(folder.path.appending("store")) { _, port in
            let address = "http://127.0.0.1:\(port)"
            let said = try await Typist(folder: folder).initialize(
                ["--config", "inlet.yaml"], "bucket", "\(address)/v1/multipart/create", "", "=", ConfigText.apiKey,
                "drop",
                "", "n", "n")
            #expect(said.contains("Go on with 'type: r2' at \(address)?"), "\(said)")
            #expect(said.contains("✓ \(address)") && !said.contains("✗"), "\(said)")
            #expect(try text(folder.path.appending("inlet.yaml")).contains("api: \"\(address)\""))
        }
    }

    @Test func `credentials that only the agent will have are not tried, the server is`() async throws {
        try await withS3 { place, sandbox in
            let said = try await Typist(folder: place.folder).initialize(
                ["--config", "first.yaml"], "bucket", "http://127.0.0.1:\(try await sandbox.port())", "sandbox", "",
                "NO_KEY", "NO_SECRET", "drop", "")
            #expect(
                said.contains(
                    "✓ the server can be reached; its credentials are not tested: this shell has no NO_KEY, NO_SECRET"),
                "\(said)")
        }
    }

    // MARK: - The service

    /// A machine of its own: its /etc and /var/lib, its network and its processes, which end with the last command.
    private static let machine = [
        "/usr/bin/unshare", "-Urmnpf", "--kill-child", "--mount-proc", "/bin/sh", "-c",
        """
        mkdir -p "$0/var" "$0/etc/inlet" && chmod 2750 "$0/etc/inlet"
        cp -a /etc/. "$0/etc" 2>/dev/null
        mount --bind "$0/etc" /etc && mount --bind "$0/var" /var/lib || exit 99
        ip link set lo up || exit 99
        PATH="$0/bin:$PATH" "$@"
        """,
    ]

    private static let hasMachines: Bool = {
        guard let folder = try? TemporaryDirectory() else { return false }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: machine[0])
        process.arguments = machine.dropFirst() + [folder.path.string, "/bin/true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// A systemctl that knows the unit, and starts the agent as the unit does. It writes down what it was asked.
    ///
    /// - Parameter before: a command that runs before the agent.
    private func systemctl(_ folder: TemporaryDirectory, before: String = ":") throws {
        let binary = try BuiltBinary.path()
        let text = """
            #!/bin/sh
            echo "$*" >> "\(folder.path)/asked"
            case "$1" in
            is-active) exit 3 ;;
            enable) \(before); \(binary) run --config /etc/inlet/inlet.yaml > "\(folder.path)/agent.log" 2>&1 < /dev/null & ;;
            esac
            """
        let file = try folder.write(text.utf8, to: "bin/systemctl")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: file.string)
    }

    @Test(.enabled(if: hasMachines, "needs namespaces (unshare -Urmnpf) and ip"))
    func `the service is started where a person wants it, and the page's link is printed`() async throws {
        let folder = try TemporaryDirectory()
        try systemctl(folder)
        try folder.makeDirectory("drop")
        try folder.makeDirectory("library")
        let typist = Typist(folder: folder, launcher: Self.machine + [folder.path.string])
        // No --config: root's usual one is the service's.
        let said = try await typist.initialize([], "folder", "library", "drop", "", "y")
        #expect(said.contains("Wrote /etc/inlet/inlet.yaml."), "\(said)")
        #expect(said.contains("! tested as root; the service is user inlet"), "\(said)")
        #expect(!said.contains("It needs you:"), "\(said)")
        #expect(said.contains("The service runs. Drop files in \(folder.path.appending("drop").display)."), "\(said)")
        #expect(said.contains(/Its page, .*: http:\/\/127\.0\.0\.1:8844\/\S+/), "\(said)")
        let asked = try text(folder.path.appending("asked")).split(separator: "\n")
        #expect(asked == ["cat inlet.service", "is-active --quiet inlet.service", "enable --now inlet.service"])
    }

    @Test(.enabled(if: hasMachines, "needs namespaces (unshare -Urmnpf) and ip"))
    func `what the service cannot use is told once it runs`() async throws {
        let folder = try TemporaryDirectory()
        for name in ["drop", "library"] { try folder.makeDirectory(FilePath(name)) }
        // As a folder that only root sees.
        let drop = folder.path.appending("drop")
        try systemctl(folder, before: "rmdir '\(drop)'")
        let said = try await InletProcess.run(
            ["init", "--start", "--watch", "drop", "--to", "folder", "--path", "library", "--yes"],
            in: folder.path, launcher: Self.machine + [folder.path.string], code: 0, says: "The service runs.")
        #expect(said.output.contains("It needs you:\n  \(drop.display) is not there: "), "\(said)")
    }

    @Test(.enabled(if: hasMachines, "needs namespaces (unshare -Urmnpf) and ip"))
    func `without a terminal the service is started for --start only, and not without its variables`() async throws {
        let folder = try TemporaryDirectory()
        try systemctl(folder)
        let launcher = Self.machine + [folder.path.string]
        let answers = ["--watch", "drop", "--to", "folder", "--path", "library", "--yes", "--force"]
        try await InletProcess.run(
            ["init"] + answers, in: folder.path, launcher: launcher, code: 0, says: "systemctl enable --now inlet")
        #expect(try !text(folder.path.appending("asked")).contains("enable"))
        let bucket = ["--watch", "drop", "--to", "s3", "--endpoint", "https://s3.example.com", "--bucket", "media"]
        try await InletProcess.run(
            ["init", "--yes", "--force", "--start"] + bucket, in: folder.path, launcher: launcher, code: 1,
            errors: "not started: the service does not have S3_ACCESS_KEY, S3_SECRET_KEY")
        #expect(try !text(folder.path.appending("asked")).contains("enable"))
        try await InletProcess.run(
            ["init", "--start"] + answers, in: folder.path, launcher: launcher, code: 0, says: "The service runs.")
    }
}
