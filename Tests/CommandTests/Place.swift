import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A configuration for tests: one watched folder `drop`, one route, and the destination `store`.
struct ConfigText: Sendable {
    static let apiKey = "sandbox-key-93f1"

    var destination = "type: folder, path: library"
    var watch = ["settle: 0s", "settle_empty: 0s"]
    var route = ["key: \"{dir}/{name}\"", "retry: { attempts: 3, backoff: 100ms }"]
    /// Lines before `destinations:`.
    var top = ["shutdown_timeout: 20s"]

    /// Delivers to a sandbox on `port`, over `{ … }`'s further settings.
    static func spiral(_ port: Int, _ more: String = "", route: String...) -> ConfigText {
        var config = ConfigText()
        config.destination =
            "type: r2, api: \"http://127.0.0.1:\(port)\", dialect: v1, api_key: \"\(apiKey)\", part_size: 5MiB"
            + (more.isEmpty ? "" : ", " + more)
        config.route += route
        return config
    }

    var text: String {
        """
        state_dir: state
        log: { level: debug }
        \(top.joined(separator: "\n"))
        destinations:
          store: { \(destination) }
        watch:
          - path: drop
            \(watch.joined(separator: "\n    "))
        routes:
          - name: all
            to: store
            \(route.joined(separator: "\n    "))

        """
    }
}

/// A user's machine in a folder: the watched folder, the configuration, the state, and the commands run on them.
final class Place: Sendable {
    let folder: TemporaryDirectory
    var drop: FilePath { folder.path.appending("drop") }
    var state: FilePath { folder.path.appending("state") }
    var library: FilePath { folder.path.appending("library") }
    var configuration: FilePath { folder.path.appending("inlet.yaml") }

    /// One whose configuration has more lines than the usual, or another key or destination.
    convenience init(
        key: String? = nil, destination: String? = nil, watch: [String] = [], route: [String] = [], top: [String] = []
    ) throws {
        var config = ConfigText()
        if let key { config.route[0] = "key: \"\(key)\"" }
        if let destination { config.destination = destination }
        config.watch += watch
        config.route += route
        config.top += top
        try self.init(config)
    }

    /// One with an agent that is ready; the parameters as those of `init` and of `run`.
    static func running(
        key: String? = nil, destination: String? = nil, watch: [String] = [], route: [String] = [], top: [String] = [],
        environment: [String: String] = [:], launcher: [String] = []
    ) async throws -> (Place, InletProcess) {
        let place = try Place(key: key, destination: destination, watch: watch, route: route, top: top)
        return (place, try await place.run(environment: environment, launcher: launcher))
    }

    init(_ config: ConfigText) throws {
        folder = try TemporaryDirectory()
        try folder.makeDirectory("drop")
        try folder.makeDirectory("library")
        try configure(config)
    }

    /// One that is there already.
    init(in folder: TemporaryDirectory) { self.folder = folder }

    func configure(_ config: ConfigText) throws { try configure(text: config.text) }

    /// Writes the configuration as its owner should: readable by nobody else.
    func configure(text: String) throws {
        try folder.write(text.utf8, to: "inlet.yaml")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: configuration.string)
    }

    /// Replaces a word of the configuration.
    func configure(replacing old: String, with new: String) throws {
        try configure(text: String(decoding: content(configuration), as: UTF8.self).replacing(old, with: new))
    }

    /// Puts a file into the watched folder as a careful program does: written elsewhere, then renamed.
    func put(_ name: FilePath, _ content: Data) throws {
        let draft = try folder.write(content, to: FilePath("draft-\(UInt32.random(in: .min ... .max))"))
        let file = drop.pushing(name)
        try FileManager.default.createDirectory(
            atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
        guard rename(draft.string, file.string) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Puts a file into the watched folder, and waits until it is delivered.
    func deliver(_ name: FilePath, _ content: Data, by agent: InletProcess) async throws {
        try put(name, content)
        try await agent.line("job.finished") { $0.isAbout(name.string) && $0["state"] == "delivered" }
    }

    /// Starts `inlet COMMAND… --config inlet.yaml`.
    func start(
        _ command: String..., environment: [String: String] = [:], launcher: [String] = []
    ) throws -> InletProcess {
        try InletProcess(
            command + ["--config", configuration.string], in: folder.path, environment: environment, launcher: launcher)
    }

    /// Starts the agent and waits until it is ready.
    func run(environment: [String: String] = [:], launcher: [String] = []) async throws -> InletProcess {
        let agent = try start("run", environment: environment, launcher: launcher)
        try await agent.line("agent.ready")
        return agent
    }

    /// Starts the agent, waits for a line of its log, and stops it, which ends it well.
    func runUntil(
        _ event: String, number: Int = 1, where condition: (LogLine) -> Bool = { _ in true }
    ) async throws {
        let agent = try await run()
        try await agent.line(event, number: number, where: condition)
        #expect(try await agent.stop() == .code(0))
    }

    /// Runs a command to its end; expects its code, and what it says on its output and of errors, where these are given.
    @discardableResult
    func inlet(
        _ command: String..., environment: [String: String] = [:], code: Int32? = nil, says: String...,
        errors: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Finished {
        let finished = try await inlet(command, environment: environment)
        finished.check(code, says, errors, "\(command)", sourceLocation)
        return finished
    }

    @discardableResult
    func inlet(
        _ command: [String], environment: [String: String] = [:], code: Int32? = nil, says: String...,
        errors: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Finished {
        let finished = try await InletProcess.run(
            command + ["--config", configuration.string], in: folder.path, environment: environment)
        finished.check(code, says, errors, "\(command)", sourceLocation)
        return finished
    }

    struct Finished: Sendable {
        let ending: InletProcess.Ending
        let output: String
        let errors: String

        fileprivate func check(
            _ code: Int32?, _ says: [String], _ complains: [String], _ command: String, _ location: SourceLocation
        ) {
            let all: Comment = "\(command): \(output)\(errors)"
            if let code { #expect(ending == .code(code), all, sourceLocation: location) }
            for text in says where !text.isEmpty { #expect(output.contains(text), all, sourceLocation: location) }
            for text in complains where !text.isEmpty { #expect(errors.contains(text), all, sourceLocation: location) }
        }

        func object() throws -> [String: Any] {
            try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
        }

        /// The output's lines as JSON objects.
        func objects() throws -> [[String: Any]] {
            try output.split(separator: "\n").map {
                try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
            }
        }
    }

    /// Files by state, from `status --json`.
    func balance() async throws -> [String: Int] {
        try await inlet("status", "--json").object()["files"] as? [String: Int] ?? [:]
    }

    /// Whether a file is there; symlinks are not followed.
    func exists(_ path: FilePath) -> Bool { (try? FileManager.default.attributesOfItem(atPath: path.string)) != nil }

    func content(_ path: FilePath) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path.string)) }
}

extension InletProcess {
    /// Runs `inlet` to its end, with the expectations of `Place.inlet`.
    @discardableResult
    static func run(
        _ arguments: [String], in folder: FilePath, environment: [String: String] = [:], launcher: [String] = [],
        code: Int32? = nil, says: String..., errors: String..., sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Place.Finished {
        let process = try InletProcess(arguments, in: folder, environment: environment, launcher: launcher)
        let finished = Place.Finished(
            ending: try await process.ending(), output: process.output, errors: process.errors)
        finished.check(code, says, errors, "\(arguments)", sourceLocation)
        return finished
    }
}

/// Runs `body` beside a sandbox, in a place that is configured for it.
func withSpiral(
    _ settings: String = "", route: String..., lifetime: Duration = .seconds(3600),
    _ body: @Sendable @escaping (Place, SpiralSandbox) async throws -> Void
) async throws {
    let place = try Place()
    try await withSandbox(place.folder.path.appending("store"), lifetime: lifetime) { sandbox, port in
        var config = ConfigText.spiral(port, settings)
        config.route += route
        try place.configure(config)
        try await body(place, sandbox)
    }
}

/// Runs `body` beside a sandbox that keeps its objects in `directory`.
func withSandbox(
    _ directory: FilePath, port: Int = 0, lifetime: Duration = .seconds(3600),
    _ body: @Sendable @escaping (SpiralSandbox, Int) async throws -> Void
) async throws {
    let sandbox = try SpiralSandbox(
        directory: directory, apiKey: Secret(ConfigText.apiKey), urlLifetime: lifetime, port: port)
    try await whileServing({ try await sandbox.run() }) {
        try await body(sandbox, try await sandbox.port())
    }
}

/// `count` bytes that depend on `seed`, the same each time: one random block, with its number in front of each copy.
func bytes(_ count: Int, seed: UInt64 = 1) -> Data {
    var random = SeededGenerator(seed: seed)
    var block = Data(capacity: 1 << 16)
    for _ in 0..<min(8192, count / 8 + 1) { withUnsafeBytes(of: random.next()) { block.append(contentsOf: $0) } }
    var data = Data(capacity: count + block.count + 8)
    while data.count < count {
        withUnsafeBytes(of: data.count) { data.append(contentsOf: $0) }
        data.append(block)
    }
    return data.prefix(count)
}

extension FaultReply {
    /// A refusal of this one file, in the API's own words.
    static let tooLarge = FaultReply(413, type: "application/json", body: #"{"error":"too large"}"#)
}
