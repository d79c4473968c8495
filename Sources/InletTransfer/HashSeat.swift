import InletCore
import InletLinux
import Synchronization

/// One slice of a file within a `HashGroup`, and the piece of it that has been read.
///
/// Unchecked: all but the cancellation is the leader's.
final class HashSeat: @unchecked Sendable {
    /// Whole blocks, so that only the end of a slice leaves a rest.
    private static let room = 64 << 10

    let length: Int64
    private let source: SourceFile
    private let offset: Int64
    private let progress: @Sendable () -> Void
    private let cancelled = Atomic<Bool>(false)
    private let buffer: UnsafeMutableRawBufferPointer
    /// Bytes of the slice that have been read.
    private var position: Int64 = 0
    /// Of the buffer, what no lane has taken.
    private var ready = 0..<0

    init(_ source: SourceFile, offset: Int64, length: Int64, progress: @escaping @Sendable () -> Void) {
        self.source = source
        self.offset = offset
        self.length = length
        self.progress = progress
        buffer = .allocate(byteCount: Int(min(Int64(Self.room), max(length, 1))), alignment: 4096)
    }

    deinit { buffer.deallocate() }

    /// From any thread; ends the slice within one buffer.
    func cancel() { cancelled.store(true, ordering: .releasing) }

    var unused: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[ready]) }

    func use(_ count: Int) { ready = (ready.lowerBound + count)..<ready.upperBound }

    func advise() { source.adviseSequential(offset: offset, length: min(length, 16 << 20)) }

    /// Reads on where the buffer is used up. Blocks.
    ///
    /// - Returns: whether the slice has ended but for `unused`, which is less than a block.
    func fill() throws(TransferError) -> Bool {
        guard !cancelled.load(ordering: .acquiring) else {
            throw Checksum.error(.cancelled, source, "the checksum was cancelled")
        }
        if ready.isEmpty {
            var filled = 0
            let wanted = Int(min(Int64(buffer.count), length - position))
            while filled < wanted {
                let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled..<wanted])
                filled += try Checksum.fill(rest, from: source, at: offset + position + Int64(filled))
            }
            position += Int64(filled)
            ready = 0..<filled
            if filled > 0 { progress() }
        }
        return position == length && ready.count < MD5Lanes.blockSize
    }
}
