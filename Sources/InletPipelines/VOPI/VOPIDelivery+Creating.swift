internal import InletCore

/// From bytes at the store to a job, and exactly one: there is no idempotency key but the upload's public URL.
extension VOPIDelivery {
    /// Requests for a job that may go unanswered in one attempt of the delivery.
    private static let patience = 3

    /// Asks for a job. nil when the chain goes on at once.
    func create(
        _ upload: VOPIRecord.Upload, _ chain: inout VOPIChain
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        try await requireCredits()
        chain.creates(now: now())
        try await note(chain)
        let job = VOPINewJob(
            videoURL: upload.publicURL, config: wanted.config, callbackURL: wanted.callbackURL,
            estimatedDuration: wanted.estimatedDuration)
        do throws(DeliveryError) {
            let created = try await api.createJob(job)
            if let url = created.videoURL, url != upload.publicURL { throw Self.strange(created.id) }
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

    /// Whatever came of the request, its answer is about another upload's job, which is not to be fetched, cancelled or waited
    /// for under this file's name.
    private static func strange(_ id: String) -> DeliveryError {
        DeliveryError(
            .retry(after: nil), .badAnswer,
            "the server answered the request for a job with job \(DisplayText.escape(id)), which is another video's")
    }

    /// Looks for a job whose creation was not answered. nil when the chain goes on at once.
    func look(
        _ upload: VOPIRecord.Upload, _ chain: inout VOPIChain
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        let asked = chain.record.creating?.sentAt ?? 0
        let listed: [VOPIJob]
        do throws(DeliveryError) {
            listed = try await api.jobs(of: upload.publicURL, since: asked)
        } catch {
            return try await strange(error, since: asked, &chain)
        }
        chain.heard()
        chain.found(listed, now: now())
        try await note(chain)
        return nil
    }

    /// Cancels jobs that nobody needs: each would be charged. What passes is tried again at the next look; one that runs
    /// already cannot be stopped.
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

extension VOPIAPI {

    /// The jobs of an upload: pages through ours, back to a day before they were asked for, as clocks differ.
    func jobs(of publicURL: String, since asked: Int64) async throws(DeliveryError) -> [VOPIJob] {
        var found: [String: VOPIJob] = [:]
        var offset = 0
        while offset < 10_000 {
            let page = try await jobs(limit: 100, offset: offset)
            for job in page.jobs where job.videoURL == publicURL { found[job.id] = job }
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
