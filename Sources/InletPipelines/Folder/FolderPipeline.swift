package import InletCore
package import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// Copies into another folder: temporary name, fsync, read back from the disk, rename that never overwrites, fsync of the
/// folder. Blocking work runs on the pool.
package struct FolderPipeline: Pipeline {
    private let settings: FolderSettings
    private let pool: BlockingPool
    /// Set while a copy may have left a temporary file behind.
    private static let copyingNote = "copying"

    package init(settings: FolderSettings, pool: BlockingPool) {
        self.settings = settings
        self.pool = pool
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        try SourceGuard.check(source, order)
        let target = settings.path.pushing(FilePath(order.key))
        guard let name = target.lastComponent, !target.components.contains(where: { $0.kind != .regular }) else {
            throw DeliveryError(.giveUp, .internalFault, "the key '\(order.key)' is not a path below a folder")
        }
        let directory = target.removingLastComponent()
        try prepare(directory, size: order.source.size)
        if attempt.checkpoint.entries[Self.copyingNote] != nil {
            FileCopy.removeLeftovers(of: name, in: directory)
        }
        let wanted = try await hash(source)
        if let proof = try await existing(target, order, wanted) { return .delivered(proof) }
        try await attempt.checkpoint.put([Self.copyingNote: []])
        let temporary = try await copy(source, directory, name, attempt.meter)
        do {
            try await compare(temporary, order, wanted)
            try SourceGuard.check(source, order)
            try publish(temporary, as: target, in: directory)
        } catch {
            try? DurableFile.remove(temporary)
            throw error
        }
        return .delivered(proof(order, target, wanted))
    }

    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let target = settings.path.pushing(FilePath(order.key))
        guard let name = target.lastComponent, checkpoint[Self.copyingNote] != nil else { return }
        FileCopy.removeLeftovers(of: name, in: target.removingLastComponent())
    }

    /// Makes and removes a file in the folder.
    package func probe() async throws(DeliveryError) -> String {
        try requireFolder()
        let test = settings.path.appending(".inlet-check")
        do {
            try DurableFile.write([], to: test, mode: 0o600)
            try DurableFile.remove(test)
            let free = try FreeSpace.available(at: settings.path)
            return "\(settings.path.display) is writable, \(ByteText.format(free)) free"
        } catch {
            throw Self.unwritable(error)
        }
    }

    // MARK: - Steps

    private func requireFolder() throws(DeliveryError) {
        do {
            if case .directory = try FileLook.look(at: settings.path) { return }
        } catch {
            throw Self.unwritable(error)
        }
        throw DeliveryError(
            .outage(after: nil), .destinationUnwritable,
            "\(settings.path.display) is not there; mount it or make it, and deliveries go on")
    }

    private func prepare(_ directory: FilePath, size: Int64) throws(DeliveryError) {
        try requireFolder()
        do {
            let free = try FreeSpace.available(at: settings.path)
            guard free - size >= settings.minFree else {
                throw DeliveryError(
                    .outage(after: nil), .destinationFull,
                    "\(settings.path.display) has \(ByteText.format(free)) free; \(ByteText.format(size)) more would "
                        + "leave less than min_free (\(ByteText.format(settings.minFree)))")
            }
            try DurableFile.makeDirectories(directory, mode: 0o755)
        } catch let error as DeliveryError {
            throw error
        } catch let error as SystemError {
            throw Self.unwritable(error)
        } catch {
            throw DeliveryError(.retry(after: nil), .internalFault, "\(directory.display): \(error)")
        }
    }

    private func hash(_ source: SourceFile) async throws(DeliveryError) -> Digest? {
        guard settings.verify == .readBack else { return nil }
        do {
            return try await Checksum.sha256(of: source, on: pool)
        } catch {
            throw DeliveryError(error)
        }
    }

    /// A proof when the target holds these very bytes already (the answer of an earlier attempt was lost).
    private func existing(
        _ target: FilePath, _ order: DeliveryOrder, _ wanted: Digest?
    ) async throws(DeliveryError) -> Proof? {
        let look: FileLook
        do {
            look = try FileLook.look(at: target)
        } catch {
            throw Self.unwritable(error)
        }
        if case .missing = look { return nil }
        let taken = DeliveryError(
            .giveUp, .destinationExists,
            "\(target.display) exists and is another file; it is never overwritten. Rename one of them, then retry")
        guard case .regular(let identity, _, _) = look, identity.size == order.source.size, wanted != nil else {
            throw taken
        }
        guard try await readBack(target) == wanted else { throw taken }
        return proof(order, target, wanted)
    }

    private func copy(
        _ source: SourceFile, _ directory: FilePath, _ name: FilePath.Component, _ meter: TransferMeter
    ) async throws(DeliveryError) -> FilePath {
        let cancelled = Flag()
        let result = await withTaskCancellationHandler {
            await pool.run { () -> Result<FilePath, FileCopyError> in
                var told: Int64 = 0
                do throws(FileCopyError) {
                    let path = try FileCopy.copy(
                        source, toTemporaryIn: directory, name: name, isCancelled: { cancelled.isSet },
                        progress: { done in
                            meter.add(done - told)
                            told = done
                        })
                    meter.add(source.opened.size - told)
                    return .success(path)
                } catch {
                    meter.add(-told)
                    return .failure(error)
                }
            }
        } onCancel: {
            cancelled.set()
        }
        switch result {
        case .success(let path): return path
        case .failure(.cancelled): throw DeliveryError(.cancelled, .cancelled, "cancelled while copying")
        case .failure(.sourceShort(_, _, _)):
            throw DeliveryError(.sourceChanged, .sourceChanged, "\(source.path.display): cut while it was copied")
        case .failure(.source(let error)): throw DeliveryError(reading: error)
        case .failure(.target(let error)): throw Self.unwritable(error)
        }
    }

    private func compare(_ copy: FilePath, _ order: DeliveryOrder, _ wanted: Digest?) async throws(DeliveryError) {
        guard let wanted else {
            guard let size = try? FileLook.look(at: copy).identity?.size, size == order.source.size else {
                throw DeliveryError(
                    .retry(after: nil), .readBackDiffers, "\(copy.display): the copy has another length than the source")
            }
            return
        }
        guard try await readBack(copy) == wanted else {
            throw DeliveryError(
                .retry(after: nil), .readBackDiffers,
                "\(copy.display): the disk gave back other bytes than were written; check it")
        }
    }

    private func readBack(_ path: FilePath) async throws(DeliveryError) -> Digest {
        do {
            return try await Checksum.sha256(readingBack: path, on: pool)
        } catch {
            throw Self.unwritable(error)
        }
    }

    private func publish(_ temporary: FilePath, as target: FilePath, in directory: FilePath) throws(DeliveryError) {
        do {
            try DurableFile.rename(temporary, to: target)
            try DurableFile.syncDirectory(directory)
        } catch {
            if error.isTaken {
                throw DeliveryError(
                    .giveUp, .destinationExists, "\(target.display) appeared meanwhile; it is never overwritten")
            }
            throw Self.unwritable(error)
        }
    }

    private func proof(_ order: DeliveryOrder, _ target: FilePath, _ digest: Digest?) -> Proof {
        Proof(
            key: order.key, size: order.source.size, method: digest == nil ? .size : .readBack,
            content: digest.map { ContentHash(digest: $0, partSize: nil) }, etag: nil, url: target.display)
    }

    /// A destination that is full or not writable is out of order for every file: that is an outage, not an attempt.
    private static func unwritable(_ error: SystemError) -> DeliveryError {
        if error.isFull { return DeliveryError(.outage(after: nil), .destinationFull, "\(error)") }
        let isOutage = error.isPermission || error.code == .readOnlyFileSystem || error.code == .ioError
        return DeliveryError(
            isOutage ? .outage(after: nil) : .retry(after: nil), .destinationUnwritable, "\(error)")
    }
}

/// A flag that a cancellation handler sets and a blocking loop reads.
private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}
