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
    /// The job to create from the upload.
    let wanted: VOPINewJob
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
        if chain.takeOver(now: now()) { try await note(chain) }
        var expired = 0
        while true {
            if attempt.isStopping() { throw .stopping }
            switch chain.next(size: size, now: now()) {
            case .presign:
                // A short-lived token does not justify another request at once.
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

    func note(_ chain: VOPIChain) async throws(DeliveryError) {
        try await attempt.checkpoint.replace(chain.record.entries)
    }

    // MARK: - Sending

    private func opened() throws(DeliveryError) -> SourceFile {
        guard let source else {
            throw DeliveryError(.sourceGone, .sourceGone, "\(path.display): removed before it was delivered")
        }
        try source.requireUnchanged(since: order)
        return source
    }

    private func presign(_ chain: inout VOPIChain) async throws(DeliveryError) -> VOPIRecord.Upload {
        _ = try opened()
        try await requireCredits()
        let name = FileName(path)
        let type = VOPIPipeline.contentType(name) ?? "video/mp4"
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
        let source = try opened()
        do throws(DeliveryError) {
            // It ends with the upload.
            async let _: Void = reportBytes()
            chain.record.sent = try await send(source, to: upload)
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
    private func reportBytes() async {
        repeat {
            let share = Double(attempt.bytesSent) / Double(max(size, 1))
            attempt.report(StepProgress(percent: 70 * share, step: "uploading"))
            // Until the upload has ended.
        } while await Task.rest(for: .seconds(1))
    }

    /// A job that cannot be paid for is not begun. The server itself takes jobs from an empty account, and fails them.
    func requireCredits() async throws(DeliveryError) {
        // An API key has no account whose credits could be asked for.
        if case .apiKey = api.settings.login { return }
        let credits: Double?
        do throws(DeliveryError) {
            credits = try await api.balance()
        } catch {
            // Only a word of advice: what else fails will say so itself.
            if case .retry = error.verdict { return }
            throw error
        }
        guard let credits, credits < 1 else { return }
        throw Self.unpaid("the account has no credits left")
    }

    static func unpaid(_ reason: String) -> DeliveryError {
        DeliveryError(
            .outage(after: VOPIVerdict.creditsPause), .outOfCredits,
            "\(reason); buy credits; deliveries then continue automatically")
    }

    // MARK: - From bytes at the store to a job, and exactly one: there is no idempotency key but the upload's public URL.

    /// Requests for a job that may go unanswered in one attempt of the delivery.
    private static let patience = 3

    /// Asks for a job. nil when the chain goes on at once.
    func create(
        _ upload: VOPIRecord.Upload, _ chain: inout VOPIChain
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        try await requireCredits()
        chain.creates(now: now())
        try await note(chain)
        var job = wanted
        job.videoURL = upload.publicURL
        do throws(DeliveryError) {
            let created = try await api.createJob(job)
            guard created.videoURL == nil || created.videoURL == upload.publicURL else {
                // In any case its answer is about another upload's job, which must not be fetched,
                // cancelled or awaited under this file's name.
                throw DeliveryError(
                    .retry(after: nil), .badAnswer,
                    "the server answered the request for a job with job \(DisplayText.escape(created.id)), which is "
                        + "another video's")
            }
            chain.created(created.id, now: now())
        } catch {
            guard VOPIAPI.mayHaveCreated(error) else {
                let asked = chain.record.creating?.sentAt ?? now().milliseconds
                chain.refused()
                try await note(chain)
                return try passing(error, since: asked, chain)
            }
            // The chain says when to look for it; a cancelled task leaves that to the next attempt.
            if error.verdict == .cancelled { throw error }
            chain.unanswered(now: now())
            try await note(chain)
            if chain.record.asked >= Self.patience { throw error }
            return nil
        }
        // The server has it, and will be paid: nobody else may come to know less.
        await attempt.checkpoint.putPersistently(chain.record.entries)
        try await note(chain)
        return nil
    }

    /// Looks for a job whose creation was not answered. nil when the chain goes on at once.
    func look(
        _ upload: VOPIRecord.Upload, _ chain: inout VOPIChain
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let asked = chain.record.creating?.sentAt ?? 0
        let listed: [VOPIJob]
        do throws(DeliveryError) {
            listed = try await api.jobs(of: upload, since: asked)
        } catch {
            return try await strange(error, since: asked, &chain)
        }
        chain.heard()
        chain.found(listed, now: now())
        try await note(chain)
        return nil
    }

    /// A passing error is retried at the next look; a running one cannot be stopped.
    func drop(_ chain: inout VOPIChain) async throws(DeliveryError) {
        for id in chain.record.surplus {
            do throws(DeliveryError) {
                try await api.cancel(id)
            } catch {
                if error.verdict == .cancelled { throw error }
                guard error.verdict == .giveUp || error.code == .notFound else { continue }
            }
            chain.dropped(id)
            try await note(chain)
        }
    }
}

extension VOPIDelivery {
    /// Errors that repeating the request cannot cure.
    private static let isFinal: Set<ErrorCode> = [.urlExpired, .redirected, .notFound]

    /// Sends the video to its presigned URL, whole, in one request.
    ///
    /// - Throws: `.urlExpired` when another URL is needed; `.sourceChanged`, `.sourceGone`; `.corrupted`.
    private func send(
        _ source: SourceFile, to upload: VOPIRecord.Upload
    ) async throws(DeliveryError) -> VOPIRecord.Sent {
        // The URL may be of an earlier run.
        try await DeliveryError.onTransfer(await client.acquaint(with: api.settings.url))
        let url = try await DeliveryError.onTransfer(HTTPURL(upload.url, rules: api.settings.linkRules))
        var failed = 0
        while true {
            do throws(DeliveryError) {
                let sent = try await request(source, url, upload.contentType)
                // The sent bytes may be a mixture of two contents.
                try source.requireUnchanged(since: order)
                return sent
            } catch {
                failed += 1
                try await Retrying.pauseSending(after: failed, error, attempt, final: Self.isFinal) {
                    () throws(DeliveryError) in try source.requireUnchanged(since: order)
                }
            }
        }
    }

    private func request(
        _ source: SourceFile, _ url: HTTPURL, _ contentType: String
    ) async throws(DeliveryError) -> VOPIRecord.Sent {
        let request = HTTPRequest(
            "PUT", url, headers: [("Content-Type", contentType)], body: .slice(source, offset: 0, length: size),
            answerDeadline: .seconds(120), stallTimeout: api.settings.noProgress)
        // A send that fails ends the scope, and with it the hashing.
        async let hashed = Result<_, DeliveryError>(
            of: try await DeliveryError.onTransfer(
                await Checksum.sums([.md5], of: source, offset: 0, length: size, on: pool)))
        let answer: HTTPResponse
        do throws(TransferError) {
            answer = try await client.send(request, meter: attempt.meter)
        } catch {
            var failure = DeliveryError(error)
            failure.reason = "sending \(DisplayText.escape(FileName(source.path).bytes)): \(failure.reason)"
            throw failure
        }
        guard (200..<300).contains(answer.status) else { throw Self.refusal(answer, url) }
        let md5 = try await hashed.get()[.md5] ?? Digest(.md5, [])
        guard let etag = answer.header("ETag").map({ ETagVerifier.bare($0) }), !etag.isEmpty else {
            return VOPIRecord.Sent(md5: md5.hex, etag: nil, isProved: false)
        }
        // Tags of encrypted objects look the same and are no MD5 (S3, "Common response headers").
        let isEncrypted = answer.header("x-amz-server-side-encryption")?.hasPrefix("aws:kms") ?? false
        guard etag != md5.hex, Digest(.md5, hex: etag)?.bytes.count == 16, !isEncrypted else {
            return VOPIRecord.Sent(md5: md5.hex, etag: etag, isProved: etag == md5.hex)
        }
        attempt.meter.add(-size)
        try source.requireUnchanged(since: order)
        throw DeliveryError(
            .retry(after: nil), .corrupted,
            "\(url.redacted) holds other bytes (MD5 \(etag)) than were sent (\(md5.hex)); the network or the store is "
                + "damaging data")
    }

    /// A 403 of a presigned URL is about the URL, or about a clock.
    static func refusal(_ answer: HTTPResponse, _ url: HTTPURL) -> DeliveryError {
        guard answer.status == 403 else {
            return .ofStore(answer, "sending to \(url.redacted)")
        }
        let said = DeliveryError.said(answer)
        let skew = answer.date.map { abs(($0 - .now).milliseconds) > 300_000 } ?? false
        return DeliveryError(
            .retry(after: nil), .urlExpired,
            "\(url.redacted) refused the upload (403 \(said))" + (skew ? "; check this machine's clock" : ""),
            heard: StepFailure(403, ErrorFormat.xml.isOwn(answer) ? .refusal : .foreign))
    }
}

extension VOPIAPI {
    /// The jobs of an upload: pages through ours, back to a day before they were asked for, as clocks differ.
    func jobs(of upload: VOPIRecord.Upload, since asked: Int64) async throws(DeliveryError) -> [VOPIJob] {
        var found: [String: VOPIJob] = [:]
        var offset = 0
        while offset < 10_000 {
            let page = try await jobs(limit: 100, offset: offset)
            for job in page.jobs where upload.isNamed(job.videoURL) { found[job.id] = job }
            let isPast = page.jobs.last?.createdAt.map { $0.milliseconds < asked - 86_400_000 } ?? false
            // A server may give less at once than it was asked for.
            let total = page.total ?? 0
            let isLast = total > 0 ? offset + page.jobs.count >= total : page.jobs.count < 100
            if isLast || isPast || page.jobs.isEmpty { break }
            // Pages shift while jobs are added.
            offset += max(1, page.jobs.count - 10)
        }
        return Array(found.values)
    }
}
