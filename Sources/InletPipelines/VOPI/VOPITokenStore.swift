internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import SystemPackage

/// The login on disk: `tokens/NAME.json`, of mode 0600, with the pair before it in `NAME.json.previous` and a lock beside
/// them. The configured file is only read.
struct VOPITokenStore: Sendable {
    private let folder: FilePath
    private let path: FilePath
    private let previous: FilePath
    private let lockPath: FilePath
    let seedPath: FilePath
    private let pool: BlockingPool

    /// Larger is no token.
    private static let sizeLimit = 64 << 10
    /// How long another process may take for a renewal.
    private static let patience = Duration.seconds(60)

    init(folder: FilePath, name: String, seed: FilePath, pool: BlockingPool) {
        self.folder = folder
        path = folder.appending("\(name).json")
        previous = folder.appending("\(name).json.previous")
        lockPath = folder.appending("\(name).json.lock")
        seedPath = seed
        self.pool = pool
    }

    /// The pair that is kept; that before it where the file cannot be understood; nil when there is none.
    /// - Throws: where the disk fails: a login must not seem to be gone for that.
    func pair() async throws(DeliveryError) -> VOPITokenPair? {
        if let pair = try await read(path) { return pair }
        return try await read(previous)
    }

    private func read(_ file: FilePath) async throws(DeliveryError) -> VOPITokenPair? {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try await pool.run { () throws(SystemError) in try DurableFile.read(file, limit: Self.sizeLimit) }
        } catch {
            if error.isMissing { return nil }
            throw Self.fault("cannot be read", error)
        }
        // Then the one before it is tried, as said above.
        return try? JSONDecoder().decode(VOPITokenPair.self, from: Data(bytes))
    }

    /// The configured token; nil when its file is missing, empty, or not for this user.
    /// - Throws: as `pair`.
    func seed() async throws(DeliveryError) -> VOPISeed? {
        let path = seedPath
        do throws(SystemError) {
            return VOPISeed(
                try await pool.run { () throws(SystemError) in try DurableFile.read(path, limit: Self.sizeLimit) })
        } catch {
            if error.isMissing || error.isPermission { return nil }
            throw Self.fault("cannot be read", error)
        }
    }

    /// Puts `pair` in the place of the one before; on the disk when it returns.
    func keep(_ pair: VOPITokenPair) async throws(DeliveryError) {
        let (path, previous) = (path, previous)
        do throws(SystemError) {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
            // What it was does not matter: the error says which file.
            guard let bytes = (try? encoder.encode(pair)).map({ Array($0) }) else {
                throw SystemError(call: "encode", path: path, code: .invalidArgument)
            }
            try await makeFolder()
            try await pool.run { () throws(SystemError) in
                // The one before is for a file that was damaged; without it the new one does.
                let old = try? DurableFile.read(path, limit: Self.sizeLimit)
                // The new one first: the server has forgotten the old.
                try DurableFile.write(bytes, to: path, mode: 0o600, asFolderOwner: true)
                if let old { try DurableFile.write(old, to: previous, mode: 0o600, asFolderOwner: true) }
            }
        } catch {
            throw Self.fault("cannot be kept", error)
        }
    }

    /// The right to renew, which one process has at a time. Waits for its holder; ends when the task is cancelled.
    func lock() async throws(DeliveryError) -> FileLock {
        let end = ContinuousClock.now.advanced(by: Self.patience)
        do throws(SystemError) {
            try await makeFolder()
        } catch {
            throw Self.fault("cannot be kept", error)
        }
        while true {
            if let lock = try take() { return lock }
            if Task.isCancelled { throw DeliveryError.stopping }
            guard ContinuousClock.now < end else {
                throw DeliveryError(
                    .outage(after: nil), .timedOut, "another process has been renewing the login for too long")
            }
            // Cancelled, it is seen above.
            try? await Task.sleep(for: .milliseconds(50))
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

    private func makeFolder() async throws(SystemError) {
        let folder = folder
        try await pool.run { () throws(SystemError) in try Self.make(folder) }
    }

    /// Makes `state_dir/tokens`. A command that root runs leaves nothing there that the agent, which runs as the owner of its
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
