internal import InletCore
internal import InletTransfer

/// Presence and locks of sessions: what the server tells other people. Servers without them answer 404, 405 or 501, which
/// is no error here.
extension RoboscopeAPI {
    /// Who is in the session; nil where the server keeps no such list.
    func present(in session: String) async throws(DeliveryError) -> [String]? {
        let what = "asking who is in session \(DisplayText.escape(session))"
        try Self.checked(session)
        return try await advisory { () throws(DeliveryError) in
            let answer = try RoboscopeAnswer.object(try await call("GET", "presence/\(session)", what), what)
            return answer["users"]?.array?.compactMap(\.string) ?? []
        }
    }

    /// To be said again within 30 s. - Returns: nil where the server does not want to know.
    func enter(_ session: String, as user: String) async throws(DeliveryError) -> Bool? {
        try Self.checked(session)
        return try await advisory { () throws(DeliveryError) in
            _ = try await call(
                "POST", "presence/\(session)", body: .object(["user_id": .string(user)]), "entering session \(session)")
            return true
        }
    }

    func leave(_ session: String, as user: String) async throws(DeliveryError) {
        try Self.checked(session)
        _ = try await advisory { () throws(DeliveryError) in
            _ = try await call("DELETE", "presence/\(session)/\(user)", "leaving session \(session)")
            return true
        }
    }

    enum LockAnswer: Sendable, Equatable {
        /// Ours until the time is over, with what extends and ends it.
        case acquired(token: String)
        /// Somebody else's.
        case taken
        /// The server has no locks.
        case unavailable
    }

    func lock(_ session: String, for time: Duration) async throws(DeliveryError) -> LockAnswer {
        let answer = try await lockCall(session, "", ["ttl_seconds": Self.seconds(time)])
        guard let answer else { return .unavailable }
        guard answer["acquired"]?.boolean == true else { return .taken }
        return .acquired(token: answer["token"]?.string ?? "")
    }

    /// False when the lock is not ours any more.
    func extend(_ session: String, token: String, for time: Duration) async throws(DeliveryError) -> Bool {
        let fields: JSONObject = ["token": .string(token), "ttl_seconds": Self.seconds(time)]
        return try await lockCall(session, "/extend", fields)?["extended"]?.boolean ?? false
    }

    func unlock(_ session: String, token: String) async throws(DeliveryError) {
        _ = try await lockCall(session, "/unlock", ["token": .string(token)])
    }

    /// nil where the server has no locks.
    func isLocked(session: String) async throws(DeliveryError) -> Bool? {
        let what = "asking for the lock of session \(DisplayText.escape(session))"
        try Self.checked(session)
        return try await advisory { () throws(DeliveryError) in
            let response = try await call("GET", "locks/work-sessions/\(session)/status", what)
            return try RoboscopeAnswer.object(response, what)["locked"]?.boolean ?? false
        }
    }

    private func lockCall(_ session: String, _ verb: String, _ fields: JSONObject) async throws(DeliveryError)
        -> JSONObject?
    {
        let what = "locking session \(DisplayText.escape(session))"
        try Self.checked(session)
        return try await advisory { () throws(DeliveryError) in
            let response = try await call("POST", "locks/work-sessions/\(session)\(verb)", body: .object(fields), what)
            return try RoboscopeAnswer.object(response, what)
        }
    }

    private func advisory<Value>(_ call: () async throws(DeliveryError) -> Value) async throws(DeliveryError) -> Value?
    {
        do throws(DeliveryError) {
            return try await call()
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
    }

    private static func seconds(_ time: Duration) -> JSONValue { .number(String(time.components.seconds)) }
}
