internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// Limits how much of the disk a job's results may take: the server says how large they are, and must not fill the disk.
final class VOPIDiskQuota: Sendable {
    /// How large one more file may be.
    struct Limit: Equatable {
        var bytes: Int64
        /// Whether it is the disk that sets it, which passes.
        var isOfDisk: Bool
        /// The file system whose room it is.
        var device: UInt64 = 0
    }

    /// Of one file.
    private static let largest: Int64 = 4 << 30
    /// Of all files of a job, which has dozens of a few megabytes.
    private static let most: Int64 = 64 << 30
    /// The space to keep free as each file begins; on a small disk a twentieth.
    private static let free: Int64 = 1 << 30

    private let folder: FilePath
    private let taken: Mutex<Int64>
    /// The bytes that running fetches may still write, by file system: for all jobs and destinations, which may share
    /// one.
    private static let promised = Mutex<[UInt64: Int64]>([:])

    /// - Parameter taken: bytes of the files that are there.
    init(_ folder: FilePath, taken: Int64) {
        self.folder = folder
        self.taken = Mutex(taken)
    }

    /// Fetches a file for which there is room, and which has as many bytes as `fetch` returns.
    ///
    /// - Throws: as `begin`; what `fetch` throws.
    func hold(
        on pool: BlockingPool, _ fetch: (Limit) async throws(DeliveryError) -> Int64
    ) async throws(DeliveryError) {
        let limit = try await pool.run { () throws(DeliveryError) in try begin() }
        do throws(DeliveryError) {
            end(limit, bytes: try await fetch(limit))
        } catch {
            end(limit)
            throw judged(error, limit)
        }
    }

    /// The meaning of a file's failure under `limit`.
    func judged(_ error: DeliveryError, _ limit: Limit) -> DeliveryError {
        error.code == .answerTooLarge && limit.isOfDisk ? full : error
    }

    /// Ends what `limit` began; `bytes` are there now.
    func end(_ limit: Limit, bytes: Int64 = 0) {
        Self.promised.withLock { promised in
            let left = promised[limit.device, default: 0] - limit.bytes
            promised[limit.device] = left > 0 ? left : nil
        }
        taken.withLock { $0 += bytes }
    }

    /// How large a file may be that is fetched from here on, until `end`. Blocks.
    ///
    /// - Throws: `.answerTooLarge` when the job has had what it may have, `.destinationFull` as an outage.
    func begin() throws(DeliveryError) -> Limit {
        let available = try DeliveryError.onWriting(FreeSpace.available(at: folder))
        let total = try DeliveryError.onWriting(FreeSpace.total(at: folder))
        let device = try DeliveryError.onWriting(Folder(folder).identity().device)
        let taken = taken.withLock { $0 }
        let limit = Self.promised.withLock { promised in
            let others = promised[device, default: 0]
            var limit = Self.limit(taken: taken, available: available, total: total, promised: others)
            limit.device = device
            if limit.bytes > 0 { promised[device] = others + limit.bytes }
            return limit
        }
        guard limit.bytes <= 0 else { return limit }
        if limit.isOfDisk { throw full }
        throw DeliveryError(
            .giveUp, .answerTooLarge,
            "the files of this job have more than \(ByteText.format(Self.most)) together; no more are fetched")
    }

    /// Each gets three quarters of what those before it have left, so that some remains for the next. In any case each
    /// gets a sixteenth of the space that stays free, for a picture beside the largest.
    static func limit(taken: Int64, available: Int64, total: Int64, promised: Int64) -> Limit {
        let kept = min(free, total / 20)
        let (own, disk) = (min(largest, most - taken), available - kept)
        let room = max((disk - promised) / 4 * 3, min(disk, kept / 16))
        return room < own ? Limit(bytes: room, isOfDisk: true) : Limit(bytes: own, isOfDisk: false)
    }

    private var full: DeliveryError {
        DeliveryError(
            .outage(after: nil), .destinationFull,
            "\(folder.display) has too little room for this job's results: \(ByteText.format(Self.free)) of its file system, "
                + "or a twentieth, are left free")
    }
}
