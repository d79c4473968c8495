import Foundation
import InletCore

/// All tokens that were given, each with its end; a refresh token works once.
struct VOPILogins: Sendable {
    /// A token's record.
    private struct Token: Sendable {
        let isRefresh: Bool
        /// Seconds since 1970.
        let end: Int64
        /// A used or revoked refresh token, or an access token that a test has ended.
        var isSpent = false
    }

    private static let user = "11111111-1111-4111-8111-111111111111"
    /// Seconds.
    static let accessLifetime: Int64 = 900
    private static let refreshLifetime: Int64 = 7 * 86_400

    private var tokens: [String: Token] = [:]

    /// A new pair of tokens.
    mutating func signIn(_ now: WallTime) -> (accessToken: Secret, refreshToken: Secret) {
        (issue(isRefresh: false, Self.accessLifetime, now), issue(isRefresh: true, Self.refreshLifetime, now))
    }

    /// A token in the form of RFC 7519. No key has signed it: the sandbox knows its own tokens, and nobody else can
    /// check one.
    private mutating func issue(isRefresh: Bool, _ lifetime: Int64, _ now: WallTime) -> Secret {
        let start = now.milliseconds / 1000
        let claims =
            #"{"exp":\#(start + lifetime),"iat":\#(start),"jti":"\#(UUID().uuidString.lowercased())","#
            + #""sub":"\#(Self.user)","type":"\#(isRefresh ? "refresh" : "access")"}"#
        let parts = [Data(#"{"alg":"HS256","typ":"JWT"}"#.utf8), Data(claims.utf8), Data([UInt8].unforeseeable(32))]
        let text = parts.map(\.base64URL).joined(separator: ".")
        tokens[text] = Token(isRefresh: isRefresh, end: start + lifetime)
        return Secret(text)
    }

    /// Ends all refresh tokens, or all access tokens, given so far.
    mutating func spendAll(isRefresh: Bool) {
        for (text, token) in tokens where token.isRefresh == isRefresh { tokens[text]?.isSpent = true }
    }

    /// The next pair for `text`, which is invalid from now on.
    mutating func refresh(_ text: String, _ now: WallTime) throws -> (accessToken: Secret, refreshToken: Secret) {
        try check(text, isRefresh: true, now)
        tokens[text]?.isSpent = true
        return signIn(now)
    }

    /// Refuses a token that is not valid now for its use.
    func check(_ text: String, isRefresh: Bool, _ now: WallTime) throws {
        let (code, name) = isRefresh ? ("REFRESH_TOKEN", "Refresh token") : ("ACCESS_TOKEN", "Access token")
        guard let token = tokens[text] else {
            let flaw = isRefresh ? "invalid" : "malformed"
            let reason = text.count { $0 == "." } == 2 ? "invalid signature" : "jwt malformed"
            try Self.refuse("\(code)_\(flaw.uppercased())", "\(name) is \(flaw): \(reason)")
        }
        guard token.isRefresh == isRefresh else {
            let (wanted, given) = isRefresh ? ("refresh", "access") : ("access", "refresh")
            try Self.refuse("\(code)_WRONG_TYPE", "Expected \(wanted) token, got \(given)")
        }
        guard now.milliseconds / 1000 < token.end, isRefresh || !token.isSpent else {
            try Self.refuse("\(code)_EXPIRED", "\(name) has expired")
        }
        guard !token.isSpent else { try Self.refuse("\(code)_REVOKED", "\(name) has been revoked") }
    }

    private static func refuse(_ code: String, _ message: String) throws -> Never {
        try VOPIService.refuse(401, code, message, isBare: true)
    }
}

extension Data {
    /// Base 64 with the URL alphabet and no padding (RFC 4648, section 5).
    fileprivate var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").filter { $0 != "=" }
    }
}
