internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization
internal import SystemPackage

/// Watches all folders. The set may change while it runs: each folder starts and ends on its own. All are checked again
/// when something is mounted or unmounted: inotify does not report a mount over a folder.
final class RootSupervisor: Service {
    private let shared: Shared
    /// The limits of what is remembered of each root.
    private let places: Settler.Places
    private let signal = WakeSignal()
    private let mountThread = BlockingPool(name: "mounts", threads: 1)
    private let mountWaker: Waker
    /// `new` are the entries without a runner.
    private let state = Mutex<(entries: [WatchedEntry], new: [WatchedEntry])>(([], []))

    /// How long to wait for a runner that ends: one whose disk does not answer ends when the disk does.
    private static let patience = Duration.seconds(10)

    init(_ shared: Shared, _ places: Settler.Places) throws(SystemError) {
        (self.shared, self.places, mountWaker) = (shared, places, try Waker())
        let plan = WatchChanges(from: [], to: shared.settings.watch, isRouted: false)
        begin(try prepare(plan), plan)
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    await withTaskCancellationHandler {
                        await withTaskExecutorPreference(self.mountThread) { self.followMounts() }
                    } onCancel: {
                        self.mountWaker.wake()
                    }
                }
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

    private func followMounts() {
        do {
            let mounts = try MountWatch(onlyMounts: true)
            while !Task.isCancelled {
                if try mounts.wait(until: nil, waker: mountWaker) { shared.roots.mountsChanged() }
            }
        } catch {
            // Rescans and restarts find the same, only later.
            shared.log.emit(.agentError(reason: "cannot follow mounts: \(error)"))
        }
    }

    // MARK: - Changes

    /// Prepares what `plan` starts, before anything changes.
    ///
    /// - Throws: when the system has no descriptors.
    func prepare(_ plan: WatchChanges) throws(SystemError) -> [WatchedEntry] {
        let entries = state.withLock { $0.entries }
        return try plan.begins.map { (root) throws(SystemError) in
            let last = entries.first { $0.settings.path == root.path }
            return try WatchedEntry(root, shared, places, after: last?.ended)
        }
    }

    /// Ends what `plan` ends. Admitted files continue; files that were still settling are found again by the folder's
    /// next runner. - Returns: once they have ended, or after a limit.
    func end(_ plan: WatchChanges) async {
        func isLeaving(_ entry: WatchedEntry) -> Bool { plan.ends.contains(entry.settings.path) }
        let leaving = state.withLock { state in
            // Cancelled services: do not await them.
            for entry in state.new where isLeaving(entry) { entry.ended.set() }
            state.new.removeAll(where: isLeaving)
            defer { state.entries.removeAll(where: isLeaving) }
            return state.entries.filter(isLeaving)
        }
        for entry in leaving {
            shared.health.heartbeat.forget(.intake(entry.settings.path))
            entry.asked.set()
        }
        let end = ContinuousClock.now.advanced(by: Self.patience)
        let returning = Set(plan.begins.map(\.path))
        for entry in leaving {
            await entry.ended.wait(until: end)
            guard let runner = entry.runner else { continue }
            shared.roots.leave(runner.mailbox)
            if !returning.contains(entry.settings.path) { shared.roots.set(nil, entry.settings.path) }
        }
    }

    /// Starts the prepared runners, and checks the folders of unchanged patterns again where routes have changed.
    func begin(_ entries: [WatchedEntry], _ plan: WatchChanges) {
        for case let runner? in entries.map(\.runner) {
            shared.roots.set(.unknown, runner.settings.path)
            shared.roots.enter(runner.mailbox)
            shared.health.heartbeat.expect(.intake(runner.settings.path))
        }
        let renewed = state.withLock { state in
            state.entries += entries
            state.new += entries
            return state.entries.filter { plan.renews.contains($0.settings.path) }
        }
        for entry in renewed { entry.volumes?.renew() }
        signal.raise()
    }
}

/// One watched entry of `watch:`, until it is asked to end.
final class WatchedEntry: Sendable {
    let settings: WatchSettings
    /// nil for a pattern.
    let runner: RootRunner?
    /// nil for a folder with a path of its own.
    let volumes: VolumeRoots?
    /// The end of its former runner: two at once would interfere.
    private let after: StopFlag?
    let asked = StopFlag()
    let ended = StopFlag()

    init(_ settings: WatchSettings, _ shared: Shared, _ places: Settler.Places, after: StopFlag?) throws(SystemError) {
        (self.settings, self.after) = (settings, after)
        if let pattern = settings.pattern {
            (runner, volumes) = (nil, try VolumeRoots(settings, pattern, shared, places))
        } else {
            (runner, volumes) = (try RootRunner(settings, shared, places), nil)
        }
    }

    func run(_ restarts: ServiceSupervisor) async {
        defer { ended.set() }
        await withDiscardingTaskGroup { group in
            group.addTask {
                await self.after?.wait()
                if Task.isCancelled { return }
                await restarts.keep("watching \(self.settings.path.display)") {
                    await self.runner?.run()
                    await self.volumes?.run()
                }
            }
            await asked.wait()
            group.cancelAll()
        }
    }
}

/// The changes of a new configuration to the watched folders. Decides; `RootSupervisor` acts.
struct WatchChanges: Sendable {
    /// Folders and patterns that are no longer watched, or watched otherwise.
    var ends: [FilePath] = []
    /// New and changed folders and patterns.
    var begins: [WatchSettings] = []
    /// Patterns whose folders are checked again, each in its place.
    var renews: [FilePath] = []

    /// - Parameter isRouted: whether the plans of files have changed: then every folder is listed again, as at a start.
    ///   Unmatched files may match a route now, and a file may wait for something else.
    init(from old: [WatchSettings], to new: [WatchSettings], isRouted: Bool) {
        let wanted = Dictionary(new.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        let known = Set(old.map(\.path))
        for root in old {
            let next = wanted[root.path]
            if next == root, !isRouted { continue }
            if next == root, root.pattern != nil {
                renews.append(root.path)
            } else {
                ends.append(root.path)
                if let next { begins.append(next) }
            }
        }
        begins += new.filter { !known.contains($0.path) }
    }
}
