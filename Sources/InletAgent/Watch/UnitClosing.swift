internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Folders that are delivered as one.
extension RootLoop {
    /// Before a unit that cannot be closed yet is looked at again.
    private static let shortestPause = Duration.milliseconds(100)
    /// Before one that could not be closed is.
    private static let retryPause = Duration.seconds(1)
    /// Open units that the status shows.
    private static let shown = 5

    mutating func join(_ joined: AdmissionRound.Joined) {
        watch.unitGrew(joined.unit)
        units.open(joined.unit, settle: joined.settle, completion: joined.completion, at: .now)
    }

    /// Closes the units that are quiet, or have their marker, once none of their files is settling any more.
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
            // One marker speaks for the files of all routes that wait for it.
            let routes = completion == .marker ? units.markedRoutes(of: unit.folder) : [unit.route]
            switch await admission.close(unit.folder, routes, completion) {
            case .closed: for route in routes { units.close(UnitClock.Unit(folder: unit.folder, route: route)) }
            case .unmarked: break
            case .later: units.putOff(unit, for: max(pause, Self.retryPause), at: .now)
            }
        }
    }

    /// Whether a marker that is there was there already when the events were read last: those of the files that were written
    /// before it have come by then. One that is found only now is looked at again once they have.
    private mutating func mayClose(marked unit: UnitClock.Unit) -> Bool {
        do throws(SystemError) {
            guard try admission.hasMarker(unit.folder) else {
                markersFound.remove(unit.folder)
                return false
            }
        } catch {
            // The unit waits, and its folder is said to be unread by the listing.
            units.putOff(unit, for: Self.retryPause, at: .now)
            return false
        }
        if markersFound.remove(unit.folder) != nil { return true }
        markersFound.insert(unit.folder)
        units.putOff(unit, for: .zero, at: .now)
        return false
    }

    /// Open units, for the status.
    var openUnits: [IntakeStatus.Unsettled] {
        units.open(Self.shown).map { folder, completion in
            let why =
                switch completion {
                case .quiet: "its files are sent when the folder is quiet"
                case .marker: "waiting for its marker \(folder.appending(Completion.folderMarker).display)"
                }
            return IntakeStatus.Unsettled(path: settings.path.pushing(folder), busy: false, why: why)
        }
    }
}
