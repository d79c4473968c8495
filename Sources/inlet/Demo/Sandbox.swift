import ArgumentParser
import Foundation
import InletCore
import InletLinux
import InletSandbox
import SystemPackage
import UnixSignals

/// For scripts that measure the agent: the demo's servers without an agent. Not in the list of commands.
struct Sandbox: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Runs the demo's loopback servers by themselves, until SIGTERM.",
        discussion: """
            Prints where they listen and what they take as one line of JSON; 'control' answers GET / with what has
            arrived. They keep what they receive below DIR, and listen on 127.0.0.1 only.

            Examples:
              inlet sandbox --dir /tmp/inlet-sandbox
              inlet sandbox --dir /tmp/inlet-sandbox --trouble 0.02 --seed 7
            """,
        shouldDisplay: false)

    @Option(help: ArgumentHelp("Where they keep what they receive.", valueName: "DIR")) var dir: String
    @Option(help: ArgumentHelp("Also write the line to FILE, once all of them listen.", valueName: "FILE"))
    var readyFile: String?
    @Option(help: ArgumentHelp("The share of requests that go wrong, 0 to 1.", valueName: "SHARE")) var trouble = 0.0
    @Option(help: ArgumentHelp("Decides which do.", valueName: "N")) var seed: UInt64 = 1

    func validate() throws {
        guard (0...1).contains(trouble) else { throw ValidationError("--trouble is a share from 0 to 1") }
    }

    func run() async throws {
        ProcessSetup.ignoreSignals()
        ProcessSetup.raiseDescriptorLimit()
        let place = DemoPlace(RouteCommand.absolute(dir))
        // By key: whoever is killed between a refresh token and its successor would have to log in again.
        let rules = VOPIRules(generation: .apiKey, pace: .clock(step: .milliseconds(20)))
        let servers = try DemoServers(
            place, vopi: rules, trouble: SandboxTrouble(share: trouble, seed: seed))
        let control = ReportServer { try SandboxReport(servers).json() }
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await control.run() }
            group.addTask {
                try await servers.serve { ports in
                    try announce(ports, control: try await control.port())
                    // What is stored is on the disk: nobody waits for connections that are still open.
                    for await _ in signals { ProcessSetup.exitNow(0) }
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    private func announce(_ ports: DemoServers.Ports, control: Int) throws {
        let line = SandboxAnnouncement(ports, control: control, directory: RouteCommand.absolute(dir).string)
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = Array(try encoder.encode(line)) + [UInt8(ascii: "\n")]
        if let readyFile { try DurableFile.write(bytes, to: RouteCommand.absolute(readyFile), mode: 0o600) }
        Console.print(String(decoding: bytes.dropLast(), as: UTF8.self))
    }
}

/// Where the servers listen, and what they take.
private struct SandboxAnnouncement: Encodable {
    var control: String
    var directory: String
    var spiral: String
    var s3: String
    var gighive: String
    var vopi: String
    var roboscope: String
    var apiKey = DemoServers.apiKey
    var bucket = DemoServers.bucket
    var accessKey = DemoServers.accessKey
    var secretKey = DemoServers.secretKey
    var password = DemoServers.password

    init(_ ports: DemoServers.Ports, control: Int, directory: String) {
        func url(_ port: Int) -> String { "http://127.0.0.1:\(port)" }
        self.control = url(control)
        self.directory = directory
        spiral = url(ports.spiral)
        s3 = url(ports.s3)
        gighive = url(ports.gigHive)
        vopi = url(ports.vopi)
        roboscope = url(ports.roboscope) + "/api/v1"
    }
}
