import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

/// What counts as delivered where no object of the file's own stays: VOPI keeps pictures, Roboscope a URL.
extension Place {
    /// What is visible of an order of `count` bytes: the bytes; of VOPI their checksum as the server took it, of Roboscope
    /// the URL that was registered.
    func expected(_ order: DeliveryOrder, _ count: Int) -> Data {
        if roboscope != nil { return Data((order.upstream.first?.proof.url ?? "").utf8) }
        if vopi != nil { return Data(Checksum.sha256(Array(content(count))).hex.utf8) }
        return content(count)
    }

    /// As the storage that is delivered to before has proved it.
    func stored(_ order: DeliveryOrder) -> UpstreamDelivery {
        let sum = order.key.utf8.reduce(UInt64(5381)) { $0 &* 33 &+ UInt64($1) }
        let proof = Proof(
            key: order.key, size: order.source.size, method: .md5Parts, url: "https://store.example/\(sum)")
        return UpstreamDelivery(destination: "store", path: "source.glb", mediaType: order.mediaType, proof: proof)
    }

    /// By the key in `product.json`, which is written last: the checksum of the video that the results were made from.
    func results(of sandbox: VOPISandbox) throws -> [String: Data] {
        var found: [String: Data] = [:]
        for job in sandbox.jobs() {
            let file = target.appending(job.id).appending("product.json").string
            guard let json = FileManager.default.contents(atPath: file) else { continue }
            let product = try JSONSerialization.jsonObject(with: json) as? [String: Any]
            let source = product?["video"] as? [String: Any]
            let video = sandbox.videos().first { $0.publicURL == job.videoURL }
            let key = source?["key"] as? String ?? "no key in \(file)"
            // Two jobs for one key are not one object.
            found[found[key] == nil ? key : "\(key), job \(job.id)"] = Data((video?.sha256.hex ?? "no video").utf8)
        }
        return found
    }
}

/// Expects an attempt to have failed like this, and gives the error back for what else it should say.
@discardableResult
func expectError(
    _ error: DeliveryError?, _ verdict: DeliveryError.Verdict? = nil, code: ErrorCode? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) -> DeliveryError? {
    if let verdict { #expect(error?.verdict == verdict, sourceLocation: sourceLocation) }
    if let code { #expect(error?.code == code, sourceLocation: sourceLocation) }
    return error
}

extension DeliveryOutcome {
    /// What a delivery that must have ended has proved.
    @discardableResult
    func proof(sourceLocation: SourceLocation = #_sourceLocation) throws -> Proof {
        let proof: Proof? = if case .delivered(let proof) = self { proof } else { nil }
        return try #require(proof, "\(self)", sourceLocation: sourceLocation)
    }

    /// Until when a delivery waits that must wait, and what it says.
    @discardableResult
    func wait(sourceLocation: SourceLocation = #_sourceLocation) throws -> (until: WallTime, saying: String?) {
        guard case .waiting(let until, let saying) = self else {
            let none: WallTime? = nil
            return (try #require(none, "does not wait: \(self)", sourceLocation: sourceLocation), nil)
        }
        return (until, saying)
    }
}

extension RoboscopeSandbox {
    /// The URLs of registered models, by their space's key. A space without one says nothing of any file.
    func models() -> [String: Data] {
        var found: [String: Data] = [:]
        for space in spaces() {
            guard let url = space.modelGLBURL else { continue }
            found[found[space.key] == nil ? space.key : "\(space.key), space \(space.id)"] = Data(url.utf8)
        }
        return found
    }
}

extension VOPISandbox {
    /// Jobs that nobody has ended.
    func openJobs() -> [String] { jobs().filter { !["completed", "cancelled"].contains($0.status) }.map(\.id) }
}

extension SpiralOperation {
    /// The call of VOPI that does the same work.
    var asVOPI: VOPIOperation {
        switch self {
        case .create: .presign
        case .part: .upload
        case .complete: .createJob
        case .abort: .cancel
        default: .other
        }
    }

    /// The call of Roboscope that does the same work.
    var asRoboscope: RoboscopeOperation {
        switch self {
        case .create: .createSpace
        case .part: .updateSpace
        default: .other
        }
    }
}

/// Runs `body` on a VOPI destination of its own. Jobs are done when they are first asked for, so that one attempt brings the
/// results: who waits, waits in other tests.
func withVOPIPlace(
    _ given: [String: ConfigValue], _ directory: TemporaryDirectory, _ body: @Sendable (Place) async throws -> Void
) async throws {
    let isBearer = given["generation"] == .string("bearer")
    let sandbox = try VOPISandbox(
        directory: directory.path.appending("server"), apiKey: Secret(Place.apiKey), credits: 100,
        rules: VOPIRules(generation: isBearer ? .bearer : .apiKey, pace: .polls(steps: 1000)))
    let factory = PipelineFactory(
        pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1",
        tokens: directory.path.appending("tokens"))
    defer { factory.shutdown() }
    try await whileServing({ try await sandbox.run() }) {
        let seed = try directory.write(sandbox.signIn().refreshToken.reveal().utf8, to: "seed")
        let login: [String: ConfigValue] =
            isBearer ? ["refresh_token_file": .string(seed.string)] : ["api_key": .secret(Secret(Place.apiKey))]
        let results = directory.path.appending("results")
        let settings: [String: ConfigValue] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())"), "auth": .section(section(login)),
            "results": .string(results.string),
        ]
        try await body(Place(try factory.place("vopi", settings), .vopi(sandbox), target: results))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
    }
}

/// Runs `body` on a Roboscope destination of its own, for models that another destination holds already.
func withRoboscopeModels(_ factory: PipelineFactory, _ body: @Sendable (Place) async throws -> Void) async throws {
    let sandbox = RoboscopeSandbox(token: Secret(RoboscopePlace.token))
    try await whileServing({ try await sandbox.run() }) {
        let settings: [String: ConfigValue] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())/api/v1"), "storage": .string("store"),
            "token": .secret(Secret(RoboscopePlace.token)),
        ]
        try await body(Place(try factory.place("roboscope", settings), .roboscope(sandbox), target: "/nowhere"))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
    }
}

/// The notes of one delivery, kept between attempts as the journal keeps them; remembers every call.
final class Notes: Sendable {
    typealias Entries = [String: [UInt8]]

    private struct State {
        var entries: Entries
        var puts: [Set<String>] = []
    }

    private let state: Mutex<State>

    init(_ entries: Entries = [:]) { state = Mutex(State(entries: entries)) }

    var entries: Entries { state.withLock { $0.entries } }

    /// As the journal leaves them when the delivery has failed and what it left was cleared away.
    func fail() {
        state.withLock { state in state.entries = state.entries.filter { $0.key == CheckpointName.mayBeVisible } }
    }

    /// The names in each put, in their order.
    var puts: [Set<String>] { state.withLock { $0.puts } }

    /// How many parts the notes call proved.
    var provedParts: Int { entries.keys.count { $0.hasPrefix("part:") } }

    /// An attempt on these notes. `noted` runs when a put is durable, before the pipeline goes on. Once `isDead`, as a killed
    /// process is, nothing more is noted.
    func attempt(
        continuing first: FirstAnswer? = nil, noted: @escaping @Sendable (Set<String>) async -> Void = { _ in },
        isStopping: @escaping @Sendable () -> Bool = { false }, isDead: @escaping @Sendable () -> Bool = { false }
    ) -> Attempt {
        let log = CheckpointLog(
            entries: entries,
            write: { entries throws(DeliveryError) in
                if isDead() { throw DeliveryError(.cancelled, .cancelled, "killed") }
                self.state.withLock { state in
                    state.entries.merge(entries) { $1 }
                    state.puts.append(Set(entries.keys))
                }
                await noted(Set(entries.keys))
            },
            replace: { entries throws(DeliveryError) in
                if isDead() { throw DeliveryError(.cancelled, .cancelled, "killed") }
                self.state.withLock { state in
                    state.entries = entries
                    if !entries.isEmpty { state.puts.append(Set(entries.keys)) }
                }
                if !entries.isEmpty { await noted(Set(entries.keys)) }
            })
        return Attempt(checkpoint: log, continuing: first, isStopping: isStopping)
    }
}

/// What a test's closures saw, in order.
final class Listing<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])

    var all: [Value] { values.withLock { $0 } }
    func add(_ value: Value) { values.withLock { $0.append(value) } }
}
