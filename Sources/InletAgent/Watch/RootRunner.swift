internal import InletCore
internal import InletJournal
internal import InletLinux
internal import ServiceLifecycle
internal import SystemPackage

/// Watches one root on a thread of its own: while the root is there a `RootLoop` runs, while it is not this waits.
final class RootRunner: Service {
    let settings: WatchSettings
    let mailbox: RootMailbox
    private let shared: Shared
    /// With what is made of this root's files.
    private let admitter: Admission
    private let places: Settler.Places
    private let thread = BlockingPool(name: "intake", threads: 1)
    /// Of its own: the files of another root must not stand before this one's, without a sign of life.
    private let hashing = BlockingPool(name: "hash", threads: 1)
    /// For a folder that comes and goes with its volume: it is watched once, until it goes.
    private let passing: VolumePlace?
    private let hold: RootHold

    private var log: EventLog { shared.log }
    private var journal: Journal { shared.journal }
    private var isPassing: Bool { passing != nil }

    /// Before what is not there, or cannot be watched, is looked at again.
    private static let missingPause = Duration.seconds(2)
    /// Before a folder that is not what it was is looked at again, where nothing tells.
    private static let guardPause = Duration.seconds(30)

    init(
        _ settings: WatchSettings, _ admitter: Admission, _ places: Settler.Places, passing: VolumePlace? = nil
    ) throws(SystemError) {
        (self.settings, self.places, self.passing, shared) = (settings, places, passing, admitter.shared)
        hold = RootHold(settings, stateDirectory: shared.settings.settings.stateDirectory)
        mailbox = try RootMailbox(settings.path, isPassing: passing != nil)
        var admitter = admitter
        if admitter.routes.hasDerivations { admitter.deriver = Deriver(mailbox, shared) }
        self.admitter = admitter
    }

    /// Ends it, wherever it is.
    func stop() { mailbox.stop() }

    /// Something was mounted or unmounted, perhaps here.
    func mountsChanged() { mailbox.put { $0.hasMountChange = true } }

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
                self.mailbox.stop()
            }
        }
    }

    /// What was said last of a root that is not watched: the same is not said again.
    private struct Said {
        var absence: IntakeStatus.State?
        /// It is not what it was.
        var objection: String?
        /// Who watches it.
        var holder: String?
        /// What ended its loop.
        var trouble: String?
    }

    private func runOnThread() async {
        var said = Said()
        while !mailbox.isStopped {
            shared.health.heartbeat.beat(.intake(settings.path))
            guard RootAbsence.isThere(settings.path) else {
                if isPassing { return }
                shared.roots.set(nil, settings.path)
                let absence = RootAbsence.state(settings.path)
                if absence != said.absence {
                    said.absence = absence
                    mailbox.publish(IntakeStatus(root: settings.path, state: absence))
                    log.emit(.watchLost(root: settings.path, reason: RootAbsence.reason(settings.path)))
                }
                // Ends early only when it is woken, or for want of memory: then it is looked at once more.
                _ = try? mailbox.waker.wait(until: .now.advanced(by: Self.missingPause))
                continue
            }
            said.absence = nil
            if await pauses(&said.objection) { continue }
            guard case .watch(let lock, let doubt) = standsBy(&said.holder) else { continue }
            if let doubt { log.emit(.fileTrouble(path: settings.path, reason: doubt)) }
            said.trouble = await watchUntilLost(said.trouble)
            withExtendedLifetime(lock) {}
            // What is there now may be another volume.
            if isPassing, said.trouble == nil { return }
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
        mailbox.publish(IntakeStatus(root: settings.path, state: .guarded(objection)))
        last = objection
        await caution.wait(mailbox.waker, atMost: Self.guardPause, untold: Self.missingPause)
        return true
    }

    /// Whether the folder may be watched; where another agent does, that is said once and waited for.
    private func standsBy(_ last: inout String?) -> RootHold.Outcome {
        let outcome = hold.take()
        guard case .standBy(let holder) = outcome else {
            last = nil
            return outcome
        }
        mailbox.publish(IntakeStatus(root: settings.path, state: .standby(holder)))
        if holder != last { log.emit(.watchStandby(root: settings.path, holder: holder)) }
        last = holder
        hold.wait(mailbox.waker)
        return outcome
    }

    private var caution: RootCaution { RootCaution(root: settings.path, journal: journal, roots: shared.roots) }

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
            let admission = AdmissionStage(
                settings, admitter, hashing: hashing, tolerance: kind.modifiedTolerance, volume: volume,
                firstSeen: firstSeen, adopts: adopts)
            var loop = try RootLoop(admission, mailbox, openUnits: openUnits, places: places)
            // What came or went meanwhile is taken up anew, with the name of its own volume.
            if let passing, loop.place != passing.place || !passing.isStill(at: settings.path) { return nil }
            // Who is not watching waits for no room.
            defer { shared.room.release(settings.path) }
            try await loop.run()
            if !isPassing, FolderPlace(settings.path) == loop.place {
                await caution.remember(isTold: !loop.watch.isRootPolled)
            }
            return nil
        } catch {
            let trouble = "\(error)"
            if trouble != lastTrouble { log.emit(.watchLost(root: settings.path, reason: trouble)) }
            mailbox.publish(IntakeStatus(root: settings.path, state: .failing("\(error)")))
            // Ends early only when it is woken, or for want of memory: then it is tried at once.
            _ = try? mailbox.waker.wait(until: .now.advanced(by: Self.missingPause))
            return trouble
        }
    }
}

/// Until when `existing: adopt` asks how old the files of a removable volume are.
///
/// FAT and exFAT keep no time of change: what was copied to such a volume while it was elsewhere looks as old as it was there,
/// although it came after the volume was first watched. All that was there then is in the journal once it has been listed.
struct FirstListing: Sendable {
    let journal: Journal
    /// `Volume.key`.
    let volume: String?
    /// Of its times, in nanoseconds.
    let tolerance: Int64

    /// Whether age is asked about until then only.
    var counts: Bool { volume != nil && tolerance > 0 }

    func isOver() async throws(JournalError) -> Bool {
        guard counts, let volume else { return false }
        return try await journal.wasListed(volume)
    }

    /// All that was there is in the journal, or was left out for good.
    func end() async throws(JournalError) {
        guard counts, let volume else { return }
        try await journal.setListed(volume, at: .now)
    }
}
