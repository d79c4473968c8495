internal import InletCore
internal import InletTransfer

/// Presence and locks of sessions: what the server tells other people. Servers without them answer 404, 405 or 501, which
/// is no error here.
extension RoboscopeAPI {
    /// Who is in the session; nil where the server keeps no such list.
    func present(in session: String) async throws(DeliveryError) -> [String]? {
        let what = "asking who is in session \(DisplayText.escape(session))"
        let answer = try await advisory(session, "GET", "presence/\(session)", what)
        return try answer.map { response throws(DeliveryError) in
            try RoboscopeAnswer.object(response, what)["users"]?.array?.compactMap(\.string) ?? []
        }
    }

    /// To be said again within 30 s. - Returns: nil where the server does not want to know.
    func enter(_ session: String, as user: String) async throws(DeliveryError) -> Bool? {
        let body = JSONValue.object(["user_id": .string(user)])
        let answer = try await advisory(session, "POST", "presence/\(session)", "entering session \(session)", body)
        return answer.map { _ in true }
    }

    func leave(_ session: String, as user: String) async throws(DeliveryError) {
        _ = try await advisory(session, "DELETE", "presence/\(session)/\(user)", "leaving session \(session)")
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
        let answer = try await advisory(session, "GET", "locks/work-sessions/\(session)/status", what)
        return try answer.map { response throws(DeliveryError) in
            try RoboscopeAnswer.object(response, what)["locked"]?.boolean ?? false
        }
    }

    private func lockCall(
        _ session: String, _ verb: String, _ fields: JSONObject
    ) async throws(DeliveryError) -> JSONObject? {
        let what = "locking session \(DisplayText.escape(session))"
        let path = "locks/work-sessions/\(session)\(verb)"
        return try await advisory(session, "POST", path, what, .object(fields)).map {
            response throws(DeliveryError) in try RoboscopeAnswer.object(response, what)
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
