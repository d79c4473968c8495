internal import InletCore
internal import InletTransfer

/// A delivery to VOPI as its checkpoint remembers it: one note for each step of the chain, written before the step after it
/// begins. Times are in milliseconds since 1970.
struct VOPIRecord: Sendable, Equatable {
    /// A place for the video's bytes.
    struct Upload: Sendable, Equatable, Codable {
        /// A credential; empty once the bytes are there, and where it is not known any more.
        var url: String
        /// The values by which the job is created, and found again.
        var publicURL: String
        /// When the URL ends, by our clock.
        var expires: Int64
        var contentType: String
    }

    /// The store has all bytes.
    struct Sent: Sendable, Equatable, Codable {
        /// Hexadecimal MD5 of what was sent.
        var md5: String
        var etag: String?
        /// Whether the store's tag was that MD5.
        var isProved: Bool
    }

    /// A job is being asked for, and may be there.
    struct Creating: Sendable, Equatable, Codable {
        var sentAt: Int64
        /// When to look for it, once no answer has come.
        var lookAt: Int64
        /// How often it was looked for in vain.
        var looks = 0
        /// Set when another agent has asked, whose request may be on its way for as long as that agent is merely late.
        var isHandedOver: Bool?
    }

    struct Job: Sendable, Equatable, Codable {
        var id: String
        /// When it was asked for; moved on while the server works on others.
        var since: Int64
        /// Whether it was found rather than answered: then it may never run.
        var isAdopted: Bool
        /// It has ended, with something to fetch.
        var isFetching = false
        /// When its results were first asked for.
        var fetchingSince: Int64?
        /// When fetching was given up: the job is paid for, and a person's retry shall find it.
        var stuckSince: Int64?
        /// When it was last looked at, to a few minutes.
        var seen: Int64?
    }

    /// The job's faults, as far as they are worth remembering.
    struct FailureState: Sendable, Equatable, Codable {
        /// The `updatedAt`s at which it was seen failed.
        var failures: [Int64] = []
        /// When it was first seen failed or cancelled, or failed again.
        var since: Int64?
        /// How often in a row the server did not know it.
        var missing = 0
        /// When we cancelled it, because it took too long.
        var cancelledAt: Int64?
        /// Since when, in the time in which we could ask, nothing that we asked about it was answered to the point.
        var silentSince: Int64?
        /// When we last got such an answer, to a few minutes.
        var silentSeen: Int64?
        /// When asking was given up: the job may be there and paid for, and a person's retry shall find it.
        var leftAt: Int64?
    }

    var upload: Upload?
    var sent: Sent?
    var creating: Creating?
    var job: Job?
    var trouble = FailureState()
    /// Jobs of the same upload that nobody needs, still to be cancelled.
    var surplus: [String] = []
    /// The files to fetch, once the server was asked.
    var results: VOPIManifest?
    /// Jobs that came to nothing: never to be adopted.
    var dead: [String] = []
    /// Uploads that were begun anew because of what became of their job.
    var restarts = 0
    /// Requests for a job that have not been answered, in a row.
    var asked = 0
    /// Set from the first request for a job on.
    var mayBeVisible = false

    init() {}

    init(_ entries: [String: [UInt8]]) {
        upload = Upload(entries["upload"])
        let unknown = Sent(md5: "", isProved: false)
        sent = upload == nil ? nil : JSON.note(entries["sent"], else: unknown)
        creating = JSON.note(entries["creating"], else: Creating(sentAt: 0, lookAt: 0))
        job = JSON.note(entries["job"], else: Job(id: "", since: 0, isAdopted: false))
        // Without its id there is nothing to ask for.
        if job?.id.isEmpty == true { job = nil }
        // Another agent's times may be anything.
        creating?.clampTimes()
        job?.clampTimes()
        trouble = JSON.note(entries["trouble"], else: FailureState()) ?? FailureState()
        trouble.clampTimes()
        surplus = JSON.note(entries["surplus"]) ?? []
        results = JSON.note(entries["results"], else: VOPIManifest())
        dead = JSON.note(entries["dead"]) ?? []
        restarts = Self.clamped(JSON.note(entries["restarts"]) ?? 0)
        asked = Self.clamped(JSON.note(entries["asked"]) ?? 0)
        mayBeVisible = entries[CheckpointName.mayBeVisible] != nil
        // A note that cannot be read still tells of a job: it is looked for, not made a second time.
        if job == nil, creating == nil, entries["job"] != nil || entries["creating"] != nil {
            creating = Creating(sentAt: 0, lookAt: 0)
        }
    }

    var entries: [String: [UInt8]] {
        var entries: [String: [UInt8]] = [:]
        entries["upload"] = upload.map { JSON.note(of: $0) }
        entries["sent"] = sent.map { JSON.note(of: $0) }
        entries["creating"] = creating.map { JSON.note(of: $0) }
        entries["job"] = job.map { JSON.note(of: $0) }
        if trouble != FailureState() { entries["trouble"] = JSON.note(of: trouble) }
        if !surplus.isEmpty { entries["surplus"] = JSON.note(of: surplus) }
        entries["results"] = results.map { JSON.note(of: $0) }
        if !dead.isEmpty { entries["dead"] = JSON.note(of: dead) }
        if restarts > 0 { entries["restarts"] = JSON.note(of: restarts) }
        if asked > 0 { entries["asked"] = JSON.note(of: asked) }
        if mayBeVisible { entries[CheckpointName.mayBeVisible] = [] }
        return entries
    }

    /// The job came to nothing; the upload is still there for another.
    mutating func bury() {
        if let job { dead.append(job.id) }
        (job, creating, results, trouble) = (nil, nil, nil, FailureState())
    }

    /// Neither job nor upload are of use any more.
    mutating func beginAnew() {
        bury()
        (upload, sent) = (nil, nil)
    }
}

/// Notes that go from one agent to another.
extension VOPIRecord {
    /// The record with which another agent continues: the job, or the request for one, so that no second one is paid
    /// for. Its times are left out, as clocks differ: limits begin anew there, counted from ten minutes before its
    /// first look at the job. So are the results, which are files of this machine.
    var handedOver: VOPIRecord {
        var record = self
        record.results = nil
        record.creating = creating.map { _ in Creating(sentAt: 0, lookAt: 0, isHandedOver: true) }
        record.job?.since = 0
        record.job?.fetchingSince = nil
        record.job?.seen = nil
        record.trouble = FailureState(cancelledAt: trouble.cancelledAt.map { _ in 0 }, leftAt: trouble.leftAt)
        record.upload?.hideSecrets()
        // A video whose name is hidden can be found in a job, and no job can be made of it.
        if record.upload?.isHidden == true { record.sent = nil }
        if record.sent == nil, job == nil, creating == nil { record.upload = nil }
        return record
    }

    fileprivate static func clamped(_ time: Int64) -> Int64 { min(max(0, time), 1 << 50) }

    fileprivate static func clamped(_ count: Int) -> Int { min(max(0, count), 1 << 20) }
}

extension VOPIRecord.Creating {
    fileprivate mutating func clampTimes() {
        (sentAt, lookAt) = (VOPIRecord.clamped(sentAt), VOPIRecord.clamped(lookAt))
        looks = VOPIRecord.clamped(looks)
    }
}

extension VOPIRecord.Job {
    fileprivate mutating func clampTimes() {
        (since, seen) = (VOPIRecord.clamped(since), seen.map(VOPIRecord.clamped))
        fetchingSince = fetchingSince.map(VOPIRecord.clamped)
    }
}

extension VOPIRecord.FailureState {
    fileprivate mutating func clampTimes() {
        (since, cancelledAt) = (since.map(VOPIRecord.clamped), cancelledAt.map(VOPIRecord.clamped))
        (silentSince, silentSeen) = (silentSince.map(VOPIRecord.clamped), silentSeen.map(VOPIRecord.clamped))
        missing = VOPIRecord.clamped(missing)
    }
}

extension VOPIRecord.Upload {
    private static let hiding = "sha256:"

    /// Whether a job's `videoURL` names it.
    func isNamed(_ videoURL: String?) -> Bool {
        guard let videoURL else { return false }
        return videoURL == publicURL || isHidden && Self.hidden(videoURL) == publicURL
    }

    /// Whether only a checksum of its name is known.
    var isHidden: Bool { publicURL.hasPrefix(Self.hiding) }

    /// A public URL with a query may be signed.
    fileprivate mutating func hideSecrets() {
        (url, expires) = ("", 0)
        if publicURL.contains("?") { publicURL = Self.hidden(publicURL) }
    }

    private static func hidden(_ url: String) -> String { hiding + Checksum.sha256(url.utf8).hex }

    /// nil where its name is not known any more, and with it nothing of it.
    init?(_ note: [UInt8]?) {
        // Without an end of its URL the upload is asked for anew, unless the bytes are there.
        let unknown = Self(url: "", publicURL: "", expires: 0, contentType: "video/mp4")
        guard let upload = JSON.note(note, else: unknown), !upload.publicURL.isEmpty else { return nil }
        self = upload
    }
}
