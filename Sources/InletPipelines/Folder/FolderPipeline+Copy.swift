internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// From the source's bytes to a file under its final name, step by step.
extension FolderPipeline {
    func copy(
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

    func compare(
        _ copy: FilePath, _ source: SourceFile, _ order: DeliveryOrder, _ wanted: Digest?
    ) async throws(DeliveryError) {
        guard let wanted else {
            guard let size = try? FileLook.look(at: copy).identity?.size, size == order.source.size else {
                throw DeliveryError(
                    .retry(after: nil), .readBackDiffers, "\(copy.display): the copy has another length than the source"
                )
            }
            return
        }
        guard try await readBack(copy) == wanted else {
            // The source may have been written to between the two readings: that is no fault of the disk.
            try SourceGuard.check(source, order)
            throw DeliveryError(
                .retry(after: nil), .readBackDiffers,
                "\(copy.display): the disk gave back other bytes than were written; check it")
        }
    }

    func readBack(_ path: FilePath) async throws(DeliveryError) -> Digest {
        do {
            return try await Checksum.sha256(readingBack: path, on: pool)
        } catch {
            throw Self.unwritable(error)
        }
    }

    func publish(_ temporary: FilePath, as target: FilePath, in directory: FilePath) throws(DeliveryError) {
        do {
            Failpoint.copied.reached()
            try DurableFile.rename(temporary, to: target)
            Failpoint.renamed.reached()
            try DurableFile.syncDirectory(directory)
        } catch {
            throw error.isTaken ? Self.taken(target) : Self.unwritable(error)
        }
    }
}

/// A flag that a cancellation handler sets and a blocking loop reads.
private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}
