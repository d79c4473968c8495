package import InletCore
internal import InletJournal
package import InletLinux
internal import ServiceLifecycle
package import SystemPackage

/// Watches one root on a thread of its own: while the root is there an `IntakeLoop` runs, while it is not this waits.
final class RootIntake: Service {
    let settings: WatchSettings
    private let admitter: Admission
    private let journal: Journal
    private let log: EventLog
    private let heartbeat: Heartbeat
    private let thread: BlockingPool
    /// Of its own: the files of another root must not stand before this one's, without a sign of life.
    private let hashing = BlockingPool(name: "hash", threads: 1)
    let inbox: RootMailbox
    private let roots: RootRegistry
    private let places: Settler.Places
    /// For a folder that comes and goes with its volume: it is watched once, until it goes.
    private let passing: RootPlace?
    private var isPassing: Bool { passing != nil }
    private let hold: RootHold

    private static let missingPause = Duration.seconds(2)

    init(
        _ settings: WatchSettings, admitter: Admission, journal: Journal, log: EventLog, heartbeat: Heartbeat,
        stateDirectory: FilePath, roots: RootRegistry, places: Settler.Places = Settler.Places(),
        passing: RootPlace? = nil
    ) throws(SystemError) {
        self.roots = roots
        self.places = places
        self.passing = passing
        self.settings = settings
        hold = RootHold(settings, stateDirectory: stateDirectory)
        self.journal = journal
        self.log = log
        self.heartbeat = heartbeat
        thread = BlockingPool(name: "intake", threads: 1)
        let inbox = try RootMailbox(settings.path, isPassing: passing != nil)
        self.inbox = inbox
        var own = admitter
        if admitter.routes.hasDerivations {
            own.deriver = Deriver(
                root: settings.path, stateDirectory: stateDirectory, journal: journal, log: log,
                done: { inbox.putDerived($0) })
        }
        self.admitter = own
    }

    /// Ends it, wherever it is.
    func stop() { inbox.stop() }

    /// Something was mounted or unmounted, perhaps here.
    func mountsChanged() { inbox.putMountChange() }

    func run() async throws {
        // Cancelled rather than asked: a hash of a large file must not hold up the end.
        await cancelWhenGracefulShutdown {
            await withTaskCancellationHandler {
                await withDiscardingTaskGroup { tasks in
                    if let deriver = self.admitter.deriver { tasks.addTask { await deriver.run() } }
                    await withTaskExecutorPreference(self.thread) { await self.runOnThread() }
                    tasks.cancelAll()
                }
            } onCancel: {
                self.inbox.stop()
            }
        }
    }

    private func runOnThread() async {
        var lastAbsence: IntakeStatus.State?
        var lastTrouble: String?
        var lastObjection: String?
        var lastHolder: String?
        while !inbox.isStopped {
            heartbeat.beat(.intake(settings.path))
            guard RootAbsence.isThere(settings.path) else {
                if isPassing { return }
                roots.set(nil, settings.path)
                let absence = RootAbsence.state(settings.path)
                if absence != lastAbsence {
                    lastAbsence = absence
                    inbox.publish(IntakeStatus(root: settings.path, state: absence))
                    log.emit(.watchLost(root: settings.path, reason: RootAbsence.reason(settings.path)))
                }
                // Ends early only when it is woken, or for want of memory: then it is looked at once more.
                _ = try? inbox.waker.wait(until: .now.advanced(by: Self.missingPause))
                continue
            }
            lastAbsence = nil
            if await pauses(&lastObjection) { continue }
            guard case .watch(let lock, let doubt) = standsBy(&lastHolder) else { continue }
            if let doubt { log.emit(.fileTrouble(path: settings.path, reason: doubt)) }
            lastTrouble = await watchUntilLost(lastTrouble)
            withExtendedLifetime(lock) {}
            // What is there now may be another volume.
            if isPassing, lastTrouble == nil { return }
        }
    }

    /// Whether the folder is not what it was, which is said once and waited for.
    private func pauses(_ last: inout String?) async -> Bool {
        if isPassing { return false }
        let objection: String
        do {
            guard let found = try await caution.objection() else {
                last = nil
                return false
            }
            if found != last { log.emit(.watchGuard(root: settings.path, reason: found)) }
            objection = found
        } catch {
            // What cannot be known now is no reason to believe it. Said once, however many calls fail one after the other.
            objection = "\(error)"
            if last == nil { log.emit(.watchGuard(root: settings.path, reason: objection)) }
        }
        inbox.publish(IntakeStatus(root: settings.path, state: .guarded(objection)))
        last = objection
        await caution.wait(inbox.waker, atMost: Self.guardPause, untold: Self.missingPause)
        return true
    }

    /// Whether the folder may be watched; where another agent does, that is said once and waited for.
    private func standsBy(_ last: inout String?) -> RootHold.Outcome {
        let outcome = hold.take()
        guard case .standBy(let holder) = outcome else {
            last = nil
            return outcome
        }
        inbox.publish(IntakeStatus(root: settings.path, state: .standby(holder)))
        if holder != last { log.emit(.watchStandby(root: settings.path, holder: holder)) }
        last = holder
        hold.wait(inbox.waker)
        return outcome
    }

    /// Before a folder that is not what it was is looked at again, where nothing tells.
    private static let guardPause = Duration.seconds(30)

    private var caution: RootCaution { RootCaution(root: settings.path, journal: journal, roots: roots) }

    /// Of a removable volume: when that was first seen, wherever it was mounted.
    private func firstSeen() async throws(JournalError) -> WallTime {
        guard let key = passing?.volume.key else { return try await journal.firstSeen(root: settings.path, now: .now) }
        return try await journal.firstSeen(volume: key, now: .now)
    }

    /// - Parameter lastTrouble: what went wrong before; the same again is not said twice.
    /// - Returns: what went wrong now; nil when the root was watched until it went away.
    private func watchUntilLost(_ lastTrouble: String?) async -> String? {
        do {
            let kind = try FileSystemKind.of(settings.path)
            let firstSeen = try await firstSeen()
            let listing = FirstListing(
                journal: journal, volume: passing?.volume.key, tolerance: kind.modifiedTolerance)
            let adopts = try await !listing.isOver() && settings.existing == .adopt
            let openUnits = try await journal.openUnits(settings.path)
            let volume = try passing?.volume ?? Volume(name: VolumeFinder().identity(of: settings.path).name)
            var loop = try IntakeLoop(
                settings, admitter: admitter, journal: journal, log: log, heartbeat: heartbeat, hashing: hashing,
                inbox: inbox, tolerance: kind.modifiedTolerance,
                skipBefore: settings.existing == .skip ? firstSeen : nil,
                adoptBefore: adopts ? firstSeen : nil, openUnits: openUnits, places: places, volume: volume)
            // What came or went meanwhile is taken up anew, with the name of its own volume.
            if let passing, loop.place != passing.place || !passing.isStill(at: settings.path) { return nil }
            // Who is not watching waits for no room.
            defer { admitter.room.release(settings.path) }
            try await loop.run()
            if !isPassing, FolderPlace(settings.path) == loop.place {
                await caution.remember(isTold: !loop.isRootPolled)
            }
            return nil
        } catch {
            let trouble = "\(error)"
            if trouble != lastTrouble { log.emit(.watchLost(root: settings.path, reason: trouble)) }
            inbox.publish(IntakeStatus(root: settings.path, state: .failing("\(error)")))
            // Ends early only when it is woken, or for want of memory: then it is tried at once.
            _ = try? inbox.waker.wait(until: .now.advanced(by: Self.missingPause))
            return trouble
        }
    }
}

/// How a root stands, for `status`.
package struct IntakeStatus: Sendable {
    package enum State: Sendable, Equatable {
        case starting
        case missing
        case failing(String)
        case watching
        /// Not what was watched before: paused until it is, or a person says that it is right so.
        case guarded(String)
        /// Another agent has its lock, which says this of itself: we take over when that one ends.
        case standby(String)
    }

    /// How changes are found out.
    package enum Mode: String, Sendable, CaseIterable {
        case inotify, fanotify, poll
        /// Some of its folders are polled, the kernel tells of the others.
        case mixed
    }

    package var root: FilePath
    package var state: State
    /// nil before any folder of it was entered.
    package var mode: Mode?
    /// Of inotify; with fanotify a whole file system needs one or two.
    package var watches = 0
    /// When the kernel told of anything in it, or, where it is polled, a file was found complete.
    package var lastEvent: WallTime?
    package var directories = 0
    /// Those of them that are looked at again and again, because nothing tells of their changes.
    package var polled = 0
    package var settling = 0
    package var ignored = 0
    /// Files that cannot be taken, with folders that cannot be listed, and what one of them came to.
    package var stuck: (count: Int, why: String)?
    /// The files that have waited longest to be complete, and some of the units that are open.
    package var unsettled: [Unsettled] = []

    package struct Unsettled: Sendable {
        package var path: FilePath
        /// Whether a writer holds it.
        package var busy: Bool
        /// What it waits for besides that and its quiet time.
        package var why: String?
        /// The writer, where `/proc` shows it.
        package var holder: OpenWriters.Holder?
        /// How long it has waited; nil for what stands for many files.
        package var waiting: Duration?
    }
}
