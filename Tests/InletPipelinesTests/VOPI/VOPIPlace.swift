import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage

@testable import InletPipelines

/// A clock that a test moves; the sandbox and the pipeline both go by it.
final class HandClock: Sendable {
    private let time = Mutex(WallTime.now)

    var now: WallTime { time.withLock { $0 } }
    func advance(_ duration: Duration) { time.withLock { $0 = $0 + duration } }
    func advance(to time: WallTime) { self.time.withLock { $0 = max($0, time) } }
}

/// A VOPI server that runs, a pipeline that leads there, and folders for videos and results.
final class VOPIPlace: Sendable {
    static let apiKey = "vopi-canary-31f0"

    let sandbox: VOPISandbox
    let api: VOPIAPI
    let pipeline: VOPIPipeline
    let clock: HandClock
    let client: HTTPClient
    let pool: BlockingPool
    private let directory: TemporaryDirectory

    fileprivate init(
        _ sandbox: VOPISandbox, _ clock: HandClock, _ directory: TemporaryDirectory, port: Int,
        _ settings: [String: ConfigValue]
    ) throws {
        self.sandbox = sandbox
        self.clock = clock
        self.directory = directory
        let values: [String: ConfigValue] = [
            "url": .string("http://127.0.0.1:\(port)"),
            "results": .string(directory.path.appending("results").string),
        ].merging(settings) { $1 }
        client = HTTPClient(userAgent: "inlet-tests/1")
        pool = BlockingPool(name: "vopi", threads: 4)
        api = VOPIAPI(
            try VOPISettings(section(values)), name: "products", client: client, pool: pool,
            tokens: directory.path.appending("tokens"))
        pipeline = VOPIPipeline(api: api, client: client, pool: pool, now: { clock.now })
    }

    var results: FilePath { directory.path.appending("results") }

    /// `count` bytes as a video, and the order to deliver it.
    func file(
        _ count: Int = 100_000, _ name: String = "clip.mp4", fields: [String: String] = [:]
    ) throws -> (FilePath, DeliveryOrder) {
        let path = try directory.write(content(count), to: FilePath("videos/" + name))
        let order = DeliveryOrder(
            id: 1, destination: "products", key: "videos/\(name)", mediaType: "video/mp4", fields: fields,
            source: try SourceFile(opening: path).opened)
        return (path, order)
    }

    /// One attempt.
    func attempt(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws -> Result<DeliveryOutcome, DeliveryError> {
        try await pipeline.attempt(path, order, attempt)
    }

    /// Attempts until it ends, the clock moved to where each wait ends.
    func deliver(_ path: FilePath, _ order: DeliveryOrder, _ notes: Notes = Notes()) async throws -> Proof {
        for _ in 1...200 {
            switch try await attempt(path, order, notes.attempt()).get() {
            case .delivered(let proof): return proof
            case .waiting(let until, _): clock.advance(to: until)
            }
        }
        throw DeliveryError(.giveUp, .internalFault, "still waiting after 200 attempts")
    }

    /// The error that ends it; nil when it is delivered.
    func failure(_ path: FilePath, _ order: DeliveryOrder, _ notes: Notes = Notes()) async throws -> DeliveryError? {
        do {
            _ = try await deliver(path, order, notes)
            return nil
        } catch let error as DeliveryError {
            return error
        }
    }

    func misbehave(_ action: FaultAction, at operation: VOPIOperation, times: Int? = 1) {
        sandbox.faults.add(VOPIFault(action, at: operation, times: times))
    }

    func count(_ operation: VOPIOperation) -> Int { sandbox.traffic.counts[operation] ?? 0 }

    // MARK: - What came back

    /// Every file below `results/<job>`, hidden ones too.
    func files(of job: String) throws -> [String: Data] {
        let folder = results.appending(job)
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.string)
        var files: [String: Data] = [:]
        for name in names {
            var isFolder: ObjCBool = false
            let path = folder.string + "/" + name
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue else {
                continue
            }
            files[name] = try Data(contentsOf: URL(fileURLWithPath: path))
        }
        return files
    }

    /// The bytes of every picture that the server made for a job, in order.
    func pictures(of job: String) throws -> [Data] {
        try sandbox.pictures(of: job).map { try Data(contentsOf: URL(fileURLWithPath: $0.object.path.string)) }
            .sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// The bytes of every picture that was fetched, in order.
    func fetched(of job: String) throws -> [Data] {
        try files(of: job).filter { $0.key != "product.json" }.map(\.value)
            .sorted { $0.lexicographicallyPrecedes($1) }
    }

    func product(of job: String) throws -> [String: Any] {
        let json = try files(of: job)["product.json"] ?? Data()
        return try JSONSerialization.jsonObject(with: json) as? [String: Any] ?? [:]
    }
}

/// Runs `body` on a destination of its own.
func withVOPI(
    _ rules: VOPIRules = VOPIRules(), credits: Int = 100, settings: [String: ConfigValue] = [:],
    _ body: @Sendable (VOPIPlace) async throws -> Void
) async throws {
    let directory = try TemporaryDirectory()
    let clock = HandClock()
    let sandbox = try VOPISandbox(
        directory: directory.path.appending("server"), apiKey: Secret(VOPIPlace.apiKey), credits: credits, rules: rules,
        clock: { clock.now })
    try await whileServing({ try await sandbox.run() }) {
        let seed = try directory.write(sandbox.signIn().refreshToken.reveal().utf8, to: "seed")
        let login: [String: ConfigValue] =
            rules.generation == .apiKey
            ? ["api_key": .secret(Secret(VOPIPlace.apiKey))] : ["refresh_token_file": .string(seed.string)]
        let place = try VOPIPlace(
            sandbox, clock, directory, port: try await sandbox.port(),
            settings.merging(["auth": .section(section(login))]) { $1 })
        try await body(place)
        // First, so that no connection of ours outlives its server.
        place.client.shutdown()
    }
}

/// The same with a video, its order, and notes for the attempts at it.
func withVOPI(
    _ rules: VOPIRules = VOPIRules(), credits: Int = 100, settings: [String: ConfigValue] = [:],
    file count: Int = 100_000,
    _ body: @Sendable (VOPIPlace, FilePath, DeliveryOrder, Notes) async throws -> Void
) async throws {
    try await withVOPI(rules, credits: credits, settings: settings) { place in
        let (path, order) = try place.file(count)
        try await body(place, path, order, Notes())
    }
}

func section(_ values: [String: ConfigValue]) -> ConfigSection {
    ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
}

/// Notes that die in the middle of an attempt, as the journal of a killed process does: what is put after that is lost.
final class DyingNotes: Sendable {
    enum Moment: CaseIterable {
        /// Right after a note was written.
        case afterNote
        /// When what a note tells of is done, and the note is not written yet.
        case beforeNote
    }

    private struct State {
        var entries: Notes.Entries
        var left: Int
    }

    private let state: Mutex<State>
    private let moment: Moment

    /// Lives for `count` notes.
    init(_ entries: Notes.Entries, notes count: Int, _ moment: Moment) {
        state = Mutex(State(entries: entries, left: count))
        self.moment = moment
    }

    var entries: Notes.Entries { state.withLock { $0.entries } }

    var hasDied: Bool { state.withLock { $0.left < 0 || moment == .afterNote && $0.left == 0 } }

    func attempt() -> Attempt {
        let log = CheckpointLog(
            entries: entries,
            write: { entries throws(DeliveryError) in try self.take { $0.merging(entries) { $1 } } },
            replace: { entries throws(DeliveryError) in try self.take { _ in entries } })
        return Attempt(checkpoint: log, isStopping: { false })
    }

    private func take(_ change: (Notes.Entries) -> Notes.Entries) throws(DeliveryError) {
        let isDead = state.withLock { state in
            state.left -= 1
            if state.left >= 0 { state.entries = change(state.entries) }
            return state.left < 0 || moment == .afterNote && state.left == 0
        }
        guard isDead else { return }
        withUnsafeCurrentTask { $0?.cancel() }
        if state.withLock({ $0.left < 0 }) { throw DeliveryError(.cancelled, .cancelled, "killed") }
    }
}
