import Foundation
import InletCore
import Synchronization

/// A job as the sandbox knows it; clients may see less.
package struct VOPIJob: Sendable {
    /// The states, in order.
    package enum Step: String, Sendable, CaseIterable {
        case waiting, downloading, extracting, scoring, classifying
        case extractingProduct = "extracting_product"
        case generating, completed
    }

    package let id = UUID().uuidString.lowercased()
    /// The body of the request that made it, unchanged.
    package let received: SandboxJSON
    package let videoURL: String
    /// With defaults filled in.
    package let config: SandboxJSON
    package let callbackURL: String?
    var outcome = VOPIRules.Outcome.completes
    /// How much of it clients see, by the current rules.
    var progress = VOPIRules.Progress.hidden
    let created: WallTime
    var updated: WallTime
    /// When the pace `clock` last moved it.
    var moved: WallTime
    var completed: WallTime?
    /// As in the table of jobs: `pending`, `failed`, `cancelled` or `completed`.
    var stored = "pending"
    /// After a failure, the step of the next try.
    package var step = Step.waiting
    package var error: String?
    /// Failed tries.
    package var failures = 0
    package var isCharged = false
    /// It has ended.
    var isOver = false
    var pictures: [VOPISandbox.ResultImage] = []
    var metadata: SandboxJSON?

    /// As a client sees it now.
    package var status: String { tellsStep ? step.rawValue : stored }

    var tellsStep: Bool { progress != .hidden && !isOver && step != .waiting }
}

// MARK: - What moves jobs

extension VOPIRules {
    var toldProgress: Progress { progress ?? (generation == .bearer ? .hidden : .status) }
}

/// The caller that moves a job does its work, within the lock: pictures are small, and nothing waits for them.
extension VOPIService.State {
    private static let price = 1
    /// The number of tries of a job.
    private static let tries = 3

    /// A job's place in the table, after its pace has moved it.
    ///
    /// - Parameter isAsked: Whether a client asks for the job.
    mutating func index(of id: String, isAsked: Bool = false, _ now: WallTime) throws -> Int {
        guard let index = jobs.firstIndex(where: { $0.id == id }) else {
            try VOPIService.refuse(404, "NOT_FOUND", "Job \(id) not found")
        }
        keepPace(index, isAsked: isAsked, now)
        return index
    }

    /// Moves a job to its current step.
    mutating func keepPace(_ index: Int, isAsked: Bool, _ now: WallTime) {
        switch rules.pace {
        case .polls(let steps): if isAsked { move(index, by: steps, now) }
        case .clock(let step):
            let length = max(step.milliseconds, 1)
            let steps = max(0, (now - jobs[index].moved).milliseconds / length)
            jobs[index].moved = jobs[index].moved + .milliseconds(steps * length)
            move(index, by: Int(steps), now)
        case .manual: break
        }
    }

    /// Ends early where the job does, and where a try fails, so that a client can see the failure.
    mutating func move(_ index: Int, by steps: Int, _ now: WallTime) {
        for _ in 0..<steps {
            let job = jobs[index]
            // No worker ever takes a job that never runs.
            if job.isOver || (job.outcome == .neverRuns && job.stored == "pending") { return }
            // A worker skips a job that was cancelled in the queue, and continues one that was cancelled later.
            if job.step == .waiting, job.stored == "cancelled" { return jobs[index].isOver = true }
            guard let reason = advance(index, now) else { continue }
            let failures = job.failures + 1
            (jobs[index].stored, jobs[index].error, jobs[index].updated) = ("failed", reason, now)
            (jobs[index].failures, jobs[index].step) = (failures, .waiting)
            return jobs[index].isOver = failures >= Self.tries
        }
    }

    /// Moves a job to its next step, and does that step's work. Returns why the try has failed, or nil.
    private mutating func advance(_ index: Int, _ now: WallTime) -> String? {
        let job = jobs[index]
        let step = VOPIJob.Step.allCases[job.position + 1]
        jobs[index].step = step
        switch step {
        case .downloading: return video(of: job) == nil ? job.missingVideo : nil
        case .extracting where !job.isCharged:
            guard credits >= Self.price else {
                return "Insufficient credits. Required: \(Self.price), available: \(credits). "
                    + "Please purchase more credits."
            }
            credits -= Self.price
            tally.charges += Self.price
            jobs[index].isCharged = true
        case .extractingProduct:
            if case .fails(let times, let error) = job.outcome, job.failures < times { return error }
        case .completed: return complete(index, now)
        default: break
        }
        return nil
    }

    /// Makes the results, whatever was stored before, because a cancel does not stop a running job.
    private mutating func complete(_ index: Int, _ now: WallTime) -> String? {
        let job = jobs[index]
        guard let video = video(of: job) else { return job.missingVideo }
        do {
            jobs[index].pictures = try job.makePictures(of: video, rules, in: store)
        } catch {
            return "The pictures could not be made: \(error)"
        }
        jobs[index].metadata = rules.hasMetadata ? VOPIService.metadata(of: video.sha256, now) : nil
        (jobs[index].stored, jobs[index].isOver) = ("completed", true)
        (jobs[index].updated, jobs[index].completed) = (now, now)
        // The bucket keeps no videos of completed jobs.
        delete([video.key])
        return nil
    }

    /// The object that a job's address names, if it is in this store.
    func video(of job: VOPIJob) -> StoredObject? {
        guard let bucket = job.videoURL.firstRange(of: VOPIService.bucket),
            let key = URIText.decode(job.videoURL[bucket.upperBound...])
        else { return nil }
        // A missing object is no video.
        return try? store.object(ObjectKey(key))
    }

    func delete(_ keys: [String]) {
        // Like the real server, ignores refusals of the store.
        for key in keys { try? store.delete(ObjectKey(key)) }
    }
}

extension VOPIJob {
    /// The number of its step.
    var position: Int { Step.allCases.firstIndex(of: step) ?? 0 }

    fileprivate var missingVideo: String { "Failed to download \(videoURL): 404" }
}

// MARK: - Calls

extension VOPIService {
    /// - Parameter seconds: The declared length of the video; the user must have the credits for it.
    func add(_ draft: VOPIJob, seconds: Double?) throws -> VOPIJob {
        try update { state, _ in
            if let seconds {
                guard seconds <= 1500 else { throw Self.internalError }
                let cost = 1 + seconds * 1.2 * 0.05
                guard cost <= Double(state.credits) else {
                    let message = "Insufficient credits. Required: \(cost), available: \(state.credits)."
                    try Self.refuse(403, "INSUFFICIENT_CREDITS", message)
                }
            }
            var job = draft
            (job.outcome, job.progress) = (state.rules.outcome, state.rules.toldProgress)
            state.jobs.append(job)
            state.tally.jobs += 1
            return job
        }
    }

    /// A page of the jobs, newest first, each moved by the pace, and the number of all jobs.
    func list(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        let limit = try Self.whole("limit", call.query("limit"), default: 20, 1...100)
        let offset = try Self.whole("offset", call.query("offset"), default: 0, 0...Int(Int32.max))
        let status = call.query("status")
        if let status {
            let known = VOPIJob.Step.allCases.dropFirst().map(\.rawValue) + ["pending", "failed", "cancelled"]
            try Self.check(status, "/status", isOneOf: known.sorted())
        }
        let (jobs, total) = update { state, now in
            let found = state.jobs.indices.reversed().filter { [nil, state.jobs[$0].status].contains(status) }
            let page = found.dropFirst(offset).prefix(limit)
            for index in page { state.keepPace(index, isAsked: true, now) }
            return (page.map { state.jobs[$0] }, found.count)
        }
        let lines = jobs.map { SandboxJSON.object($0.answer.merging(["videoUrl": .string($0.videoURL)]) { $1 }) }
        return ["jobs": .array(lines), "total": .number(Double(total))]
    }

    /// The job that a call asks for, moved by the pace.
    func job(_ id: String) throws -> VOPIJob {
        try update { state, now in state.jobs[try state.index(of: id, isAsked: true, now)] }
    }

    func cancel(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        let id = try Self.id(call)
        try update { state, now in
            let index = try state.index(of: id, now)
            let status = state.jobs[index].status
            guard status == "pending" else {
                let message = "Cannot cancel job in \(status) status. Only pending jobs can be cancelled."
                try Self.refuse(400, "BAD_REQUEST", message)
            }
            (state.jobs[index].stored, state.jobs[index].updated) = ("cancelled", now)
            state.tally.cancels += 1
        }
        return ["id": .string(id), "status": "cancelled", "message": "Job cancelled successfully"]
    }

    /// Removes the job, its pictures and its video; on the older server, cancels.
    func delete(_ call: SandboxCall, _ body: SandboxJSON) throws -> SandboxJSON? {
        if rules.generation == .apiKey { return try cancel(call, body) }
        let id = try Self.id(call)
        try update { state, now in
            let index = try state.index(of: id, now)
            let job = state.jobs[index]
            guard !job.tellsStep else {
                try Self.refuse(
                    409, "CONFLICT",
                    "Cannot delete job in '\(job.status)' status. Cancel the job first or wait for it to finish.")
            }
            state.tally.deletes += 1
            state.jobs.remove(at: index)
            state.delete(job.pictures.map(\.object.key))
            if let video = state.video(of: job) { state.delete([video.key]) }
        }
        return nil
    }

    func deleteImage(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        let (id, frame, version) = (try Self.id(call), call["frame"], call["version"])
        for (field, text) in [("frameId", frame), ("version", version)] {
            guard text.wholeMatch(of: /[A-Za-z0-9_.\-]+/) != nil else { try Self.refuseValue(field, "Invalid") }
        }
        let job = try update { state, now in
            let index = try state.index(of: id, now)
            guard state.jobs[index].stored == "completed" else {
                try Self.refuse(400, "BAD_REQUEST", "Can only delete images from completed jobs")
            }
            let found = state.jobs[index].pictures.firstIndex { $0.name == frame && $0.version == version }
            guard let found else {
                try Self.refuse(404, "NOT_FOUND", "Image variant '\(version)' not found for frame '\(frame)'")
            }
            state.delete([state.jobs[index].pictures.remove(at: found).object.key])
            return state.jobs[index]
        }
        return ["commercialImages": job.images { .string(Self.origin(call) + $0.key) }]
    }

    func balance(_ call: SandboxCall, _: SandboxJSON) throws -> SandboxJSON? {
        _ = try Self.whole("limit", call.query("limit"), default: 20, 1...100)
        let (credits, jobs) = state.withLock { ($0.credits, $0.jobs) }
        let balance = SandboxJSON.number(Double(credits))
        if call.query("includeHistory") == "false" { return ["balance": balance] }
        let lines = jobs.filter(\.isCharged).reversed().map { job -> SandboxJSON in
            [
                "id": .string("charge-\(job.id)"), "creditsDelta": -1, "type": "spend",
                "description": "Video processing (0s)", "createdAt": .string(job.created.rfc3339),
                "jobId": .string(job.id),
            ]
        }
        return ["balance": balance, "transactions": .array(lines)]
    }
}
