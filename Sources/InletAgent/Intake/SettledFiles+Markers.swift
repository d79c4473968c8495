internal import InletConfig
internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Markers, which are no files to deliver, and the units that they and quiet times close.
extension SettledFiles {
    /// The unit that the file at `path` says is complete.
    func unitMarked(by path: FilePath) -> FilePath? { admitter.routes.unitMarked(by: path) }

    /// The file whose marker is at `path`.
    func fileMarked(by path: FilePath) -> FilePath? {
        admitter.routes.belongings(of: path).first { $0.companion.kind == .marker }?.main
    }

    /// How an open unit of the journal is closed, by the route of that name as it is now.
    func rule(_ batch: Batch) -> AdmissionRound.Joined? {
        guard let folder = batch.unit else { return nil }
        let route = admitter.routes.named(batch.route)
        return AdmissionRound.Joined(
            unit: UnitClock.Unit(folder: folder, route: batch.route), settle: route?.settle ?? finder.settle,
            completion: route?.unit == .folder ? route?.completion ?? .quiet : .quiet)
    }

    func hasMarker(_ unit: FilePath) -> Bool { look(unit.appending(Completion.folderMarker)) != nil }

    enum UnitEnd: Sendable {
        case closed
        /// It needs a marker, and there is none, or only one of files that went before.
        case unmarked
        /// To be looked at again.
        case later
    }

    /// Closes the unit, if its marker is there where it needs one.
    func close(_ unit: FilePath, _ routes: [String], _ completion: Completion) async -> UnitEnd {
        guard completion == .marker else {
            let labels = await labels(of: unit, marker: nil)
            return await admitter.close(unit, routes, root: root, marker: nil, labels: labels) ? .closed : .later
        }
        let path = unit.appending(Completion.folderMarker)
        guard let identity = belonging(path) else { return .unmarked }
        let marker = Arrival(root: root, path: path, identity: identity, volume: volume)
        do {
            guard try await journal.recall([marker], tolerance: tolerance) == [.new] else { return .unmarked }
        } catch {
            admitter.health.fails(error)
            return .later
        }
        if WriterProbe.probe(RootedPath(root, path)) == .busy { return .later }
        let labels = await labels(of: unit, marker: path)
        return await admitter.close(unit, routes, root: root, marker: marker, labels: labels) ? .closed : .later
    }

    /// What the unit's `.inlet.yaml` says of its files, and over it its marker. What cannot be understood is said, and holds
    /// nothing up: the files go without it.
    private func labels(of unit: FilePath, marker: FilePath?) async -> [String: String] {
        var labels: [String: String] = [:]
        for path in [unit.appending(Completion.labelsFile), marker].compactMap(\.self) {
            guard belonging(path) != nil else { continue }
            do {
                let found = try await SidecarFile.unitLabels(
                    RootedPath(root, path), isMarker: path == marker, by: rule, on: hashing.pool)
                labels.merge(found) { $1 }
            } catch let error as ConfigErrors {
                tell(path, SidecarFile.reason(error))
            } catch {
                tell(path, "\(error)")
            }
        }
        return labels
    }

    private func tell(_ path: FilePath, _ reason: String) {
        log.emit(.fileTrouble(path: root.pushing(path), reason: "its labels are left out: \(reason)"))
    }
}
