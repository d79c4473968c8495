package import InletCore
package import InletLinux
package import InletTransfer
internal import Synchronization
package import SystemPackage

/// Converts YAML into equivalent JSON; throws an error whose description names the fault. The name is for that text.
package typealias YAMLReading = @Sendable (_ bytes: [UInt8], _ file: FilePath) throws -> [UInt8]

/// Registers files stored by another destination at a Roboscope server, imports markers, and maintains the sessions of
/// folders.
///
/// Every step looks at the server before it changes anything, so it can be repeated at any time. Inlet never takes a
/// registration back: the proof names the URL that was there before.
package struct RoboscopePipeline: Pipeline {
    let api: RoboscopeAPI
    private let pool: BlockingPool
    private let readYAML: YAMLReading?
    private let beat: Duration
    private let cache = RoboscopeCache()

    package init(
        settings: RoboscopeSettings, client: HTTPClient, pool: BlockingPool, readYAML: YAMLReading?,
        beat: Duration = .seconds(10)
    ) {
        api = RoboscopeAPI(settings: settings, client: client)
        self.pool = pool
        self.readYAML = readYAML
        self.beat = beat
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        let job = try job(source.path, source, order, attempt)
        if order.batch?.isClosing != true { try job.checkSource() }
        return try await run(job)
    }

    /// A unit's end has no source of its own, and of a stored file only the URL is needed.
    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let job = try job(path, nil, order, attempt)
        guard order.batch?.isClosing == true || job.fields.role.needsStorage && !order.upstream.isEmpty else {
            return nil
        }
        if attempt.isStopping() { throw .stopping }
        return try await run(job)
    }

    /// Nothing is taken back: a space's present values may be somebody else's, and imported markers match their file.
    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {}

    /// The session with its confirmed markers, or the former URLs. The session's lock stays with whoever got it: it ends
    /// by itself, and another agent asks for its own.
    package func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        guard let note = checkpoint[CheckpointName.mayBeVisible] else { return [:] }
        return [CheckpointName.mayBeVisible: RoboscopeJob.handedOver(note)]
    }

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }

    private func run(_ job: RoboscopeJob) async throws(DeliveryError) -> DeliveryOutcome {
        if let batch = job.order.batch, batch.isClosing {
            return try await job.closeSession(batch)
        }
        return switch job.fields.role {
        case .model, .scan, .preview: try await job.register()
        case .markers: try await job.importMarkers()
        case .session: try await job.applySessionFile(job.order.batch)
        case .file: try await job.joinSession(job.order.batch)
        }
    }

    private func job(
        _ place: FilePath, _ source: SourceFile?, _ order: DeliveryOrder, _ attempt: Attempt
    ) throws(DeliveryError) -> RoboscopeJob {
        let path = order.path.isEmpty ? FilePath(root: nil, place.lastComponent.map { [$0] } ?? []) : order.path
        let fields = try DeliveryError.onFields(of: path, RoboscopeFields(order.fields, path: path))
        return RoboscopeJob(
            api: api, cache: cache, path: path, opened: source, order: order, attempt: attempt, fields: fields,
            pool: pool, readYAML: readYAML, beat: beat)
    }
}

/// One attempt at one order, shared by its steps.
struct RoboscopeJob: Sendable {
    let api: RoboscopeAPI
    /// Shared knowledge of sessions and of the server, since the destination was created.
    let cache: RoboscopeCache
    /// The path below the watched root.
    let path: FilePath
    /// nil when nothing is at the path any more.
    let opened: SourceFile?
    let order: DeliveryOrder
    let attempt: Attempt
    let fields: RoboscopeFields
    let pool: BlockingPool
    let readYAML: YAMLReading?
    /// The pause between two signs of presence in a session; every second one extends the lock too. The server forgets
    /// both after 30 s.
    let beat: Duration

    var shown: String { path.display }

    /// Two destinations at one server share this.
    var server: String { api.settings.url.redacted }

    func checkSource() throws(DeliveryError) {
        guard let opened else { throw DeliveryError(.sourceGone, .sourceGone, "\(shown): removed before it was read") }
        try opened.requireUnchanged(since: order)
    }

    func checkStopping() throws(DeliveryError) { if attempt.isStopping() { throw .stopping } }

    func refusal(_ why: String) -> DeliveryError { DeliveryError(.giveUp, .badRequest, "\(shown): \(why)") }

    // MARK: - Spaces

    /// The space of this key, created when there is none.
    ///
    /// - Parameter text: from the file itself; nil = the route's.
    /// - Throws: `.conflict` when several spaces have the key: only a person can tell which one is meant.
    func space(_ text: String? = nil) async throws(DeliveryError) -> RoboscopeObject {
        guard let key = text ?? fields.space else {
            throw refusal(RoboscopeFields.noSpace)
        }
        let name = text == nil || text == fields.space ? fields.name : nil
        return try await KeyedMutex.shared.alone("space \(key) at \(server)") { () throws(DeliveryError) in
            if let known = try await find(space: key) { return known }
            return try await make({ () async throws(DeliveryError) in
                try await api.make(.spaces, ["key": .string(key), "name": .string(name ?? key)])
            }) { () async throws(DeliveryError) in try await find(space: key) }
        }
    }

    /// Creates an object. If that fails, returns the one that `find` finds now: somebody else has created it since, or
    /// only the answer was lost.
    func make(
        _ make: () async throws(DeliveryError) -> RoboscopeObject,
        orFind find: () async throws(DeliveryError) -> RoboscopeObject?
    ) async throws(DeliveryError) -> RoboscopeObject {
        try checkStopping()
        do throws(DeliveryError) {
            return try await make()
        } catch {
            // An error of this search adds nothing to the error at hand.
            guard error.code != .cancelled, let known = try? await find() else { throw error }
            return known
        }
    }

    private func find(space key: String) async throws(DeliveryError) -> RoboscopeObject? {
        let found = try await api.objects(.spaces, [("key", key)]).filter { $0.key == key }
        guard found.count < 2 else {
            let ids = found.map { DisplayText.escape($0.id) }.joined(separator: ", ")
            throw DeliveryError(
                .giveUp, .conflict, "\(shown): \(found.count) spaces have the key '\(DisplayText.escape(key))' (\(ids))"
            )
        }
        return found.first
    }

    // MARK: - Proofs

    /// - Parameter content: the checksum read here; otherwise the storage has proved it.
    func proof(_ details: [String: String], url: String? = nil, content: ContentHash? = nil) -> DeliveryOutcome {
        let redactor = Redactor([api.settings.token].compactMap(\.self))
        let stored = opened == nil ? nil : Self.own(order)?.proof.content
        return .delivered(
            Proof(
                key: order.key, size: order.source.size, method: .registered, content: content ?? stored, url: url,
                details: details.mapValues { redactor.redacted($0) }))
    }
}

/// Facts that a destination remembers between files while it is configured; losing them costs a few requests.
final class RoboscopeCache: Sendable {
    enum Capability: Hashable {
        case presence
        case locks
        case bulk
    }

    /// More units than are delivered at once; beyond that everything is forgotten.
    private static let mostSessions = 512
    /// Then a server that may have been upgraded is asked again.
    private static let rest = Duration.seconds(3600)

    /// Ids of sessions by the name of their unit.
    private let sessions = Mutex<[String: String]>([:])
    /// Until when the server counts as lacking these calls.
    private let without = Mutex<[Capability: WallTime]>([:])

    func session(of batch: String) -> String? { sessions.withLock { $0[batch] } }

    func remember(_ session: String?, of batch: String) {
        sessions.withLock { sessions in
            if sessions.count >= Self.mostSessions { sessions = [:] }
            sessions[batch] = session
        }
    }

    func lacks(_ feature: Capability, now: WallTime = .now) -> Bool {
        without.withLock { $0[feature].map { now < $0 } ?? false }
    }

    func note(lacking feature: Capability, now: WallTime = .now) {
        without.withLock { $0[feature] = now + Self.rest }
    }
}
