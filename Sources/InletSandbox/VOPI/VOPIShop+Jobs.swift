import Foundation
import InletCore
import Synchronization

/// The table of jobs, and what moves them.
extension VOPIShop {
    private static let price = 1

    func createJob(_ message: CreateJobMessage) throws(VOPIRefusal) -> VOPIJob {
        let now = clock()
        return try state.withLock { state throws(VOPIRefusal) in
            try Self.checkCost(message.estimatedSeconds, state)
            if state.rules.generation == .apiKey, let uses = state.rules.apiKeyUses {
                guard state.keyUses < uses else {
                    throw .full(403, code: "USAGE_LIMIT_EXCEEDED", message: "API key usage limit exceeded")
                }
                state.keyUses += 1
            }
            let job = VOPIJob(id: UUID().uuidString.lowercased(), message, outcome: state.rules.outcome, now: now)
            state.jobs.append(job)
            state.tally.jobs += 1
            return job
        }
    }

    private static func checkCost(_ seconds: Double?, _ state: State) throws(VOPIRefusal) {
        guard let seconds else { return }
        guard seconds <= 1500 else { throw .internalError }
        let cost = 1 + seconds * 1.2 * 0.05
        guard cost <= Double(state.credits) else {
            throw .full(
                403, code: "INSUFFICIENT_CREDITS",
                message: "Insufficient credits. Required: \(cost), available: \(state.credits).")
        }
    }

    /// The job, moved as the pace has it.
    func job(_ id: String) throws(VOPIRefusal) -> (job: VOPIJob, voice: VOPIVoice) {
        let now = clock()
        return try state.withLock { state throws(VOPIRefusal) in
            let index = try state.index(of: id)
            ask(index, &state, now: now)
            return (state.jobs[index], state.voice)
        }
    }

    /// A page of the jobs, newest first, each moved as the pace has it, and how many there are in all.
    func page(status: String?, offset: Int, limit: Int) -> (jobs: [VOPIJob], total: Int, voice: VOPIVoice) {
        let now = clock()
        return state.withLock { state in
            let progress = state.voice.progress
            let found = state.jobs.indices.reversed().filter { index in
                status.map { $0 == state.jobs[index].status(progress) } ?? true
            }
            let page = Array(found.dropFirst(offset).prefix(limit))
            for index in page { ask(index, &state, now: now) }
            return (page.map { state.jobs[$0] }, found.count, state.voice)
        }
    }

    func cancel(_ id: String) throws(VOPIRefusal) {
        let now = clock()
        try state.withLock { state throws(VOPIRefusal) in
            let index = try state.index(of: id)
            keepTime(index, &state, now: now)
            let status = state.jobs[index].status(state.voice.progress)
            guard status == "pending" else {
                throw .badRequest("Cannot cancel job in \(status) status. Only pending jobs can be cancelled.")
            }
            state.jobs[index].cancel(now: now)
            state.tally.cancels += 1
        }
    }

    /// Removes the job, its pictures and its video.
    func delete(_ id: String) throws(VOPIRefusal) {
        let now = clock()
        let job = try state.withLock { state throws(VOPIRefusal) in
            let index = try state.index(of: id)
            keepTime(index, &state, now: now)
            let status = state.jobs[index].status(state.voice.progress)
            guard VOPIJob.Stored(rawValue: status) != nil else {
                throw .full(
                    409, code: "CONFLICT",
                    message:
                        "Cannot delete job in '\(status)' status. Cancel the job first or wait for it to finish.")
            }
            state.tally.deletes += 1
            return state.jobs.remove(at: index)
        }
        // As the real one: what the store refuses is passed over.
        for picture in job.pictures { try? store.delete(ObjectKey(picture.object.key)) }
        // Likewise.
        if let video = video(of: job) { try? store.delete(ObjectKey(video.key)) }
    }

    /// Removes one picture; those images that are left.
    func deleteImage(_ id: String, frame: String, version: String) throws(VOPIRefusal) -> VOPIJob {
        try state.withLock { state throws(VOPIRefusal) in
            let index = try state.index(of: id)
            guard state.jobs[index].stored == .completed else {
                throw .badRequest("Can only delete images from completed jobs")
            }
            let place = VOPISandbox.Picture.Place.image(key: frame, version: version)
            guard let found = state.jobs[index].pictures.firstIndex(where: { $0.place == place }) else {
                throw .full(
                    404, code: "NOT_FOUND", message: "Image variant '\(version)' not found for frame '\(frame)'")
            }
            let picture = state.jobs[index].pictures.remove(at: found)
            // As the real one: what the store refuses is passed over.
            try? store.delete(ObjectKey(picture.object.key))
            return state.jobs[index]
        }
    }

    /// What the user has, and the jobs that have cost it.
    func ledger() -> (credits: Int, charged: [VOPIJob]) {
        state.withLock { ($0.credits, $0.jobs.filter(\.isCharged).reversed()) }
    }

    // MARK: Moving

    /// Moves all jobs, whatever the pace.
    func advance(steps: Int) {
        let now = clock()
        state.withLock { state in
            for index in state.jobs.indices { move(index, by: steps, &state, now: now) }
        }
    }

    private func ask(_ index: Int, _ state: inout State, now: WallTime) {
        if case .polls(let steps) = state.rules.pace { move(index, by: steps, &state, now: now) }
        keepTime(index, &state, now: now)
    }

    /// Brings a job to where it is by now, where the clock is the pace.
    func keepTime(_ index: Int, _ state: inout State, now: WallTime) {
        guard case .clock(let step) = state.rules.pace else { return }
        let length = max(step.milliseconds, 1)
        let steps = max(0, (now - state.jobs[index].moved).milliseconds / length)
        state.jobs[index].moved = state.jobs[index].moved + .milliseconds(steps * length)
        move(index, by: Int(steps), &state, now: now)
    }

    /// Ends early where the job does, and where a try fails, so that a client can see it failed.
    private func move(_ index: Int, by steps: Int, _ state: inout State, now: WallTime) {
        var left = steps
        while left > 0, !state.jobs[index].isOver, !state.jobs[index].isStuck {
            left -= 1
            guard let work = state.jobs[index].advance() else { continue }
            do {
                try perform(work, index, &state, now: now)
            } catch {
                return state.jobs[index].fail(error.reason, now: now)
            }
        }
    }

    /// Why a try of a job ended.
    private struct Failed: Error { var reason: String }

    private func perform(_ work: VOPIJob.Work, _ index: Int, _ state: inout State, now: WallTime) throws(Failed) {
        switch work {
        case .find: _ = try source(of: state.jobs[index])
        case .fail(let reason): throw Failed(reason: reason)
        case .charge:
            guard !state.jobs[index].isCharged else { return }
            guard state.credits >= Self.price else {
                throw Failed(
                    reason: "Insufficient credits. Required: \(Self.price), available: \(state.credits). "
                        + "Please purchase more credits.")
            }
            state.credits -= Self.price
            state.tally.charges += Self.price
            state.jobs[index].isCharged = true
        case .makePictures:
            let job = state.jobs[index]
            let video = try source(of: job)
            let pictures: [VOPISandbox.Picture]
            do {
                pictures = try PictureStudio(store: store).make(video, for: job, state.rules)
            } catch {
                throw Failed(reason: "The pictures could not be made: \(error)")
            }
            let metadata = state.rules.hasMetadata ? ProductMetadata.of(video.sha256, now: now) : nil
            state.jobs[index].complete(pictures, metadata: metadata, now: now)
            // The bucket keeps no video whose job has completed; what the store refuses is passed over.
            try? store.delete(ObjectKey(video.key))
        }
    }

    private func source(of job: VOPIJob) throws(Failed) -> StoredObject {
        guard let video = video(of: job) else { throw Failed(reason: "Failed to download \(job.videoURL): 404") }
        return video
    }

    /// The object that a job's address names, where it is one of this store.
    private func video(of job: VOPIJob) -> StoredObject? {
        guard let bucket = job.videoURL.firstRange(of: VOPIRoute.bucket),
            let key = URIText.decode(job.videoURL[bucket.upperBound...])
        else { return nil }
        // One that is gone is no video.
        return try? store.object(ObjectKey(key))
    }
}
