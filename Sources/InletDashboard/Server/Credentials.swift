internal import Crypto
internal import Foundation
internal import InletCore

/// The token, the password and the reader's token. What is compared are keyed hashes, and always all of them: how long that
/// takes says nothing.
struct Credentials: Sendable {
    private struct Known: Sendable {
        var hash: [UInt8]
        var access: Access
        /// Whether programs send it with each request; a password is for logging in only.
        var isToken: Bool
        /// Too long to be found by trying, however fast: as `openssl rand -hex 16` makes them, and some shorter ones.
        var isUnguessable: Bool { isToken && length >= Credentials.unguessable }
        var length: Int
    }

    /// Characters of a token for programs.
    static let unguessable = 24

    private let key = SymmetricKey(size: .bits256)
    private let known: [Known]
    let login: LoginKind

    init(_ settings: DashboardSettings) {
        let all: [(Secret?, Access, Bool)] = [
            (settings.token, .full, true), (settings.password, .full, false), (settings.readOnlyToken, .read, true),
        ]
        var known: [Known] = []
        for case (let secret?, let access, let isToken) in all {
            let text = secret.reveal()
            known.append(
                Known(hash: Self.hash(text, key), access: access, isToken: isToken, length: text.utf8.count))
        }
        self.known = known
        login =
            settings.isOpen
            ? .none : settings.password == nil ? .token : settings.token == nil ? .password : .either
    }

    /// What a secret opens; nil for one that is none.
    ///
    /// - Parameter ifUnguessable: nil also for one that somebody might guess.
    func access(_ secret: String, asToken: Bool, ifUnguessable: Bool = false) -> Access? {
        let code = HMAC<SHA256>.authenticationCode(for: Array(secret.utf8), using: key)
        var found: Access?
        for one in known {
            let isEqual = code == one.hash
            if isEqual, one.isToken || !asToken, one.isUnguessable || !ifUnguessable {
                found = max(found ?? .none, one.access)
            }
        }
        return found
    }

    private static func hash(_ text: String, _ key: SymmetricKey) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: Array(text.utf8), using: key))
    }

    /// A new cookie, and what is remembered of it.
    static func newCookie() -> (text: String, id: [UInt8]) {
        let text = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }.hex
        return (text, id(of: text))
    }

    static func id(of cookie: String) -> [UInt8] { Array(SHA256.hash(data: Array(cookie.utf8))) }
}
