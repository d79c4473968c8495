/// What a visitor may do.
enum Access: String, Codable, Sendable, CaseIterable, Comparable {
    /// Nothing but log in.
    case none
    /// Look, and change nothing.
    case read
    case full

    static func < (one: Access, other: Access) -> Bool {
        (allCases.firstIndex(of: one) ?? 0) < (allCases.firstIndex(of: other) ?? 0)
    }
}

/// What is asked of those who want in.
enum LoginKind: String, Codable, Sendable, CaseIterable {
    /// Nothing.
    case none
    case token
    case password
    case either
}

/// What `GET session` answers.
struct SessionReport: Codable, Sendable {
    var access: Access
    var login: LoginKind
    var version: String
}

/// What `POST login` brings. Text only in the request.
struct LoginOrder: Codable, Sendable {
    var secret: String
}

/// Every answer that is none.
struct ErrorReport: Codable, Sendable {
    /// Stable: programs may look at it.
    var error: String
    /// What is wrong, and what to do about it.
    var message: String
}

extension SessionReport: Described {
    static var schemaName: String { "Session" }
    static var schema: Schema {
        .object([
            .must("access", .word(Access.allCases.map(\.rawValue))),
            .must("login", .word(LoginKind.allCases.map(\.rawValue))), .must("version", .text),
        ])
    }
}

extension LoginOrder: Described {
    static var schemaName: String { "Login" }
    static var schema: Schema { .object([.must("secret", .text, "The token or the password.")]) }
}

extension ErrorReport: Described {
    static var schemaName: String { "Error" }
    static var schema: Schema { .object([.must("error", .text), .must("message", .text)]) }
}
