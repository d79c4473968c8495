import Synchronization

/// The memory that bodies pass through on their way into sockets, one buffer for each, of all threads and clients together.
///
/// The first bodies get buffers so large that a system call is cheap; the more there are, the less a larger buffer brings,
/// because none of them is the line's only one. So the sum stays below 6 MiB and 64 KiB for each body.
final class BufferRoom: Sendable {
    static let shared = BufferRoom()

    /// libcurl refuses less than the least, and 2 MiB at most.
    private static let sizes = 16 << 10...512 << 10
    private static let room = 6 << 20
    /// A quarter of what is left, but of a large body no less than this.
    private static let fair = 64 << 10
    /// Bodies up to `small` pass through less than what the heap maps anew each time (`ProcessMemory.boundHeap`): a few system
    /// calls more cost less than the faults of fresh pages.
    private static let small: Int64 = 1 << 20
    private static let kept = 60 << 10

    private let taken = Mutex(0)

    /// How large the buffer for a body of `length` bytes shall be, to be given back.
    func take(for length: Int64) -> Int {
        taken.withLock { taken in
            let size = Self.size(for: length, taken: taken)
            taken += size
            return size
        }
    }

    func giveBack(_ size: Int) { taken.withLock { $0 -= size } }

    static func size(for length: Int64, taken: Int) -> Int {
        let most = length > small ? min(max((room - taken) / 4, fair), sizes.upperBound) : kept
        return min(max(Int(clamping: length), sizes.lowerBound), most)
    }
}
