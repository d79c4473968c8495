import Foundation
import InletCore

/// Who is logged in: access tokens by their signature, refresh tokens by a table, in which each is good for one use.
struct VOPILogins: Sendable {
    private static let user = "11111111-1111-4111-8111-111111111111"
    /// Seconds of one window of the rate limit.
    private static let window: Int64 = 60

    private let key = MessageCode(key: [UInt8].unforeseeable(32))
    /// Whether each refresh token may still be used, by its `jti`.
    private var refreshTokens: [String: Bool] = [:]
    private var round = 1
    /// Calls of `refresh` in the window that began then, by User-Agent.
    private var calls: [String: (start: WallTime, count: Int)] = [:]

    /// A new pair of tokens.
    mutating func signIn(_ rules: VOPIRules, now: WallTime) -> VOPISandbox.Session {
        let id = UUID().uuidString.lowercased()
        refreshTokens[id] = true
        let access = JSONWebToken(sub: Self.user, type: .access, round: round, from: now, for: rules.accessLifetime)
        let refresh = JSONWebToken(sub: Self.user, type: .refresh, jti: id, from: now, for: rules.refreshLifetime)
        return VOPISandbox.Session(
            accessToken: Secret(access.signed(key)), refreshToken: Secret(refresh.signed(key)))
    }

    mutating func endRound() { round += 1 }
    mutating func revokeAll() { for id in refreshTokens.keys { refreshTokens[id] = false } }

    /// Counts a call of `refresh`; what is left of the window's calls, or the refusal.
    mutating func admit(userAgent: String, limit: Int, now: WallTime) throws(VOPIRefusal) -> (left: Int, reset: Int) {
        var (start, count) = calls[userAgent] ?? (now, 0)
        if now - start >= .seconds(Self.window) { (start, count) = (now, 0) }
        count += 1
        calls[userAgent] = (start, count)
        let reset = Int(Self.window - (now - start).milliseconds / 1000)
        guard count <= limit else { throw .rateLimit(retryAfter: reset) }
        return (limit - count, reset)
    }

    /// The pair that follows `text`, which is dead from here on.
    mutating func refresh(_ text: String, _ rules: VOPIRules, now: WallTime) throws(VOPIRefusal)
        -> VOPISandbox.Session
    {
        let token: JSONWebToken
        do {
            token = try JSONWebToken(text, key)
        } catch {
            let reason = error == .malformed ? "jwt malformed" : "invalid signature"
            throw Self.refused("INVALID", "Refresh token is invalid: \(reason)")
        }
        guard token.type == .refresh, let id = token.jti else {
            throw Self.refused("WRONG_TYPE", "Expected refresh token, got access")
        }
        guard now.milliseconds / 1000 < token.exp else {
            throw Self.refused("EXPIRED", "Refresh token has expired")
        }
        guard !rules.isUserGone else { throw .bare(401, code: "USER_DELETED", message: "User account deleted") }
        switch refreshTokens[id] {
        case nil: throw Self.refused("REUSED", "Refresh token has already been used.")
        case false: throw Self.refused("REVOKED", "Refresh token has been revoked")
        default: refreshTokens[id] = false
        }
        return signIn(rules, now: now)
    }

    /// Refuses an access token that is not good now.
    func check(access text: String, _ rules: VOPIRules, now: WallTime) throws(VOPIRefusal) {
        let token: JSONWebToken
        do {
            token = try JSONWebToken(text, key)
        } catch {
            let reason = error == .malformed ? "jwt malformed" : "invalid signature"
            throw Self.denied("MALFORMED", "Access token is malformed: \(reason)")
        }
        guard token.type == .access else {
            throw Self.denied("WRONG_TYPE", "Expected access token, got refresh")
        }
        guard now.milliseconds / 1000 < token.exp, token.round == round else {
            throw Self.denied("EXPIRED", "Access token has expired")
        }
        guard !rules.isUserGone else {
            throw .bare(401, code: "USER_NOT_FOUND", message: "User account not found")
        }
    }

    private static func refused(_ code: String, _ message: String) -> VOPIRefusal {
        .bare(401, code: "REFRESH_TOKEN_\(code)", message: message)
    }

    private static func denied(_ code: String, _ message: String) -> VOPIRefusal {
        .bare(401, code: "ACCESS_TOKEN_\(code)", message: message)
    }
}
