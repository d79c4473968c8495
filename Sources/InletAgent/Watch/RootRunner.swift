internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import SystemPackage

/// Watches one root on a thread of its own: a `RootLoop` runs while the root exists; otherwise this waits for it.
final class RootRunner: Sendable {
    let settings: WatchSettings
    let mailbox: RootMailbox
    let shared: Shared
    private let places: Settler.Places
    private let thread = BlockingPool(name: "intake", threads: 1)
    /// Its own: another root's files must not delay this one's without a sign of life.
    private let hashing = BlockingPool(name: "hash", threads: 1)
    /// For a folder that comes and goes with its volume: it is watched once, until it goes.
    private let passing: VolumeMount?
    private let hold: RootOwnership

    private var log: EventLog { shared.log }
    private var journal: Journal { shared.journal }
    private var isPassing: Bool { passing != nil }

    /// Before a missing or unwatchable root is checked again.
    private static let missingPause = Duration.seconds(2)
    /// Before a changed folder is checked again, where no event reports it.
    private static let guardPause = Duration.seconds(30)

    init(
        _ settings: WatchSettings, _ shared: Shared, _ places: Settler.Places, passing: VolumeMount? = nil
    ) throws(SystemError) {
        (self.settings, self.shared, self.places, self.passing) = (settings, shared, places, passing)
        hold = RootOwnership(settings, stateDirectory: shared.settings.settings.stateDirectory)
        mailbox = try RootMailbox(settings.path, isPassing: passing != nil, changed: shared.arrivals.signal)
    }

    /// Until its task is cancelled or its mailbox stopped; a root that comes and goes also ends with its volume.
    func run() async {
        // Cancelled rather than asked: the hash of a large file must not delay the end.
        await cancelWhenGracefulShutdown {
            await withTaskCancellationHandler {
                repeat { await self.watch() } while self.mailbox.beginsAnew()
            } onCancel: {
                self.mailbox.stop()
            }
        }
    }

    /// By the present routes.
    private func watch() async {
        var admission = Admission(shared, isOfPlace: settings.place != nil)
        if admission.routes.hasDerivations { admission.deriver = Deriver(mailbox, shared) }
        await withDiscardingTaskGroup { [admission] tasks in
            if let deriver = admission.deriver { tasks.addTask { await deriver.run() } }
            await withTaskExecutorPreference(self.thread) { await self.runOnThread(admission) }
            tasks.cancelAll()
        }
    }

    private func runOnThread(_ admission: Admission) async {
        // The last report about a root that is not watched; the same is not logged again.
        var (absence, objection): (RootStatus.State?, String?)
        var (holder, trouble): (String?, String?)
        while !mailbox.isStopped {
            shared.health.heartbeat.beat(.intake(settings.path))
            guard RootCheck.isThere(settings.path) else {
                if isPassing { return }
                shared.roots.set(nil, settings.path)
                let state = RootCheck.state(settings.path)
                if state != absence {
                    absence = state
                    mailbox.publish(RootStatus(root: settings.path, state: state))
                    log.emit(.watchLost(root: settings.path, reason: RootCheck.reason(settings.path)))
                }
                mailbox.waker.rest(until: .now.advanced(by: Self.missingPause))
                continue
            }
            absence = nil
            if await pauses(&objection) { continue }
            guard case .watch(let lock, let doubt) = standsBy(&holder) else { continue }
            if let doubt { log.emit(.fileError(path: settings.path, reason: doubt)) }
            trouble = await watchUntilLost(admission, trouble)
            withExtendedLifetime(lock) {}
            // The path may lead to another volume now.
            if isPassing, trouble == nil { return }
        }
    }

    /// Whether the folder differs from the one before; logged once, and waited for.
    private func pauses(_ last: inout String?) async -> Bool {
        if isPassing { return false }
        let why: String
        do {
            guard let found = try await objection() else {
                last = nil
                return false
            }
            if found != last { log.emit(.watchPaused(root: settings.path, reason: found)) }
            why = found
        } catch {
            // A failed check proves nothing. Logged once for any number of failures in a row.
            why = "\(error)"
            if last == nil { log.emit(.watchPaused(root: settings.path, reason: why)) }
        }
        mailbox.publish(RootStatus(root: settings.path, state: .guarded(why)))
        last = why
        await wait(atMost: Self.guardPause, untold: Self.missingPause)
        return true
    }

    /// Whether the folder may be watched. If another agent watches it, logs that once and waits.
    private func standsBy(_ last: inout String?) -> RootOwnership.Outcome {
        if let outcome = shared.fleet.places.ownership(of: settings) { return waits(outcome) }
        let outcome = hold.take()
        guard case .standBy(let holder) = outcome else {
            last = nil
            return outcome
        }
        mailbox.publish(RootStatus(root: settings.path, state: .standby(holder)))
        if holder != last { log.emit(.watchStandby(root: settings.path, holder: holder)) }
        last = holder
        hold.wait(mailbox.waker)
        return outcome
    }

    /// Shows why a share is not listed here, and waits until that may change. The events of the fleet log it.
    private func waits(_ outcome: RootOwnership.Outcome) -> RootOwnership.Outcome {
        let state: RootStatus.State
        switch outcome {
        case .watch: return outcome
        case .standBy(let holder): state = .standby(holder)
        case .guarded(let why), .waits(let why): state = .guarded(why)
        }
        mailbox.publish(RootStatus(root: settings.path, state: state))
        mailbox.waker.rest(until: .now.advanced(by: Self.guardPause))
        return outcome
    }

    /// When the removable volume was first seen, wherever it was mounted. Its key is not a path: paths are absolute.
    private func firstSeen() async throws(JournalError) -> WallTime {
        try await journal.firstSeen(root: passing?.volume.key.map { FilePath($0) } ?? settings.path, now: .now)
    }

    /// - Parameter lastTrouble: the last fault; the same one is not logged again.
    /// - Returns: the fault; nil when the root was watched until it went away.
    private func watchUntilLost(_ admission: Admission, _ lastTrouble: String?) async -> String? {
        do {
            let tolerance = try FileSystemKind.of(settings.path).modifiedTolerance
            let firstSeen = try await firstSeen()
            let volume = try passing?.volume ?? Volume(name: VolumeFinder().identity(of: settings.path).name)
            var adopts = settings.existing == .adopt
            if let key = volume.firstListing(tolerance), try await journal.wasListed(key) { adopts = false }
            let openUnits = try await journal.openUnits(settings.path)
            let stage = AdmissionStage(
                settings, admission, hashing: hashing, tolerance: tolerance, volume: volume, firstSeen: firstSeen,
                adopts: adopts)
            var loop = try RootLoop(stage, mailbox, openUnits: openUnits, places: places)
            // A volume that came or went meanwhile starts anew, under its own name.
            if let passing, loop.place != passing.place || !passing.isStill(at: settings.path) { return nil }
            // A loop that has ended no longer waits for room in the queue.
            defer { shared.room.release(settings.path) }
            try await loop.run()
            if !isPassing, FolderIdentity(settings.path) == loop.place {
                await remember(isTold: !loop.watch.isRootPolled)
            }
            return nil
        } catch {
            let trouble = "\(error)"
            if trouble != lastTrouble { log.emit(.watchLost(root: settings.path, reason: trouble)) }
            mailbox.publish(RootStatus(root: settings.path, state: .failing("\(error)")))
            mailbox.waker.rest(until: .now.advanced(by: Self.missingPause))
            return trouble
        }
    }
}

extension Volume {
    /// The name of its first listing: until that ends, `existing: adopt` checks the age of files. nil where age always
    /// counts.
    ///
    /// FAT and exFAT have no change time: a file that was copied to such a volume elsewhere looks old, although it came
    /// after the volume was first watched. After the first listing the journal knows the existing files.
    ///
    /// - Parameter tolerance: of its times, in nanoseconds.
    func firstListing(_ tolerance: Int64) -> String? { tolerance > 0 ? key : nil }
}
