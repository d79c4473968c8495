package import InletCore
internal import InletLinux
internal import InletTransfer

/// Shows that Inlet writes into a session, and holds its lock meanwhile. Both only help people who work in the session:
/// Inlet also writes to servers without them.
struct SessionWatch: Sendable {
    let job: RoboscopeJob
    let session: String

    /// The server forgets a lock or a visitor after 30 s.
    static let lifetime = Duration.seconds(30)
    /// Tries to get a lock, a second apart.
    private static let tries = 4
    private static let wait = Duration.seconds(30)
    /// After that it proceeds without the lock: a lock is advisory, and its holder may never return.
    static let longestWait = Duration.seconds(600)
    private static let lockedNote = "locked"
    /// The lock's token: an agent that was killed still holds it.
    private static let tokenNote = "lock_token"

    /// Runs `body` with the lock. - Returns: `.waiting` without running it while somebody else has the lock.
    func whileWriting(
        _ body: () async throws(DeliveryError) -> DeliveryOutcome
    ) async throws(DeliveryError) -> DeliveryOutcome {
        let token: String?
        switch try await lock() {
        case .acquired(let ours): token = ours
        case .unavailable: token = nil
        case .taken:
            return .waiting(until: .now + Self.wait, saying: "session \(session) is locked by somebody else")
        }
        await enter()
        let result = await beating(token, body)
        await leave(token)
        return try result.get()
    }

    private func beating(
        _ token: String?, _ body: () async throws(DeliveryError) -> DeliveryOutcome
    ) async -> Result<DeliveryOutcome, DeliveryError> {
        // It ends with the work.
        async let _: Void = beat(token)
        return await Result(of: try await body())
    }

    // MARK: - Lock

    private func lock() async throws(DeliveryError) -> RoboscopeAPI.LockResult {
        guard job.api.settings.locks, !job.cache.lacks(.locks) else { return .unavailable }
        if let token = await kept() { return .acquired(token: token) }
        for attempt in 1...Self.tries {
            switch await answer() {
            case .acquired(let token):
                guard !token.isEmpty else { return .unavailable }
                try await keep(token)
                return .acquired(token: token)
            case .unavailable: return .unavailable
            case .taken where attempt < Self.tries:
                try job.checkStopping()
                try await DeliveryError.sleep(for: .seconds(1), "a session's lock was waited for")
            case .taken: break
            }
        }
        return try await hasWaitedLongEnough() ? .unavailable : .taken
    }

    /// A lock that no later attempt would know of is released. That also ends the wait for somebody else: the next wait
    /// starts anew.
    private func keep(_ token: String) async throws(DeliveryError) {
        do throws(DeliveryError) {
            var notes = [Self.tokenNote: Array(token.utf8)]
            if job.attempt.checkpoint.entries[Self.lockedNote] != nil { notes[Self.lockedNote] = [] }
            try await job.attempt.checkpoint.put(notes)
        } catch {
            await leave(token)
            throw error
        }
    }

    /// The token of an earlier attempt's lock that was never released; nil when it is no longer ours.
    private func kept() async -> String? {
        guard let note = job.attempt.checkpoint.entries[Self.tokenNote],
            let token = String(validating: note, as: UTF8.self),
            // If the server does not extend it now, a new one is requested.
            (try? await job.api.extend(session, token: token, for: Self.lifetime)) == true
        else { return nil }
        return token
    }

    /// Best effort: failures here do not fail the delivery. The next call tells whether the server is there.
    private func answer() async -> RoboscopeAPI.LockResult {
        do throws(DeliveryError) {
            let answer = try await job.api.lock(session, for: Self.lifetime)
            if answer == .unavailable { job.cache.note(lacking: .locks) }
            return answer
        } catch {
            return error.code == .conflict ? .taken : .unavailable
        }
    }

    private func hasWaitedLongEnough() async throws(DeliveryError) -> Bool {
        let note = job.attempt.checkpoint.entries[Self.lockedNote]
        if let since = note.flatMap({ Int64(String(decoding: $0, as: UTF8.self)) }) {
            return .now - WallTime(milliseconds: since) >= Self.longestWait
        }
        try await job.attempt.checkpoint.put([Self.lockedNote: Array(String(WallTime.now.milliseconds).utf8)])
        return false
    }

    // MARK: - Presence

    /// Repeats the sign of presence at each beat, until the task is cancelled; the first one was given before.
    private func beat(_ token: String?) async {
        var count = 0
        while await Task.rest(for: job.beat) {
            await enter()
            count += 1
            if let token, count.isMultiple(of: 2) {
                // The guarded work notices a lock that ends.
                await bestEffort(_ = try await job.api.extend(session, token: token, for: Self.lifetime))
            }
        }
    }

    private func enter() async {
        guard job.api.settings.presence, !job.cache.lacks(.presence) else { return }
        do throws(DeliveryError) {
            if try await job.api.enter(session, as: Self.user) == nil { job.cache.note(lacking: .presence) }
        } catch {
            // The next sign of presence comes soon.
            return
        }
    }

    private func leave(_ token: String?) async {
        if !Task.isCancelled { await leave(token, job.api) }
        // Cancelled before or meanwhile: otherwise others would wait for the lock's whole lifetime.
        if Task.isCancelled { await leave(token, job.api.parting) }
    }

    /// Both at once, so that an unresponsive server costs one wait.
    private func leave(_ token: String?, _ api: RoboscopeAPI) async {
        async let unlocked: Void = unlock(token, api)
        // Best effort: the server forgets visitors without signs.
        if api.settings.presence, !job.cache.lacks(.presence) {
            await bestEffort(try await api.leave(session, as: Self.user))
        }
        await unlocked
    }

    private func unlock(_ token: String?, _ api: RoboscopeAPI) async {
        // It ends by itself after its lifetime.
        if let token { await bestEffort(try await api.unlock(session, token: token)) }
    }

    static let user = "ingest:" + RoboscopeAPI.idText(ProcessSetup.hostName)
}

/// Presence and locks of sessions, which the server shows to other people. Servers without them answer 404, 405 or 501,
/// which is not an error here.
extension RoboscopeAPI {
    /// The visitors of the session; nil where the server keeps no such list.
    package func presence(inSession session: String) async throws(DeliveryError) -> [String]? {
        let what = "asking who is in session \(DisplayText.escape(session))"
        let answer = try await advisory(session, "GET", "presence/\(session)", what)
        return try answer.map { response throws(DeliveryError) in
            try Self.object(response, what)["users"]?.array?.compactMap(\.string) ?? []
        }
    }

    /// Repeat it within 30 s. - Returns: nil where the server has no such call.
    func enter(_ session: String, as user: String) async throws(DeliveryError) -> Bool? {
        let body = JSONValue.object(["user_id": .string(user)])
        let answer = try await advisory(session, "POST", "presence/\(session)", "entering session \(session)", body)
        return answer.map { _ in true }
    }

    func leave(_ session: String, as user: String) async throws(DeliveryError) {
        _ = try await advisory(session, "DELETE", "presence/\(session)/\(user)", "leaving session \(session)")
    }

    enum LockResult: Sendable, Equatable {
        /// Ours until the time is over, with the tokens that extend and end it.
        case acquired(token: String)
        /// Somebody else's.
        case taken
        /// The server has no locks.
        case unavailable
    }

    func lock(_ session: String, for time: Duration) async throws(DeliveryError) -> LockResult {
        let answer = try await lockCall(session, "", ["ttl_seconds": Self.seconds(time)])
        guard let answer else { return .unavailable }
        guard answer["acquired"]?.boolean == true else { return .taken }
        return .acquired(token: answer["token"]?.string ?? "")
    }

    /// False when the lock is no longer ours.
    func extend(_ session: String, token: String, for time: Duration) async throws(DeliveryError) -> Bool {
        let fields: JSONObject = ["token": .string(token), "ttl_seconds": Self.seconds(time)]
        return try await lockCall(session, "/extend", fields)?["extended"]?.boolean ?? false
    }

    func unlock(_ session: String, token: String) async throws(DeliveryError) {
        _ = try await lockCall(session, "/unlock", ["token": .string(token)])
    }

    /// nil where the server has no locks.
    package func isLocked(session: String) async throws(DeliveryError) -> Bool? {
        let what = "asking for the lock of session \(DisplayText.escape(session))"
        let answer = try await advisory(session, "GET", "locks/work-sessions/\(session)/status", what)
        return try answer.map { response throws(DeliveryError) in
            try Self.object(response, what)["locked"]?.boolean ?? false
        }
    }

    private func lockCall(
        _ session: String, _ verb: String, _ fields: JSONObject
    ) async throws(DeliveryError) -> JSONObject? {
        let what = "locking session \(DisplayText.escape(session))"
        let path = "locks/work-sessions/\(session)\(verb)"
        return try await advisory(session, "POST", path, what, .object(fields)).map {
            response throws(DeliveryError) in try Self.object(response, what)
        }
    }

    private func advisory(
        _ session: String, _ method: String, _ path: String, _ what: String, _ body: JSONValue? = nil
    ) async throws(DeliveryError) -> HTTPResponse? {
        try Self.checked(session)
        return try await DeliveryError.ignoring(.notFound, in: await call(method, path, body: body, what))
    }

    private static func seconds(_ time: Duration) -> JSONValue { .number(String(time.components.seconds)) }
}
