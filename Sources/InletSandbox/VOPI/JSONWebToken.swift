import Foundation
import InletCore

/// A token signed by HS256 (RFC 7519, RFC 7518 section 3.2).
struct JSONWebToken: Codable, Equatable {
    enum Kind: String, Codable {
        case access
        case refresh
    }

    var sub: String
    var type: Kind
    /// Of refresh tokens: what the table of logins knows it by.
    var jti: String?
    /// Of access tokens: which round of logins it is of; a test may end a round.
    var round: Int?
    /// Seconds since 1970.
    var iat: Int64
    var exp: Int64

    enum Flaw: Error {
        case malformed
        case badSignature
    }

    func signed(_ key: MessageCode) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // Texts and whole numbers are always JSON.
        let claims = (try? encoder.encode(self)) ?? Data()
        let signed = [Data(#"{"alg":"HS256","typ":"JWT"}"#.utf8), claims].map(\.base64URL).joined(separator: ".")
        return signed + "." + Data(key.code(of: signed.utf8)).base64URL
    }

    /// Reads `text` and checks its signature, not its times.
    init(_ text: String, _ key: MessageCode) throws(Flaw) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let claims = Data(base64URL: parts[1]), let code = Data(base64URL: parts[2]),
            // That there are no claims in it is the flaw.
            let token = try? JSONDecoder().decode(Self.self, from: claims)
        else { throw .malformed }
        guard key.isCode(Array(code), of: "\(parts[0]).\(parts[1])".utf8) else { throw .badSignature }
        self = token
    }

    init(sub: String, type: Kind, jti: String? = nil, round: Int? = nil, from start: WallTime, for lifetime: Duration) {
        (self.sub, self.type, self.jti, self.round) = (sub, type, jti, round)
        iat = start.milliseconds / 1000
        exp = (start + lifetime).milliseconds / 1000
    }
}

extension Data {
    /// Base 64 with the URL alphabet and no padding (RFC 4648, section 5).
    fileprivate var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").filter { $0 != "=" }
    }

    fileprivate init?(base64URL text: some StringProtocol) {
        let standard = String(text).replacing("-", with: "+").replacing("_", with: "/")
        self.init(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
    }
}
