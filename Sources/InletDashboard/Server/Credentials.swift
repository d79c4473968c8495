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

    private let key = MessageCode(key: [UInt8].unforeseeable(32))
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
                Known(hash: key.code(of: text.utf8), access: access, isToken: isToken, length: text.utf8.count))
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
        let code = key.code(of: secret.utf8)
        var found: Access?
        for one in known {
            let isEqual = MessageCode.areEqual(code, one.hash)
            if isEqual, one.isToken || !asToken, one.isUnguessable || !ifUnguessable {
                found = max(found ?? .none, one.access)
            }
        }
        return found
    }

    /// A new cookie, and what is remembered of it.
    static func newCookie() -> (text: String, id: [UInt8]) {
        let text = [UInt8].unforeseeable(32).hex
        return (text, id(of: text))
    }

    static func id(of cookie: String) -> [UInt8] { SHA256.bytes(of: cookie.utf8) }
}
