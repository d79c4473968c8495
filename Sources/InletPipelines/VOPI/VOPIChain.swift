internal import InletCore

/// The steps from a video to its pictures, and which one is next. Decides only: `VOPIDelivery` does what it says and tells
/// it what came of it. Time is a parameter.
struct VOPIChain: Sendable, Equatable {
    struct Limits: Sendable, Equatable {
        /// The shortest wait between two looks at a job.
        var poll: Duration
        /// After that a job is called slow, and one that was adopted is given up.
        var soft: Duration
        /// After that a job counts as stuck.
        var hard: Duration
        /// How long a `failed` or `cancelled` job is watched: the server may still complete it.
        var settle = Duration.seconds(1800)
        /// The longest wait between two looks.
        var slowest = Duration.seconds(30)
        /// As much of the time between two looks counts for any limit: what goes beyond, nobody could look.
        var away = Duration.seconds(600)
        /// How long the results of an ended job are asked for.
        var fetching = Duration.seconds(86_400)
    }

    enum Step: Sendable, Equatable {
        case presign
        case put(VOPIRecord.Upload)
        case create(VOPIRecord.Upload)
        /// Look for the job whose creation was not answered.
        case look(VOPIRecord.Upload)
        case poll(VOPIRecord.Job)
        case fetch(VOPIRecord.Job)
        case wait(until: WallTime, saying: String)
    }

    var record: VOPIRecord
    let limits: Limits

    /// Bytes a second below which no upload is expected to end.
    static let slowestUplink: Int64 = 128 << 10
    /// How long an answer that was lost may still have its effect: between two looks for a job, and before the first.
    static let lostFor = Duration.seconds(30)
    /// How long a request for a job may go on at the server once we have left it: longer than its own deadline.
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

    /// Whether a job of the upload is known, or may be there.
    var mayHaveJob: Bool { record.job != nil || record.creating != nil }

    mutating func created(_ id: String, now: WallTime) {
        let asked = record.creating?.sentAt ?? now.milliseconds
        record.job = VOPIRecord.Job(id: id, since: asked, isAdopted: false)
        (record.creating, record.trouble, record.asked) = (nil, VOPIRecord.Trouble(), 0)
    }

    /// The request has certainly made nothing.
    mutating func refused() { (record.creating, record.asked) = (nil, record.asked - 1) }

    /// What a look for the job found, in any order. The oldest is adopted; those that nobody needs are noted in the same
    /// breath, and cancelled after it, so that a crash in between forgets none and changes nothing.
    mutating func found(_ jobs: [VOPIJob], now: WallTime) {
        guard var creating = record.creating else { return }
        let ours = jobs.filter { $0.videoURL == record.upload?.publicURL && !record.dead.contains($0.id) }
            .sorted { Self.rank($0, now) < Self.rank($1, now) }
        if let oldest = ours.first {
            record.job = VOPIRecord.Job(id: oldest.id, since: creating.sentAt, isAdopted: true)
            record.surplus = ours.dropFirst().filter { $0.status == .pending }.map(\.id)
            (record.creating, record.trouble, record.asked) = (nil, VOPIRecord.Trouble(), 0)
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

    /// We look at the job now. Limits count the time in which somebody looked: an agent that was off, or a server that
    /// could not be reached, for a week has not watched the job for a week.
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
}
