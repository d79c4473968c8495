internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// One attempt at one video: does what the chain says, and notes each step before the next one begins.
struct VOPIDelivery: Sendable {
    let api: VOPIAPI
    let client: HTTPClient
    let pool: BlockingPool
    let path: FilePath
    /// nil when nothing is at the path any more.
    let source: SourceFile?
    let order: DeliveryOrder
    let attempt: Attempt
    let wanted: VOPIOrder
    let limits: VOPIChain.Limits
    let now: @Sendable () -> WallTime

    var size: Int64 { order.source.size }

    func run() async throws(DeliveryError) -> DeliveryOutcome {
        var chain = VOPIChain(record: VOPIRecord(attempt.checkpoint.entries), limits: limits)
        if chain.record.sent != nil { attempt.meter.add(size) }
        if chain.record.trouble.leftAt != nil {
            // A person's retry has all its time anew.
            chain.record.trouble.leftAt = nil
            try await note(chain)
        }
        var expired = 0
        while true {
            if attempt.isStopping() { throw .stopping }
            switch chain.next(size: size, now: now()) {
            case .presign:
                // A life that is too short is no reason to ask for another at once.
                let upload = try await presign(&chain)
                try await put(upload, &chain, &expired)
            case .put(let upload): try await put(upload, &chain, &expired)
            case .create(let upload):
                if let outcome = try await create(upload, &chain) { return outcome }
            case .look(let upload):
                if let outcome = try await look(upload, &chain) { return outcome }
            case .poll(let job):
                if let outcome = try await poll(job, &chain) { return outcome }
            case .fetch(let job): return try await fetch(job, &chain)
            case .wait(let until, let saying):
                attempt.report(StepProgress(percent: 70, step: saying))
                return .waiting(until: until, saying: saying)
            }
        }
    }

    /// Makes the record durable.
    func note(_ chain: VOPIChain) async throws(DeliveryError) {
        try await attempt.checkpoint.replace(with: chain.record.entries)
    }

    // MARK: - Sending

    private func opened() throws(DeliveryError) -> SourceFile {
        guard let source else {
            throw DeliveryError(.sourceGone, .sourceGone, "\(path.display): removed before it was delivered")
        }
        try SourceGuard.check(source, order)
        return source
    }

    private func presign(_ chain: inout VOPIChain) async throws(DeliveryError) -> VOPIRecord.Upload {
        _ = try opened()
        try await requireCredits()
        let name = FileName(path)
        let type = VOPIVideoFile.contentType(name) ?? "video/mp4"
        let place = try await api.presign(
            filename: "video." + name.plainExtension, contentType: type, life: VOPIChain.life(size: size))
        let upload = VOPIRecord.Upload(
            url: place.uploadURL.text, publicURL: place.publicURL, expires: (now() + place.expiresIn).milliseconds,
            contentType: type)
        chain.record.upload = upload
        try await note(chain)
        return upload
    }

    private func put(
        _ upload: VOPIRecord.Upload, _ chain: inout VOPIChain, _ expired: inout Int
    ) async throws(DeliveryError) {
        let upload = upload
        let sending = VOPIUpload(
            api: api, client: client, hashing: pool, source: try opened(), order: order, attempt: attempt)
        do throws(DeliveryError) {
            chain.record.sent = try await reporting { () async throws(DeliveryError) in
                try await sending.send(to: upload)
            }
        } catch {
            guard error.code == .urlExpired, expired < 3 else { throw error }
            expired += 1
            chain.record.upload = nil
            return try await note(chain)
        }
        // A credential that has done its work is not kept.
        chain.record.upload?.url = ""
        try await note(chain)
    }

    /// Shows the bytes that have left as 0 to 70 per cent, once a second.
    private func reporting<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(DeliveryError) -> Value
    ) async throws(DeliveryError) -> Value {
        let result = await withTaskGroup(of: Result<Value, DeliveryError>?.self) { group in
            group.addTask {
                do throws(DeliveryError) {
                    return .success(try await body())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask {
                repeat {
                    let share = Double(attempt.bytesSent) / Double(max(size, 1))
                    attempt.report(StepProgress(percent: 70 * share, step: "uploading"))
                    // Its sleep throws when the upload has ended.
                } while (try? await Task.sleep(for: .seconds(1))) != nil
                return nil
            }
            var result: Result<Value, DeliveryError>?
            for await ended in group {
                guard let ended else { continue }
                result = ended
                group.cancelAll()
            }
            return result
        }
        guard let result else { throw DeliveryError(.cancelled, .cancelled, "cancelled while uploading") }
        return try result.get()
    }

    /// A job that cannot be paid for is not begun. The server itself takes jobs from an empty account, and fails them.
    func requireCredits() async throws(DeliveryError) {
        // An API key has no account whose credits could be asked for.
        if case .apiKey = api.settings.login { return }
        let balance: VOPIBalance?
        do throws(DeliveryError) {
            balance = try await api.balance()
        } catch {
            // Only a word of advice: what else fails will say so itself.
            if case .retry = error.verdict { return }
            throw error
        }
        guard let balance, balance.credits < 1 else { return }
        throw Self.unpaid("the account has no credits left")
    }

    static func unpaid(_ reason: String) -> DeliveryError {
        DeliveryError(
            .outage(after: VOPIVerdict.creditsPause), .outOfCredits,
            "\(reason); buy credits, deliveries go on by themselves")
    }
}
