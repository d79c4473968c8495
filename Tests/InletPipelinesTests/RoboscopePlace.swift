import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// A Roboscope server that runs, a destination that leads there, and a watched folder beside it.
final class RoboscopePlace: Sendable {
    static let token = "robo-canary-9917"

    let destination: Destination
    let admin: RoboscopeAPI
    let sandbox: RoboscopeSandbox
    let root: TemporaryDirectory

    fileprivate init(_ destination: Destination, _ admin: RoboscopeAPI, _ sandbox: RoboscopeSandbox) throws {
        self.destination = destination
        self.admin = admin
        self.sandbox = sandbox
        root = try TemporaryDirectory()
    }

    var pipeline: any Pipeline { destination.pipeline }

    /// A file below the watched folder, stored under `url` already, and the order to register it.
    ///
    /// - Parameter companions: stored beside it, by name and URL.
    func order(
        _ name: FilePath, _ text: String = "bytes", stored url: String? = nil, companions: [(FilePath, String)] = [],
        fields: [String: String] = [:], batch: OrderBatch? = nil
    ) throws -> DeliveryOrder {
        let file = try root.write(Array(text.utf8), to: name)
        var fields = fields
        if fields["space"] == nil { fields["space"] = name.components.first?.string }
        var order = DeliveryOrder(
            id: 1, destination: "spaces", key: "models/\(name)", mediaType: "application/octet-stream", fields: fields,
            source: try SourceFile(opening: file).opened, path: name, root: root.path)
        order.batch = batch
        let proofs = (url.map { [(name, $0)] } ?? []) + companions
        order.upstream = proofs.map { path, url in
            let proof = Proof(key: "k/\(path)", size: 5, method: .md5Parts, url: url)
            return UpstreamDelivery(
                destination: "spiral", path: path, mediaType: "application/octet-stream", proof: proof)
        }
        return order
    }

    /// One attempt.
    func attempt(_ order: DeliveryOrder, _ attempt: Attempt? = nil) async throws -> Result<
        DeliveryOutcome, DeliveryError
    > {
        let source = try SourceFile(opening: root.path.pushing(order.path))
        do throws(DeliveryError) {
            return .success(try await pipeline.deliver(source, order, attempt ?? Notes().attempt()))
        } catch {
            return .failure(error)
        }
    }

    /// Attempts until it is delivered, without the waits between them.
    func deliver(_ order: DeliveryOrder, _ notes: Notes = Notes()) async throws -> Proof {
        var last: DeliveryError?
        for _ in 1...20 {
            switch try await attempt(order, notes.attempt()) {
            case .success(.delivered(let proof)): return proof
            case .success(.waiting): continue
            case .failure(let error):
                guard case .retry = error.verdict else {
                    guard case .outage = error.verdict else { throw error }
                    last = error
                    continue
                }
                last = error
            }
        }
        throw last ?? DeliveryError(.giveUp, .internalFault, "still waiting after 20 attempts")
    }

    /// The error of an attempt that must fail; nil when it delivers or waits.
    func failure(_ order: DeliveryOrder, _ given: Attempt? = nil) async throws -> DeliveryError? {
        if case .failure(let error) = try await attempt(order, given) { error } else { nil }
    }

    func count(_ operation: RoboscopeOperation) -> Int { sandbox.counts()[operation.rawValue] ?? 0 }

    /// Requests of any kind.
    var requests: Int { sandbox.counts().values.reduce(0, +) }

    /// Requests that change something.
    var writes: Int {
        let writing: [RoboscopeOperation] = [
            .createSpace, .updateSpace, .createSession, .updateSession, .createMarker, .bulkMarkers, .updateMarker,
        ]
        return writing.reduce(0) { $0 + count($1) }
    }

    func space(_ key: String) throws -> RoboscopeRecord {
        let spaces = sandbox.spaces().filter { $0.key == key }
        #expect(spaces.count == 1)
        return try #require(spaces.first)
    }
}

/// Runs `body` on a destination of its own.
func withRoboscope(
    faults: RoboscopeFault..., rules: RoboscopeRules = RoboscopeRules(), settings: [String: ConfigValue?] = [:],
    readYAML: YAMLReading? = nil, beat: Duration? = nil, clock: HandClock? = nil,
    _ body: @Sendable (RoboscopePlace) async throws -> Void
) async throws {
    try await withRoboscope(
        seed: 1, faults: faults, rules: rules, settings: settings, readYAML: readYAML, beat: beat, clock: clock,
        body)
}

/// The same with `seed` for what is random in the faults.
///
/// - Parameters:
///   - beat: instead of the one that destinations have.
///   - clock: the server's.
func withRoboscope(
    seed: UInt64, faults: [RoboscopeFault], rules: RoboscopeRules = RoboscopeRules(),
    settings: [String: ConfigValue?] = [:], readYAML: YAMLReading? = nil, beat: Duration? = nil,
    clock: HandClock? = nil, _ body: @Sendable (RoboscopePlace) async throws -> Void
) async throws {
    let pool = BlockingPool(name: "roboscope", threads: 4)
    let factory = PipelineFactory(pool: pool, userAgent: "inlet-tests/1", readYAML: readYAML)
    let client = HTTPClient(userAgent: "inlet-tests/1")
    // First, so that no connection of ours outlives its server.
    let disconnect = {
        factory.shutdown()
        client.shutdown()
    }
    defer { disconnect() }
    let sandbox = RoboscopeSandbox(
        token: Secret(RoboscopePlace.token), rules: rules, faults: FaultPlan(faults, seed: seed),
        clock: { clock?.now ?? .now })
    try await whileServing({ try await sandbox.run() }) {
        let values: [String: ConfigValue?] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())/api/v1"), "storage": .string("spiral"),
            "token": .secret(Secret(RoboscopePlace.token)),
        ]
        let given = DestinationSettings(
            name: "spaces", type: "roboscope",
            values: section(values.merging(settings) { $1 }.compactMapValues(\.self)))
        var destination = try factory.make(given)
        if let beat {
            destination.pipeline = RoboscopePipeline(
                settings: try RoboscopeSettings(given.values), client: client, pool: pool, readYAML: readYAML,
                beat: beat)
        }
        try await body(try RoboscopePlace(destination, try factory.roboscopeAdmin(given), sandbox))
        disconnect()
    }
}

/// `count` markers as a file has them.
func markerList(_ count: Int, space: String? = nil, session: String? = nil) -> String {
    let markers = (0..<count).map { index in
        #"{"label":"crack \#(index)","p1":[\#(index),0,0],"p2":[1,0,0.5],"p3":[1,1,-2e-1],"p4":[0,1,0],"#
            + ##""color":"#FF8800","meta":{"row":\##(index)},"custom_props":{"severity":"high"}}"##
    }
    let head = [("space", space), ("session", session)].compactMap { name, value in
        value.map { "\"\(name)\":\"\($0)\"," }
    }
    return "{\(head.joined())\"markers\":[\(markers.joined(separator: ",\n"))]}"
}
