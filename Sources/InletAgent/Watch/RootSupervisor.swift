internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Everything that watches folders. What is watched may change while it runs: each folder begins and ends by itself, and no
/// other is touched.
final class RootSupervisor: Service {
    private struct State {
        var entries: [WatchedEntry] = []
        /// Those of them that nobody runs yet.
        var new: [WatchedEntry] = []
    }

    private let shared: Shared
    /// How much is remembered of each root.
    private let places: Settler.Places
    private let signal = WakeSignal()
    private let state = Mutex(State())

    /// How long is waited for a runner that ends: one whose disk does not answer ends when that does.
    private static let patience = Duration.seconds(10)

    init(_ shared: Shared, _ places: Settler.Places) throws {
        (self.shared, self.places) = (shared, places)
        let entries = try shared.settings.watch.map { try make($0, shared.settings.routes, after: nil) }
        state.withLock { $0 = State(entries: entries, new: entries) }
        enter(entries)
    }

    private func enter(_ entries: [WatchedEntry]) {
        for entry in entries {
            guard let runner = entry.fixed else { continue }
            shared.roots.set(.unknown, entry.settings.path)
            shared.roots.enter(runner.mailbox)
        }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                while !Task.isCancelled {
                    let new = self.state.withLock { state in
                        defer { state.new = [] }
                        return state.new
                    }
                    for entry in new { group.addTask { await entry.run(self.shared.health.restarts) } }
                    await self.signal.wait(until: nil)
                }
            }
        }
    }

    // MARK: - Changes

    /// Makes what `plan` begins, before anything is changed; by `routes`.
    ///
    /// - Throws: `SystemError` when the system gives no descriptors.
    func prepare(_ plan: IntakePlan, _ routes: RouteTable) throws -> [WatchedEntry] {
        let entries = state.withLock(\.entries)
        return try plan.begins.map { root in
            try make(root, routes, after: entries.first { $0.settings.path == root.path }?.ended)
        }
    }

    /// Ends what `plan` ends. What they have admitted goes on; what has settled only in memory is found again by whoever
    /// watches the folder next. - Returns: once they have ended, or in a while.
    func end(_ plan: IntakePlan) async {
        let (leaving, unborn) = state.withLock { state in
            let unborn = state.new.filter { plan.ends.contains($0.settings.path) }
            let leaving = state.entries.filter { plan.ends.contains($0.settings.path) }
            state.entries.removeAll { plan.ends.contains($0.settings.path) }
            state.new.removeAll { plan.ends.contains($0.settings.path) }
            return (leaving, unborn)
        }
        // Nobody runs them any more, and nobody is to wait for that.
        for entry in unborn { entry.ended.set() }
        for entry in leaving {
            shared.health.heartbeat.forget(.intake(entry.settings.path))
            entry.asked.set()
        }
        let end = ContinuousClock.now.advanced(by: Self.patience)
        let returning = Set(plan.begins.map(\.path))
        for entry in leaving {
            // One that was never run ends nowhere.
            if entry.hasBegun { await entry.ended.wait(until: end) }
            guard let runner = entry.fixed else { continue }
            shared.roots.leave(runner.mailbox)
            if !returning.contains(entry.settings.path) { shared.roots.set(nil, entry.settings.path) }
        }
    }

    /// Begins what was prepared, and has the folders of unchanged patterns looked at anew where routes have changed.
    func begin(_ entries: [WatchedEntry], _ plan: IntakePlan) {
        enter(entries)
        for entry in entries where entry.fixed != nil { shared.health.heartbeat.expect(.intake(entry.settings.path)) }
        let renewed = state.withLock { state in
            state.entries += entries
            state.new += entries
            return state.entries.filter { plan.renews.contains($0.settings.path) }
        }
        for entry in renewed { entry.volumes?.renew() }
        signal.raise()
    }

    private func make(_ root: WatchSettings, _ routes: RouteTable, after: StopFlag?) throws -> WatchedEntry {
        guard let pattern = root.pattern else {
            return WatchedEntry(root, try RootRunner(root, Admission(shared, by: routes), places), after: after)
        }
        let volumes = try VolumeRoots(root, pattern, shared) { [shared, places] root, place in
            try RootRunner(root, Admission(shared), places, passing: place)
        }
        return WatchedEntry(root, volumes, after: after)
    }
}

/// One entry of `watch:` that is watched, until it is asked to end.
final class WatchedEntry: Sendable {
    let settings: WatchSettings
    /// A `RootRunner`, or the `VolumeRoots` of a pattern.
    private let service: any Service
    /// The end of who watched it before: two at once would only be in each other's way.
    private let after: StopFlag?
    let asked = StopFlag()
    let ended = StopFlag()
    private let begun = StopFlag()

    init(_ settings: WatchSettings, _ service: any Service, after: StopFlag?) {
        (self.settings, self.service, self.after) = (settings, service, after)
    }

    var fixed: RootRunner? { service as? RootRunner }
    var volumes: VolumeRoots? { service as? VolumeRoots }
    var hasBegun: Bool { begun.isSet }

    func run(_ restarts: ServiceRestarts) async {
        begun.set()
        defer { ended.set() }
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.after?.wait()
                if Task.isCancelled { return }
                await restarts.keep("watching \(self.settings.path.display)") { try await self.service.run() }
            }
            await asked.wait()
            group.cancelAll()
        }
    }
}

/// What a new configuration changes about the folders that are watched. Decides; `RootSupervisor` does it.
struct IntakePlan: Sendable {
    /// Folders and patterns that are watched no more, or no more as they were.
    var ends: [FilePath] = []
    /// Those that are watched from now on, or in another way.
    var begins: [WatchSettings] = []
    /// Patterns whose folders are looked at anew, each in its place.
    var renews: [FilePath] = []

    /// - Parameter isRouted: whether what becomes of files has changed: then every folder is listed anew, as at a start. Files
    ///   that no route took may have one now, and what a file waited for may be another thing.
    init(from old: [WatchSettings], to new: [WatchSettings], isRouted: Bool) {
        let wanted = Dictionary(new.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        let known = Dictionary(old.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        for root in old {
            guard let next = wanted[root.path] else {
                ends.append(root.path)
                continue
            }
            if next == root, !isRouted { continue }
            if next == root, root.pattern != nil {
                renews.append(root.path)
            } else {
                ends.append(root.path)
                begins.append(next)
            }
        }
        begins += new.filter { known[$0.path] == nil }
    }

    var isEmpty: Bool { ends.isEmpty && begins.isEmpty && renews.isEmpty }
}

/// Has every watched folder looked at anew when something is mounted or unmounted: inotify says nothing of what is mounted
/// over a folder. Sleeps until then.
struct MountWatcher: Service {
    private let shared: Shared
    private let thread = BlockingPool(name: "mounts", threads: 1)
    private let waker: Waker

    init(_ shared: Shared) throws(SystemError) { (self.shared, waker) = (shared, try Waker()) }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withTaskCancellationHandler {
                await withTaskExecutorPreference(self.thread) { self.follow() }
            } onCancel: {
                self.waker.wake()
            }
        }
        // A service that ends by itself would end the agent.
        try? await gracefulShutdown()
    }

    private func follow() {
        do {
            let mounts = try MountWatch(onlyMounts: true)
            while !Task.isCancelled {
                guard try mounts.wait(until: nil, waker: waker) else { continue }
                shared.roots.mountsChanged()
            }
        } catch {
            // Rescans and restarts find the same, only later.
            shared.log.emit(.agentError(reason: "mounts are not followed: \(error)"))
        }
    }
}
