package import InletCore
package import InletLinux
internal import Synchronization

/// Hashes slices of files that are under way at the same time side by side, in one pass over each: parts of one file, or
/// several files. A processor's vectors hash eight MD5s in the time of one.
///
/// Slices of one file system make a batch; a file system that does not answer holds up no other. The task of one slice
/// leads the batch: on a thread of the pool it reads the next bytes of each slice and hashes them together. When its own
/// slice ends, it hands the lead over. A slice joins at the batch's next step, and waits for no other to come.
package final class HashLanes: Sendable {
    package let pool: BlockingPool
    private let state = Mutex(State())

    /// The slices of a batch, and the batches of a file system: its second one begins when the first is full.
    fileprivate static let mostSlices = 16
    fileprivate static let mostBatches = 2
    /// The bytes that a batch reads ahead, all its slices together, and one slice of it at most.
    private static let bufferSize = 1 << 20
    private static let largestWindow = 128 << 10

    package init(on pool: BlockingPool) { self.pool = pool }

    /// As `Checksum.sums`, together with the other slices that are under way. One that fails or is cancelled leaves the
    /// others alone.
    package func sums(
        _ kinds: Set<Digest.Algorithm>, of source: SourceFile, offset: Int64, length: Int64,
        progress: @escaping @Sendable () -> Void = {}
    ) async throws(TransferError) -> SliceSums {
        if length <= Checksum.shortest { return try Checksum.sums(kinds, source, offset, length, progress) }
        let slice = HashedSlice(kinds, SliceReader(source, offset: offset, length: length), progress)
        if let batch = state.withLock({ $0.enter(slice) }) { return try await lead(batch, until: slice) }
        switch await slice.waiter.wait() {
        case .ended(let result): return try result.get()
        case .leads(let batch): return try await lead(batch, until: slice)
        case nil:
            state.withLock { $0.leave(slice) }
            throw slice.cancelled
        }
    }

    /// Hashes the batch until `own` ends, and gives it to the next.
    private func lead(_ batch: Int, until own: HashedSlice) async throws(TransferError) -> SliceSums {
        let pool = pool.branch(own.device)
        var result: HashedSlice.Outcome?
        while result == nil {
            result = await pool.run { advance(batch, until: own) }
            // Even when the caller is on the pool itself: the next job gets the thread.
            if result == nil { await Task.yield() }
        }
        state.withLock { $0.handOver(batch, from: own) }?()
        return try (result ?? .failure(own.cancelled)).get()
    }

    /// Hashes the batch for one job of the pool, some milliseconds.
    ///
    /// - Returns: the result of `own`; nil when it has not ended.
    private func advance(_ batch: Int, until own: HashedSlice) -> HashedSlice.Outcome? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.bufferSize, alignment: 4096)
        defer { buffer.deallocate() }
        var rest = RunningHash.piece
        while rest > 0 {
            if Task.isCancelled { return .failure(own.cancelled) }
            let (read, ended) = Self.step(state.withLock { $0.slices(of: batch) }, buffer)
            rest -= read
            for (slice, outcome) in ended where slice !== own {
                state.withLock { $0.leave(slice) }
                slice.waiter.resume(with: .ended(outcome))
            }
            if let outcome = ended.first(where: { $0.slice === own })?.outcome { return outcome }
        }
        return nil
    }

    /// Reads the next bytes of each slice and hashes them together.
    private static func step(
        _ slices: [HashedSlice], _ buffer: UnsafeMutableRawBufferPointer
    ) -> (read: Int64, ended: [(slice: HashedSlice, outcome: HashedSlice.Outcome)]) {
        var ended: [(slice: HashedSlice, outcome: HashedSlice.Outcome)] = []
        var pieces: [(slice: HashedSlice, bytes: UnsafeRawBufferPointer)] = []
        let window = min(largestWindow, bufferSize / max(1, slices.count))
        for (index, slice) in slices.enumerated() {
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[index * window..<(index + 1) * window])
            do throws(TransferError) {
                pieces.append((slice, try slice.reader.next(into: room)))
            } catch {
                ended.append((slice, .failure(error)))
            }
        }
        var hashers = pieces.map { $0.slice.takeHasher() }
        SliceHasher.update(&hashers, with: pieces.map(\.bytes))
        for (slice, hasher) in zip(pieces.map(\.slice), hashers) {
            slice.hasher = hasher
            slice.progress()
            if slice.reader.rest == 0 { ended.append((slice, .success(hasher.finish()))) }
        }
        return (pieces.reduce(0) { $0 + Int64($1.bytes.count) }, ended)
    }
}

/// A slice on its way through `HashLanes`.
///
/// Unchecked, because only the leader of its batch touches `reader` and `hasher`, and the lead changes hands with a lock.
private final class HashedSlice: @unchecked Sendable {
    typealias Outcome = Result<SliceSums, TransferError>

    /// The end of its task's wait.
    enum News: Sendable {
        case ended(Outcome)
        /// Its task leads this batch from now on.
        case leads(Int)
    }

    let waiter = Waiter<News>()
    let progress: @Sendable () -> Void
    var reader: SliceReader
    var hasher: SliceHasher

    init(_ kinds: Set<Digest.Algorithm>, _ reader: SliceReader, _ progress: @escaping @Sendable () -> Void) {
        (self.reader, self.progress, hasher) = (reader, progress, SliceHasher(kinds))
    }

    var device: UInt64 { reader.source.opened.device }

    var cancelled: TransferError { .hashing(reader.source, .cancelled, "the checksum was cancelled") }

    /// Leaves an empty one behind: a second owner of some hashes would make each update copy them.
    func takeHasher() -> SliceHasher {
        defer { hasher = SliceHasher([]) }
        return hasher
    }
}

/// Every slice under way is in one batch or waits for room. A batch has a leader as long as it has slices.
private struct State {
    private var batches: [(number: Int, device: UInt64, slices: [HashedSlice])] = []
    private var waiting: [HashedSlice] = []
    private var lastNumber = 0

    func slices(of batch: Int) -> [HashedSlice] { batches.first { $0.number == batch }?.slices ?? [] }

    /// - Returns: a new batch that its task leads; nil where it must wait for news.
    mutating func enter(_ slice: HashedSlice) -> Int? {
        if join(slice) { return nil }
        guard batches.count(where: { $0.device == slice.device }) < HashLanes.mostBatches else {
            waiting.append(slice)
            return nil
        }
        lastNumber += 1
        batches.append((lastNumber, slice.device, [slice]))
        return lastNumber
    }

    /// False where every batch of its file system is full.
    private mutating func join(_ slice: HashedSlice) -> Bool {
        let roomy = batches.firstIndex { $0.device == slice.device && $0.slices.count < HashLanes.mostSlices }
        guard let roomy else { return false }
        batches[roomy].slices.append(slice)
        return true
    }

    /// It ended or was cancelled; the next that waits gets its room.
    mutating func leave(_ slice: HashedSlice) {
        waiting.removeAll { $0 === slice }
        for index in batches.indices { batches[index].slices.removeAll { $0 === slice } }
        let others = waiting
        waiting = []
        for other in others where !join(other) { waiting.append(other) }
    }

    /// - Returns: the closure with which the next leader goes on; nil where the batch has no slice left.
    mutating func handOver(_ batch: Int, from slice: HashedSlice) -> (@Sendable () -> Void)? {
        leave(slice)
        while let next = slices(of: batch).first {
            if let goOn = next.waiter.take(.leads(batch)) { return goOn }
            leave(next)
        }
        batches.removeAll { $0.number == batch }
        return nil
    }
}
