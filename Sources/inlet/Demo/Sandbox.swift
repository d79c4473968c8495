import ArgumentParser
import Foundation
import InletCore
import InletLinux
import InletSandbox
import SystemPackage
import UnixSignals

/// The demo's servers without an agent, for scripts that measure one. Not in the list of commands.
struct Sandbox: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sandbox", abstract: "Run only the demo's loopback servers, until SIGTERM.",
        discussion: """
            Prints their addresses and credentials as one line of JSON; its 'control' address answers GET / with the
            files that have arrived. The servers keep received files below DIR, and listen on 127.0.0.1 only.

            Examples:
              inlet sandbox --dir /tmp/inlet-sandbox
              inlet sandbox --dir /tmp/inlet-sandbox --trouble 0.02 --seed 7
            """,
        shouldDisplay: false)

    @Option(help: ArgumentHelp("The folder for received files.", valueName: "DIR")) var dir: String
    @Option(help: ArgumentHelp("Also write the line to FILE, once all of them listen.", valueName: "FILE"))
    var readyFile: String?
    @Option(help: ArgumentHelp("The share of requests that fail, from 0 to 1.", valueName: "SHARE")) var trouble = 0.0
    @Option(help: ArgumentHelp("The seed that decides which requests fail.", valueName: "N")) var seed: UInt64 = 1

    func validate() throws {
        guard (0...1).contains(trouble) else { throw ValidationError("--trouble must be from 0 to 1") }
    }

    func run() async throws {
        ProcessSetup.ignoreSignals()
        ProcessSetup.raiseDescriptorLimit()
        let place = DemoFolders(FilePath.absolute(dir))
        // Uses a key: a process that is killed between a refresh token and its successor would have to log in again.
        let rules = VOPIRules(generation: .apiKey, pace: .clock(step: .milliseconds(20)))
        let servers = try DemoServers(
            place, vopi: rules, trouble: (share: trouble, seed: seed))
        let control = ReportServer { Data(servers.report().bytes) }
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await control.run() }
            group.addTask {
                try await servers.serve {
                    try await announce(servers, control: try await control.port())
                    // Objects are on the disk, so that open connections need not end first.
                    for await _ in signals { ProcessSetup.exitNow(0) }
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    /// Prints the servers' addresses and credentials once all of them listen.
    private func announce(_ servers: DemoServers, control: Int) async throws {
        func url(_ port: Int) -> JSONValue { .string("http://127.0.0.1:\(port)") }
        let folder = FilePath.absolute(dir)
        let line = JSONValue.object([
            "control": url(control), "directory": .string(folder.string),
            "spiral": url(try await servers.spiral.port()), "s3": url(try await servers.s3.port()),
            "gighive": url(try await servers.gigHive.port()), "vopi": url(try await servers.vopi.port()),
            "roboscope": .string("http://127.0.0.1:\(try await servers.roboscope.port())/api/v1"),
            "api_key": .string(DemoServers.apiKey), "bucket": .string(DemoServers.bucket),
            "access_key": .string(DemoServers.accessKey), "secret_key": .string(DemoServers.secretKey),
            "password": .string(DemoServers.password),
        ])
        if let readyFile {
            try DurableFile.write(line.bytes + [UInt8(ascii: "\n")], to: FilePath.absolute(readyFile), mode: 0o600)
        }
        Console.print(line.text)
    }
}

extension DemoServers {
    /// The files that the servers have received so far, for programs that judge them.
    func report() -> JSONValue {
        .object([
            "spiral": Self.store(spiral, spiral.objects(), spiral.openUploads()),
            "s3": Self.store(s3, s3.objects(), s3.openUploads()),
            "gighive": gigHiveReport, "vopi": vopiReport, "roboscope": roboscopeReport,
        ])
    }

    /// The number of calls of each operation, the bytes of their bodies, and the requests with a fault.
    private static func server(_ sandbox: some LoopbackSandbox) -> JSONValue {
        .object([
            "requests": .object(sandbox.counts().filter { $0.value > 0 }.mapValues { JSONValue($0) }),
            "bytes": .object(sandbox.bytes().mapValues { .number("\($0)") }),
            "faults": JSONValue(sandbox.faults.injected),
        ])
    }

    /// A received file.
    private static func file(_ size: Int64, _ sha256: Digest, _ others: JSONObject) -> JSONValue {
        .object(others.merging(["size": .number("\(size)"), "sha256": .string(sha256.hex)]) { $1 })
    }

    private static func texts(_ texts: some Sequence<String>) -> JSONValue { .array(texts.map { .string($0) }) }

    /// A store with keys. An object with several versions was sent again.
    private static func store(
        _ sandbox: some LoopbackSandbox, _ objects: [StoredObject], _ openUploads: [String]
    ) -> JSONValue {
        .object([
            "server": server(sandbox), "open_uploads": texts(openUploads),
            "objects": .array(
                objects.map { object in
                    file(
                        object.size, object.sha256,
                        [
                            "key": .string(object.key), "versions": JSONValue(object.versions),
                            "path": .string(object.path.string),
                        ])
                }),
        ])
    }

    private var gigHiveReport: JSONValue {
        .object([
            "server": Self.server(gigHive), "open_uploads": Self.texts(gigHive.openUploads()),
            "assets": .array(
                gigHive.assets().map { asset in
                    Self.file(
                        asset.size, asset.sha256,
                        [
                            "id": JSONValue(asset.id), "path": .string(asset.path.string),
                            "labels": Self.texts(asset.entries.map(\.label)),
                        ])
                }),
        ])
    }

    /// A job's sources are the videos of its pictures.
    private var vopiReport: JSONValue {
        let stored = vopi.videos()
        let keys = Dictionary(stored.map { ($0.publicURL, $0.key) }, uniquingKeysWith: { $1 })
        let videos = stored.map { video in
            Self.file(video.size, video.sha256, ["key": .string(video.key), "puts": JSONValue(video.puts)])
        }
        let jobs = vopi.jobs().map { job in
            JSONValue.object([
                "id": .string(job.id), "video_key": .string(keys[job.videoURL] ?? job.videoURL),
                "status": .string(job.status),
                "sources": Self.texts(Set(vopi.pictures(of: job.id).map(\.source.hex)).sorted()),
            ])
        }
        return .object([
            "server": Self.server(vopi), "videos": .array(videos), "jobs": .array(jobs),
            "charges": JSONValue(vopi.tally.charges),
        ])
    }

    /// Markers by the stamps that the agent gave them.
    private var roboscopeReport: JSONValue {
        let spaces = roboscope.spaces().map { space in
            JSONValue.members([
                "key": .string(space.key), "model": space.modelGLBURL.map { .string($0) },
                "changes": JSONValue(space.changes),
            ])
        }
        return .object([
            "server": Self.server(roboscope), "spaces": .array(spaces),
            "sessions": JSONValue(roboscope.sessions().count),
            "markers": Self.texts(roboscope.markers().compactMap { $0.customProps["ingest_id"]?.text }),
        ])
    }
}
