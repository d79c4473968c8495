import ArgumentParser
import Foundation
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import SystemPackage

struct SupportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "support", abstract: "Write one file for a bug report: what 'inlet doctor' finds, and the log.",
        discussion: """
            The file holds the output of 'inlet doctor', 'inlet config show' and 'inlet status --json', the metrics, and the
            last 1,000 log lines. Secrets show as ***. It names your folders, files and servers: look through it before you
            send it. Only you can read it, and an existing file is never replaced.

            Examples:
              inlet support
              inlet support ~/inlet.txt
            """)

    @OptionGroup var options: ConfigOption
    @Argument(
        help: ArgumentHelp("The file; without it, inlet-support-DATE.txt in this folder.", valueName: "FILE"),
        completion: .file())
    var file: String?

    func run() async throws {
        let now = WallTime.now.rfc3339Seconds
        let day = now.filter { $0 != ":" && $0 != "Z" }.replacing("T", with: "-")
        let path = FilePath.absolute(file ?? "inlet-support-\(day).txt")
        // Nothing is collected for a file that cannot be written.
        let isTaken: Bool
        do throws(SystemError) {
            isTaken = try FileLook.look(at: path) != .missing
            if !isTaken { try DurableFile.requireWritable(path.removingLastComponent()) }
        } catch {
            throw ExitStatus.failed.saying("\(error)")
        }
        if isTaken { throw Self.isThere(path) }
        var text = await SupportText(options, now)
        let bytes = Array(await text.made().utf8)
        do throws(SystemError) {
            try DurableFile.create(bytes, at: path, mode: 0o600, asFolderOwner: true)
        } catch {
            throw error.code == .fileExists ? Self.isThere(path) : ExitStatus.failed.saying("\(error)")
        }
        Console.print("\(path.display) is written. Look through it before you send it.")
    }

    private static func isThere(_ path: FilePath) -> ExitCode {
        ExitStatus.failed.saying("\(path.display) is there already, and stays as it is; name another file")
    }
}

/// The text of a support file.
private struct SupportText {
    private static let mostLines = 1000
    private static let mostBytes: Int64 = 2 << 20
    /// How long the disk of a log file may take.
    private static let patience = Duration.seconds(10)

    private let now: String
    private let socket: FilePath
    private var examination: Examination

    init(_ options: ConfigOption, _ now: String) async {
        self.now = now
        socket = options.socket()
        examination = await Examination(options, Findings(silently: .program))
    }

    mutating func made() async -> String {
        let redactor = Redactor(SupportSecrets.all(of: examination.config))
        await examination.run()
        let diagnosis = examination.findings.text + "\n\n" + examination.conclusion { text, _ in text }
        let (status, metrics) = await figures()
        let parts = [
            ("inlet doctor", diagnosis),
            ("inlet config show", examination.config.map { ConfigPrinter.show($0, types: DestinationKinds.types) }),
            ("inlet status --json", status), ("metrics", metrics),
            ("the last \(Self.mostLines) log lines", await log()),
        ]
        let head = """
            Inlet support file, \(now), \(Inlet.release)
            Secrets are left out. It names folders, files and servers: look through it before you send it.

            """
        let text = parts.reduce(head) { $0 + "\n==== \($1.0)\n\n\($1.1 ?? "(not available)")\n" }
        return DisplayText.masked(redactor.redacted(text), keepsColours: false)
    }

    /// The status and the metrics, of the agent or of its journal; otherwise why there are none.
    private func figures() async -> (status: String?, metrics: String?) {
        do {
            if examination.agent != nil {
                let client = ControlClient(socket: socket)
                defer { client.shutdown() }
                return try await Self.figures(client)
            }
            guard let config = examination.config, examination.isJournalSound else { return (nil, nil) }
            return try await ControlAccess.tryJournal(config) { try await Self.figures($0) } ?? (nil, nil)
        } catch {
            return ("(not available: \(error))", nil)
        }
    }

    private static func figures(_ control: any ControlAPI) async throws -> (status: String?, metrics: String?) {
        let status = try await control.ask(Endpoints.status)
        return (try Console.json(status, isPretty: true), try await control.metrics())
    }

    /// The log of the agent, or the end of its file.
    private func log() async -> String {
        do {
            if examination.agent != nil {
                let client = ControlClient(socket: socket)
                defer { client.shutdown() }
                return try await client.logLines(limit: Self.mostLines).joined(separator: "\n")
            }
            guard let output = examination.config?.settings.log.output, output.hasPrefix("/") else {
                return "(no agent runs; with systemd: journalctl -u inlet -n \(Self.mostLines))"
            }
            let patience = Self.patience
            let end = try await examination.pool.run { () throws(SystemError) -> String? in
                try LoopThread.result(name: "log", within: patience) { () throws(SystemError) in
                    try Self.end(of: FilePath(output))
                }
            }
            return end ?? "(not available: \(output) was not read within \(DurationText.format(patience)))"
        } catch {
            return "(not available: \(error))"
        }
    }

    private static func end(of path: FilePath) throws(SystemError) -> String {
        var file = try FollowedFile(path, tail: mostBytes)
        var splitter = LineSplitter()
        var lines: [[UInt8]] = []
        let isCut = file.isCut
        while true {
            let bytes = try file.next()
            if bytes.isEmpty { break }
            lines += splitter.take(bytes)
        }
        return lines.dropFirst(isCut ? 1 : 0).suffix(mostLines).map { String(decoding: $0, as: UTF8.self) }
            .joined(separator: "\n")
    }
}

/// The secrets that must not be in a support file, in every form that another text may give them.
private enum SupportSecrets {
    static func all(of config: LoadedConfig?) -> [Secret] {
        let own = (config?.secrets ?? []).flatMap { [$0] + parts(of: $0.reveal(), pathsToo: true) }
        let proxies = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        return own + proxies.compactMap(ProcessSetup.environment).flatMap { parts(of: $0, pathsToo: false) }
    }

    /// Shorter pieces of an address are words.
    private static let shortestPiece = 8

    /// The login of an address, and the pieces of its path and query, each as written and decoded: a server's or a
    /// library's sentence may hold one of them alone.
    private static func parts(of address: String, pathsToo: Bool) -> [Secret] {
        let rest = address.firstRange(of: "://").map { address[$0.upperBound...] } ?? address[...]
        let authority = rest.prefix { !"/?#".contains($0) }
        var found: [Substring] = []
        if let at = authority.lastIndex(of: "@") {
            let login = authority[..<at]
            found.append(login)
            if let colon = login.firstIndex(of: ":") { found.append(login[login.index(after: colon)...]) }
        }
        // Without a scheme it is a word, which is there as a whole.
        if pathsToo, rest.startIndex != address.startIndex {
            found += rest.dropFirst(authority.count).split { "/?#&=".contains($0) }
                .filter { $0.count >= shortestPiece }
        }
        return found.flatMap { [Secret(String($0)), Secret($0.removingPercentEncoding ?? String($0))] }
    }
}
