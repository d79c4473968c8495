internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// How much of the disk a job's results may take: the server says how large they are, and the disk is not its to fill.
final class VOPIRoom: Sendable {
    /// How large one more file may be.
    struct Limit: Equatable {
        var bytes: Int64
        /// Whether it is the disk that sets it, which passes.
        var isOfDisk: Bool
    }

    /// Of one file.
    private static let largest: Int64 = 4 << 30
    /// Of all files of a job, which has dozens of a few megabytes.
    private static let most: Int64 = 64 << 30
    /// What stays free, as each file begins; of a small disk a twentieth.
    private static let free: Int64 = 1 << 30

    /// What a file may have whatever others may: sixteen of them fit into what stays free.
    private static let small: Int64 = 64 << 20

    private let folder: FilePath
    private let taken: Mutex<Int64>
    /// What the fetches that run may write yet, of all jobs and destinations: they may share a disk.
    private static let promised = Mutex<Int64>(0)

    /// - Parameter taken: bytes of the files that are there.
    init(_ folder: FilePath, taken: Int64) {
        self.folder = folder
        self.taken = Mutex(taken)
    }

    /// Ends what `limit` began; `bytes` are there now.
    func end(_ limit: Limit, bytes: Int64 = 0) {
        Self.promised.withLock { $0 -= limit.bytes }
        taken.withLock { $0 += bytes }
    }

    /// How large a file may be that is fetched from here on, until `end`. Blocks.
    ///
    /// - Throws: `.answerTooLarge` when the job has had what it may have, `.destinationFull` as an outage.
    func begin() throws(DeliveryError) -> Limit {
        let (available, total): (Int64, Int64)
        do throws(SystemError) {
            available = try FreeSpace.available(at: folder)
            total = try FreeSpace.total(at: folder)
        } catch {
            throw FolderPipeline.unwritable(error)
        }
        let taken = taken.withLock { $0 }
        let limit = Self.promised.withLock { promised in
            let limit = Self.limit(taken: taken, available: available, total: total, promised: promised)
            promised += max(0, limit.bytes)
            return limit
        }
        guard limit.bytes <= 0 else { return limit }
        if limit.isOfDisk { throw full }
        throw DeliveryError(
            .giveUp, .answerTooLarge,
            "the files of this job have more than \(ByteText.format(Self.most)) together; no more are fetched")
    }

    /// Each gets three quarters of what those before it have left, so that there is something for the next.
    static func limit(taken: Int64, available: Int64, total: Int64, promised: Int64) -> Limit {
        let (own, disk) = (min(largest, most - taken), available - min(free, total / 20))
        let room = max((disk - promised) / 4 * 3, min(disk, small))
        return room < own ? Limit(bytes: room, isOfDisk: true) : Limit(bytes: own, isOfDisk: false)
    }

    /// What a file's failure means that was held to `limit`.
    func judged(_ error: DeliveryError, _ limit: Limit) -> DeliveryError {
        error.code == .answerTooLarge && limit.isOfDisk ? full : error
    }

    private var full: DeliveryError {
        DeliveryError(
            .outage(after: nil), .destinationFull,
            "\(folder.display) has too little room for this job's results: \(ByteText.format(Self.free)) of its file system, "
                + "or a twentieth, are left free")
    }
}
