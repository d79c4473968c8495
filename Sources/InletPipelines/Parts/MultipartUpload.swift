internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// One attempt at a multipart upload: open or continue, send missing parts in parallel, compose, prove.
struct MultipartUpload: Sendable {
    let store: any PartStore
    let sender: PartSender

    private var order: DeliveryOrder { sender.order }
    private var attempt: Attempt { sender.attempt }

    func deliver() async throws(DeliveryError) -> Proof {
        var record: UploadRecord
        switch try await open() {
        case .arrived(let proof): return proof
        case .going(let upload): record = upload
        }
        if !record.isCompleting {
            do throws(DeliveryError) {
                try await sendMissing(&record)
                try sender.source.requireUnchanged(since: order)
                if attempt.isStopping() { throw .stopping }
            } catch {
                throw try await concluding(error, record)
            }
            try await attempt.checkpoint.put([UploadRecord.completingName: []])
        }
        let proof: Proof
        do throws(DeliveryError) {
            proof = try await complete(record)
        } catch {
            // Another object has the key, so these parts will never become one.
            if error.code == .destinationExists { try await drop(record, keeping: [:]) }
            throw error
        }
        for (id, key) in UploadRecord.refusedUploads(record.lasting) {
            // The last attempt: an upload that the store keeps now stays until the store expires it.
            await bestEffort(try await store.abort(id: id, key: key))
        }
        return proof
    }

    private enum Beginning {
        case going(UploadRecord)
        /// It had been completed.
        case arrived(Proof)
    }

    /// The journaled upload if it can continue, or a new one.
    private func open() async throws(DeliveryError) -> Beginning {
        var lasting = UploadRecord.lasting(attempt.checkpoint.entries)
        let expiry = attempt.checkpoint.entries.filter { $0.key == UploadRecord.expiryName }
        if let old = UploadRecord(attempt.checkpoint.entries, fileSize: order.source.size) {
            let going = old.isCompleting ? old : old.isStale ? nil : try await store.resume(old, sender)
            if let proof = try await arrived(old, going) { return .arrived(proof) }
            if let going {
                attempt.meter.add(going.provedBytes)
                return .going(going)
            }
            // It expired while we were away, which is nobody's fault: the attempt continues with a new upload.
            lasting.merge(try await dropExpired(old)) { $1 }
            // Where no new one can be opened, the next attempt does not go on with this one's checksum.
            try await attempt.checkpoint.replace(lasting.merging(expiry) { $1 })
        }
        let limits = store.limits
        try limits.check(order)
        let plan = PartPlan(
            fileSize: order.source.size, configured: sender.lane.partSize(limits, fileSize: order.source.size),
            mostParts: limits.mostParts)
        let upload = try await store.open(order, plan)
        let record = UploadRecord(upload: upload, plan: plan, lasting: lasting)
        do throws(DeliveryError) {
            // In one step, so that no crash forgets both.
            var notes = lasting.merging(expiry) { $1 }
            notes[UploadRecord.openingName] = record.openingNote
            try await attempt.checkpoint.replace(notes)
        } catch {
            // Otherwise nobody would know it any more.
            await bestEffort(try await store.abort(id: upload.id, key: upload.key))
            throw error
        }
        return .going(record)
    }

    /// The proof, where the upload may have been composed already, and something would be sent again. Another agent may
    /// have asked for that, and known all parts. Asked after `resume`, so that a request that is still running then
    /// cannot end between the two.
    private func arrived(_ old: UploadRecord, _ going: UploadRecord?) async throws(DeliveryError) -> Proof? {
        if !old.mayBeComposed || going?.missing.isEmpty == true { return nil }
        guard let proof = try await store.arrived(old, sender) else { return nil }
        attempt.meter.add(order.source.size)
        // The object may be an earlier one with the same content. A leftover ends by itself at the store.
        for (id, key) in UploadRecord.uploads(attempt.checkpoint.entries) {
            await bestEffort(try await store.abort(id: id, key: key))
        }
        return proof
    }

    /// Its id must be kept until the store has dropped the upload. A store that answers but does not drop it still gets
    /// the new upload, and another request to drop the old one at the end.
    /// - Returns: the notes that keep it known.
    private func dropExpired(_ record: UploadRecord) async throws(DeliveryError) -> [String: [UInt8]] {
        do throws(DeliveryError) {
            try await store.abort(id: record.upload.id, key: record.upload.key)
            return [:]
        } catch {
            switch error.verdict {
            case .outage, .cancelled: throw error
            default: return [UploadRecord.refusedName + record.upload.id: Array(record.upload.key.utf8)]
            }
        }
    }

    private typealias StepResult = Result<PartQueue.Step, DeliveryError>

    /// Sends the missing parts, at most `parallel_parts` at a time. Where their requests state checksums, the next ones are
    /// hashed meanwhile. The first failure starts no new part and ends the others.
    private func sendMissing(_ record: inout UploadRecord) async throws(DeliveryError) {
        if attempt.isStopping() { throw .stopping }
        let opened = record
        var queue = PartQueue(
            record.missing, atOnce: store.limits.parallel,
            ahead: sender.proof.ahead.isEmpty ? 1 : PartQueue.ahead(opened.plan, atOnce: store.limits.parallel))
        var failure: DeliveryError?
        let proved = await withTaskGroup(of: StepResult.self) { group in
            var proved: [Int: UploadRecord.VerifiedPart] = [:]
            start(&queue, of: opened, in: &group)
            for await result in group {
                switch result {
                case .success(let step):
                    if case .sent(let number, let part) = step { proved[number] = part }
                    queue.end(step)
                    if failure == nil, attempt.isStopping() { failure = .stopping }
                    if failure == nil { start(&queue, of: opened, in: &group) }
                case .failure(let error):
                    if failure == nil || failure?.verdict == .cancelled { failure = error }
                    if error.verdict != .cancelled { group.cancelAll() }
                }
            }
            return proved
        }
        record.parts.merge(proved) { _, new in new }
        if let failure, !record.missing.isEmpty { throw failure }
    }

    private func start(_ queue: inout PartQueue, of record: UploadRecord, in group: inout TaskGroup<StepResult>) {
        while let part = queue.nextToSend() { group.addTask { await send(part, of: record) } }
        while let number = queue.nextToHash() { group.addTask { await hash(number, of: record) } }
    }

    private func hash(_ number: Int, of record: UploadRecord) async -> StepResult {
        let range = record.plan.range(number)
        let visit = CacheVisit(sender.source, range)
        return await Result(of: try await sender.sumsAhead(range)).map {
            .hashed(HashedPart(number: number, sums: $0, visit: visit))
        }
    }

    private func send(_ part: HashedPart, of record: UploadRecord) async -> StepResult {
        let (number, range) = (part.number, record.plan.range(part.number))
        do throws(DeliveryError) {
            return try await sender.lane.carry(
                range.upperBound - range.lowerBound, of: order.id, isStopping: attempt.isStopping
            ) { () throws(DeliveryError) in
                let verified = try await sender.send(
                    range, to: try store.target(number, of: record.upload),
                    what: "part \(number) of \(record.plan.count)", part.sums)
                try sender.source.requireUnchanged(since: order)
                try await attempt.checkpoint.put(UploadRecord.notes(of: verified, number))
                part.visit.end()
                return .success(.sent(number, verified))
            }
        } catch {
            return .failure(error)
        }
    }

    /// The effect of a failed attempt on the upload: it stays for the next attempt, unless it is refused, or it or its
    /// URLs are gone. A vanished source may be on a card that returns; if it does not, `abandon` drops the upload.
    private func concluding(_ error: DeliveryError, _ record: UploadRecord) async throws(DeliveryError) -> DeliveryError
    {
        switch error.code {
        case .urlExpired:
            let before = attempt.checkpoint.entries[UploadRecord.expiryName]?.first ?? 0
            let count = before == .max ? before : before + 1
            try await drop(record, keeping: [UploadRecord.expiryName: [count]])
            guard count >= 2 else { return error }
            return DeliveryError(
                .retry(after: nil), .uplinkTooSlow,
                "\(error.reason), \(count) times in a row: the uplink is too slow for the life of these URLs; "
                    + "lower parallel_parts, or have the API sign them for longer")
        // The store would refuse the same again.
        case .uploadGone, .corrupted, .sourceChanged, .badRequest:
            try await drop(record, keeping: [:])
            return error
        default:
            return error
        }
    }

    /// Drops the upload at the store. If that is impossible now (the task may be cancelled already), the notes stay,
    /// marked, so that the next attempt or `abandon` does it.
    private func drop(_ record: UploadRecord, keeping notes: [String: [UInt8]]) async throws(DeliveryError) {
        try await attempt.checkpoint.put(notes.merging([UploadRecord.staleName: []]) { note, _ in note })
        do {
            try await store.abort(id: record.upload.id, key: record.upload.key)
        } catch {
            // As said above.
            return
        }
        try await attempt.checkpoint.replace(notes.merging(record.lasting) { $1 })
    }

    // MARK: - Composing

    private static let policy = RetryPolicy(attempts: 3, backoff: .milliseconds(300), maxBackoff: .seconds(5))

    /// Asks the store to compose the object, and finds out the result when the answer is lost.
    private func complete(_ record: UploadRecord) async throws(DeliveryError) -> Proof {
        var tried = 0
        while true {
            do throws(DeliveryError) {
                if try await store.isTaken(record.upload.key) {
                    // It may be ours, from a request whose answer was lost.
                    if record.isCompleting || tried > 0, let proof = try await store.lookUp(record, sender) {
                        return proof
                    }
                    throw DeliveryError(
                        .giveUp, .destinationExists, "an object has the key '\(DisplayText.escape(record.upload.key))'")
                }
                return store.proof(record, try await store.complete(record))
            } catch {
                tried += 1
                switch error.code {
                case .badRequest, .uploadGone: return try await resolve(record, error)
                case .cancelled, .destinationExists: throw error
                case .notFound:
                    // A missing bucket says nothing about the upload.
                    guard case .retry = error.verdict else { throw error }
                    return try await resolve(record, error)
                // Our own earlier request, whose answer was lost, may still be running.
                case .conflict: break
                default: if error.verdict == .giveUp || error.verdict == .credentials { throw error }
                }
                if tried >= Self.policy.attempts { return try await resolve(record, Self.passing(error)) }
                // The store has all bytes: ask again soon, whatever it asks for.
                let passing = DeliveryError(.retry(after: nil), error.code, error.reason)
                try await Retrying.pause(
                    after: tried, passing, by: Self.policy, "completing the upload", isStopping: attempt.isStopping)
            }
        }
    }

    /// A conflict with our own request passes.
    private static func passing(_ error: DeliveryError) -> DeliveryError {
        error.code == .conflict ? DeliveryError(.retry(after: nil), .conflict, error.reason) : error
    }

    /// The store may have composed the object without our hearing of it: look it up before sending anything again.
    private func resolve(_ record: UploadRecord, _ error: DeliveryError) async throws(DeliveryError) -> Proof {
        if let proof = try await store.lookUp(record, sender) { return proof }
        guard error.code == .notFound || error.code == .uploadGone else { throw error }
        if error.code == .uploadGone {
            // An upload that only lacks a part is still there.
            await bestEffort(try await store.abort(id: record.upload.id, key: record.upload.key))
        }
        var notes = record.lasting
        notes[UploadRecord.completingName] = []
        try await attempt.checkpoint.replace(notes)
        throw DeliveryError(
            .retry(after: nil), .uploadGone,
            "\(error.reason); the object is not there either, or cannot be seen, so it is sent again")
    }
}

extension PartStore {
    /// Compares the source with the admitted file.
    /// - Returns: a proof where it has changed but the admitted content has arrived completely: the answer to the last
    ///   complete may have been lost.
    func checkSource(_ sender: PartSender) async throws(DeliveryError) -> Proof? {
        do throws(DeliveryError) {
            try sender.source.requireUnchanged(since: sender.order)
            return nil
        } catch {
            guard let proof = try await composedEarlier(sender.order, sender.attempt, sender) else { throw error }
            return proof
        }
    }

    /// The proof of an object that an earlier attempt asked to compose; nil when there was none, or the store does not
    /// have it.
    func composedEarlier(
        _ order: DeliveryOrder, _ attempt: Attempt, _ sender: PartSender?
    ) async throws(DeliveryError) -> Proof? {
        guard let record = UploadRecord(attempt.checkpoint.entries, fileSize: order.source.size), record.isCompleting
        else { return nil }
        return try await lookUp(record, sender)
    }

    /// The proof, if the store has the object.
    fileprivate func lookUp(_ record: UploadRecord, _ sender: PartSender?) async throws(DeliveryError) -> Proof? {
        try await composed(record, sender).map { proof(record, $0) }
    }

    fileprivate func proof(_ record: UploadRecord, _ composed: ComposedObject) -> Proof {
        Proof(
            key: record.upload.key, size: record.plan.fileSize, method: record.method, content: record.content,
            // The store's tag from now on: not every store computes S3's.
            etag: composed.etag.flatMap { $0.isEmpty ? nil : $0 } ?? record.expectedETag,
            url: location(record.upload.key, answered: composed.url), details: record.details)
    }
}

/// A part whose request can be made.
struct HashedPart: Sendable {
    let number: Int
    let sums: SliceSums
    let visit: CacheVisit
}

/// The parts of one file on their way: hashed, some of them ahead of those that are sent, then sent. A request states
/// its checksums first, so that without this the line would be idle while parts are hashed.
struct PartQueue {
    enum Step: Sendable {
        case hashed(HashedPart)
        case sent(Int, UploadRecord.VerifiedPart)
    }

    private var waiting: ArraySlice<Int>
    private var ready: [HashedPart] = []
    private var hashing = 0
    private var sending = 0
    private let atOnce: Int
    private let ahead: Int

    /// - Parameters:
    ///   - atOnce: the most parts to send at once.
    ///   - ahead: the most parts that are hashed, or are being hashed, and not yet sent.
    init(_ parts: [Int], atOnce: Int, ahead: Int) {
        (waiting, self.atOnce, self.ahead) = (parts[...], atOnce, ahead)
    }

    /// As many as are sent, so that they fill as many lanes; but the page cache of a small machine must hold them.
    static func ahead(_ plan: PartPlan, atOnce: Int) -> Int { max(1, min(atOnce, Int(mostAhead / plan.partSize))) }

    private static let mostAhead: Int64 = 256 << 20

    mutating func nextToSend() -> HashedPart? {
        guard sending < atOnce, !ready.isEmpty else { return nil }
        sending += 1
        return ready.removeFirst()
    }

    mutating func nextToHash() -> Int? {
        guard hashing + ready.count < ahead, let next = waiting.popFirst() else { return nil }
        hashing += 1
        return next
    }

    mutating func end(_ step: Step) {
        switch step {
        case .hashed(let part):
            hashing -= 1
            ready.append(part)
        case .sent: sending -= 1
        }
    }
}

/// Leaves the page cache as it was before a part of a large file was read. Pages that only we read are dropped, so that
/// a night of uploads does not displace other programs' data. Pages that were cached before stay: somebody has just
/// written them, or reads them.
struct CacheVisit: Sendable {
    /// Smaller files displace nothing.
    static let smallest: Int64 = 64 << 20

    private let source: SourceFile
    private let range: Range<Int64>
    private let wasCold: Bool

    /// Looks before `range` is read. Three system calls, for a file large enough to matter.
    init(_ source: SourceFile, _ range: Range<Int64>) {
        self.source = source
        self.range = range
        wasCold =
            source.opened.size > Self.smallest
            && source.isUncached(offset: range.lowerBound, length: range.upperBound - range.lowerBound)
    }

    /// The bytes are proved at the destination; we do not need them again.
    func end() {
        if wasCold { source.dropCache(offset: range.lowerBound, length: range.upperBound - range.lowerBound) }
    }
}
