internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Disposes of sources whose deliveries have ended, and writes their receipts: durable point 3.
///
/// A file is deleted or moved only when its deliveries are proved (or its route asks for quarantine), it is still the
/// admitted file, and no writer holds it. Each step is journaled before it is taken.
final class FinishingStage: Service {
    let shared: Shared
    let version: String
    private let pool: BlockingPool
    private let removing = BlockingPool(name: "removals", threads: 1)
    private let questions = QuestionLine()
    /// The roots whose receipts were logged as elsewhere, and separately those whose sources were gone.
    let toldOfReceipts = Mutex<[Bool: Set<FilePath>]>([:])

    private static let shortestPause = Duration.seconds(60)
    private static let longestPause = Duration.seconds(3600)
    /// The pause before the fleet is asked again; it grows while the fleet does not answer.
    private static let fleetPause = Duration.seconds(1)
    /// Before an unreadable journal is asked again.
    private static let journalPause = Duration.seconds(5)
    private static let batch = 64
    /// How long a proof of a copy holds while the file cannot be removed yet; its presence is asked for each time.
    private static let proofLife = Duration.seconds(600)

    /// - Parameter pool: moving to an archive on another file system takes as long as the copy, and must not delay
    ///   hashing.
    init(_ shared: Shared, _ pool: BlockingPool, version: String) {
        (self.shared, self.pool, self.version) = (shared, pool, version)
    }

    private var journal: Journal { shared.journal }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask(executorPreference: self.pool) {
                    await self.shared.loop(on: .finishable, for: .finisher, pause: Self.journalPause) {
                        () throws(JournalError) in try await self.finishBatch()
                    }
                }
                group.addTask(executorPreference: self.removing) { await self.removeAll() }
                // Questions that hang hold up nothing but the end.
                await self.questions.serve { question in group.addTask { await question() } }
            }
        }
    }

    /// Finishes due files. - Returns: now after some, else the time of the next.
    private func finishBatch() async throws(JournalError) -> (hasMore: Bool, next: WallTime?) {
        let jobs = try await journal.unfinished(at: .now, limit: Self.batch, removals: false)
        var progress = false
        await withTaskGroup(of: Bool.self) { group in
            for job in jobs {
                group.addTask { await self.finish(job) { try await self.dispose(job, $0, on: self.pool) } }
            }
            for await isFinished in group where isFinished { progress = true }
        }
        // Unfinished files were postponed; if even that failed, the journal needs a pause.
        return progress ? (true, nil) : (false, try await journal.nextFinish(removals: false))
    }

    /// - Parameter run: returns its last step, `end` or `wait`.
    /// - Returns: false when the file must wait.
    private func finish(_ job: Job, _ run: (FinishFolders) async throws -> DisposalStep) async -> Bool {
        let file = job.file
        if let damage = job.damage {
            await postpone(file, "its journal row is damaged: \(damage)", by: Self.longestPause)
            return false
        }
        let places = FinishFolders(
            root: file.root, settings: shared.settings.knownRoots.first { $0.covers(file.root) },
            isVolume: file.volume != nil, mark: shared.fleet.places.mark(in: file.root))
        do {
            let known = await permitted(file)
            let step = if let known { known } else { try await run(places) }
            switch step {
            case .end(let disposition, let state, let place):
                try await conclude(job, disposition, state, place, mayWrite: places.mayWrite)
                if state == .superseded { shared.roots.look(again: file) }
                return true
            case .wait(let until, let note):
                try await journal.postponeFinish(file.id, until: until, note: note)
                return false
            case let step: throw DisposalError.misstep(state: "\(step)", seen: "no end")
            }
        } catch {
            // Stopping is not an error; the next start continues from the intent.
            if Task.isCancelled { return false }
            await postpone(file, "\(error)", by: Self.pause(file, at: .now))
            return false
        }
    }

    /// The end of a file whose source others dispose of, or the wait until it is known; nil where it is this agent's.
    private func permitted(_ file: FileRow) async -> DisposalStep? {
        switch await shared.fleet.places.disposal(of: file) {
        case .granted: nil
        case .left(let why): .end(Disposition.kept(because: why), state: nil, place: nil)
        case .unknown(let why):
            .wait(
                until: .now + min(max(.now - (file.endedAt ?? .now), Self.fleetPause), Self.shortestPause), note: why)
        }
    }

    /// - Parameter known: the proof of a file that a person has removed.
    private func dispose(
        _ job: Job, _ places: FinishFolders, on pool: BlockingPool, known: String? = nil
    ) async throws -> DisposalStep {
        let question = CopyQuestion(shared: shared, line: questions)
        var runner = DisposalRunner(
            journal: journal, places: places, job: job, hashing: pool, roots: shared.roots,
            prove: { await question.ask(of: $0, isHidden: true, known: known) })
        return try await runner.run()
    }

    // MARK: - Removals by a person

    /// One at a time, beside the others, which wait for no destination's answer.
    private func removeAll() async {
        var proofs: [Int64: (words: String, until: ContinuousClock.Instant)] = [:]
        await shared.loop(on: .removable, for: .finisher, pause: Self.journalPause) {
            () throws(JournalError) in
            guard let job = try await journal.unfinished(at: .now, limit: 1, removals: true).first else {
                return (false, try await journal.nextFinish(removals: true))
            }
            proofs = proofs.filter { $0.value.until > .now }
            let known = proofs[job.file.id]?.words
            var found: String?
            let isFinished = await finish(job) { places in
                let (step, words) = try await remove(job, places, known)
                found = words
                return step
            }
            // While another program has the file open, its object is not read at each try.
            if known == nil { proofs[job.file.id] = found.map { ($0, .now.advanced(by: Self.proofLife)) } }
            return isFinished ? (true, nil) : (false, try await journal.nextFinish(removals: true))
        }
    }

    /// - Returns: the last step, and the proof; none is sought for a file that a crash has left hidden.
    private func remove(
        _ job: Job, _ places: FinishFolders, _ known: String?
    ) async throws -> (step: DisposalStep, proof: String?) {
        var known = known
        if known == nil, places.mayWrite, job.file.intent == nil {
            switch await CopyQuestion(shared: shared, line: questions).ask(of: job, isHidden: false) {
            case .proved(let words): known = words
            case .unproved(let why): return (.stays(job.file, why), nil)
            case .postponed(let why):
                // At the next start, it is asked at once.
                try Task.checkCancellation()
                return (.pause(.now, .seconds(30), "waiting: \(why)"), nil)
            }
        }
        return (try await dispose(job, places, on: removing, known: known), known)
    }

    /// Logs the reason once, not at every try.
    private func postpone(_ file: FileRow, _ reason: String, by pause: Duration) async {
        let note = Disposition.stuck(reason)
        if file.disposition != note {
            shared.log.emit(.dispositionFailed(job: file.id, path: file.fullPath, reason: reason))
        }
        do {
            try await journal.postponeFinish(file.id, until: .now + pause, note: note)
        } catch {
            shared.health.journal.fails(error, for: .finisher)
        }
    }

    /// As long as the tries so far: each may copy the whole file to another file system.
    static func pause(_ file: FileRow, at now: WallTime) -> Duration {
        min(max(now - (file.endedAt ?? now), shortestPause), longestPause)
    }

    private func conclude(
        _ job: Job, _ disposition: String, _ state: FileState?, _ place: FilePath?, mayWrite: Bool
    ) async throws {
        let file = job.file
        Failpoint.disposed.reached()
        let receipt = try writeReceipt(
            job, state: state ?? file.state, disposition: disposition, place: place, mayWrite: mayWrite, at: .now)
        Failpoint.receiptWritten.reached()
        let finish = try await journal.finish(
            file, disposition: disposition, state: state, receipt: receipt.json, at: .now)
        Failpoint.finished.reached()
        guard let finish else { return }
        defer {
            shared.roots.ended(file)
            shared.fleet.places.finished(file)
        }
        // An answered file has ended before: only its source is news.
        shared.log.emit(
            file.policy.answer == nil
                ? .jobFinished(
                    job: file.id, path: file.fullPath, state: state ?? file.state, disposition: disposition,
                    route: file.route ?? "")
                : .jobAnswered(job: file.id, path: file.fullPath, disposition: disposition, route: file.route ?? ""))
        guard let batch = finish.endedBatch else { return }
        shared.log.emit(.batchEnded(batch))
        shared.signals.raise(.batch)
    }
}
