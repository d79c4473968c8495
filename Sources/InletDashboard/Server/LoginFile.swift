internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The login sessions on the disk, so that they survive a restart: the hash of each cookie, never the cookie.
///
/// It is written after each login and logout, and when a session was used an hour after it was last written. A file
/// that cannot be read or written costs logins, and nothing else.
struct LoginFile: Sendable {
    struct Session: Codable, Sendable, Equatable {
        /// The SHA-256 of its cookie, in hexadecimal digits.
        var id: String
        var access: Access
        /// Milliseconds since 1970, of its last use.
        var used: Int64
        /// The same, of its login; nil from an earlier version.
        var opened: Int64?
    }

    private struct Content: Codable {
        var salt: [UInt8]
        var mark: [UInt8]
        var sessions: [Session]
    }

    let path: FilePath
    private let salt: [UInt8]
    /// Sixteen bits that depend on all secrets: they tell that one was changed, which ends all sessions, but not what it is.
    private let mark: [UInt8]

    private static let mostBytes = 64 << 10

    /// - Returns: the file, and the sessions in it. Blocks.
    static func read(_ path: FilePath, _ settings: DashboardSettings) -> (file: LoginFile, sessions: [Session]) {
        var content: Content?
        do {
            let bytes = try SourceFile(opening: path).content(limit: mostBytes)
            content = try JSON.decode(bytes, as: Content.self)
        } catch {
            // People log in once more.
        }
        let salt = content?.salt ?? [UInt8].unforeseeable(16)
        let file = LoginFile(path: path, salt: salt, mark: mark(settings, salt))
        return (file, content?.mark == file.mark ? content?.sessions ?? [] : [])
    }

    private static func mark(_ settings: DashboardSettings, _ salt: [UInt8]) -> [UInt8] {
        let secrets = [settings.token, settings.password, settings.readOnlyToken, settings.kioskToken]
        let text = secrets.map { $0?.reveal() ?? "" }.joined(separator: "\u{0}")
        return Array(MessageCode(key: salt).code(of: text.utf8).prefix(2))
    }

    /// Readable by the agent's user only. Blocks.
    func write(_ sessions: [Session]) throws(SystemError) {
        let content = Content(salt: salt, mark: mark, sessions: sessions)
        // These values can always be encoded.
        guard let bytes = try? JSON.encode(content) else { return }
        try DurableFile.write(Array(bytes), to: path, mode: 0o600)
    }
}
