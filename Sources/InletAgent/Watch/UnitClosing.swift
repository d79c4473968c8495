internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Units: folders that are delivered as one.
extension RootLoop {
    /// Before a unit that cannot be closed yet is checked again.
    private static let shortestPause = Duration.milliseconds(100)
    /// Before a unit that failed to close is checked again.
    private static let retryPause = Duration.seconds(1)
    /// Open units that the status shows.
    private static let shown = 5

    mutating func join(_ joined: JoinedUnit) {
        watch.unitGrew(joined.unit)
        units.open(joined.unit, settle: joined.settle, completion: joined.completion, at: .now)
    }

    /// Closes the units that are quiet, or have their marker, once none of their files is settling.
    mutating func closeUnits() async throws(SystemError) {
        guard listing.isComplete, try watch.isDrained() else { return }
        let due = units.due(at: .now)
        if due.isEmpty { return }
        let settling = settler.tracked(below: Set(due.map(\.folder)))
        for unit in due {
            guard let completion = units.completion(of: unit), let settle = units.settle(of: unit) else { continue }
            let pause = max(settle, Self.shortestPause)
            if settling.contains(unit.folder) {
                units.putOff(unit, for: pause, at: .now)
                continue
            }
            if let wait = watch.passWait(for: unit) {
                units.putOff(unit, for: wait, at: .now)
                continue
            }
            if completion == .marker, !mayClose(marked: unit) { continue }
            // One marker serves the files of all routes that wait for it.
            let routes = completion == .marker ? units.markedRoutes(of: unit.folder) : [unit.route]
            switch await stage.close(unit.folder, routes, completion) {
            case true?: for route in routes { units.close(UnitClock.Unit(folder: unit.folder, route: route)) }
            case false?: units.putOff(unit, for: max(pause, Self.retryPause), at: .now)
            case nil: break
            }
        }
    }

    /// Whether a marker existed when the events were read last: files written before it have arrived by then. A newer
    /// marker is checked again after the next events.
    private mutating func mayClose(marked unit: UnitClock.Unit) -> Bool {
        do throws(SystemError) {
            if case .missing = try stage.checker.look(at: unit.folder.appending(Completion.folderMarker)) {
                markersFound.remove(unit.folder)
                return false
            }
        } catch {
            // The unit waits; the listing reports its folder as unread.
            units.putOff(unit, for: Self.retryPause, at: .now)
            return false
        }
        if markersFound.remove(unit.folder) != nil { return true }
        markersFound.insert(unit.folder)
        units.putOff(unit, for: .zero, at: .now)
        return false
    }

    /// Open units, for the status.
    var openUnits: [RootStatus.Unsettled] {
        units.open(Self.shown).map { folder, completion in
            let why =
                switch completion {
                case .quiet: "its files are sent once the folder is quiet"
                case .marker: "waiting for its marker \(folder.appending(Completion.folderMarker).display)"
                }
            return RootStatus.Unsettled(path: settings.path.pushing(folder), busy: false, why: why)
        }
    }
}

/// Markers, which are not delivered, and the units that they and quiet times close.
extension AdmissionStage {
    /// The units of a file, also when the file was not new: closing a unit that is not open is harmless.
    func joined(_ arrival: FoundFile) -> [JoinedUnit] {
        guard admission.routes.hasUnits else { return [] }
        return admission.routes.candidates(for: arrival.path, size: arrival.identity.size).compactMap { route in
            guard let folder = route.unit(of: arrival.path) else { return nil }
            return (
                UnitClock.Unit(folder: folder, route: route.name), route.settle ?? settings.settle, route.completion
            )
        }
    }

    /// How an open unit of the journal is closed, by the present route of that name.
    func rule(_ batch: Batch) -> JoinedUnit? {
        guard let folder = batch.unit else { return nil }
        let route = admission.routes.named(batch.route)
        return (
            UnitClock.Unit(folder: folder, route: batch.route), route?.settle ?? settings.settle,
            route?.unit == .folder ? route?.completion ?? .quiet : .quiet
        )
    }

    /// Closes the unit, if it has the marker that it needs: all files that `routes` admitted from it are sent.
    ///
    /// - Returns: whether it is closed; otherwise it needs another check. nil when it needs a marker, and has none, or
    ///   only that of earlier files.
    mutating func close(_ unit: FilePath, _ routes: [String], _ completion: Completion) async -> Bool? {
        do {
            var marker: FoundFile?
            if completion == .marker {
                guard let found = try await self.marker(of: unit) else { return nil }
                if WriterProbe.probe(found.place) == .busy { return false }
                marker = found
            }
            let labels = try await labels(of: unit, marker: marker?.path)
            let (registry, signals) = (admission.registry, admission.shared.signals)
            Failpoint.closingUnit.reached()
            let batches = try await journal.closeUnit(
                unit, root: root, routes: routes, marker: marker, uptimes: registry.uptimes(),
                closing: registry.closers,
                labels: labels, at: .now)
            Failpoint.unitClosed.reached()
            admission.health.works()
            for batch in batches { tell(batch, unit) }
            if !batches.isEmpty {
                signals.raiseDeliverable()
                signals.raise(.finishable)
            }
            return true
        } catch let error as JournalError {
            admission.health.fails(error)
        } catch {
            if untold.count(unit.appending(Completion.folderMarker)) {
                log.emit(.fileError(path: root.pushing(unit), reason: "cannot close it yet: \(error)"))
            }
        }
        return false
    }

    private func tell(_ batch: Batch, _ unit: FilePath) {
        let files = batch.counts.values.reduce(0, +)
        log.emit(.batchClosed(batch: batch.id, path: root.pushing(unit), route: batch.route, files: files))
        guard batch.endedAt != nil else { return }
        log.emit(.batchEnded(batch))
        admission.shared.signals.raise(.batch)
    }

    /// The unit's marker; nil without one, and for a marker of earlier files.
    private func marker(of unit: FilePath) async throws -> FoundFile? {
        let path = unit.appending(Completion.folderMarker)
        guard let identity = try checker.taken(at: path) else { return nil }
        let marker = FoundFile(root: root, path: path, identity: identity, volume: volume)
        return try await journal.recall([marker], tolerance: tolerance) == [.new] ? marker : nil
    }

    /// The labels in the unit's `.inlet.yaml`, overridden by its marker. An invalid file is logged and delays nothing:
    /// the unit goes without its labels. An unreadable one is waited for.
    private func labels(of unit: FilePath, marker: FilePath?) async throws -> [String: String] {
        var labels: [String: String] = [:]
        for path in [unit.appending(Completion.labelsFile), marker].compactMap(\.self) {
            guard try checker.taken(at: path) != nil else { continue }
            do {
                let found = try await SidecarFile.unitLabels(
                    RootedPath(root, path), isMarker: path == marker, by: settings.sources, on: hashing.pool)
                labels.merge(found) { $1 }
            } catch let error as ConfigErrors {
                tell(path, SidecarFile.reason(error))
            } catch let error as SystemError where error.isMissing || error.refusal != nil {
                tell(path, "\(error)")
            }
        }
        return labels
    }

    private func tell(_ path: FilePath, _ reason: String) {
        log.emit(.fileError(path: root.pushing(path), reason: "ignoring its labels: \(reason)"))
    }
}
