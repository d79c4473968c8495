internal import InletCore

/// The steps from a video to its pictures, and the choice of the next one. Decides only: `VOPIDelivery` runs each step
/// and reports its result. Time is a parameter.
struct VOPIChain: Sendable, Equatable {
    struct Limits: Sendable, Equatable {
        /// The shortest wait between two polls of a job.
        var poll: Duration
        /// After this, a job counts as slow; an adopted one is given up.
        var soft: Duration
        /// After this, a job counts as stuck.
        var hard: Duration
        /// How long a `failed` or `cancelled` job is watched: the server may still complete it.
        var settle = Duration.seconds(1800)
        /// The longest wait between two polls.
        var slowest = Duration.seconds(30)
        /// The most time between two polls that counts toward a limit: beyond it, nobody could poll.
        var away = Duration.seconds(600)
        /// How long to ask for the results of an ended job.
        var fetching = Duration.seconds(86_400)
    }

    enum Step: Sendable, Equatable {
        case presign
        case put(VOPIRecord.Upload)
        case create(VOPIRecord.Upload)
        /// Look for a job whose creation got no answer.
        case look(VOPIRecord.Upload)
        case poll(VOPIRecord.Job)
        case fetch(VOPIRecord.Job)
        case wait(until: WallTime, saying: String)
    }

    var record: VOPIRecord
    let limits: Limits

    /// Bytes per second below which no upload is expected to finish.
    static let slowestUplink: Int64 = 128 << 10
    /// How long a request with a lost answer may still take effect: the wait before the first search for a job, and
    /// between two.
    static let lostFor = Duration.seconds(30)
    /// How long the server may continue with a job request after we gave up: longer than its own deadline.
    static let answerable = Duration.seconds(120)

    /// How long a presigned URL shall live: twice what the slowest uplink needs, within the server's bounds.
    static func life(size: Int64) -> Duration { .seconds(min(max(size / slowestUplink * 2, 3600), 86_400)) }

    func next(size: Int64, now: WallTime) -> Step {
        if let job = record.job { return job.isFetching ? .fetch(job) : .poll(job) }
        guard let upload = record.upload else { return .presign }
        if let creating = record.creating {
            let due = WallTime(milliseconds: creating.lookAt)
            return due > now ? .wait(until: due, saying: "looking for the job that was asked for") : .look(upload)
        }
        if record.sent != nil { return .create(upload) }
        if upload.url.isEmpty { return .presign }
        let needed = Duration.seconds(max(60, size / Self.slowestUplink))
        return WallTime(milliseconds: upload.expires) - now < needed ? .presign : .put(upload)
    }

    // MARK: - Creating

    /// The request for a job goes out now.
    mutating func creates(now: WallTime) {
        record.creating = VOPIRecord.Creating(
            sentAt: now.milliseconds, lookAt: (now + Self.lostFor).milliseconds)
        record.asked += 1
        record.mayBeVisible = true
    }

    /// No answer has come to the request, however long that took: what it may still do has its time from now on.
    mutating func unanswered(now: WallTime) {
        record.creating?.lookAt = (now + Self.lostFor).milliseconds
    }

    /// Continues where another agent has asked for a job. Its request may still make one, whenever it was sent: it has
    /// all its time from now on.
    /// - Returns: whether the record has changed.
    mutating func takeOver(now: WallTime) -> Bool {
        guard record.creating?.isHandedOver == true else { return false }
        record.creating = VOPIRecord.Creating(
            sentAt: now.milliseconds, lookAt: (now + Self.answerable).milliseconds)
        return true
    }

    /// Whether a job of the upload is known, or may be there.
    var mayHaveJob: Bool { record.job != nil || record.creating != nil }

    mutating func created(_ id: String, now: WallTime) {
        let asked = record.creating?.sentAt ?? now.milliseconds
        record.job = VOPIRecord.Job(id: id, since: asked, isAdopted: false)
        (record.creating, record.trouble, record.asked) = (nil, VOPIRecord.FailureState(), 0)
    }

    /// The request has certainly made nothing.
    mutating func refused() { (record.creating, record.asked) = (nil, record.asked - 1) }

    /// The results of a look for the job, in any order.
    mutating func found(_ jobs: [VOPIJob], now: WallTime) {
        guard var creating = record.creating else { return }
        let ours = jobs.filter { record.upload?.isNamed($0.videoURL) == true && !record.dead.contains($0.id) }
            .sorted { Self.rank($0, now) < Self.rank($1, now) }
        if let oldest = ours.first {
            record.job = VOPIRecord.Job(id: oldest.id, since: creating.sentAt, isAdopted: true)
            record.surplus = ours.dropFirst().filter { $0.status == .pending }.map(\.id)
            (record.creating, record.trouble, record.asked) = (nil, VOPIRecord.FailureState(), 0)
            return
        }
        creating.looks += 1
        creating.lookAt = (now + Self.lostFor).milliseconds
        record.creating = creating.looks < 2 ? creating : nil
    }

    /// One that was cancelled may never make anything: it comes last.
    private static func rank(_ job: VOPIJob, _ now: WallTime) -> (Int, WallTime, String) {
        (job.status == .cancelled ? 1 : 0, job.createdAt ?? now, job.id)
    }

    /// A job that nobody needs will make nothing, or cannot be stopped.
    mutating func dropped(_ id: String) {
        record.surplus.removeAll { $0 == id }
        record.dead.append(id)
    }

    // MARK: - Waiting

    /// Notes that the job is looked at now. Limits count only time in which it was watched: not the week in which the agent was
    /// off, or the server could not be reached.
    mutating func looked(now: WallTime) {
        guard var job = record.job else { return }
        let gap = now.milliseconds - (job.seen ?? job.since)
        let unseen = gap - limits.away.milliseconds
        if unseen > 0 {
            // Never beyond now, whatever the clock was set to meanwhile.
            let moved = { (time: Int64) in min(time + unseen, now.milliseconds) }
            job.since = moved(job.since)
            job.fetchingSince = job.fetchingSince.map(moved)
            record.trouble.since = record.trouble.since.map(moved)
            record.trouble.cancelledAt = record.trouble.cancelledAt.map(moved)
        }
        // Each look would be one more write to the journal.
        if gap < 0 || gap >= limits.away.milliseconds / 2 { job.seen = now.milliseconds }
        record.job = job
    }

    /// How long results that do not come are left alone: ever longer, since each look asks for every one of them. Shorter
    /// than `limits.away`, so that all of that time counts.
    func patience(since start: Int64, now: WallTime) -> Duration {
        .milliseconds(min(max(0, now.milliseconds - start) / 10, limits.away.milliseconds / 2))
    }

    /// When to look at the job again: `poll` in its first minute, then ever more rarely, never before its time.
    func pause<Generator: RandomNumberGenerator>(
        since start: Int64, now: WallTime, using generator: inout Generator
    ) -> WallTime {
        let age = max(0, now.milliseconds - start)
        let wait = max(limits.poll.milliseconds, min(limits.slowest.milliseconds, age / 20))
        return now + .milliseconds(wait + Int64.random(in: 0...wait / 5, using: &generator))
    }

    // MARK: - What a look at the job comes to.

    enum Verdict: Sendable, Equatable {
        /// Come back later; `percent` of the job where the server says so.
        case wait(saying: String, percent: Double?)
        /// It has ended: fetch what it made.
        case fetch
        /// It takes too long: see whether the server is busy with others, and cancel it if not.
        case stuck
        /// Begin with a new upload, at once.
        case restart(String)
        /// It came to nothing. The record is that of a delivery which a person may retry.
        case failed(String)
        /// The account has nothing left; goes on with the same upload later.
        case unpaid(String)
    }

    /// Takes in the job as the server tells it; the record may have changed then.
    mutating func polled(_ job: VOPIJob, now: WallTime) -> Verdict {
        looked(now: now)
        record.trouble.missing = 0
        if let url = job.videoURL, let ours = record.upload, !ours.isNamed(url) { return another(job, now) }
        switch job.status {
        case .completed: return ended()
        case .failed: return job.result?.count ?? 0 > 0 ? ended() : failed(job, now)
        case .cancelled: return job.result?.count ?? 0 > 0 ? ended() : cancelled(now)
        case .pending, .running: return running(job, now)
        }
    }

    /// The server does not know the job.
    mutating func missed() -> Verdict {
        record.trouble.missing += 1
        if record.trouble.missing < 3 {
            return .wait(saying: "the server does not know the job; asking again", percent: nil)
        }
        // Deleting it has also deleted the upload.
        record.beginAnew()
        return end("the job was deleted at the server; 'inlet queue retry' sends the video again")
    }

    /// A job made for us is looked up by its URL, and created again where it is missing: only once, since each may be
    /// paid for.
    private mutating func another(_ job: VOPIJob, _ now: WallTime) -> Verdict {
        let asked = record.job?.since ?? now.milliseconds
        record.bury()
        record.creating = VOPIRecord.Creating(sentAt: asked, lookAt: now.milliseconds)
        let reason = "the server gave this video job \(DisplayText.escape(job.id)), which is another video's"
        guard record.restarts < 1 else {
            return end("\(reason), for the second time; 'inlet queue retry' sends the video again")
        }
        record.restarts += 1
        return .restart(reason)
    }

    // MARK: - Answers that say nothing about the job

    /// Counts as `looked` does. Only as much of the time since the last such answer counts as `limits.away`, so that
    /// days in which we or the server were down give up no job.
    /// - Returns: whether that has gone on for as long as a job may take.
    mutating func heardNothing(now: WallTime) -> Bool {
        var since = record.trouble.silentSince ?? now.milliseconds
        let gap = now.milliseconds - (record.trouble.silentSeen ?? now.milliseconds)
        let unseen = gap - limits.away.milliseconds
        if unseen > 0 { since = since + unseen }
        record.trouble.silentSince = min(since, now.milliseconds)
        // Each look would be one more write to the journal.
        if record.trouble.silentSeen == nil || gap < 0 || gap >= limits.away.milliseconds / 2 {
            record.trouble.silentSeen = now.milliseconds
        }
        return now.milliseconds - since >= limits.hard.milliseconds
    }

    /// The server has told what became of it.
    mutating func heard() { (record.trouble.silentSince, record.trouble.silentSeen) = (nil, nil) }

    /// Notes that asking has ended until a person retries the delivery.
    mutating func left(at now: WallTime) {
        heard()
        record.trouble.leftAt = now.milliseconds
    }

    /// The server works on other jobs of ours: this one is not stuck but waits its turn.
    mutating func isQueued(now: WallTime) {
        guard let since = record.job?.since else { return }
        record.job?.since = min(now.milliseconds, since + limits.soft.milliseconds)
    }

    /// Its cancellation was requested.
    mutating func cancelled(at now: WallTime) { record.trouble.cancelledAt = now.milliseconds }

    /// A person's retry has all chances anew.
    private mutating func end(_ reason: String) -> Verdict {
        record.restarts = 0
        return .failed(reason)
    }

    private mutating func ended() -> Verdict {
        record.job?.isFetching = true
        return .fetch
    }

    private mutating func running(_ job: VOPIJob, _ now: WallTime) -> Verdict {
        record.trouble.since = nil
        let age = now.milliseconds - (record.job?.since ?? now.milliseconds)
        if let cancelledAt = record.trouble.cancelledAt { return afterCancelling(cancelledAt, now) }
        let limit = record.job?.isAdopted == true ? limits.soft : limits.hard
        if age >= limit.milliseconds { return .stuck }
        let step = job.progress?.step ?? job.progress?.message ?? job.status.text
        var text = "processing: \(DisplayText.escape(String(step.prefix(60))))"
        if let percent = job.progress?.percentage, percent > 0 { text += ", \(Int(percent)) %" }
        if age >= limits.soft.milliseconds {
            text += ", for \(DurationText.format(.seconds(age / 1000))) now"
        }
        return .wait(saying: text, percent: job.progress?.percentage)
    }

    /// The server tries a job three times, and completes it where the second or third try succeeds.
    private mutating func failed(_ job: VOPIJob, _ now: WallTime) -> Verdict {
        let seen = job.updatedAt?.milliseconds ?? 0
        if !record.trouble.failures.contains(seen) {
            record.trouble.failures.append(seen)
            record.trouble.since = now.milliseconds
        }
        let reason = DeliveryError.excerpt(Array((job.error ?? "the server does not say why").utf8))
        let watched = now.milliseconds - (record.trouble.since ?? now.milliseconds)
        guard record.trouble.failures.count >= 3 || watched >= limits.settle.milliseconds else {
            let times = record.trouble.failures.count
            return .wait(
                saying: "failed \(times == 1 ? "once" : "twice") (\(reason)); it may be tried again", percent: nil)
        }
        let text = (job.error ?? "").lowercased()
        if text.contains("insufficient credits") {
            record.bury()
            return .unpaid("the job failed: \(reason)")
        }
        if Self.sourceFaults.contains(where: { text.contains($0) }), record.restarts < 1 {
            record.beginAnew()
            record.restarts += 1
            return .restart(reason)
        }
        record.bury()
        return end("the job failed: \(reason); 'inlet queue retry' makes another job")
    }

    /// How the server says that it cannot read what was uploaded.
    private static let sourceFaults = ["failed to download", "no body", "nosuchkey", "key does not exist"]

    private mutating func cancelled(_ now: WallTime) -> Verdict {
        if let cancelledAt = record.trouble.cancelledAt { return afterCancelling(cancelledAt, now) }
        let since = record.trouble.since ?? now.milliseconds
        record.trouble.since = since
        guard now.milliseconds - since >= limits.settle.milliseconds else {
            return .wait(saying: "cancelled at the server; it completes where it was running", percent: nil)
        }
        record.bury()
        return end("the job was cancelled at the server; 'inlet queue retry' makes another job")
    }

    /// A job that was cancelled while it ran goes on, and completes.
    private mutating func afterCancelling(_ cancelledAt: Int64, _ now: WallTime) -> Verdict {
        guard now.milliseconds - cancelledAt >= limits.soft.milliseconds else {
            return .wait(saying: "cancelled because it took too long; it completes where it was running", percent: nil)
        }
        let limit = DurationText.format(record.job?.isAdopted == true ? limits.soft : limits.hard)
        record.beginAnew()
        guard record.restarts < 1 else {
            return end("two jobs did not end within \(limit); 'inlet queue retry' sends the video again")
        }
        record.restarts += 1
        return .restart("the job did not end within \(limit)")
    }
}
