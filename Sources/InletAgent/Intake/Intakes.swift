internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Everything that watches folders.
struct Intakes: Sendable {
    /// Of the folders that do not come and go.
    let fixed: [RootIntake]
    /// Of each pattern for those that do.
    let volumes: [VolumeRoots]
    let mounts: MountKeeper
    let states: RootStates

    /// - Parameter wake: wakes those who deliver and finish.
    init(
        _ roots: [WatchSettings], admitter: Admitter, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        stateDirectory: FilePath, wake: @escaping @Sendable () -> Void
    ) throws {
        let lasting = roots.filter { $0.pattern == nil }
        let states = RootStates(lasting.map(\.path))
        fixed = try lasting.map { root in
            try RootIntake(
                root, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat,
                stateDirectory: stateDirectory, states: states)
        }
        mounts = try MountKeeper(fixed, log: log)
        let arrivals = VolumeArrivals(journal: journal, states: states, log: log, wake: wake)
        volumes = try roots.compactMap { root in
            guard let pattern = root.pattern else { return nil }
            return try VolumeRoots(root, pattern, arrivals: arrivals) { root, place in
                try RootIntake(
                    root, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat,
                    stateDirectory: stateDirectory, states: states, passing: place)
            }
        }
        self.states = states
    }

    /// With those of the folders that are there now.
    var all: [RootIntake] { fixed + volumes.flatMap(\.intakes) }

    func of(_ root: FilePath) -> RootIntake? { all.first { $0.settings.path == root } }
}
