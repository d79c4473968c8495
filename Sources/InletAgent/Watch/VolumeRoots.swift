package import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization
package import SystemPackage

/// Watches the folders of one pattern, e.g. `/media/*/DCIM`: each with a runner of its own for as long as it is there. It
/// sleeps until something is mounted or unmounted, or a folder comes or goes where one of the pattern may be.
final class VolumeRoots: Sendable {
    /// A folder that is watched now, and since when.
    private typealias Entry = (runner: RootRunner, place: VolumeMount, since: ContinuousClock.Instant)

    let settings: WatchSettings
    private let pattern: RootPattern
    private let shared: Shared
    private let places: Settler.Places
    private let thread = BlockingPool(name: "volumes", threads: 1)
    private let waker: Waker
    /// `remarks`: what was said last of folders that are not watched, or not as one would think; `hasBegun`: whether all that was
    /// there at the start has been taken up.
    private let state = Mutex<(entries: [FilePath: Entry], remarks: [FilePath: String], hasBegun: Bool)>(
        ([:], [:], false))

    /// Before a folder that could not be taken up is tried again.
    private static let retryPause = Duration.seconds(2)
    /// Within this, udev names what was mounted.
    private static let namingTime = Duration.seconds(20)
    /// Before it is looked at folders that nothing tells of.
    private static let blindPause = Duration.seconds(30)

    init(
        _ settings: WatchSettings, _ pattern: RootPattern, _ shared: Shared, _ places: Settler.Places
    ) throws(SystemError) {
        (self.settings, self.pattern, self.shared, self.places) = (settings, pattern, shared, places)
        waker = try Waker()
    }

    /// Those of the folders that are there now.
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

    /// Takes up what has come, lets go of what has gone, and waits for the next change.
    private func pass(_ mounts: inout MountWatch, _ group: inout DiscardingTaskGroup) async throws {
        var (found, watched) = (FoundRoots(pattern), Set<FilePath>())
        // Watch first, then look: what comes in between shows up in one of the two.
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

    /// Whether udev may be about to name a volume: it does so after the mount, and nothing tells.
    private var isAwaitingNames: Bool {
        state.withLock { state in
            state.entries.values.contains {
                $0.place.isVolume && $0.place.identity.isWeak && $0.since.duration(to: .now) < Self.namingTime
            }
        }
    }

    /// Whether the folder is on the volume that it was on. Another card in the same reader has the same device.
    private func isStill(_ entry: Entry, at root: FilePath, _ found: FoundRoots) -> Bool {
        // What cannot be asked now is looked at by its own runner.
        if found.isUnanswered(root) { return true }
        guard found.roots[root] == entry.place.place.device else { return false }
        guard let now = VolumeIdentity.known(at: root) else { return true }
        return !entry.place.isVolume || entry.place.isStill(now)
    }

    /// What is at `root`; nil when that is not to be watched there.
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

    /// Says it once; nil = there is nothing to say.
    private func remark(_ root: FilePath, _ text: String?) {
        let isNew = state.withLock { state in
            defer { state.remarks[root] = text }
            return state.remarks[root] != text
        }
        if isNew, let text { shared.log.emit(.fileError(path: root, reason: text)) }
    }

    /// - Returns: false when it is to be tried again.
    private func begin(_ root: FilePath, _ group: inout DiscardingTaskGroup) async -> Bool {
        do {
            guard let place = try claim(root) else { return true }
            try await shared.volumeArrived(place, at: root, isNew: state.withLock(\.hasBegun))
            let runner = try RootRunner(settings.at(root), shared, places, passing: place)
            // Before it takes the routes that hold: from then on it can be renewed.
            state.withLock { $0.entries[root] = (runner, place, .now) }
            shared.roots.enter(runner.mailbox)
            group.addTask(executorPreference: globalConcurrentExecutor) {
                await runner.run()
                self.shared.volumeLeft(place.volume, root)
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

    /// Has every folder watched anew, by the routes that hold now.
    func renew() { for runner in runners { runner.mailbox.renew() } }
}

/// The folders of a pattern that are there, and those in which more may come.
struct FoundRoots {
    /// With the number of the device that each is on.
    var roots: [FilePath: UInt64] = [:]
    var parents: Set<FilePath> = []
    /// Mounts of other machines that the pattern reaches. They are not looked at: one that does not answer would hold up all
    /// others.
    var servers: Set<FilePath> = []
    /// What could not be looked at for now, and why: what is there, or below it, may still be there.
    var unanswered: [FilePath: SystemError] = [:]

    /// Those below the folders before the first wildcard.
    private let avoided: Set<FilePath>

    /// More are not taken up: such a pattern was not meant for volumes.
    private static let most = 1000

    /// - Parameter table: nil = as it is now.
    init(_ pattern: RootPattern, mounts table: MountTable? = nil) {
        do throws(SystemError) {
            let mounts = if let table { table } else { try MountTable.current() }
            avoided = mounts.servers(below: pattern.parent)
        } catch {
            // Without the list of mounts nothing may be asked: it could be a server that does not answer.
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

    /// A folder that this user may not see is none of his.
    private mutating func note(_ error: SystemError, _ path: FilePath) {
        if !error.isMissing, !error.isPermission { unanswered[path] = error }
    }

    /// Whether nothing can be said of that folder for now.
    func isUnanswered(_ root: FilePath) -> Bool { unanswered.keys.contains { root.isWithin($0) } }
}

extension RootCheck {
    /// The folders that a pattern stands for, and that are there now, in order. Blocks.
    package static func folders(of pattern: RootPattern) -> [FilePath] {
        FoundRoots(pattern).roots.keys.sorted { $0.string < $1.string }
    }
}
