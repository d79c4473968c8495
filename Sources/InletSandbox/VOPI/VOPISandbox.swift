package import InletCore
import InletLinux
import Synchronization
package import SystemPackage

/// A loopback server that speaks VOPI's API of either generation: videos in by presigned PUT, jobs that pass their
/// steps, pictures out that are made from the video's bytes.
///
/// Videos and pictures are on disk below `directory`; jobs, logins and credits live as long as this value. `rules` and
/// `faults` change its behaviour while it runs. For `inlet demo` and the tests; it listens on 127.0.0.1 only, without
/// TLS. The API is at `http://127.0.0.1:<port>/api/v1`, so a client's `url` is `http://127.0.0.1:<port>`.
package final class VOPISandbox: LoopbackSandbox {
    package let server: SandboxServer<VOPIOperation>
    private let service: VOPIService

    /// - Parameters:
    ///   - directory: The folder of videos, pictures and the signing key; created if missing.
    ///   - apiKey: The valid `x-api-key`; nil = no key is valid.
    ///   - credits: The user's credits; a job costs 1.
    ///   - clock: The clock of lifetimes, presigned URLs and the pace `clock`.
    ///   - port: 0 = the system chooses one.
    /// - Throws: If the directory cannot be created, read or written.
    package init(
        directory: FilePath, apiKey: Secret? = nil, credits: Int = 5, rules: VOPIRules = VOPIRules(),
        faults plan: FaultPlan<VOPIOperation> = .none, clock: @escaping @Sendable () -> WallTime = { .now },
        port: Int = 0
    ) throws {
        service = try VOPIService(directory: directory, apiKey: apiKey, credits: credits, rules: rules, clock: clock)
        server = SandboxServer(port: port, SandboxRouter(plan, service.routes, wording: VOPIService.word))
    }

    /// Its behaviour; a change applies from the next request on.
    package var rules: VOPIRules {
        get { service.rules }
        set { service.state.withLock { $0.rules = newValue } }
    }

    /// The user's remaining credits; may be set.
    package var credits: Int {
        get { service.state.withLock { $0.credits } }
        set { service.state.withLock { $0.credits = newValue } }
    }

    /// The tokens of a login. A person logs in, so there is no call for it.
    package func signIn() -> (accessToken: Secret, refreshToken: Secret) {
        service.update { state, now in state.logins.signIn(now) }
    }

    /// Ends the access tokens given so far; refresh tokens stay valid.
    package func expireAccessTokens() { service.state.withLock { $0.logins.spendAll(isRefresh: false) } }

    /// Logs out everywhere: revokes the refresh tokens given so far.
    package func revokeRefreshTokens() { service.state.withLock { $0.logins.spendAll(isRefresh: true) } }

    /// Moves every open job by this many steps, whatever the pace.
    package func advance(steps: Int = 1) {
        service.update { state, now in for index in state.jobs.indices { state.move(index, by: steps, now) } }
    }

    /// Makes a job for a video that is not here, as another client of the same user may.
    ///
    /// - Returns: the job's id.
    @discardableResult
    package func addJob(videoURL: String) throws -> String {
        let draft = try VOPIService.draft(["videoUrl": .string(videoURL)], service.clock())
        return try service.add(draft.job, seconds: nil).id
    }

    /// Jobs, oldest first, without deleted ones.
    package func jobs() -> [VOPIJob] {
        service.update { state, now in
            for index in state.jobs.indices { state.keepPace(index, isAsked: false, now) }
            return state.jobs
        }
    }

    /// All videos that were PUT, in the order of arrival.
    package func videos() -> [Video] { service.state.withLock { $0.videos } }

    /// The pictures of a job; empty until it has completed.
    package func pictures(of job: String) -> [ResultImage] {
        service.state.withLock { $0.jobs.first { $0.id == job }?.pictures ?? [] }
    }

    /// The work done so far.
    package var tally: Counts { service.state.withLock { $0.tally } }
}

// MARK: - Records

extension VOPISandbox {
    package typealias Job = VOPIJob

    /// A video that was PUT, even if its object is gone.
    package struct Video: Sendable {
        package var key: String
        /// The `publicUrl` of its presign.
        package var publicURL: String
        package var size: Int64
        package var sha256: Digest
        package var contentType: String
        /// How often a whole body arrived for this key.
        package var puts: Int
    }

    /// A picture of a job: a frame of the video, or an image of a version.
    package struct ResultImage: Sendable {
        /// The frame's id, or the image's key in lists.
        var name: String
        /// nil = a frame.
        var version: String?
        /// The file with the bytes of a download.
        package var object: StoredObject
        /// SHA-256 of the video that the picture was made from.
        package var source: Digest
    }

    /// Work that was done. Requests that were refused, or met a fault before, do not count.
    package struct Counts: Sendable, Hashable {
        package var presigns = 0
        /// Videos that arrived whole.
        package var puts = 0
        package var jobs = 0
        /// The credits that jobs have cost.
        package var charges = 0
        package var cancels = 0
        package var deletes = 0
        package var refreshes = 0
    }
}

// MARK: - Operations and faults

/// The VOPI sandbox's operations, for counters and faults.
package enum VOPIOperation: String, SandboxOperation {
    /// GET `/ready`.
    case ready
    case refresh
    case presign
    /// PUT of a video to its presigned URL.
    case upload
    case createJob, listJobs, job, status, cancel
    /// DELETE of a job: deletes, or on older servers cancels.
    case delete
    /// DELETE of one picture of a job.
    case deleteImage
    case downloadURLs
    /// GET of a picture by its presigned URL.
    case download
    case metadata
    /// GET of a job's frames or grouped images.
    case results
    case balance
    /// Any other request.
    case other
}

package typealias VOPIFault = OperationFault<VOPIOperation>

extension FaultReply {
    /// An error in the error handler's words: `error` is a code, such as `INTERNAL_ERROR`.
    package static func vopi(_ status: Int, error: String, message: String) -> FaultReply {
        FaultReply(
            status, type: "application/json; charset=utf-8",
            body: #"{"error":"\#(error)","message":"\#(message)","statusCode":\#(status)}"#)
    }

    /// The rate limit, which answers 500 and not 429.
    ///
    /// - Parameter retryAfter: Seconds.
    package static func vopiRateLimit(retryAfter: Int = 60, limit: Int = 30) -> FaultReply {
        var reply = vopi(500, error: "INTERNAL_ERROR", message: "An unexpected error occurred")
        reply.fields["retry-after"] = String(retryAfter)
        reply.fields["x-ratelimit-limit"] = String(limit)
        reply.fields["x-ratelimit-remaining"] = "0"
        reply.fields["x-ratelimit-reset"] = String(retryAfter)
        return reply
    }
}

// MARK: - Rules

/// The VOPI sandbox's behaviour; may be changed while it runs, and applies from the next request on.
package struct VOPIRules: Sendable {
    /// Which of the two servers it is.
    package enum Generation: Sendable, Hashable {
        /// Before 2026-01-23: `x-api-key`, DELETE cancels, `config`, `progress` and `result` always read `{}`.
        case apiKey
        /// Bearer tokens, POST cancels, DELETE deletes.
        case bearer
    }

    /// How much of a running job clients see.
    package enum Progress: Sendable, Hashable {
        /// `pending` and `{}` from start to end, as with servers of the bearer generation.
        case hidden
        /// The step is the status; `progress` stays `{}`, as with older servers.
        case status
        /// The step is the status, and `progress` holds step and percentage.
        case full
    }

    /// The pace of jobs.
    package enum Pace: Sendable, Hashable {
        /// Each request for a job first moves it by this many steps.
        case polls(steps: Int)
        /// Each step takes this long by the sandbox's clock.
        case clock(step: Duration)
        /// Only the sandbox's `advance`.
        case manual
    }

    /// How a job ends. Decided when the job is created.
    package enum Outcome: Sendable, Hashable {
        case completes
        /// This many of the three tries end `failed` with this error. The next one completes, and leaves the error in
        /// place.
        case fails(times: Int, error: String)
        /// `pending` for ever, as with an unknown stack.
        case neverRuns

        /// All three tries fail.
        package static func fails(_ error: String) -> Outcome { .fails(times: 3, error: error) }
    }

    package var generation: Generation
    package var pace: Pace
    package var outcome: Outcome
    /// nil = the generation's default.
    package var progress: Progress?
    /// The number of pictures that are frames of the video.
    package var frames: Int
    /// Whether names of frames, keys and versions climb, are absolute, empty, long or doubled, or contain control
    /// characters.
    package var hasHostileNames: Bool
    /// This many links are left out of `download-urls`, silently.
    package var droppedLinks: Int
    /// Whether results carry product metadata.
    package var hasMetadata: Bool
    /// Whether `download-urls` includes the metadata, besides its own call.
    package var listsMetadata: Bool

    package init(
        generation: Generation = .bearer, pace: Pace = .polls(steps: 1), outcome: Outcome = .completes,
        progress: Progress? = nil, frames: Int = 3, hasHostileNames: Bool = false, droppedLinks: Int = 0,
        hasMetadata: Bool = true, listsMetadata: Bool = true
    ) {
        (self.generation, self.pace, self.outcome, self.progress) = (generation, pace, outcome, progress)
        (self.frames, self.hasHostileNames, self.droppedLinks) = (frames, hasHostileNames, droppedLinks)
        (self.hasMetadata, self.listsMetadata) = (hasMetadata, listsMetadata)
    }
}
