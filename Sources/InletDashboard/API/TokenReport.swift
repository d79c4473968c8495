package import InletCore

/// What asks for a token where the last one was refused. Text only in the request on the control socket.
struct TokenWish: Codable, Sendable {
    var refused: String
}

/// A token that was asked for, or why there is none. It is text only in the answer on the control socket.
package struct TokenReport: Codable, Sendable {
    package var token: Secret?
    /// Why there is no token.
    package var message: String

    package init(token: Secret? = nil, message: String = "") {
        self.token = token
        self.message = message
    }

    private enum CodingKeys: String, CodingKey {
        case token
        case message
    }

    package init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        token = try values.decodeIfPresent(String.self, forKey: .token).map { Secret($0) }
        message = try values.decode(String.self, forKey: .message)
    }

    package func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encodeIfPresent(token?.reveal(), forKey: .token)
        try values.encode(message, forKey: .message)
    }
}
