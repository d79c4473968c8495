internal import FoundationEssentials
internal import InletCore
internal import InletTransfer

/// The two tokens of a login, as the server gave them: one for requests, one to get the next two.
struct VOPITokenPair: Sendable, Equatable {
    /// The address that they are for; no other server ever gets them.
    var server: String
    var accessToken: Secret
    var refreshToken: Secret
    /// How long requests may use the access token.
    var life: Duration
    var obtainedAt: WallTime
    /// SHA-256 of the configured token that this login began with: another one there begins another login.
    var seed: String?

    /// Whether the access token can be used without a thought: up to 70 % of its life. A clock that was set back makes it
    /// old rather than young.
    func isFresh(at now: WallTime) -> Bool { isYounger(than: 0.7, now) }

    /// Whether the access token still works, as far as we know; for when it cannot be renewed.
    func isUsable(at now: WallTime) -> Bool { isYounger(than: 0.95, now) }

    /// Whether an idle login should be renewed: each renewal begins a new week of seven days.
    func isIdle(at now: WallTime) -> Bool { now < obtainedAt || now - obtainedAt >= Self.idle }

    private static let idle = Duration.seconds(23 * 3600)

    private func isYounger(than share: Double, _ now: WallTime) -> Bool {
        now >= obtainedAt && now - obtainedAt < life * share
    }
}

extension VOPITokenPair {
    /// The answer to `POST /auth/refresh`; nil without an access token. Where it brings no refresh token the old one stays,
    /// and where it does not say how long the access token lives, the token itself is asked.
    init?(_ value: VOPIValue, old refreshToken: Secret, server: String, seed: String?, now: WallTime) {
        guard let access = value["accessToken"].text else { return nil }
        accessToken = Secret(access)
        self.refreshToken = value["refreshToken"].text.map { Secret($0) } ?? refreshToken
        let seconds = value["expiresIn"].number.flatMap { $0 > 0 ? $0 : nil } ?? Self.lifeWithin(access) ?? 900
        life = .seconds(min(seconds, 30 * 86_400))
        obtainedAt = now
        self.server = server
        self.seed = seed
    }

    /// `exp` less `iat` of a JWT (RFC 7519, section 4.1), in seconds; nil for what is none.
    static func lifeWithin(_ token: String) -> Double? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var text = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
        while text.utf8.count % 4 != 0 { text += "=" }
        guard let payload = Data(base64Encoded: text), let claims = VOPIValue(Array(payload)),
            let expires = claims["exp"].number, let issued = claims["iat"].number, expires > issued
        else { return nil }
        return expires - issued
    }
}

/// On disk, where it has to be readable.
extension VOPITokenPair: Codable {
    private enum CodingKeys: String, CodingKey {
        case server
        case accessToken = "access_token"
        case refreshToken = "refresh_token"
        case life = "life_ms"
        case obtainedAt = "obtained_at_ms"
        case seed = "seed_sha256"
    }

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        server = try values.decode(String.self, forKey: .server)
        accessToken = Secret(try values.decode(String.self, forKey: .accessToken))
        refreshToken = Secret(try values.decode(String.self, forKey: .refreshToken))
        life = .milliseconds(try values.decode(Int64.self, forKey: .life))
        obtainedAt = WallTime(milliseconds: try values.decode(Int64.self, forKey: .obtainedAt))
        seed = try values.decodeIfPresent(String.self, forKey: .seed)
    }

    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(server, forKey: .server)
        try values.encode(accessToken.reveal(), forKey: .accessToken)
        try values.encode(refreshToken.reveal(), forKey: .refreshToken)
        try values.encode(life.milliseconds, forKey: .life)
        try values.encode(obtainedAt.milliseconds, forKey: .obtainedAt)
        try values.encodeIfPresent(seed, forKey: .seed)
    }
}

/// The configured refresh token.
struct VOPISeed: Sendable, Equatable {
    var token: Secret
    /// SHA-256 of the token, in hexadecimal.
    var digest: String

    /// The token of a file: its text, or the `refreshToken` of a JSON answer that somebody saved. nil when there is none.
    init?(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let member = VOPIValue(bytes).flatMap { $0["refreshToken"].text ?? $0["refresh_token"].text }
        let token = member ?? text
        guard !token.isEmpty, !token.hasPrefix("{") else { return nil }
        self.init(Secret(token))
    }

    init(_ token: Secret) {
        self.token = token
        digest = Checksum.sha256(Array(token.reveal().utf8)).hex
    }
}
