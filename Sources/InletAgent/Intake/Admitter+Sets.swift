internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Companions and units on their way to the journal.
extension Admitter {
    /// What the sidecar among `companions` says of its file; nothing when there is none, or no longer.
    ///
    /// - Throws: `ConfigErrors` for one that cannot be understood.
    func sidecar(
        among companions: [SetFinder.Found], _ rule: SourceRule, _ pool: BlockingPool
    ) async throws -> Sidecar {
        guard let sidecar = companions.first(where: { $0.companion.kind == .metadata }) else { return Sidecar() }
        do {
            return try await SidecarFile.read(sidecar.arrival.place, by: rule, on: pool)
        } catch let error as SystemError where error.isMissing {
            return Sidecar()
        }
    }

    func admissions(of companions: [SetFinder.Found]) -> [CompanionAdmission] {
        companions.map { admission(of: $0.companion, $0.arrival) }
    }

    private func admission(of companion: Companion, _ arrival: Arrival) -> CompanionAdmission {
        let ending = FileName(arrival.path).plainExtension
        return CompanionAdmission(
            arrival, companion, category: Category.byExtension(ending), mediaType: MediaType.byExtension(ending),
            lanes: companion.kind == .marker ? [:] : board.sidecarLanes(of: arrival.identity.size))
    }

    /// A companion whose file is in the journal.
    func admitLate(_ arrival: Arrival, _ companion: Companion, _ main: Int64) async -> Outcome {
        let found = SetFinder.Found(companion: companion, arrival: arrival)
        do throws(JournalError) {
            Failpoint.admitting.reached()
            let outcome = try await journal.admitLate(
                admission(of: companion, arrival), main: main, uptimes: board.uptimes(), at: .now
            ) { outcome, job in
                if outcome.isNew { Failpoint.admitted.reached() }
                guard let job else { return }
                tell([found], [outcome], job.file.route ?? "", job.deliveries.map(\.destination))
            }
            health.works()
            if outcome.isBusy { return .later }
            _ = await conclude([found], [outcome], try await journal.job(main)?.file.route ?? "")
            return .settled
        } catch {
            health.fails(error)
            return .later
        }
    }

    /// Says of companions that they are in the journal, before anybody can claim them.
    func tell(
        _ companions: [SetFinder.Found], _ outcomes: [AdmissionOutcome], _ route: String, _ destinations: [String]
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
        _ companions: [SetFinder.Found], _ outcomes: [AdmissionOutcome], _ route: String
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
            signals.raiseDeliverable()
            signals.raise(.finishable)
        }
        return known
    }

    /// Closes a unit: everything that `routes` took of it is sent. - Returns: false when the journal cannot be written now.
    func close(
        _ unit: FilePath, _ routes: [String], root: FilePath, marker: Arrival?, labels: [String: String]
    ) async -> Bool {
        do {
            Failpoint.closingUnit.reached()
            let batches = try await journal.closeUnit(
                unit, root: root, routes: routes, marker: marker, uptimes: board.uptimes(),
                closing: board.closers, labels: labels, at: .now)
            Failpoint.unitClosed.reached()
            health.works()
            for batch in batches {
                log.emit(
                    .batchClosed(
                        batch: batch.id, path: root.pushing(unit), route: batch.route,
                        files: batch.counts.values.reduce(0, +)))
                guard batch.endedAt != nil else { continue }
                log.emit(.batchEnded(batch))
                signals.raise(.batch)
            }
            if batches.isEmpty { return true }
            signals.raiseDeliverable()
            signals.raise(.finishable)
            return true
        } catch {
            health.fails(error)
            return false
        }
    }
}
