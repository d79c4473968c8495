package import SystemPackage

/// Decides when to look at open units: one that was quiet for its settle time, and one that may have its marker.
///
/// The caller reports everything that happens below the root, asks for the units that are `due`, and closes or
/// postpones each. Memory grows with open units, not with their files.
package struct UnitClock: Sendable {
    /// An open unit: a folder below the root, and the route that takes its files.
    package struct Unit: Hashable, Sendable {
        package var folder: FilePath
        package var route: String

        package init(folder: FilePath, route: String) {
            self.folder = folder
            self.route = route
        }
    }

    private struct Entry: Sendable {
        var settle: Duration
        var completion: Completion
        /// When to look at the unit next; nil to wait for its marker.
        var deadline: ContinuousClock.Instant?
    }

    private var entries: [FilePath: [String: Entry]] = [:]
    /// Never after the earliest deadline; may be before it.
    private var earliest: ContinuousClock.Instant?

    package init() {}

    package var isEmpty: Bool { entries.isEmpty }
    /// When to ask for `due` next; may be too early, never too late.
    package var nextDeadline: ContinuousClock.Instant? { earliest }
    /// At most `limit` open folders, with their completion.
    package func open(_ limit: Int) -> [(folder: FilePath, completion: Completion)] {
        entries.prefix(limit).compactMap { folder, routes in routes.values.first.map { (folder, $0.completion) } }
    }

    /// A file was admitted to the unit, or the journal has it as open.
    package mutating func open(
        _ unit: Unit, settle: Duration, completion: Completion, at now: ContinuousClock.Instant
    ) {
        var entry = Entry(settle: settle, completion: completion)
        // The marker may have been there before its files.
        schedule(&entry, at: completion == .marker ? now : now.advanced(by: settle))
        entries[unit.folder, default: [:]][unit.route] = entry
    }

    /// Something happened at `path`: the quiet time of its unit starts over.
    package mutating func touch(_ path: FilePath, at now: ContinuousClock.Instant) {
        guard !entries.isEmpty else { return }
        var folder = path
        while !folder.isEmpty {
            if let routes = entries[folder] {
                for (route, entry) in routes where entry.completion == .quiet {
                    entries[folder]?[route]?.deadline = now.advanced(by: entry.settle)
                }
            }
            folder.removeLastComponent()
        }
    }

    /// The marker of `folder` was seen: look at it now.
    package mutating func markerSeen(in folder: FilePath, at now: ContinuousClock.Instant) {
        for (route, var entry) in entries[folder] ?? [:] where entry.completion == .marker {
            schedule(&entry, at: now)
            entries[folder]?[route] = entry
        }
    }

    /// Units to look at now. Close or postpone each; a postponed one with a marker otherwise waits for it.
    package mutating func due(at now: ContinuousClock.Instant) -> [Unit] {
        guard let first = earliest, first <= now else { return [] }
        var result: [Unit] = []
        earliest = nil
        for (folder, routes) in entries {
            for (route, var entry) in routes {
                if let deadline = entry.deadline, deadline <= now {
                    result.append(Unit(folder: folder, route: route))
                    entry.deadline = nil
                    entries[folder]?[route] = entry
                }
                earliest = [earliest, entry.deadline].compactMap(\.self).min()
            }
        }
        return result
    }

    /// The unit cannot be closed yet; look at it again after `wait`.
    package mutating func putOff(_ unit: Unit, for wait: Duration, at now: ContinuousClock.Instant) {
        guard var entry = entries[unit.folder]?[unit.route] else { return }
        schedule(&entry, at: now.advanced(by: wait))
        entries[unit.folder]?[unit.route] = entry
    }

    /// The routes that wait for the marker of `folder`.
    package func markedRoutes(of folder: FilePath) -> [String] {
        (entries[folder] ?? [:]).filter { $0.value.completion == .marker }.keys.sorted()
    }

    package func completion(of unit: Unit) -> Completion? { entries[unit.folder]?[unit.route]?.completion }
    package func settle(of unit: Unit) -> Duration? { entries[unit.folder]?[unit.route]?.settle }

    package mutating func close(_ unit: Unit) {
        entries[unit.folder]?[unit.route] = nil
        if entries[unit.folder]?.isEmpty == true { entries[unit.folder] = nil }
    }

    private mutating func schedule(_ entry: inout Entry, at deadline: ContinuousClock.Instant) {
        entry.deadline = deadline
        earliest = min(earliest ?? deadline, deadline)
    }
}
