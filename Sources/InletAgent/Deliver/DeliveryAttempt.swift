internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// The follow-up once the end of a delivery is durable.
struct DeliveryReport: Sendable {
    var event: AgentEvent
    /// The source changed or went away during the attempt: it needs another check.
    var wantsLook: FileRow?
    /// This delivery proved that its destination is up again.
    var destinationIsBack = false

    /// Whether it is postponed until its source is back.
    var awaitsSource: Bool {
        if case .jobRetry(_, let error, _, _) = event { error.code == .sourceGone } else { false }
    }
}

/// One attempt at one delivery: open the source, run the pipeline, and say how the claim ends.
struct DeliveryAttempt: Sendable {
    /// Of the many deliveries that an earlier process began, the newest beyond this are not marked.
    static let mostResumable = 10_000

    let claim: Claim
    let stage: DeliveryStage

    private let ref: AgentEvent.JobRef
    var shared: Shared { stage.shared }
    var file: FileRow { claim.file }
    private var delivery: DeliveryRow { claim.delivery }

    /// The answer that it continues from, where its file was sent with others.
    private let first: FirstAnswer?

    init(_ claim: Claim, _ stage: DeliveryStage, continuing first: FirstAnswer? = nil) {
        (self.claim, self.stage, ref) = (claim, stage, AgentEvent.JobRef(claim.file, claim.delivery))
        self.first = first
    }

    func run() async -> (ClaimOutcome, DeliveryReport) {
        if let original = claim.original { return duplicate(of: original) }
        let notes = CheckpointLog(
            entries: shared.journal.seal.opened(claim.checkpoint),
            write: { entries throws(DeliveryError) in try await note(entries) },
            replace: { entries throws(DeliveryError) in try await note(entries, replacing: true) })
        // Noted as by an attempt whose request got no good answer: the source may be gone by now. Nobody is asked,
        // because the file has been sent.
        if first?.mayHaveArrived == true { await own.putPersistently([CheckpointName.mayBeVisible: []]) }
        guard shared.fleet.places.maySend(file) else { return withheld(.awaitsFleet) }
        guard let destination = shared.destinations[delivery.destination], let key = delivery.key else {
            return failed(
                DeliveryError(.outage(after: nil), .notConfigured, "'\(delivery.destination)' is not configured"))
        }
        if let ended = await contentElsewhere(destination) { return ended }
        let order: DeliveryOrder
        do throws(DeliveryError) {
            // Written before the source is opened: the next start then knows which delivery killed the process.
            if delivery.crashes > 0 {
                try await journaled { () throws(JournalError) in try await shared.journal.begin(delivery.id) }
            }
            order = try await shared.order(file, delivery, to: destination)
        } catch {
            return failed(error)
        }
        let isResumed = !claim.checkpoint.isEmpty && stage.resumable.withLock { $0.remove(delivery.id) != nil }
        if first == nil { shared.log.emit(started(key, isResumed: isResumed)) }
        let start = ContinuousClock.now
        let attempt = Attempt(checkpoint: notes, continuing: first, isStopping: { stage.isStopping.isSet })
        if let step = shared.transfers.step(delivery.id) { attempt.report(step) }
        switch await send(order, to: destination, attempt) {
        case .success(.delivered(let proof)): return delivered(proof, at: destination, since: start)
        case .success(.waiting(let until, let saying)): return waits(until: until, saying: saying, attempt)
        case .failure(let error):
            if let renamed = await renamed(error) { return renamed }
            if isWithheld(error) { return withheld(error) }
            return failed(error, await presence(after: error))
        case nil: return sentBack()
        }
    }

    func started(_ key: String, isResumed: Bool = false) -> AgentEvent {
        .jobStarted(
            ref, key: key, attempt: delivery.attempts, size: file.identity.size, isPoll: delivery.isBeingWorkedOn,
            isResumed: isResumed)
    }

    // MARK: - Notes

    /// Notes for the next attempt of this agent alone.
    private var own: CheckpointLog {
        CheckpointLog(
            entries: [:], write: { entries throws(DeliveryError) in try await keep(entries, replacing: false) },
            replace: { entries throws(DeliveryError) in try await keep(entries, replacing: true) })
    }

    /// Stores the pipeline's notes for the next attempt, here or at another agent that watches the file's folder.
    private func note(_ notes: [String: [UInt8]], replacing: Bool = false) async throws(DeliveryError) {
        try await keep(notes, replacing: replacing)
        try await shared.fleet.places.noted(claim, notes, replacing: replacing)
        for note in notes.keys {
            switch note {
            case "upload": Failpoint.uploadCreated.reached()
            case CheckpointName.mayBeVisible: Failpoint.beforeComplete.reached()
            case _ where note == "offset" || note.hasPrefix("part:"): Failpoint.partUploaded.reached()
            default: break
            }
        }
    }

    private func keep(_ notes: [String: [UInt8]], replacing: Bool) async throws(DeliveryError) {
        let journal = shared.journal
        Failpoint.noting.reached(with: notes.keys)
        try await journaled { () throws(JournalError) in
            try await journal.checkpoint(delivery.id, journal.seal.closed(notes), replacing: replacing)
        }
        Failpoint.noted.reached(with: notes.keys)
        if !notes.isEmpty { shared.log.emit(.jobCheckpoint(ref, notes: notes.keys.sorted())) }
    }

    private func journaled(_ write: () async throws(JournalError) -> Void) async throws(DeliveryError) {
        do throws(JournalError) {
            try await write()
        } catch {
            shared.health.journal.fails(error)
            throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
        }
    }

    // MARK: - Sending

    /// Runs the pipeline until it ends, or a person cancels it; a big file gets progress lines.
    ///
    /// - Returns: nil when a limit of 0 ended it.
    private func send(
        _ order: DeliveryOrder, to destination: Destination, _ attempt: Attempt
    ) async -> Result<DeliveryOutcome, DeliveryError>? {
        let size = file.identity.size
        let cancelled = DeliveryError(.cancelled, .cancelled, "cancelled")
        let (signal, mayBeCancelled) = shared.transfers.add(ref, size: size, since: .now, attempt: attempt)
        defer { shared.transfers.remove(ref.delivery) }
        // A journal that does not answer has not cancelled it; it is asked again when the delivery ends.
        if mayBeCancelled, (try? await shared.journal.isClaimed(ref.delivery)) == false { return .failure(cancelled) }
        // Its limit became 0 after it was claimed.
        if shared.destinations.state(of: ref.destination)?.isShut == true { return nil }
        let result = await withTaskGroup(of: Result<DeliveryOutcome, DeliveryError>?.self) { group in
            group.addTask {
                // The signal for a cancellation also ends the wait for one: one task less to start.
                defer { signal.raise() }
                return await attempt.noting { await self.deliver(order, by: destination.pipeline, attempt) }
            }
            // A child for each of thousands of small files would cost more than their delivery.
            if size > min(destination.smallLimit, Attempt.smallestShown) || destination.storage != nil {
                group.addTask {
                    await attempt.sayProgress(of: ref, size: size, to: shared.log, shared.health.heartbeat)
                    return nil
                }
            }
            await signal.wait(until: nil)
            group.cancelAll()
            let ended = await group.reduce(nil) { $1 ?? $0 }
            return ended ?? .failure(cancelled)
        }
        if case .failure(let error) = result, error.verdict == .cancelled, shared.transfers.isSentBack(ref.delivery) {
            return nil
        }
        return result
    }

    /// Opens the source, once, and has it delivered.
    private func deliver(
        _ order: DeliveryOrder, by pipeline: any Pipeline, _ attempt: Attempt
    ) async -> Result<DeliveryOutcome, DeliveryError> {
        do throws(DeliveryError) {
            let opened: (file: SourceFile, objection: DeliveryError?)
            do throws(SystemError) {
                opened = try openSource()
            } catch {
                // A complete upload needs no source, wherever that is.
                if error.isMissing, let ended = try await pipeline.conclude(file.fullPath, order, attempt) {
                    return .success(ended)
                }
                throw DeliveryError(reading: error)
            }
            if let objection = opened.objection { throw objection }
            var order = order
            // From here on the open file counts; pipelines notice every change of it.
            if try await hasContent(of: file, opened.file) { order.source = opened.file.opened }
            // Opening and comparing it may have taken long.
            guard shared.fleet.places.maySend(file) else { throw DeliveryError.awaitsFleet }
            return .success(try await pipeline.deliver(opened.file, order, attempt))
        } catch {
            return .failure(error)
        }
    }

    // MARK: - Outcomes

    /// An earlier job delivered the same content there.
    private func duplicate(of original: Original) -> (ClaimOutcome, DeliveryReport) {
        let event = AgentEvent.jobDuplicate(
            job: file.id, path: file.fullPath, route: ref.route, destinations: [ref.destination],
            sameAs: original.job)
        return (.delivered(original.link), DeliveryReport(event: event))
    }

    /// The end of an attempt whose content another agent of the fleet has brought, or brings now.
    private func contentElsewhere(_ destination: Destination) async -> (ClaimOutcome, DeliveryReport)? {
        switch await shared.fleet.contents.turn(of: claim, at: destination) {
        case .send: nil
        case .link(let proof): linked(proof, at: destination)
        case .wait(let agent): awaits(agent)
        }
    }

    /// Another agent of the fleet delivered the same content there.
    private func linked(_ proof: Proof, at destination: Destination) -> (ClaimOutcome, DeliveryReport) {
        var proof = proof
        proof.address = destination.address
        let event = AgentEvent.jobDelivered(ref, proof, duration: .zero)
        return (.delivered(proof), DeliveryReport(event: event))
    }

    /// Another agent sends the same content now. That costs no attempt.
    private func awaits(_ agent: String) -> (ClaimOutcome, DeliveryReport) {
        let error = DeliveryError(.outage(after: nil), .fleetAway, "waits: \(agent) sends the same content now")
        return (
            .again(at: .now + Self.contentPause, countsAttempt: false, code: nil, reason: error.reason),
            DeliveryReport(
                event: .jobRetry(ref, error, attempt: delivery.attempts, wait: Self.contentPause))
        )
    }

    private static let contentPause = Duration.seconds(30)

    /// The destination has another file under a key that the fleet granted: the delivery goes on under its next name.
    private func renamed(_ error: DeliveryError) async -> (ClaimOutcome, DeliveryReport)? {
        let outcome =
            file.policy.isOfPlace
            ? await shared.fleet.places.lost(claim, error) : await shared.fleet.keys.lost(claim, error)
        guard let outcome else { return nil }
        let event = AgentEvent.jobRetry(ref, error, attempt: delivery.attempts, wait: .zero)
        return (outcome, DeliveryReport(event: event))
    }

    /// Whether an attempt at work of a share ended because it is not known to be this agent's any longer.
    private func isWithheld(_ error: DeliveryError) -> Bool {
        guard file.policy.isOfPlace else { return false }
        return error.code == .fleetAway || error.verdict == .cancelled && !shared.fleet.places.maySend(file)
    }

    /// Neither the file nor its destination is to blame, and no attempt counts.
    private func withheld(_ error: DeliveryError) -> (ClaimOutcome, DeliveryReport) {
        let pause = FleetPlaces.pause
        return (
            .again(at: .now + pause, countsAttempt: false, code: .fleetAway, reason: error.reason),
            DeliveryReport(event: .jobRetry(ref, error, attempt: delivery.attempts, wait: pause))
        )
    }

    /// - Parameter destination: as at the start of the attempt; the configuration may have changed since.
    func delivered(
        _ proof: Proof, at destination: Destination, since start: ContinuousClock.Instant
    ) -> (ClaimOutcome, DeliveryReport) {
        var proof = proof
        proof.address = destination.address
        Failpoint.afterComplete.reached()
        shared.transfers.forgetStep(of: ref.delivery)
        let event = AgentEvent.jobDelivered(ref, proof, duration: start.duration(to: .now))
        let report = DeliveryReport(event: event, destinationIsBack: worked(.delivered(file: ref.job)))
        return (.delivered(shared.journal.seal.closed(proof)), report)
    }

    /// The destination processes the file: its progress is kept for `status`, and logged now and then.
    private func waits(until time: WallTime, saying: String?, _ attempt: Attempt) -> (ClaimOutcome, DeliveryReport) {
        if let step = attempt.progress, shared.transfers.note(step, of: delivery.id, at: .now) {
            shared.log.emit(.transferProgress(ref, sent: attempt.bytesSent, size: file.identity.size, step: step))
        }
        let event = AgentEvent.jobWaiting(ref, until: time, saying: saying, isRepeated: delivery.isBeingWorkedOn)
        return (
            .waiting(until: time, saying: saying), DeliveryReport(event: event, destinationIsBack: worked(.answered))
        )
    }

    /// The destination is reachable, and this machine works. - Returns: whether more may be claimed for it than before.
    private func worked(_ event: CircuitBreaker.Event) -> Bool {
        defer { stage.faults.withLock { $0.worked(delivery.id) } }
        return shared.destinations.report(ref.destination, event).opens
    }

    /// A limit of 0 ended the attempt, which does not count: another delivery takes its place, and this one continues
    /// once the limit allows it.
    private func sentBack() -> (ClaimOutcome, DeliveryReport) {
        let error = DeliveryError(.cancelled, .heldByLimit, "was stopped while a bandwidth limit was 0")
        return (
            .again(at: .now, countsAttempt: false, code: nil, reason: error.reason),
            DeliveryReport(event: .jobRetry(ref, error, attempt: delivery.attempts, wait: .zero))
        )
    }

    private func failed(_ error: DeliveryError, _ presence: SourcePresence = .asSaid) -> (ClaimOutcome, DeliveryReport)
    {
        let now = WallTime.now
        let attempt = FailedAttempt(
            file: file.id, number: delivery.attempts, policy: file.policy.retry,
            isStopping: stage.isStopping.isSet || Task.isCancelled,
            localFaults: stage.faults.withLock { $0.count(of: delivery.id) }, time: now)
        var random = SystemRandomNumberGenerator()
        if error.code == .sourceUnreadable, let volume = file.volume { shared.cards.readFailed(volume) }
        let decision = FailureClassifier.classify(error, attempt, presence, using: &random) { event, error in
            shared.destinations.report(ref.destination, event, reason: error.reason, code: error.code).action
        }
        if decision.error.isLocal { tell(decision.error) }
        if case .ended = decision.end { shared.transfers.forgetStep(of: ref.delivery) }
        return decision.outcome(ref, file, attempt: delivery.attempts, at: now)
    }

    /// Logs a fault of this machine, when it is new.
    private func tell(_ error: DeliveryError) {
        guard stage.faults.withLock({ $0.note(error.code, of: delivery.id) }) else { return }
        let isOfFile = error.code == .sourceUnreadable || error.code == .sourceForbidden
        shared.log.emit(
            isOfFile
                ? .fileError(path: file.fullPath, reason: error.reason) : .agentError(reason: error.reason))
    }
}

extension FailureAction {
    /// The journal entry and the follow-up of a failure.
    func outcome(
        _ ref: AgentEvent.JobRef, _ file: FileRow, attempt: Int, at now: WallTime
    ) -> (ClaimOutcome, DeliveryReport) {
        switch end {
        case .again(let wait, let countsAttempt):
            return (
                .again(at: now + wait, countsAttempt: countsAttempt, code: error.code, reason: error.reason),
                DeliveryReport(event: .jobRetry(ref, error, attempt: attempt, wait: wait))
            )
        case .ended(let state):
            return (
                .ended(state, code: error.code, reason: error.reason),
                DeliveryReport(
                    event: .jobFailed(ref, state: state, error), wantsLook: looksAgain ? file : nil)
            )
        }
    }
}

/// The source of an attempt: opened once, and checked again before it counts as gone.
extension DeliveryAttempt {
    /// - Returns: the open file, and why it is refused; nil when it is not.
    func openSource() throws(SystemError) -> (file: SourceFile, objection: DeliveryError?) {
        let readers = settings?.readers ?? .auto
        // Since its admission the disk may have got another number.
        let source = try SourceFile(opening: file.place) { shared.readers.turns(of: $0, readers) }
        let objection: String? =
            if try source.look().refusal(by: rule) != nil {
                "has another owner or name since it was admitted, and stays untouched"
            } else {
                try source.exceedsItsSize() ? "yields more bytes than its size, and stays untouched" : nil
            }
        let error = objection.map { DeliveryError(.sourceChanged, .sourceChanged, "\(source.path.display): \($0)") }
        return (source, error)
    }

    /// The rule of the file's folder; none for a file that a person named.
    private var rule: SourceRule { settings?.sources ?? SourceRule() }

    private var settings: WatchSettings? { shared.settings.sendRoots.first { $0.covers(file.root) } }

    /// Whether the content is the admitted or proved one, although inode, device or ctime differ (a chmod, a remount, a
    /// server that renumbers its files). Size and time must be equal, and a checksum must be known.
    func hasContent(of file: FileRow, _ source: SourceFile) async throws(DeliveryError) -> Bool {
        guard
            case .unclear = SourceStatus(source.opened, since: file.identity, ignoringChangeTime: false),
            file.hasChecksum
        else { return false }
        return try await file.hasContent(source, Hashing(pool: stage.pool))
    }

    // MARK: - A second look

    /// The result of a fresh look, after an attempt missed the source or found another file.
    func presence(after error: DeliveryError) async -> SourcePresence {
        guard error.verdict == .sourceGone || error.verdict == .sourceChanged else { return .asSaid }
        let found = await look()
        switch found {
        case .untouched: return found
        case .refused(let error) where error.verdict != .sourceChanged && error.verdict != .sourceGone: return found
        default: break
        }
        guard shared.roots.isAway(file) else { return found }
        return .away(
            root: file.root.display, isVolume: file.volume != nil,
            isSoon: shared.roots.isUnknown(file.root) || shared.roots.hasMoved(file))
    }

    private func look() async -> SourcePresence {
        do throws(DeliveryError) {
            let opened: (file: SourceFile, objection: DeliveryError?)
            do throws(SystemError) {
                opened = try openSource()
            } catch {
                return error.isMissing || error.isNotRegular ? .asSaid : .refused(DeliveryError(reading: error))
            }
            if let objection = opened.objection { return .refused(objection) }
            let name = opened.file.path.display
            return try await isAsAdmitted(opened.file) ? .untouched(name: name) : .replaced(name: name)
        } catch {
            return .refused(error)
        }
    }

    private func isAsAdmitted(_ source: SourceFile) async throws(DeliveryError) -> Bool {
        switch SourceStatus(source.opened, since: file.identity, ignoringChangeTime: false) {
        case .same: return true
        case .changed: return false
        case .unclear:
            if source.isRenumbered(source.opened, since: file.identity) { return true }
            // The content's present proofs: another destination may have proved it since this delivery was claimed.
            // Without an answer of the journal it stays unknown.
            let current = await shared.journal.fileIfKnown(file.id)
            return try await hasContent(of: current ?? file, source)
        }
    }
}

extension FileRow {
    /// Whether a checksum of the admitted content is known.
    var hasChecksum: Bool { content != nil || !digests.isEmpty }

    /// Whether `source` has the admitted or proved content, by its known checksum.
    func hasContent(_ source: SourceFile, _ hashing: Hashing) async throws(DeliveryError) -> Bool {
        if let content {
            return try await SourceDigests.matches(content, source, on: hashing.pool, progress: hashing.progress)
        }
        let known = Set(digests)
        let found = try await SourceDigests.digests(
            Set(known.map(\.algorithm)), of: source, on: hashing.pool, progress: hashing.progress)
        return !known.isEmpty && Set(found) == known
    }
}

extension Shared {
    /// The order for a delivery that needs nothing of others.
    func plainOrder(_ file: FileRow, _ delivery: DeliveryRow) -> DeliveryOrder {
        let place = RootedPath(file, roots: settings.sendRoots.compactMap { $0.root(of: file.fullPath) })
        return DeliveryOrder(
            id: delivery.id, destination: delivery.destination, key: delivery.key ?? "", mediaType: file.mediaType,
            fields: delivery.fields, source: file.identity, path: place.path, root: place.root)
    }

    /// The pipeline's order for a delivery to `destination`. Only registrations get the deliveries before them.
    ///
    /// The time to live of a delivery that waited for others starts here: their time does not count.
    func order(
        _ file: FileRow, _ delivery: DeliveryRow, to destination: Destination
    ) async throws(DeliveryError) -> DeliveryOrder {
        var order = plainOrder(file, delivery)
        do {
            let begins = delivery.state == .claimed && (delivery.afterID != nil || delivery.closes != nil)
            if begins, delivery.expiresAt == nil, let life = file.policy.retry.expire {
                let uptime = destinations.uptimes()[delivery.destination] ?? 0
                try await journal.startExpiry(of: delivery.id, at: uptime + life.milliseconds)
            }
            guard destination.storage != nil || destination.closesBatches else { return order }
            let context = try await journal.context(of: delivery, in: file)
            order.upstream = context.upstream
            if !order.upstream.isEmpty { order.upstream[0].path = order.path }
            order.batch = context.batch
            return order
        } catch {
            throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
        }
    }
}
