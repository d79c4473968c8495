internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import Synchronization
internal import SystemPackage

/// From the source's bytes to a file under its final name, step by step.
extension FolderPipeline {
    func copy(
        _ source: SourceFile, _ folder: Folder, _ name: FilePath.Component, _ meter: TransferMeter
    ) async throws(DeliveryError) -> FilePath.Component {
        let cancelled = Flag()
        let result = await withTaskCancellationHandler {
            await pool.run { () -> Result<FilePath.Component, FileCopyError> in
                var told: Int64 = 0
                do throws(FileCopyError) {
                    let copy = try FileCopy.copy(
                        source, toTemporaryIn: folder, name: name, isCancelled: { cancelled.isSet },
                        progress: { done in
                            meter.add(done - told)
                            told = done
                        })
                    meter.add(source.opened.size - told)
                    return .success(copy)
                } catch {
                    meter.add(-told)
                    return .failure(error)
                }
            }
        } onCancel: {
            cancelled.set()
        }
        switch result {
        case .success(let copy): return copy
        case .failure(.cancelled): throw DeliveryError(.cancelled, .cancelled, "cancelled while copying")
        case .failure(.sourceShort(_, _, _)):
            throw DeliveryError(.sourceChanged, .sourceChanged, "\(source.path.display): cut while it was copied")
        case .failure(.source(let error)): throw DeliveryError(reading: error)
        case .failure(.target(let error)): throw DeliveryError(writing: error)
        }
    }

    func compare(
        _ copy: FilePath.Component, in folder: Folder, _ source: SourceFile, _ order: DeliveryOrder,
        _ wanted: Digest?
    ) async throws(DeliveryError) {
        let shown = folder.path.appending(copy).display
        guard let wanted else {
            if try DeliveryError.onWriting(folder.look(copy)).identity?.size == order.source.size { return }
            throw DeliveryError(
                .retry(after: nil), .readBackDiffers, "\(shown): the copy has another length than the source")
        }
        guard try await readBack(copy, in: folder) == wanted else {
            // The source may have been written to between the two readings: that is no fault of the disk.
            try SourceGuard.check(source, order)
            throw DeliveryError(
                .retry(after: nil), .readBackDiffers,
                "\(shown): the disk gave back other bytes than were written; check it")
        }
    }

    func readBack(_ name: FilePath.Component, in folder: Folder) async throws(DeliveryError) -> Digest {
        do {
            return try await Checksum.sha256(readingBack: name, in: folder, on: pool)
        } catch {
            throw DeliveryError(writing: error)
        }
    }

    func publish(
        _ temporary: FilePath.Component, as target: FilePath, in folder: Folder
    ) throws(DeliveryError) {
        do {
            Failpoint.copied.reached()
            try folder.rename(temporary, to: folder, target.lastComponent ?? temporary)
            Failpoint.renamed.reached()
            try folder.synchronize()
        } catch {
            throw error.isTaken ? Self.taken(target) : DeliveryError(writing: error)
        }
    }
}

/// A flag that a cancellation handler sets and a blocking loop reads.
private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
}
