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
        let place = DemoPlace(FilePath.absolute(dir))
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
        let line = SandboxAnnouncement(ports, control: control, directory: FilePath.absolute(dir).string)
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = Array(try encoder.encode(line)) + [UInt8(ascii: "\n")]
        if let readyFile { try DurableFile.write(bytes, to: FilePath.absolute(readyFile), mode: 0o600) }
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

/// What the loopback servers have received so far, as JSON for programs that judge it.
struct SandboxReport: Encodable {
    /// An object of a store that goes by keys.
    struct Object: Encodable {
        var key: String
        var size: Int64
        var sha256: String
        /// How many times it was stored: more than once, somebody sent it again.
        var versions: Int
        var path: String
    }

    /// A server: how often each operation was asked, and the bytes of the requests' bodies.
    struct Server: Encodable {
        var requests: [String: Int]
        var bytes: [String: Int64]
        /// Requests that met a fault.
        var faults: Int

        init(_ sandbox: some LoopbackSandbox) {
            requests = sandbox.counts().filter { $0.value > 0 }
            bytes = sandbox.bytes()
            faults = sandbox.faults.injected
        }
    }

    struct Store: Encodable {
        var server: Server
        var objects: [Object]
        var openUploads: [String]
    }

    struct GigHive: Encodable {
        struct Asset: Encodable {
            var id: Int
            var size: Int64
            var sha256: String
            var path: String
            /// What its entries are called; as many as there are entries.
            var labels: [String]
        }

        var server: Server
        var assets: [Asset]
        var openUploads: [String]
    }

    struct VOPI: Encodable {
        struct Video: Encodable {
            var key: String
            var size: Int64
            var sha256: String
            var puts: Int
        }

        struct Job: Encodable {
            var id: String
            var videoKey: String
            var status: String
            /// SHA-256 of the videos that its pictures were made of.
            var sources: [String]
        }

        var server: Server
        var videos: [Video]
        var jobs: [Job]
        var charges: Int
    }

    struct Roboscope: Encodable {
        struct Space: Encodable {
            var key: String
            var model: String?
            var changes: Int
        }

        var server: Server
        var spaces: [Space]
        var sessions: Int
        /// The stamps of markers that the agent gave one.
        var markers: [String]
    }

    var spiral: Store
    var s3: Store
    var gighive: GigHive
    var vopi: VOPI
    var roboscope: Roboscope

    init(_ servers: DemoServers) {
        spiral = Store(
            server: Server(servers.spiral), objects: servers.spiral.objects().map(Object.init),
            openUploads: servers.spiral.openUploads())
        s3 = Store(
            server: Server(servers.s3), objects: servers.s3.objects().map(Object.init),
            openUploads: servers.s3.openUploads())
        gighive = GigHive(
            server: Server(servers.gigHive), assets: servers.gigHive.assets().map(GigHive.Asset.init),
            openUploads: servers.gigHive.openUploads())
        vopi = VOPI(servers.vopi)
        roboscope = Roboscope(servers.roboscope)
    }

    /// Keys in snake case, sorted.
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }
}

extension SandboxReport.Object {
    init(_ object: StoredObject) {
        self.init(
            key: object.key, size: object.size, sha256: object.sha256.hex, versions: object.versions,
            path: object.path.string)
    }
}

extension SandboxReport.GigHive.Asset {
    init(_ asset: GigHiveAsset) {
        self.init(
            id: asset.id, size: asset.size, sha256: asset.sha256.hex, path: asset.path.string,
            labels: asset.entries.map(\.label))
    }
}

extension SandboxReport.VOPI {
    init(_ sandbox: VOPISandbox) {
        server = SandboxReport.Server(sandbox)
        let stored = sandbox.videos()
        videos = stored.map { Video(key: $0.key, size: $0.size, sha256: $0.sha256.hex, puts: $0.puts) }
        let keys = Dictionary(stored.map { ($0.publicURL, $0.key) }, uniquingKeysWith: { $1 })
        jobs = sandbox.jobs().map { job in
            Job(
                id: job.id, videoKey: keys[job.videoURL] ?? job.videoURL, status: job.status,
                sources: Set(sandbox.pictures(of: job.id).map(\.source.hex)).sorted())
        }
        charges = sandbox.tally.charges
    }
}

extension SandboxReport.Roboscope {
    init(_ sandbox: RoboscopeSandbox) {
        server = SandboxReport.Server(sandbox)
        spaces = sandbox.spaces().map { Space(key: $0.key, model: $0.modelGLBURL, changes: $0.changes) }
        sessions = sandbox.sessions().count
        markers = sandbox.markers().compactMap { $0.customProps["ingest_id"]?.text }
    }
}
