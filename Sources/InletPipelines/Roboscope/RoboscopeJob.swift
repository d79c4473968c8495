internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// One attempt at one order: what its steps share.
struct RoboscopeJob: Sendable {
    let api: RoboscopeAPI
    /// What is known of sessions and of the server since the destination was made.
    let memory: RoboscopeMemory
    /// Below the watched root.
    let path: FilePath
    /// nil when nothing is at the path any more.
    let opened: SourceFile?
    let order: DeliveryOrder
    let attempt: Attempt
    let fields: RoboscopeFields
    let pool: BlockingPool
    let readYAML: YAMLReading?
    let rhythm: SessionRhythm

    var shown: String { path.display }

    /// Two destinations at one server share this.
    var server: String { api.settings.url.redacted }

    func checkSource() throws(DeliveryError) {
        guard let opened else { throw DeliveryError(.sourceGone, .sourceGone, "\(shown): removed before it was read") }
        try SourceGuard.check(opened, order)
    }

    func checkStopping() throws(DeliveryError) { if attempt.isStopping() { throw .stopping } }

    func refusal(_ why: String) -> DeliveryError { DeliveryError(.giveUp, .badRequest, "\(shown): \(why)") }

    // MARK: - Spaces

    /// The space of this key, which is made when there is none.
    ///
    /// - Parameter text: from the file itself; nil = the route's.
    /// - Throws: `.conflict` when several spaces have the key: nobody but a person can tell which one is meant.
    func space(_ text: String? = nil) async throws(DeliveryError) -> RoboscopeSpace {
        guard let key = text ?? fields.space else {
            throw refusal(RoboscopeFields.noSpace)
        }
        let name = text == nil || text == fields.space ? fields.name : nil
        return try await KeyedMutex.shared.alone("space \(key) at \(server)") { () throws(DeliveryError) in
            if let known = try await find(space: key) { return known }
            try checkStopping()
            do throws(DeliveryError) {
                return try await api.create(
                    RoboscopeSpace.self, ["key": .string(key), "name": .string(name ?? key)])
            } catch {
                // Somebody else has made it since, or just the answer was lost.
                guard error.code != .cancelled, let known = try? await find(space: key) else { throw error }
                return known
            }
        }
    }

    private func find(space key: String) async throws(DeliveryError) -> RoboscopeSpace? {
        let found = try await api.list(RoboscopeSpace.self, [("key", key)]).filter { $0.key == key }
        guard found.count < 2 else {
            let ids = found.map { DisplayText.escape($0.id) }.joined(separator: ", ")
            throw DeliveryError(
                .giveUp, .conflict, "\(shown): \(found.count) spaces have the key '\(DisplayText.escape(key))' (\(ids))"
            )
        }
        return found.first
    }

    // MARK: - Proofs

    /// What the journal keeps of a registration.
    func proof(_ method: Proof.Method, url: String? = nil, _ details: [String: String]) -> DeliveryOutcome {
        let redactor = Redactor([api.settings.token].compactMap(\.self))
        let own = order.upstream.first { $0.path == order.path } ?? order.upstream.first
        return .delivered(
            Proof(
                key: order.key, size: order.source.size, method: method,
                content: opened == nil ? nil : own?.proof.content, url: url,
                details: details.mapValues { redactor.redacted($0) }))
    }
}

/// What a destination remembers between files, for as long as it is configured; losing it costs a few requests.
final class RoboscopeMemory: Sendable {
    private struct State {
        /// Ids of sessions by the name of their unit.
        var sessions: [String: String] = [:]
        /// Until when the server counts as one without these calls.
        var without: [Feature: WallTime] = [:]
    }

    enum Feature: Hashable {
        case presence
        case locks
        case bulk
    }

    /// More units than are delivered at once; beyond it all is forgotten.
    private static let mostSessions = 512
    /// After that a server that was renewed is asked again.
    private static let rest = Duration.seconds(3600)

    private let state = Mutex(State())

    func session(of batch: String) -> String? { state.withLock { $0.sessions[batch] } }

    func remember(_ session: String?, of batch: String) {
        state.withLock { state in
            if state.sessions.count >= Self.mostSessions { state.sessions = [:] }
            state.sessions[batch] = session
        }
    }

    func lacks(_ feature: Feature, now: WallTime = .now) -> Bool {
        state.withLock { $0.without[feature].map { now < $0 } ?? false }
    }

    func note(lacking feature: Feature, now: WallTime = .now) {
        state.withLock { $0.without[feature] = now + Self.rest }
    }
}
