import InletCore
import InletLinux
import Synchronization

/// Slices of files whose MD5s are computed side by side, in one thread.
///
/// Whoever finds it without one leads it: gives it the thread, until the own slice is done, and then hands it to another.
/// So it needs no thread of its own, and nobody is kept longer than the own slice takes.
///
/// Unchecked, because what only the leader touches has no lock: `books` says who leads, and leading is handed over under it.
final class HashGroup: @unchecked Sendable {
    typealias Outcome = Result<Digest, TransferError>

    /// What somebody who waits is told.
    enum Word: Sendable {
        case done(Outcome)
        case lead
    }

    private struct Books {
        var isLed = false
        var arrivals: [HashSeat] = []
        /// Who waits; the leader does not.
        var waiting: [ObjectIdentifier: CheckedContinuation<Word, Never>] = [:]
    }

    private let books = Mutex(Books())
    // The leader's.
    private var lanes = MD5Lanes()
    private var seats: [HashSeat?] = Array(repeating: nil, count: MD5Lanes.count)

    init() {}

    /// Takes a seat; `continuation` hears of the end, or that it shall lead.
    func enter(_ seat: HashSeat, _ continuation: CheckedContinuation<Word, Never>) {
        let mustLead = books.withLock { books in
            books.arrivals.append(seat)
            defer { books.isLed = true }
            if books.isLed { books.waiting[ObjectIdentifier(seat)] = continuation }
            return !books.isLed
        }
        if mustLead { continuation.resume(returning: .lead) }
    }

    /// Computes for all that are here until `own` is done. Blocks.
    func lead(until own: HashSeat) -> Outcome {
        var found: Outcome?
        while found == nil {
            for seat in books.withLock({ books in take(&books.arrivals) }) { sit(seat) }
            for (lane, seat) in seats.enumerated() {
                guard let seat, let outcome = outcome(of: seat, lane) else { continue }
                seats[lane] = nil
                if seat === own { found = outcome } else { tell(seat, .done(outcome)) }
            }
            advance()
        }
        handOver()
        return found ?? .failure(TransferError(.internalFault, "a checksum was not computed", isOutage: false))
    }

    private func take(_ arrivals: inout [HashSeat]) -> [HashSeat] {
        defer { arrivals = [] }
        return arrivals
    }

    private func sit(_ seat: HashSeat) {
        // `HashGroups` lets no more in than there are lanes.
        guard let lane = seats.firstIndex(where: { $0 == nil }) else { return }
        seats[lane] = seat
        lanes.begin(lane)
        seat.advise()
    }

    /// How a slice has ended, if it has; fills its buffer where there is more to be read.
    private func outcome(of seat: HashSeat, _ lane: Int) -> Outcome? {
        do throws(TransferError) {
            guard try seat.fill() else { return nil }
            return .success(lanes.finish(lane, seat.unused, length: seat.length))
        } catch {
            return .failure(error)
        }
    }

    /// Takes as many blocks as all have ready.
    private func advance() {
        let blocks = seats.compactMap { $0.map { $0.unused.count / MD5Lanes.blockSize } }.min() ?? 0
        lanes.update(seats.map { $0?.unused.baseAddress }, blocks: blocks)
        for seat in seats { seat?.use(blocks * MD5Lanes.blockSize) }
    }

    private func tell(_ seat: HashSeat, _ word: Word) {
        books.withLock { $0.waiting.removeValue(forKey: ObjectIdentifier(seat)) }?.resume(returning: word)
    }

    private func handOver() {
        let next = books.withLock { books -> CheckedContinuation<Word, Never>? in
            let heir = seats.lazy.compactMap { $0 }.first ?? books.arrivals.first
            books.isLed = heir != nil
            return heir.flatMap { books.waiting.removeValue(forKey: ObjectIdentifier($0)) }
        }
        next?.resume(returning: .lead)
    }
}

/// The groups that compute now. Files of one device share them: a mount that does not answer holds up nobody else's.
final class HashGroups: Sendable {
    static let shared = HashGroups()

    private struct Row {
        let device: UInt64
        let group = HashGroup()
        var taken = 0
    }

    private let rows = Mutex<[Row]>([])

    /// The MD5 of `length` bytes from `offset`; as `Checksum.md5(of:)`.
    func md5(
        of source: SourceFile, offset: Int64, length: Int64, on pool: BlockingPool,
        progress: @escaping @Sendable () -> Void
    ) async throws(TransferError) -> Digest {
        let group = join(source.opened.device)
        defer { leave(group) }
        let seat = HashSeat(source, offset: offset, length: length, progress: progress)
        let word = await withTaskCancellationHandler {
            await withCheckedContinuation { group.enter(seat, $0) }
        } onCancel: {
            seat.cancel()
        }
        switch word {
        case .done(let outcome): return try outcome.get()
        case .lead:
            let outcome = await withTaskCancellationHandler {
                await pool.run { group.lead(until: seat) }
            } onCancel: {
                seat.cancel()
            }
            return try outcome.get()
        }
    }

    private func join(_ device: UInt64) -> HashGroup {
        rows.withLock { rows in
            let found = rows.firstIndex { $0.device == device && $0.taken < MD5Lanes.count }
            if found == nil { rows.append(Row(device: device)) }
            let index = found ?? rows.count - 1
            rows[index].taken += 1
            return rows[index].group
        }
    }

    private func leave(_ group: HashGroup) {
        rows.withLock { rows in
            guard let index = rows.firstIndex(where: { $0.group === group }) else { return }
            rows[index].taken -= 1
            if rows[index].taken == 0 { rows.remove(at: index) }
        }
    }
}
