internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// The login on disk: `tokens/NAME.json`, mode 0600, with the previous pair in `NAME.json.previous` and a lock file
/// beside them. The configured file is only read.
struct VOPITokenStore: Sendable {
    private let folder: FilePath
    private let path: FilePath
    private let previous: FilePath
    private let lockPath: FilePath
    let seedPath: FilePath
    private let pool: BlockingPool

    /// A larger file holds no token.
    private static let sizeLimit = 64 << 10
    /// How long another process may take for a renewal.
    static let patience = Duration.seconds(60)

    init(folder: FilePath, name: String, seed: FilePath, pool: BlockingPool) {
        self.folder = folder
        path = folder.appending("\(name).json")
        previous = folder.appending("\(name).json.previous")
        lockPath = folder.appending("\(name).json.lock")
        seedPath = seed
        self.pool = pool
    }

    /// The stored pair; the previous one where the file is unreadable; nil when there is none.
    /// - Throws: where the disk fails: such a failure must not look like a missing login.
    func pair() async throws(DeliveryError) -> VOPITokenPair? {
        for file in [path, previous] {
            // A damaged file counts as none: the previous one is tried next.
            if let pair = VOPITokenPair(kept: try await bytes(file) { $0.isMissing }) { return pair }
        }
        return nil
    }

    /// nil where the file cannot be opened for a reason that `isNone` accepts as "there is none".
    private func bytes(
        _ file: FilePath, isNone: (SystemError) -> Bool
    ) async throws(DeliveryError) -> [UInt8]? {
        do throws(SystemError) {
            return try await pool.run { () throws(SystemError) in try DurableFile.read(file, limit: Self.sizeLimit) }
        } catch {
            if isNone(error) { return nil }
            throw Self.fault("cannot be read", error)
        }
    }

    /// The configured token; nil when its file is missing, empty, or unreadable for this user.
    /// - Throws: as `pair`.
    func seed() async throws(DeliveryError) -> Secret? {
        try await bytes(seedPath) { $0.isMissing || $0.isPermission }.flatMap { Self.seed($0) }
    }

    /// The token of a file: its text, or the `refreshToken` of a saved JSON answer. nil when there is none.
    static func seed(_ bytes: [UInt8]) -> Secret? {
        let text = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        let member = VOPIValue(bytes).flatMap { $0["refreshToken"].text ?? $0["refresh_token"].text }
        let token = member ?? text
        return token.isEmpty || token.hasPrefix("{") ? nil : Secret(token)
    }

    /// SHA-256 of a token, in hexadecimal.
    static func digest(of token: Secret) -> String { Checksum.sha256(token.reveal().utf8).hex }

    /// Replaces the stored pair with `pair`; durable when it returns.
    func keep(_ pair: VOPITokenPair) async throws(DeliveryError) {
        let (path, previous) = (path, previous)
        try await writing { () throws(SystemError) in
            // The previous pair only helps after damage; the new one works without it.
            let old = try? DurableFile.read(path, limit: Self.sizeLimit)
            // The new pair first: the server has already forgotten the old one.
            try DurableFile.write(pair.kept, to: path, mode: 0o600, asFolderOwner: true)
            if let old { try DurableFile.write(old, to: previous, mode: 0o600, asFolderOwner: true) }
        }
    }

    /// Runs `body` on the pool, in the folder, which is created.
    private func writing(_ body: @escaping @Sendable () throws(SystemError) -> Void) async throws(DeliveryError) {
        let folder = folder
        do throws(SystemError) {
            try await pool.run { () throws(SystemError) in
                try Self.make(folder)
                try body()
            }
        } catch {
            throw Self.fault("cannot be kept", error)
        }
    }

    /// The right to renew, held by one process at a time. Waits for its holder until `end`, which may have passed;
    /// stops when the task is cancelled.
    func lock(by end: ContinuousClock.Instant) async throws(DeliveryError) -> FileLock {
        let begin = ContinuousClock.now
        try await writing {}
        while true {
            if let lock = try take() { return lock }
            if Task.isCancelled { throw DeliveryError.stopping }
            guard ContinuousClock.now < end else {
                // The caller may have spent its time waiting within this process, so no other process is to blame.
                let reason =
                    begin < end
                    ? "another process has been renewing the login for too long"
                    : "renewing the login takes too long"
                throw DeliveryError(.outage(after: nil), .timedOut, reason)
            }
            // The check above sees a cancellation.
            await Task.rest(for: .milliseconds(50))
        }
    }

    /// Opens and locks a local file, which takes microseconds: not worth a thread of the pool.
    private func take() throws(DeliveryError) -> FileLock? {
        do throws(SystemError) {
            let lock = try FileLock(lockPath)
            FileOwner.give(lockPath, toOwnerOf: folder)
            return lock
        } catch {
            throw Self.fault("cannot be locked", error)
        }
    }

    /// Creates `state_dir/tokens`. A command run by root leaves no files there that the agent, running as the owner of
    /// `state_dir`, could not write.
    static func make(_ folder: FilePath) throws(SystemError) {
        try DurableFile.makeDirectories(folder, mode: 0o700)
        try FileOwner.requireOwn(folder, in: folder.removingLastComponent())
        FileOwner.give(folder, toOwnerOf: folder.removingLastComponent())
    }

    private static func fault(_ what: String, _ error: SystemError) -> DeliveryError {
        DeliveryError(.outage(after: nil), .destinationUnwritable, "the login \(what): \(error)")
    }
}

/// The two tokens of a login: one for requests, one for the next renewal.
struct VOPITokenPair: Sendable, Equatable {
    /// The server that they are for; no other server ever gets them.
    var server: String
    var accessToken: Secret
    var refreshToken: Secret
    /// How long requests may use the access token.
    var life: Duration
    var obtainedAt: WallTime
    /// SHA-256 of the configured token that began this login: a different token begins another login.
    var seed: String?

    /// Whether requests can use the access token without renewal: up to 70 % of its life. After a clock was set back it
    /// counts as old.
    func isFresh(at now: WallTime) -> Bool { isYounger(than: 0.7, now) }

    /// Whether the access token probably still works; used when it cannot be renewed.
    func isUsable(at now: WallTime) -> Bool { isYounger(than: 0.95, now) }

    /// Whether to renew an idle login: each renewal extends it by seven days.
    func isIdle(at now: WallTime) -> Bool { now < obtainedAt || now - obtainedAt >= Self.idle }

    private static let idle = Duration.seconds(23 * 3600)

    private func isYounger(than share: Double, _ now: WallTime) -> Bool {
        now >= obtainedAt && now - obtainedAt < life * share
    }
}

extension VOPITokenPair {
    /// The answer to `POST /auth/refresh`; nil without an access token. Without a new refresh token the old one stays.
    /// Where the answer gives no lifetime, the access token's own is used.
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

    /// `exp` minus `iat` of a JWT (RFC 7519, section 4.1), in seconds; nil for anything else.
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

/// The readable form on disk.
extension VOPITokenPair {
    /// nil for a damaged file.
    init?(kept bytes: [UInt8]?) {
        guard let fields = JSON.object(bytes), let server = fields["server"]?.string,
            let access = fields["access_token"]?.string, let refresh = fields["refresh_token"]?.string,
            let life = fields["life_ms"]?.integer, let obtainedAt = fields["obtained_at_ms"]?.integer
        else { return nil }
        self.init(
            server: server, accessToken: Secret(access), refreshToken: Secret(refresh), life: .milliseconds(life),
            obtainedAt: WallTime(milliseconds: obtainedAt), seed: fields["seed_sha256"]?.string)
    }

    var kept: [UInt8] {
        let fields = JSONValue.members([
            "server": .string(server), "access_token": .string(accessToken.reveal()),
            "refresh_token": .string(refreshToken.reveal()), "life_ms": .number(String(life.milliseconds)),
            "obtained_at_ms": .number(String(obtainedAt.milliseconds)), "seed_sha256": seed.map { .string($0) },
        ])
        return Array(fields.prettyText.utf8)
    }
}
