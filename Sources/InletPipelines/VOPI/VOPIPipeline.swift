package import InletCore
package import InletLinux
internal import InletTransfer
package import SystemPackage

/// Sends videos to a VOPI server and brings back the pictures that it makes of them: presign, upload, job, results.
///
/// The video is not kept there: what stays is the job's folder below `results`. A job takes minutes or hours, in which the
/// delivery waits without a worker.
package struct VOPIPipeline: Pipeline {
    let api: VOPIAPI
    let client: HTTPClient
    let pool: BlockingPool
    /// The clock that waits and limits go by.
    var now: @Sendable () -> WallTime = { .now }

    private var limits: VOPIChain.Limits {
        VOPIChain.Limits(poll: api.settings.poll, soft: api.settings.softLimit, hard: api.settings.hardLimit)
    }

    package func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if attempt.isStopping() { throw .stopping }
        // A complete upload needs no source any more, whatever happened to it.
        if VOPIRecord(attempt.checkpoint.entries).sent == nil {
            try source.requireUnchanged(since: order)
            if let objection = Self.objection(FileName(source.path), size: order.source.size) {
                throw objection
            }
        }
        return try await delivery(source.path, source, order, attempt).run()
    }

    package func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        guard VOPIRecord(attempt.checkpoint.entries).sent != nil else { return nil }
        if attempt.isStopping() { throw .stopping }
        return try await delivery(path, nil, order, attempt).run()
    }

    /// Cancels the job; an upload without one is nothing that could be removed, and costs nothing.
    package func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let record = VOPIRecord(checkpoint)
        for id in record.surplus { try await cancel(id) }
        // Its notes stay in the journal, as those of results that could not be fetched.
        if record.trouble.leftAt != nil {
            let job = record.job.map { "job \($0.id)" } ?? "the job that was asked for"
            throw DeliveryError(.retry(after: nil), .conflict, "\(job) stays: a retry continues it")
        }
        if let job = record.job {
            guard job.isFetching else { return try await cancel(job.id) }
            // Paid for: its note stays in the journal, so that a retry, however late, makes no other job.
            if job.stuckSince != nil {
                throw DeliveryError(
                    .retry(after: nil), .conflict, "the results of job \(job.id) wait: a retry fetches them")
            }
            let folder = VOPIResults.folder(of: job.id, in: api.settings)
            return await VOPIResults(api: api, client: client, pool: pool).discard(
                record.results ?? VOPIManifest(), in: folder)
        }
        guard let creating = record.creating, let upload = record.upload else { return }
        let ours = try await api.jobs(of: upload, since: creating.sentAt).filter {
            !record.dead.contains($0.id)
        }
        for job in ours { try await cancel(job.id) }
        // The request was cut off, and may still make one.
        if ours.isEmpty, now() < WallTime(milliseconds: creating.sentAt) + VOPIChain.answerable {
            throw DeliveryError(.retry(after: nil), .conflict, "the job that was asked for may still come to be")
        }
    }

    /// A video that arrived stays good for another job where none was made of it, or only such as came to nothing: the
    /// server keeps it until a job completes. Of a job that was cancelled nobody can say that: it may have been running,
    /// and takes the video away when it completes. Then only a new upload is safe. A job that has ended with something to
    /// fetch is paid for: a retry fetches it, whatever ended the delivery.
    package func reusable(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        var record = VOPIRecord(checkpoint)
        guard record.sent != nil, record.creating == nil, checkpoint["surplus"] == nil,
            record.job?.isFetching ?? true
        else { return [:] }
        (record.asked, record.restarts, record.trouble) = (0, 0, VOPIRecord.FailureState())
        record.job?.fetchingSince = nil
        return record.entries
    }

    package func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        VOPIRecord(checkpoint).handedOver.entries
    }

    package func probe() async throws(DeliveryError) -> String { try await api.probe() }

    private func cancel(_ id: String) async throws(DeliveryError) {
        // It has ended, or is gone.
        try await DeliveryError.ignoring(.conflict, .notFound, in: await api.cancel(id))
    }

    private func delivery(
        _ path: FilePath, _ source: SourceFile?, _ order: DeliveryOrder, _ attempt: Attempt
    ) throws(DeliveryError) -> VOPIDelivery {
        let wanted: VOPINewJob
        do throws(SettingFault) {
            wanted = try VOPINewJob(order.fields, settings: api.settings)
        } catch {
            throw DeliveryError(
                .giveUp, .badRequest, "\(path.display): \(error.key): \(error.message); correct 'with:' of its route")
        }
        return VOPIDelivery(
            api: api, client: client, pool: pool, path: path, source: source, order: order, attempt: attempt,
            wanted: wanted, limits: limits, now: now)
    }
}
