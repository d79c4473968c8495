package import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization
package import SystemPackage

/// Watches the folders of one pattern, e.g. `/media/*/DCIM`, each with a runner of its own while it exists. Sleeps
/// until a mount or unmount, or until a folder comes or goes where the pattern may match.
final class VolumeRoots: Sendable {
    /// A folder that is watched now, and since when.
    private typealias Entry = (runner: RootRunner, place: VolumeMount, since: ContinuousClock.Instant)

    let settings: WatchSettings
    private let pattern: RootPattern
    private let shared: Shared
    private let places: Settler.Places
    private let thread = BlockingPool(name: "volumes", threads: 1)
    private let waker: Waker
    /// `remarks`: the last messages about folders that are not watched, or watched in an unexpected way. `hasBegun`:
    /// whether all folders of the start are watched.
    private let state = Mutex<(entries: [FilePath: Entry], remarks: [FilePath: String], hasBegun: Bool)>(
        ([:], [:], false))

    /// Before a folder that failed to start is tried again.
    private static let retryPause = Duration.seconds(2)
    /// Within this time, udev names a new mount.
    private static let namingTime = Duration.seconds(20)
    /// Before folders without events are checked.
    private static let blindPause = Duration.seconds(30)

    init(
        _ settings: WatchSettings, _ pattern: RootPattern, _ shared: Shared, _ places: Settler.Places
    ) throws(SystemError) {
        (self.settings, self.pattern, self.shared, self.places) = (settings, pattern, shared, places)
        waker = try Waker()
    }

    /// The pattern's present folders.
    private var runners: [RootRunner] { state.withLock { $0.entries.values.map(\.runner) } }

    func run() async {
        await cancelWhenGracefulShutdown {
            await withTaskCancellationHandler {
                await withTaskExecutorPreference(self.thread) { await self.follow() }
            } onCancel: {
                self.waker.wake()
            }
        }
    }

    private func follow() async {
        await withDiscardingTaskGroup { group in
            var lastTrouble: String?
            while !Task.isCancelled {
                do {
                    var mounts = try MountWatch()
                    while !Task.isCancelled { try await pass(&mounts, &group) }
                } catch {
                    let trouble = "\(error)"
                    if trouble != lastTrouble { shared.log.emit(.watchLost(root: settings.path, reason: trouble)) }
                    lastTrouble = trouble
                    waker.rest(until: .now.advanced(by: Self.retryPause))
                }
            }
            for runner in runners { runner.mailbox.stop() }
        }
    }

    /// Starts new folders, releases folders that are gone, and waits for the next change.
    private func pass(_ mounts: inout MountWatch, _ group: inout DiscardingTaskGroup) async throws {
        var (found, watched) = (FoundRoots(pattern), Set<FilePath>())
        // Watch first, then look: a folder created in between appears in one of the two.
        repeat {
            watched = found.parents
            mounts.watch(watched)
            found = FoundRoots(pattern)
        } while found.parents != watched
        for (root, entry) in state.withLock({ $0.entries }) {
            let mailbox = entry.runner.mailbox
            if isStill(entry, at: root, found) { mailbox.put { $0.hasMountChange = true } } else { mailbox.stop() }
        }
        state.withLock {
            $0.remarks = $0.remarks.filter {
                found.roots[$0.key] != nil || found.servers.contains($0.key) || found.unanswered[$0.key] != nil
            }
        }
        for server in found.servers { remark(server, Self.isServer) }
        for (folder, error) in found.unanswered { remark(folder, "\(error)") }
        var isWhole = found.unanswered.isEmpty
        for root in found.roots.keys.sorted(by: { $0.string < $1.string }) {
            guard !Task.isCancelled, state.withLock({ $0.entries[root] }) == nil else { continue }
            if await !begin(root, &group) { isWhole = false }
        }
        state.withLock { $0.hasBegun = true }
        let pause = !isWhole || isAwaitingNames ? Self.retryPause : mounts.isBlind ? Self.blindPause : nil
        _ = try mounts.wait(until: pause.map { .now.advanced(by: $0) }, waker: waker)
    }

    /// Whether udev may be about to name a volume: it does so after the mount, and no event reports it.
    private var isAwaitingNames: Bool {
        state.withLock { state in
            state.entries.values.contains {
                $0.place.isVolume && $0.place.identity.isWeak && $0.since.duration(to: .now) < Self.namingTime
            }
        }
    }

    /// Whether the folder is on the same volume. Another card in the same reader has the same device.
    private func isStill(_ entry: Entry, at root: FilePath, _ found: FoundRoots) -> Bool {
        // If that is unknown now, its own runner checks.
        if found.isUnanswered(root) { return true }
        guard found.roots[root] == entry.place.place.device else { return false }
        guard let now = VolumeIdentity.known(at: root) else { return true }
        return !entry.place.isVolume || entry.place.isStill(now)
    }

    /// The mount at `root`; nil when it is not to be watched there.
    private func claim(_ root: FilePath) throws -> VolumeMount? {
        var place = try VolumeMount(of: root, pattern)
        guard let twin = place.twin(among: state.withLock({ $0.entries.mapValues(\.place) })) else {
            remark(root, nil)
            return place
        }
        if twin.isSame {
            remark(root, "its volume is already watched at \(twin.root.display)")
            return nil
        }
        place.distinguish()
        remark(
            root,
            "'\(place.volume.name)' at \(twin.root.display) is another volume of the same name; files of this one are"
                + " sent again when it comes back alone")
        return place
    }

    private static let isServer =
        "watch it by its own path: it is a network mount, and patterns skip those, because a server that does not answer"
        + " would delay all other folders"

    /// Logs it once; nil means there is nothing to log.
    private func remark(_ root: FilePath, _ text: String?) {
        let isNew = state.withLock { state in
            defer { state.remarks[root] = text }
            return state.remarks[root] != text
        }
        if isNew, let text { shared.log.emit(.fileError(path: root, reason: text)) }
    }

    /// - Returns: false to have it tried again.
    private func begin(_ root: FilePath, _ group: inout DiscardingTaskGroup) async -> Bool {
        do {
            guard var found = try claim(root) else { return true }
            try await shared.volumeArrived(&found, at: root, settings, isNew: state.withLock(\.hasBegun))
            let place = found
            let runner = try RootRunner(settings.at(root), shared, places, passing: place)
            // Before it reads the routes: from then on it can be renewed.
            state.withLock { $0.entries[root] = (runner, place, .now) }
            shared.roots.enter(runner.mailbox)
            group.addTask(executorPreference: globalConcurrentExecutor) {
                await runner.run()
                // Not on the thread that waits for mounts.
                let looking = BlockingPool(name: "mark", threads: 1)
                let isStillIn = await looking.run { place.isStill(at: root) }
                looking.shutdown()
                self.shared.volumeLeft(place.volume, root, isStillIn: isStillIn)
                self.state.withLock { $0.entries[root] = nil }
                self.shared.roots.leave(runner.mailbox)
                self.waker.wake()
            }
            return true
        } catch let error as SystemError where error.isMissing {
            return true
        } catch {
            shared.log.emit(.fileError(path: root, reason: "\(error)"))
            return false
        }
    }

    /// Restarts the watch of every folder, by the present routes.
    func renew() { for runner in runners { runner.mailbox.renew() } }
}

/// The existing folders of a pattern, and the folders in which more may appear.
struct FoundRoots {
    /// With the number of the device that each is on.
    var roots: [FilePath: UInt64] = [:]
    var parents: Set<FilePath> = []
    /// Network mounts that the pattern reaches. They are not checked: one that does not answer would delay all others.
    var servers: Set<FilePath> = []
    /// Unreadable paths, with reasons: they, or folders below them, may still exist.
    var unanswered: [FilePath: SystemError] = [:]

    /// Those below the folders before the first wildcard.
    private let avoided: Set<FilePath>

    /// More are not watched: such a pattern was not meant for volumes.
    private static let most = 1000

    /// - Parameter table: nil reads the present mounts.
    init(_ pattern: RootPattern, mounts table: MountTable? = nil) {
        do throws(SystemError) {
            let mounts = if let table { table } else { try MountTable.current() }
            avoided = mounts.servers(below: pattern.parent)
        } catch {
            // Without the list of mounts nothing may be touched: it could be a server that does not answer.
            avoided = []
            unanswered[pattern.parent] = error
            return
        }
        var nearest = pattern.parent
        while device(of: nearest) == nil, nearest.lastComponent != nil { nearest.removeLastComponent() }
        if nearest == pattern.parent { look(in: nearest, pattern.parts[...]) } else { parents.insert(nearest) }
    }

    private mutating func look(in folder: FilePath, _ parts: ArraySlice<RootPattern.Part>) {
        if avoided.contains(folder) {
            servers.insert(folder)
            return
        }
        guard let part = parts.first else {
            if roots.count < Self.most, let device = device(of: folder) { roots[folder] = device }
            return
        }
        parents.insert(folder)
        switch part {
        case .name(let name):
            let next = folder.appending(name)
            if avoided.contains(next) || device(of: next) != nil { look(in: next, parts.dropFirst()) }
        case .pattern:
            do throws(SystemError) {
                var names = try DirectoryStream(folder)
                while roots.count < Self.most, let entry = try names.next() {
                    guard entry.kind == .directory, part.matches(entry.name) else { continue }
                    look(in: folder.appending(entry.name), parts.dropFirst())
                }
            } catch {
                note(error, folder)
            }
        }
    }

    /// That of a folder; nil for anything else.
    private mutating func device(of path: FilePath) -> UInt64? {
        do throws(SystemError) {
            guard case .directory(let identity) = try FileLook.look(at: path) else { return nil }
            return identity.device
        } catch {
            note(error, path)
            return nil
        }
    }

    /// A folder that this user may not see does not count.
    private mutating func note(_ error: SystemError, _ path: FilePath) {
        if !error.isMissing, !error.isPermission { unanswered[path] = error }
    }

    /// Whether the folder's state is unknown for now.
    func isUnanswered(_ root: FilePath) -> Bool { unanswered.keys.contains { root.isWithin($0) } }
}

extension RootCheck {
    /// The existing folders that match a pattern, in order. Blocks.
    package static func folders(of pattern: RootPattern) -> [FilePath] {
        FoundRoots(pattern).roots.keys.sorted { $0.string < $1.string }
    }
}
