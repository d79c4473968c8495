import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

/// A GigHive server that runs, a destination that leads there, and a folder for sources beside it.
final class GigHivePlace: Sendable {
    static let password = "gig-canary-5521"
    static let token = "guest-canary-77"
    /// The smallest chunk that the settings allow.
    static let chunk = 5 << 20

    let destination: Destination
    let sandbox: GigHiveSandbox
    /// Two threads.
    let hashing: BlockingPool
    private let sources: TemporaryDirectory

    fileprivate init(_ destination: Destination, _ sandbox: GigHiveSandbox, _ hashing: BlockingPool) throws {
        self.destination = destination
        self.sandbox = sandbox
        self.hashing = hashing
        sources = try TemporaryDirectory()
    }

    var pipeline: any Pipeline { destination.pipeline }

    /// `count` bytes as a file, and the order to deliver it.
    func file(
        _ count: Int, _ name: String = "clip.mp4",
        fields: [String: String] = ["label": "One", "event_date": "2026-11-21"],
        seed: UInt64 = 1
    ) throws -> (FilePath, DeliveryOrder) {
        let path = try sources.write(content(count, seed: seed), to: FilePath(name))
        let order = DeliveryOrder(
            id: 1, destination: "stage", key: "videos/\(name)", mediaType: MediaType.byExtension("mp4"), fields: fields,
            source: try SourceFile(opening: path).opened)
        return (path, order)
    }

    /// One attempt.
    func attempt(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws -> Result<DeliveryOutcome, DeliveryError> {
        try await pipeline.attempt(path, order, attempt)
    }

    /// Attempts until it is delivered, without the waits between them.
    func deliver(_ path: FilePath, _ order: DeliveryOrder, _ notes: Notes = Notes()) async throws -> Proof {
        for _ in 1...20 {
            if case .delivered(let proof) = try await attempt(path, order, notes.attempt()).get() { return proof }
        }
        throw DeliveryError(.giveUp, .internalFault, "still waiting after 20 attempts")
    }

    /// The error of an attempt that must fail; nil when it delivers or waits.
    func failure(
        _ path: FilePath, _ order: DeliveryOrder, _ given: Attempt? = nil
    ) async throws -> DeliveryError? {
        let result = try await attempt(path, order, given ?? Notes().attempt())
        return if case .failure(let error) = result { error } else { nil }
    }

    func count(_ operation: GigHiveOperation) -> Int { sandbox.traffic.counts[operation] ?? 0 }

    /// Every file of the library, as bytes.
    func library() throws -> [Data] {
        try sandbox.assets().map { try Data(contentsOf: URL(fileURLWithPath: $0.path.string)) }
    }
}

/// Runs `body` on a destination of its own.
func withGigHive(
    _ transport: String = "auto", faults: GigHiveFault..., rules: GigHiveRules = GigHiveRules(hookWait: .zero),
    settings: [String: ConfigValue?] = [:], _ body: @Sendable (GigHivePlace) async throws -> Void
) async throws {
    try await withGigHive(transport, all: faults, rules, settings, body)
}

/// The same with a file, its order, and notes for the attempts at it.
func withGigHive(
    _ transport: String = "auto", faults: GigHiveFault..., rules: GigHiveRules = GigHiveRules(hookWait: .zero),
    settings: [String: ConfigValue?] = [:], file count: Int,
    _ body: @Sendable (GigHivePlace, FilePath, DeliveryOrder, Notes) async throws -> Void
) async throws {
    try await withGigHive(transport, all: faults, rules, settings) { place in
        let (path, order) = try place.file(count)
        try await body(place, path, order, Notes())
    }
}

private func withGigHive(
    _ transport: String, all faults: [GigHiveFault], _ rules: GigHiveRules, _ settings: [String: ConfigValue?],
    _ body: @Sendable (GigHivePlace) async throws -> Void
) async throws {
    let directory = try TemporaryDirectory()
    let hashing = BlockingPool(name: "gighive", threads: 2)
    let factory = PipelineFactory(pool: hashing, userAgent: "inlet-tests/1")
    defer { factory.shutdown() }
    let password = Secret(GigHivePlace.password)
    let sandbox = try GigHiveSandbox(
        directory: directory.path,
        passwords: ["admin": password, "uploader": password, "viewer": Secret("viewer-canary")], rules: rules,
        faults: FaultPlan(faults))
    try await whileServing({ try await sandbox.run() }) {
        let values: [String: ConfigValue?] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())"), "user": .string("uploader"),
            "password": .secret(password), "transport": .string(transport),
            "chunk_size": .bytes(Int64(GigHivePlace.chunk)),
        ]
        let given = section(values.merging(settings) { $1 }.compactMapValues(\.self))
        let destination = try factory.make(DestinationSettings(name: "stage", type: "gighive", values: given))
        try await body(try GigHivePlace(destination, sandbox, hashing))
        // First, so that no connection of ours outlives its server.
        factory.shutdown()
    }
}
