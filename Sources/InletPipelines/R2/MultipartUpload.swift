internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// One attempt at a multipart upload: open or go on, send what is missing in parallel, compose, prove.
struct MultipartUpload: Sendable {
    let api: SpiralAPI
    let sender: PartSender
    let order: DeliveryOrder
    let attempt: Attempt

    func deliver() async throws(DeliveryError) -> Proof {
        var record = try await open()
        if !record.isCompleting {
            do throws(DeliveryError) {
                try await sendMissing(&record)
                try SourceGuard.check(sender.source, order)
                if attempt.isStopping() { throw .stopping }
            } catch {
                throw try await concluding(error, record)
            }
            try await attempt.checkpoint.put([UploadRecord.completingName: []])
        }
        let proof = try await UploadCompletion(api: api, order: order, attempt: attempt).complete(record)
        for (id, key) in UploadRecord.refusedUploads(attempt.checkpoint.entries) {
            // The last time: what the store keeps now, it keeps until its own expiry of uploads.
            try? await api.abort(id: id, key: key)
        }
        return proof
    }

    /// The proof of an object whose composition was asked for by an earlier attempt; nil when there was none, or the
    /// store does not have it.
    func composedEarlier() async throws(DeliveryError) -> Proof? {
        guard let record = UploadRecord(attempt.checkpoint.entries, fileSize: order.source.size), record.isCompleting
        else { return nil }
        return try await UploadCompletion(api: api, order: order, attempt: attempt).lookUp(record)
    }

    /// The journaled upload if it can go on, or a new one.
    private func open() async throws(DeliveryError) -> UploadRecord {
        var refused = UploadRecord.refused(attempt.checkpoint.entries)
        if let old = UploadRecord(attempt.checkpoint.entries, fileSize: order.source.size) {
            let isUsable = !old.isStale && !old.missing.contains { hasExpired(old, $0) }
            if old.isCompleting || isUsable {
                attempt.meter.add(old.provedBytes)
                return old
            }
            // It expired while we were away: nobody's fault, so the attempt goes on with a new upload.
            refused.merge(try await dropExpired(old)) { $1 }
        }
        let plan = PartPlan(fileSize: order.source.size, configured: api.settings.partSize)
        let upload = try await api.create(order, count: plan.count)
        let record = UploadRecord(upload: upload, plan: plan)
        do throws(DeliveryError) {
            for url in upload.partURLs { _ = try api.checked(url) }
            // At once, so that no crash forgets both.
            try await attempt.checkpoint.replace(
                with: refused.merging(kept(UploadRecord.openingName, note { try record.openingNote })) { $1 })
        } catch {
            // Nobody would know of it any more.
            try? await api.abort(id: upload.id, key: upload.key)
            throw error
        }
        return record
    }

    /// Its id must not be forgotten before the store has dropped it. A store that answers but does not drop it gets the new
    /// upload all the same, and it is asked once more at the end.
    /// - Returns: the notes that keep it known.
    private func dropExpired(_ record: UploadRecord) async throws(DeliveryError) -> [String: [UInt8]] {
        do throws(DeliveryError) {
            try await api.abort(id: record.upload.id, key: record.upload.key)
            return [:]
        } catch {
            switch error.verdict {
            case .outage, .cancelled: throw error
            default: return [UploadRecord.refusedName + record.upload.id: Array(record.upload.key.utf8)]
            }
        }
    }

    private func hasExpired(_ record: UploadRecord, _ number: Int) -> Bool {
        guard let url = try? api.checked(record.upload.partURLs[number - 1]) else { return true }
        return PresignedLife.hasExpired(url, now: .now) ?? false
    }

    /// A note for the new upload, with what outlives uploads: the count of expiries, and that something may be visible.
    private func kept(_ name: String, _ note: [UInt8]) -> [String: [UInt8]] {
        var notes = [name: note]
        for name in [UploadRecord.expiryName, UploadRecord.completingName] {
            notes[name] = attempt.checkpoint.entries[name]
        }
        return notes
    }

    private func note(_ encode: () throws -> [UInt8]) throws(DeliveryError) -> [UInt8] {
        do {
            return try encode()
        } catch {
            throw DeliveryError(.giveUp, .internalFault, "the checkpoint cannot be encoded: \(error)")
        }
    }

    private typealias PartResult = Result<(Int, UploadRecord.ProvedPart), DeliveryError>

    /// Sends the missing parts, `parallel_parts` at a time. The first failure lets no new part begin and ends the others.
    private func sendMissing(_ record: inout UploadRecord) async throws(DeliveryError) {
        if attempt.isStopping() { throw .stopping }
        var waiting = record.missing[...]
        let opened = record
        var failure: DeliveryError?
        let proved = await withTaskGroup(of: PartResult.self) { group in
            var proved: [Int: UploadRecord.ProvedPart] = [:]
            for _ in 0..<api.settings.parallelParts {
                if let number = waiting.popFirst() { group.addTask { await send(number, of: opened) } }
            }
            for await result in group {
                switch result {
                case .success(let (number, part)):
                    proved[number] = part
                    if failure == nil, attempt.isStopping() { failure = .stopping }
                    if failure == nil, let next = waiting.popFirst() {
                        group.addTask { await send(next, of: opened) }
                    }
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

    private func send(_ number: Int, of record: UploadRecord) async -> PartResult {
        do throws(DeliveryError) {
            let range = record.plan.range(number)
            let part = try await sender.send(
                range, to: try api.checked(record.upload.partURLs[number - 1]),
                what: "part \(number) of \(record.plan.count)")
            try SourceGuard.check(sender.source, order)
            try await attempt.checkpoint.put([
                UploadRecord.partName(number): try note { try UploadRecord.note(part) }
            ])
            return .success((number, part))
        } catch {
            return .failure(error)
        }
    }

    /// What a failed attempt means for the upload: it stays for the next attempt, unless its URLs or itself are gone.
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
        case .uploadGone, .corrupted, .sourceChanged, .sourceGone:
            try await drop(record, keeping: [:])
            return error
        default:
            return error
        }
    }

    /// Drops the upload at the store. When that cannot be done now (the task may be cancelled already), the notes stay,
    /// marked, so that the next attempt or `abandon` does it.
    private func drop(_ record: UploadRecord, keeping notes: [String: [UInt8]]) async throws(DeliveryError) {
        try await attempt.checkpoint.put(notes.merging([UploadRecord.staleName: []]) { note, _ in note })
        do {
            try await api.abort(id: record.upload.id, key: record.upload.key)
        } catch {
            return
        }
        var kept = notes.merging(UploadRecord.refused(attempt.checkpoint.entries)) { $1 }
        kept[UploadRecord.completingName] = attempt.checkpoint.entries[UploadRecord.completingName]
        try await attempt.checkpoint.replace(with: kept)
    }
}
