internal import InletCore
internal import InletJournal
internal import InletLinux

/// Who is told of the end of a delivery, once it is durable.
struct DeliveryEnds: Sendable {
    let shared: Shared

    /// Says and passes on what has ended, all of it in one write.
    ///
    /// - Parameter ended: with what settling did to the file of each.
    func follow(_ ended: [(LaneSlots.Ended, SettledFile)]) {
        for (one, _) in ended {
            if case .expired = one.settlement {
                shared.log.emit(.expired(one.claim.file, one.claim.delivery.destination))
            }
        }
        shared.log.emit(ended.flatMap { Self.events($0.report, $0.claim.file, $1) })
        for (one, settled) in ended { pass(one.report, one.claim.file, settled) }
    }

    /// Says what nobody can read, and so nobody sends.
    func tell(_ damaged: [DamagedDelivery]) {
        shared.log.emit(damaged.map { .fileTrouble(path: $0.path, reason: $0.reason) })
    }

    /// Says that the journal does not take the end of a delivery, once for each cause.
    /// - Returns: the cause.
    func refused(_ file: FileRow, _ error: JournalError, saidLast: String?) -> String {
        if error.isFull {
            shared.health.journal.fails(error)
        } else if error.description != saidLast {
            let reason = "what became of it cannot be written down, which is tried again: \(error)"
            shared.log.emit(.fileTrouble(path: file.fullPath, reason: reason))
        }
        return error.description
    }

    /// - Parameter report: nil for a delivery that was never begun.
    private static func events(
        _ report: DeliveryAttempts.Report?, _ file: FileRow, _ settled: SettledFile
    ) -> [AgentEvent] {
        if report != nil { Failpoint.delivered.reached() }
        let told = report.map { [$0.event] } ?? []
        guard let finish = settled.finish else { return told }
        Failpoint.finished.reached()
        let finished = AgentEvent.jobFinished(
            job: file.id, path: file.fullPath, state: settled.state, disposition: finish.disposition,
            route: file.route ?? "")
        return told + [finished] + (finish.endedBatch.map { [.batchEnded($0)] } ?? [])
    }

    /// What came back while it was written down that it is away goes on at once: who took the volume up did not see it waiting.
    func freeReturned(_ files: [FileRow]) async {
        let roots = shared.roots
        let returned = Set(
            files.filter { $0.volume != nil && (roots.hasMoved($0) || !roots.isAway($0)) }.compactMap(\.volume))
        do {
            for volume in returned { try await shared.journal.volumeIsBack(volume, at: .now) }
        } catch {
            shared.health.journal.fails(error)
        }
        if !returned.isEmpty { shared.signals.raiseDeliverable() }
    }

    /// Wakes and tells whoever has to do with it now.
    private func pass(_ report: DeliveryAttempts.Report?, _ file: FileRow, _ settled: SettledFile) {
        if settled.isFinal { shared.room.left() }
        shared.destinations.deliveryEnded()
        // What ended with it, a companion or the marker of a unit, is still to be finished.
        if settled.isFinal, settled.finish == nil || file.batchID != nil || settled.hasReleased {
            shared.signals.raise(.finishable)
        }
        if settled.finish?.endedBatch != nil { shared.signals.raise(.batch) }
        // What is only being worked on leaves nothing to compare with.
        let isWorkedOn = if case .jobWaiting = report?.event { true } else { false }
        let isKept = !isWorkedOn && shared.looks.take(file.id)
        // While it was gone for one destination and another had it still, what came back as it was is only known.
        let mayBeBack = settled.isFinal && settled.state == .gone
        switch report?.event {
        case .jobDelivered, .jobWaiting: break
        case nil where !settled.isFinal: break
        default:
            shared.signals.raise(.leftover, .destination)
        }
        if let changed = report?.wantsLook ?? (isKept || mayBeBack ? file : nil) { shared.roots.look(again: changed) }
        shared.roots.ended(file)
        // More may be tried than before, in whatever lane. Its own looks by itself.
        if report?.destinationIsBack == true || settled.hasReleased { shared.signals.raiseDeliverable() }
    }
}
