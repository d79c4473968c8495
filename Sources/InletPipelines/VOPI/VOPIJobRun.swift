internal import InletCore
internal import InletLinux
internal import InletTransfer
internal import SystemPackage

/// From a job that was made to its pictures on the disk.
extension VOPIDelivery {
    /// Looks at the job once. nil when the chain goes on at once.
    func poll(_ job: VOPIRecord.Job, _ chain: inout VOPIChain) async throws(DeliveryError) -> DeliveryOutcome? {
        try await drop(&chain)
        let before = chain.record
        let verdict: VOPIChain.Verdict
        do throws(DeliveryError) {
            verdict = chain.polled(try await api.job(job.id), now: now())
        } catch {
            guard error.code == .notFound else { return try await strange(error, since: job.since, &chain) }
            verdict = chain.missed()
        }
        // Of one that is stuck, the word that counts is the answer to what is done about it.
        if verdict != .stuck { chain.heard() }
        if chain.record != before { try await note(chain) }
        switch verdict {
        case .fetch, .restart: return nil
        case .wait(let saying, let percent): return waiting(chain, since: job.since, saying, percent)
        case .stuck:
            do throws(DeliveryError) {
                try await unstick(job, &chain)
            } catch {
                return try await strange(error, since: job.since, &chain)
            }
            return waiting(chain, since: job.since, "processing for long", nil)
        case .failed(let reason): throw DeliveryError(.giveUp, .rejected, reason)
        case .unpaid(let reason): throw Self.unpaid(reason)
        }
    }

    /// Gives the worker back until it is time to look again.
    private func waiting(
        _ chain: VOPIChain, since: Int64, _ saying: String, _ percent: Double?
    ) -> DeliveryOutcome {
        // Steps of a server come out of order, and some without a figure.
        let shown = max(70 + 25 * (percent ?? 0) / 100, min(attempt.progress?.percent ?? 0, 95))
        attempt.report(StepProgress(percent: shown, step: saying))
        var random = SystemRandomNumberGenerator()
        let until = chain.pause(since: chain.record.trouble.since ?? since, now: now(), using: &random)
        return .waiting(until: until, saying: saying)
    }

    /// An answer that says nothing about the job may be permanent, such as that of another server under the same name.
    /// After the longest time that a job may take, a person has to look. The job is not touched; it may be done, and is
    /// paid for.
    func strange(
        _ error: DeliveryError, since: Int64, _ chain: inout VOPIChain
    ) async throws(DeliveryError) -> DeliveryOutcome {
        let isStrange =
            switch error.verdict {
            case .giveUp: chain.mayHaveJob
            case .retry: chain.mayHaveJob && error.code == .badAnswer
            default: false
            }
        guard isStrange else { return try passing(error, since: since, chain) }
        let before = chain.record
        let isOver = chain.heardNothing(now: now())
        if isOver { chain.left(at: now()) }
        if chain.record != before { try await note(chain) }
        guard isOver else { return try passing(error, since: since, chain) }
        let limit = DurationText.format(limits.hard)
        throw DeliveryError(
            .giveUp, error.code,
            "\(error.reason); no other answer for \(limit); 'inlet queue retry' continues the same job",
            heard: error.heard)
    }

    /// Where there is one, so is every answer that says nothing about it, such as a proxy's page, a redirect or a
    /// missing call. A delivery that failed would have its job cancelled.
    func passing(
        _ error: DeliveryError, since: Int64, _ chain: VOPIChain
    ) throws(DeliveryError) -> DeliveryOutcome {
        let after: Duration?
        switch error.verdict {
        case .retry(let asked): after = asked
        // The server has had enough of us, and is there.
        case .outage(let asked) where error.code == .throttled: after = asked
        case .outage where error.code == .outOfCredits && chain.mayHaveJob: after = nil
        case .giveUp where chain.mayHaveJob: after = nil
        default: throw error
        }
        var random = SystemRandomNumberGenerator()
        let until = chain.pause(since: since, now: now(), using: &random)
        let asked = now() + min(after ?? .zero, .seconds(3600))
        let percent = chain.record.job?.isFetching == true ? 95.0 : 70
        attempt.report(StepProgress(percent: max(attempt.progress?.percent ?? 0, percent), step: error.reason))
        return .waiting(until: max(until, asked), saying: error.reason)
    }

    /// A server that finishes other jobs has this one in its queue; any other gets an order to forget it.
    private func unstick(_ job: VOPIRecord.Job, _ chain: inout VOPIChain) async throws(DeliveryError) {
        guard try await isReady() else {
            throw DeliveryError(.outage(after: nil), .serverError, "\(api.settings.url.redacted) says it is not ready")
        }
        let recent = now().milliseconds - limits.soft.milliseconds
        let isBusy = try await api.jobs(limit: 100).jobs.contains { other in
            other.id != job.id && other.status == .completed && (other.updatedAt?.milliseconds ?? 0) >= recent
        }
        if isBusy, !job.isAdopted {
            chain.isQueued(now: now())
        } else {
            // It is past cancelling, or gone: the next look tells.
            try await DeliveryError.ignoring(.conflict, .notFound, in: await api.cancel(job.id))
            chain.cancelled(at: now())
        }
        chain.heard()
        try await note(chain)
    }

    /// A server that does not know the question counts as ready.
    private func isReady() async throws(DeliveryError) -> Bool {
        do throws(DeliveryError) {
            return try await api.isReady()
        } catch {
            guard error.verdict == .giveUp else { throw error }
            return true
        }
    }

    // MARK: - Fetching

    func fetch(_ job: VOPIRecord.Job, _ chain: inout VOPIChain) async throws(DeliveryError) -> DeliveryOutcome {
        try await drop(&chain)
        let before = chain.record
        chain.looked(now: now())
        if job.fetchingSince == nil || job.stuckSince != nil {
            chain.record.job?.fetchingSince = now().milliseconds
            chain.record.job?.stuckSince = nil
        }
        if chain.record != before { try await note(chain) }
        let folder = VOPIResults.folder(of: job.id, in: api.settings)
        let known = chain.record.results ?? VOPIManifest()
        let attempt = attempt
        attempt.report(StepProgress(percent: 95, step: "fetching results"))
        let summary: VOPIResults.Summary
        do throws(DeliveryError) {
            let results = VOPIResults(api: api, client: client, pool: pool, isStopping: attempt.isStopping)
            summary = try await results.fetch(
                job: job.id, known, into: folder, source: video(chain.record), isWhole: true,
                progress: { done, all, name in
                    let percent = 95 + 5 * Double(done) / Double(max(all, 1))
                    attempt.report(StepProgress(percent: percent, step: "fetched \(name)"))
                },
                noted: { manifest throws(DeliveryError) in
                    chain.record.results = manifest
                    try await note(chain)
                })
        } catch {
            return try await unfetched(error, job, &chain)
        }
        attempt.report(StepProgress(percent: 100, step: "fetched"))
        return .delivered(proof(chain.record, job, summary))
    }

    /// The job is paid for: what passes is waited out, and what does not leaves it to a person's retry.
    private func unfetched(
        _ error: DeliveryError, _ job: VOPIRecord.Job, _ chain: inout VOPIChain
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if error.code == .notFound {
            let verdict = chain.missed()
            try await note(chain)
            if case .failed(let reason) = verdict { throw DeliveryError(.giveUp, .rejected, reason) }
        }
        let since = chain.record.job?.fetchingSince ?? job.since
        let isOver = now().milliseconds - since >= limits.fetching.milliseconds
        switch error.verdict {
        case .retry(let after) where !isOver:
            var unfinished = error
            unfinished.verdict = .retry(after: after ?? chain.patience(since: since, now: now()))
            return try passing(unfinished, since: since, chain)
        // The server is still putting them together, or something else answers in its place.
        case .giveUp where [.conflict, .badRequest, .redirected].contains(error.code) && !isOver:
            return try passing(error, since: since, chain)
        case .outage: return try passing(error, since: since, chain)
        case .retry, .giveUp:
            chain.record.job?.stuckSince = now().milliseconds
            try await note(chain)
            throw DeliveryError(
                .giveUp, error.code, "\(error.reason); 'inlet queue retry' fetches the results without another job",
                heard: error.heard)
        default: throw error
        }
    }

    private func video(_ record: VOPIRecord) -> VOPIProduct.Source {
        (DisplayText.escape(FileName(path).bytes), order.key, size, record.sent?.md5)
    }

    private func proof(_ record: VOPIRecord, _ job: VOPIRecord.Job, _ summary: VOPIResults.Summary) -> Proof {
        let details = [
            "job_id": job.id, "results": summary.folder.display, "files": String(summary.files.count),
        ]
        let md5 = record.sent.flatMap { Digest(.md5, hex: $0.md5) }
        return Proof(
            key: order.key, size: size, method: record.sent?.isProved == true ? .md5Parts : .size,
            content: md5.map { ContentHash(digest: $0, partSize: nil) }, etag: record.sent?.etag,
            url: summary.folder.display, details: details)
    }
}
