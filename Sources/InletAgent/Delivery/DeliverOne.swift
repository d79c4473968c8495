internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines

/// One attempt at one delivery: open the source, run the pipeline, and say how the claim ends.
final class DeliverOne: Sendable {
    /// What is done once the settlement is durable.
    struct Report: Sendable {
        var event: AgentEvent
        /// The source changed or went under way: it should be looked at anew.
        var wantsLook: FileRow?
        /// This delivery proved that its destination is up again.
        var destinationIsBack = false

        /// Whether it is put off until its source is there again.
        var awaitsSource: Bool {
            if case .jobRetry(_, let error, _, _) = event { error.code == .sourceGone } else { false }
        }
    }

    let journal: Journal
    private let board: DestinationRegistry
    let orders: OrderDesk
    let inFlight: Transfers
    let log: EventLog
    private let heartbeat: Heartbeat
    private let isStopping: StopFlag
    private let earlier: EarlierNotes
    private let health: JournalHealth
    let roots: RootRegistry
    /// For sources whose content has to be compared.
    let hashing: BlockingPool
    private let faults = LocalFaults()
    private let warmUp = WarmUp()

    init(
        journal: Journal, board: DestinationRegistry, orders: OrderDesk, inFlight: Transfers,
        log: EventLog, health: JournalHealth, heartbeat: Heartbeat, isStopping: StopFlag, earlier: EarlierNotes,
        roots: RootRegistry, hashing: BlockingPool
    ) {
        (self.roots, self.hashing) = (roots, hashing)
        self.earlier = earlier
        self.journal = journal
        self.health = health
        self.board = board
        self.orders = orders
        self.inFlight = inFlight
        self.log = log
        self.heartbeat = heartbeat
        self.isStopping = isStopping
    }

    func cancelAll() { inFlight.cancelAll() }

    func deliver(_ claim: Claim) async -> (Settlement, Report) {
        let file = claim.file
        let delivery = claim.delivery
        let ref = AgentEvent.JobRef(
            job: file.id, delivery: delivery.id, path: file.fullPath, route: file.route ?? "",
            destination: delivery.destination)
        if let original = claim.original {
            let event = AgentEvent.jobDuplicate(
                job: file.id, path: file.fullPath, route: ref.route, destinations: [ref.destination],
                sameAs: original.job)
            return (.delivered(original.link), Report(event: event))
        }
        guard let destination = board[delivery.destination], let key = delivery.key else {
            return judge(ref, file, delivery).failed(
                DeliveryError(.outage(after: nil), .notConfigured, "'\(delivery.destination)' is not configured"))
        }
        let order: DeliveryOrder
        do throws(DeliveryError) {
            // Before anything of it is touched: whether it is this one that ends the process.
            if delivery.crashes > 0 { try await begun(delivery) }
            order = try await orders.order(file, delivery, to: destination)
        } catch {
            return failed(error, ref, file, delivery)
        }
        log.emit(
            .jobStarted(
                ref, key: key, attempt: delivery.attempts, size: file.identity.size,
                isPoll: delivery.isBeingWorkedOn,
                isResumed: !claim.checkpoint.isEmpty && earlier.take(delivery.id)))
        let start = ContinuousClock.now
        let attempt = attempt(ref, claim.checkpoint)
        switch await run(destination, order, file, attempt, ref) {
        case .success(.delivered(let proof)): return delivered(proof, at: destination, ref, since: start)
        case .success(.waiting(let until, let saying)):
            return waits(ref, file, delivery, until: until, saying: saying, attempt)
        case .failure(let error): return failed(present(await confirmed(error, file), file), ref, file, delivery)
        case nil: return sentBack(ref, delivery)
        }
    }

    /// - Parameter destination: as it was when the attempt began; another configuration may hold by now.
    private func delivered(
        _ proof: Proof, at destination: Destination, _ ref: AgentEvent.JobRef, since start: ContinuousClock.Instant
    ) -> (Settlement, Report) {
        var proof = proof
        proof.address = destination.address
        Failpoint.afterComplete.reached()
        warmUp.step()
        inFlight.forgetStep(of: ref.delivery)
        var report = Report(event: .jobDelivered(ref, proof, duration: start.duration(to: .now)))
        report.destinationIsBack = board.report(ref.destination, .delivered(file: ref.job))
        faults.worked(ref.delivery)
        return (.delivered(journal.seal.closed(proof)), report)
    }

    /// The destination works on it: it is there. - Returns: whether more may be claimed for it than before.
    func hasTaken(_ ref: AgentEvent.JobRef) -> Bool {
        faults.worked(ref.delivery)
        return board.report(ref.destination, .answered)
    }

    /// Writes down that a delivery begins which may have ended the process before.
    private func begun(_ delivery: DeliveryRow) async throws(DeliveryError) {
        do throws(JournalError) {
            try await journal.begin(delivery.id)
        } catch {
            health.fails(error)
            throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
        }
    }

    private func failed(
        _ error: DeliveryError, _ ref: AgentEvent.JobRef, _ file: FileRow, _ delivery: DeliveryRow
    ) -> (Settlement, Report) {
        var judge = judge(ref, file, delivery)
        var action = CircuitBreaker.Action.none
        if let event = judge.breakerEvent(error) {
            action = board.hear(ref.destination, event, reason: error.reason, code: error.code)
        }
        if error.isLocal {
            let (wait, event) = faults.note(error, delivery.id, file)
            judge.localWait = wait
            if let event { log.emit(event) }
        }
        let result = judge.failed(judge.weighed(error, action))
        if case .ended = result.0 { inFlight.forgetStep(of: ref.delivery) }
        return result
    }

    private func judge(_ ref: AgentEvent.JobRef, _ file: FileRow, _ delivery: DeliveryRow) -> AttemptJudge {
        AttemptJudge(ref: ref, file: file, attempt: delivery.attempts, isStopping: isStopping.isSet || Task.isCancelled)
    }

    private func attempt(_ ref: AgentEvent.JobRef, _ entries: [String: [UInt8]]) -> Attempt {
        let delivery = ref.delivery
        let (journal, isStopping, log, health, warmUp) = (journal, isStopping, log, health, warmUp)
        let notes = CheckpointLog(
            entries: journal.seal.opened(entries),
            write: { entries throws(DeliveryError) in
                Failpoint.noting.reached(with: entries.keys)
                do throws(JournalError) {
                    try await journal.checkpoint(delivery, journal.seal.closed(entries))
                    warmUp.step()
                } catch {
                    health.fails(error)
                    throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
                }
                Self.tell(entries, ref, log)
            },
            replace: { entries throws(DeliveryError) in
                Failpoint.noting.reached(with: entries.keys)
                do throws(JournalError) {
                    try await journal.replaceCheckpoint(delivery, journal.seal.closed(entries))
                } catch {
                    health.fails(error)
                    throw DeliveryError(.outage(after: nil), .internalFault, "\(error)")
                }
                Self.tell(entries, ref, log)
            })
        let attempt = Attempt(checkpoint: notes, isStopping: { isStopping.isSet })
        if let step = inFlight.step(delivery) { attempt.report(step) }
        return attempt
    }

    private static func tell(_ notes: [String: [UInt8]], _ ref: AgentEvent.JobRef, _ log: EventLog) {
        Failpoint.noted.reached(with: notes.keys)
        if !notes.isEmpty { log.emit(.jobCheckpoint(ref, notes: notes.keys.sorted())) }
        notes.keys.forEach(reachFailpoint)
    }

    private static func reachFailpoint(_ note: String) {
        switch note {
        case "upload": Failpoint.uploadCreated.reached()
        case CheckpointNote.mayBeVisible: Failpoint.beforeComplete.reached()
        case _ where note == "offset" || note.hasPrefix("part:"): Failpoint.partUploaded.reached()
        default: break
        }
    }

    /// Runs the pipeline until it ends, or somebody cancels it; beside a big one go its progress lines.
    ///
    /// - Returns: nil for what a limit of 0 has ended.
    private func run(
        _ destination: Destination, _ order: DeliveryOrder, _ file: FileRow, _ attempt: Attempt,
        _ ref: AgentEvent.JobRef
    ) async -> Result<DeliveryOutcome, DeliveryError>? {
        let size = file.identity.size
        let (signal, mayBeCancelled) = inFlight.add(ref, size: size, since: .now, attempt: attempt)
        defer { inFlight.remove(ref.delivery) }
        // A journal that does not answer has not cancelled it; it is asked again when the delivery ends.
        if mayBeCancelled, (try? await journal.isClaimed(ref.delivery)) == false {
            return .failure(DeliveryError(.cancelled, .cancelled, "cancelled"))
        }
        // Its limit became 0 after it was claimed.
        if board.isShut(ref.destination) { return nil }
        let result = await withTaskGroup(of: Result<DeliveryOutcome, DeliveryError>?.self) { group in
            group.addTask {
                // The signal that cancels also tells that there is nothing to cancel any more: one task less to start.
                defer { signal.raise() }
                return await attempt.noting {
                    await self.open(file, destination.pipeline, order, attempt)
                }
            }
            // A child for each of thousands of small files would cost more than their delivery.
            if size > min(destination.smallLimit, ProgressWatch.smallest) || destination.storage != nil {
                group.addTask {
                    await ProgressWatch(ref: ref, size: size, log: self.log, heartbeat: self.heartbeat).run(attempt)
                    return nil
                }
            }
            await signal.wait(until: nil)
            group.cancelAll()
            let ended = await group.reduce(nil) { $1 ?? $0 }
            return ended ?? .failure(DeliveryError(.cancelled, .cancelled, "cancelled"))
        }
        if case .failure(let error) = result, error.verdict == .cancelled, inFlight.isSentBack(ref.delivery) {
            return nil
        }
        return result
    }
}
