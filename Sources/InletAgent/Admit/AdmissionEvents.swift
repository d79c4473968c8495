internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// What is said of files once they are in the journal, and who is woken by it.
extension Admission {
    /// Says that files are in the journal, before anybody can claim them: on the thread that writes it, so that it is quick. All
    /// lines before any signal, for who is woken by it.
    func tell(_ files: [PlannedFile], _ outcomes: [AdmissionOutcome]) {
        var admitted: [(id: Int64, file: PlannedFile)] = []
        for (file, outcome) in zip(files, outcomes) {
            switch outcome {
            case .admitted(let id): admitted.append((id, file))
            case .duplicate(let id, let first): tellDuplicate(id, file, sameAs: first)
            case .rejected, .known, .busy, .full: break
            }
        }
        for _ in admitted { Failpoint.admitted.reached() }
        log.emit(admitted.flatMap { Self.events($0.id, $0.file) })
        for (_, file) in admitted {
            let (size, steps) = (file.record.arrival.identity.size, file.record.steps)
            for name in steps.first {
                shared.signals.raise(.deliverable(LaneID(destination: name, lane: board.lane(of: size, to: name))))
            }
            board.admitted(for: steps.destinations)
        }
    }

    private static func events(_ id: Int64, _ file: PlannedFile) -> [AgentEvent] {
        let (arrival, plan) = (file.record.arrival, file.plan)
        let path = arrival.root.pushing(arrival.path)
        let admitted = AgentEvent.jobAdmitted(
            job: id, path: path, route: plan.route, size: arrival.identity.size,
            deliveries: file.record.steps.destinations, labels: plan.labels)
        return [admitted] + file.notes.map { .fileNote(job: id, path: path, route: plan.route, note: $0) }
    }

    private func tellDuplicate(_ id: Int64, _ file: PlannedFile, sameAs first: Int64) {
        Failpoint.admitted.reached()
        let arrival = file.record.arrival
        log.emit(
            .jobDuplicate(
                job: id, path: arrival.root.pushing(arrival.path), route: file.plan.route,
                destinations: file.record.steps.destinations, sameAs: first))
        shared.signals.raise(.finishable)
    }

    /// The same of companions.
    func tell(
        _ companions: [FoundCompanion], _ outcomes: [AdmissionOutcome], _ route: String, _ destinations: [String]
    ) {
        for (found, outcome) in zip(companions, outcomes) {
            guard case .admitted(let id) = outcome else { continue }
            log.emit(
                .jobAdmitted(
                    job: id, path: found.arrival.root.pushing(found.arrival.path), route: route,
                    size: found.arrival.identity.size, deliveries: destinations))
        }
    }

    /// Says which companions were rejected, and wakes who has to do with all of them. - Returns: those that the journal has now.
    func conclude(
        _ companions: [FoundCompanion], _ outcomes: [AdmissionOutcome], _ route: String
    ) async -> [FilePath] {
        var known: [FilePath] = []
        for (found, outcome) in zip(companions, outcomes) {
            switch outcome {
            case .busy, .full: continue
            case .known, .duplicate, .admitted: break
            case .rejected(let id):
                // The file is rejected, and status says why; only this line of the log lacks the reason.
                let reason = try? await journal.job(id)?.file.reason
                let path = found.arrival.root.pushing(found.arrival.path)
                log.emit(.fileRejected(job: id, path: path, route: route, reason: reason ?? ""))
            }
            known.append(found.arrival.path)
        }
        if !companions.isEmpty {
            shared.signals.raiseDeliverable()
            shared.signals.raise(.finishable)
        }
        return known
    }
}

extension AdmissionOutcome {
    /// Whether the journal has a row for the file that it had not before.
    var isNew: Bool {
        switch self {
        case .admitted, .rejected, .duplicate: true
        case .known, .busy, .full: false
        }
    }
}
