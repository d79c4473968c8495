package import InletCore
package import InletLinux
internal import InletTransfer
internal import SystemPackage

/// Copies into another folder: temporary name, fsync, read back from the disk, rename that never overwrites, fsync of
/// the folder. Everything runs on the destination's own pool, because any call to a mounted folder may block.
package struct FolderPipeline: Pipeline {
    let settings: FolderSettings
    /// Its own threads: where the folder does not answer, all of them may hang.
    let pool: BlockingPool
    /// For reading sources.
    private let hashing: BlockingPool
    private let names = FolderNames()
    /// More files of one spelling are not a collection of cards.
    private static let mostTwins = 1000

    package init(settings: FolderSettings, pool: BlockingPool, hashing: BlockingPool? = nil) {
        (self.settings, self.pool, self.hashing) = (settings, pool, hashing ?? pool)
    }

    /// Delivers under the order's key, with `%XX` for what the file system refuses in names. Where the folder shows
    /// another file under it, whose name is spelled differently, it delivers under `key_2`, `key_3`… instead. The proof
    /// names the key. exFAT, FAT, NTFS and SMB do not distinguish `IMG.JPG` from `img.jpg`, and HFS+ does not
    /// distinguish normal forms. Every attempt tries the same names.
    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        try await withTaskExecutorPreference(pool) { () async throws(DeliveryError) in
            let wanted = order.key
            _ = try place(wanted, order)
            var order = order
            order.key = try held(wanted)
            let isEncoded = order.key != wanted
            var number = 1
            while true {
                let key = number == 1 ? order.key : KeyTemplate.disambiguated(order.key, number: number)
                do throws(DeliveryError) {
                    return .delivered(try await copyIn(source, order, attempt, key: key))
                } catch {
                    guard error.code == .destinationExists, number < Self.mostTwins else { throw error }
                    // An encoded name may be in the way by its own right.
                    let target = try place(key, order).target
                    var isOther = isEncoded
                    if !isOther { isOther = try mayMeet(order.key) }
                    if !isOther { isOther = try Self.isSpelledOtherwise(target) }
                    if !isOther { throw error }
                }
                number += 1
            }
        }
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let copies = FolderCopies(checkpoint)
        if copies.isEmpty { return }
        try await withTaskExecutorPreference(pool) { () async throws(DeliveryError) in
            // Files on an unmounted disk are still there.
            let (target, name) = try place(try held(order.key), order)
            if let folder = try find(target.removingLastComponent()) {
                copies.removeOwn(of: name, in: folder)
                copies.removeOthers(of: name, in: folder)
            }
        }
    }

    /// The names of temporary files, for the agent that removes them.
    package func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        FolderCopies(checkpoint).handedOver
    }

    /// Creates and removes a file in the folder.
    package func probe() async throws(DeliveryError) -> String {
        try await withTaskExecutorPreference(pool) { () async throws(DeliveryError) in
            let folder = try requireFolder()
            do throws(SystemError) {
                try folder.write([], to: ".inlet-check", mode: 0o600)
                try folder.remove(".inlet-check")
                let free = try FreeSpace.available(at: settings.path)
                return "\(settings.path.display) is writable, \(ByteText.format(free)) free"
            } catch {
                throw DeliveryError(writing: error)
            }
        }
    }

    // MARK: - Steps

    /// A copy cannot continue after a restart, so it is one step from its first byte to its final name.
    ///
    /// - Parameter key: the order's key, or one of its variants where others have the same spelling.
    private func copyIn(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt, key: String
    ) async throws(DeliveryError) -> Proof {
        if attempt.isStopping() { throw .stopping }
        try source.requireUnchanged(since: order)
        let target = try place(key, order).target
        let name = try place(order.key, order).name
        let directory = target.removingLastComponent()
        let copies = FolderCopies(attempt.checkpoint.entries)
        if let folder = try find(directory) {
            // First, because it takes the space that is measured next.
            copies.removeOwn(of: name, in: folder)
            if let proof = try await existing(target, in: folder, source, order, key) {
                copies.removeOthers(of: name, in: folder)
                return proof
            }
        }
        try requireSpace(for: order.source.size, beside: copies, of: name, in: directory)
        // From here on this folder is used, even if it is replaced. The umask decides which others may write to it.
        let folder = try DeliveryError.onWriting(Folder.making(directory, mode: 0o777))
        if attempt.isStopping() { throw .stopping }
        let (temporary, wanted) = try await copied(source, folder, of: name, attempt)
        do {
            try await publish(temporary, as: target, in: folder, source, order, wanted)
            copies.removeOthers(of: name, in: folder)
        } catch {
            // The next attempt removes a leftover, or giving up the file does.
            await bestEffort(try folder.remove(temporary))
            // The answer to our own rename can be lost (NFS); a repeated one is then refused.
            if error.code == .destinationExists,
                let proof = try await existing(target, in: folder, source, order, key)
            {
                copies.removeOthers(of: name, in: folder)
                return proof
            }
            throw error
        }
        return proof(order, key, target, wanted)
    }

    /// `key` as the folder can hold it.
    private func held(_ key: String) throws(DeliveryError) -> String {
        let top = try requireFolder()
        return try DeliveryError.onWriting(names.held(key, in: top))
    }

    /// Whether another file may have the name `key` there because its own was refused.
    private func mayMeet(_ key: String) throws(DeliveryError) -> Bool {
        let top = try requireFolder()
        return try DeliveryError.onWriting(names.mayBeEncoded(key, in: top))
    }

    private func place(
        _ key: String, _ order: DeliveryOrder
    ) throws(DeliveryError) -> (target: FilePath, name: FilePath.Component) {
        let key = FilePath(key: key)
        guard key.isRelative, let name = key.lastComponent, key.components.allSatisfy({ $0.kind == .regular }) else {
            throw DeliveryError(
                .giveUp, .internalFault, "the key '\(DisplayText.escape(order.key))' is not a path below a folder")
        }
        return (settings.path.pushing(key), name)
    }

    /// The configured folder, which may be an administrator's symlink.
    func requireFolder() throws(DeliveryError) -> Folder {
        do {
            return try Folder(settings.path)
        } catch {
            guard error.isMissing else { throw DeliveryError(writing: error) }
            throw DeliveryError(
                .outage(after: nil), .destinationUnwritable,
                error.isLinked
                    ? "\(error)"
                    : "\(settings.path.display) is not there; mount or create it, and deliveries continue")
        }
    }

    /// A folder at or below it; nil where it is missing. A folder behind a stranger's symlink fails the file after its
    /// attempts, and a person decides.
    private func find(_ directory: FilePath) throws(DeliveryError) -> Folder? {
        do {
            return try Folder(directory)
        } catch {
            if error.isMissing, !error.isLinked { return nil }
            throw DeliveryError(writing: error)
        }
    }

    private func requireSpace(
        for size: Int64, beside copies: FolderCopies, of name: FilePath.Component, in directory: FilePath
    ) throws(DeliveryError) {
        do throws(DeliveryError) {
            try requireSpace(for: size)
        } catch {
            guard error.code == .destinationFull, let folder = try find(directory),
                copies.removeStill(of: name, in: folder)
            else { throw error }
            try requireSpace(for: size)
        }
    }

    private func requireSpace(for size: Int64) throws(DeliveryError) {
        let free = try DeliveryError.onWriting(FreeSpace.available(at: settings.path))
        guard free - size >= settings.minFree else {
            throw DeliveryError(
                .outage(after: nil), .destinationFull,
                "\(settings.path.display) has \(ByteText.format(free)) free; \(ByteText.format(size)) more would leave "
                    + "less than min_free (\(ByteText.format(settings.minFree)))")
        }
    }

    /// A proof when the target already holds these bytes (an earlier attempt's answer was lost). Equal lengths prove
    /// nothing here, so the bytes are compared whatever `verify` says.
    private func existing(
        _ target: FilePath, in folder: Folder, _ source: SourceFile, _ order: DeliveryOrder, _ key: String
    ) async throws(DeliveryError) -> Proof? {
        guard let name = target.lastComponent else { return nil }
        let look = try DeliveryError.onWriting(folder.look(name))
        if case .missing = look { return nil }
        guard let size = look.identity?.size else { throw Self.taken(target) }
        if size > order.source.size, ManifestFolder.isChain(target) {
            return try await continued(target, name, in: folder, source, order, key)
        }
        guard size == order.source.size else { throw Self.taken(target) }
        let wanted = try await SourceDigests.sha256(of: source, on: hashing)
        guard try await holds(wanted, name, in: folder, source, order) else { throw Self.taken(target) }
        // The process may have died between the rename and this.
        try DeliveryError.onWriting(folder.synchronize())
        return proof(order, key, target, wanted)
    }

    /// A proof for the chain file of a history that was delivered before and has got generations since.
    private func continued(
        _ target: FilePath, _ name: FilePath.Component, in folder: Folder, _ source: SourceFile, _ order: DeliveryOrder,
        _ key: String
    ) async throws(DeliveryError) -> Proof {
        let wanted = try await SourceDigests.sha256(of: source, on: hashing)
        let isContinued: Bool
        do throws(SystemError) {
            isContinued = try ManifestFolder.continues(target, name, in: folder) { SHA256.digest(of: $0) == wanted }
        } catch {
            throw DeliveryError(writing: error)
        }
        guard isContinued else { throw Self.taken(target) }
        return proof(order, key, target, wanted)
    }

    private static func taken(_ target: FilePath) -> DeliveryError {
        DeliveryError(
            .giveUp, .destinationExists,
            "\(target.display) exists and is another file; it is never overwritten. Rename one of them, then retry")
    }

    private func proof(_ order: DeliveryOrder, _ key: String, _ target: FilePath, _ digest: Digest?) -> Proof {
        Proof(
            key: key, size: order.source.size, method: digest == nil ? .size : .readBack,
            content: digest.map { ContentHash(digest: $0, partSize: nil) }, etag: nil, url: target.display)
    }

    /// Whether the file at `path` has another name there.
    private static func isSpelledOtherwise(_ path: FilePath) throws(DeliveryError) -> Bool {
        do throws(SystemError) {
            guard let name = path.lastComponent else { return false }
            let folder = try Folder(path.removingLastComponent())
            var names = try folder.list()
            while let entry = try names.next() {
                if entry.name == name { return false }
            }
            return try folder.look(name) != .missing
        } catch {
            throw DeliveryError(writing: error)
        }
    }

    // MARK: - From the source's bytes to a file under its final name, step by step.

    /// Copies the source, and hashes it right behind the copy.
    ///
    /// - Returns: the temporary name, and the source's SHA-256 where the copy is read back.
    private func copied(
        _ source: SourceFile, _ folder: Folder, of name: FilePath.Component, _ attempt: Attempt
    ) async throws(DeliveryError) -> (FilePath.Component, Digest?) {
        let (draft, meter) = (FileCopy.temporaryName(for: name), attempt.meter)
        try await attempt.checkpoint.put([FolderCopies.ownNote: draft.bytes])
        guard settings.verify == .readBack else {
            return (try copy(source, folder, draft, of: name, meter) { _ in }, nil)
        }
        let (ends, copied) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
        // A failed copy ends the scope, and with it the hashing.
        async let hashed = Result<_, DeliveryError>(
            of: try await SourceDigests.sha256(of: source, behind: ends, on: hashing))
        let temporary = try copy(source, folder, draft, of: name, meter) { copied.yield($0) }
        copied.finish()
        do {
            return (temporary, try await hashed.get())
        } catch {
            // The next attempt removes a leftover, or giving up the file does.
            await bestEffort(try folder.remove(temporary))
            throw error
        }
    }

    private func copy(
        _ source: SourceFile, _ folder: Folder, _ draft: FilePath.Component, of name: FilePath.Component,
        _ meter: TransferMeter, _ progress: (Int64) -> Void
    ) throws(DeliveryError) -> FilePath.Component {
        var told: Int64 = 0
        func tell(_ done: Int64) {
            meter.add(done - told)
            told = done
            progress(done)
        }
        do throws(FileCopyError) {
            let copy = try FileCopy.copy(
                source, toTemporaryIn: folder, name: name, as: draft, isCancelled: { Task.isCancelled }, progress: tell)
            tell(source.opened.size)
            return copy
        } catch {
            meter.add(-told)
            switch error {
            case .cancelled: throw DeliveryError(.cancelled, .cancelled, "cancelled while copying")
            case .sourceShort:
                throw DeliveryError(.sourceChanged, .sourceChanged, "\(source.path.display): cut while it was copied")
            case .source(let error): throw DeliveryError(reading: error)
            case .target(let error): throw DeliveryError(writing: error)
            }
        }
    }

    /// The copy gets its name only if it equals the bytes read, and while the source is still the admitted file.
    private func publish(
        _ copy: FilePath.Component, as target: FilePath, in folder: Folder, _ source: SourceFile,
        _ order: DeliveryOrder, _ wanted: Digest?
    ) async throws(DeliveryError) {
        let isWhole =
            if let wanted {
                try await holds(wanted, copy, in: folder, source, order)
            } else {
                try DeliveryError.onWriting(folder.look(copy)).identity?.size == order.source.size
            }
        guard isWhole else {
            throw DeliveryError(
                .retry(after: nil), .readBackDiffers,
                "\(folder.path.appending(copy).display): "
                    + (wanted == nil
                        ? "the copy's length differs from the source's"
                        : "check the disk: it returned other bytes than were written"))
        }
        try source.requireUnchanged(since: order)
        do {
            Failpoint.copied.reached()
            try folder.rename(copy, to: folder, target.lastComponent ?? copy)
            Failpoint.renamed.reached()
            try folder.synchronize()
        } catch {
            throw error.isTaken ? Self.taken(target) : DeliveryError(writing: error)
        }
    }

    /// Whether the disk returns the bytes `wanted` from the first reading of the source. Throws if the source was
    /// written to between the two readings: that is not the disk's fault.
    private func holds(
        _ wanted: Digest, _ name: FilePath.Component, in folder: Folder, _ source: SourceFile, _ order: DeliveryOrder
    ) async throws(DeliveryError) -> Bool {
        do throws(SystemError) {
            if try await Checksum.sha256(readingBack: name, in: folder, on: pool) == wanted { return true }
        } catch {
            throw DeliveryError(writing: error)
        }
        try source.requireUnchanged(since: order)
        return false
    }
}
