internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Removable volumes: whether one is still there, and whether it can be taken out.
extension IntakeLoop {
    /// Whether the folder of a pattern is another one by now: what was seen in it must not be taken for files of the volume that
    /// it was on. Then it is lost. Asked after files were looked at, and before the journal takes them.
    mutating func losesPassing() -> Bool {
        guard settings.pattern != nil else { return false }
        if !isLost, FolderPlace(settings.path) != place { loseRoot() }
        return isLost
    }

    /// Says it once everything on the volume has been seen and has ended: delivered to as many destinations as were asked for,
    /// or not; and once those that had files of it before were asked for them.
    mutating func tellVolume() async {
        await endFirstListing()
        guard let volume = admission.volume, let key = volume.key, canTellVolume else { return }
        do {
            guard try await asksForEarlier(key), volumeQuestion.isDue(at: .now) else { return }
            let mayLeave = try await admission.journal.mayLeave(key, proofs: settings.volumeDoneAfter)
            volumeQuestion.asked(isAnswered: true, at: .now)
            if mayLeave { tell(try await volumeEnd(volume, key)) }
        } catch {
            // The journal cannot be read now; who admits says so.
            volumeQuestion.asked(isAnswered: false, at: .now)
            earlier.putOff()
        }
    }

    /// When that is to be gone on with; nil = when something happens.
    var volumeDeadline: ContinuousClock.Instant? {
        canTellVolume ? (earlier.isOver ? volumeQuestion.deadline : earlier.due) : nil
    }

    /// - Returns: whether nobody is left to be asked.
    private mutating func asksForEarlier(_ key: String) async throws(JournalError) -> Bool {
        if earlier.isOver { return true }
        guard earlier.due <= .now else { return false }
        heartbeat.beat(.intake(settings.path))
        let silence = try await earlier.ask(
            of: key, at: settings.path, admission.tolerance, proofs: settings.volumeDoneAfter, admission.journal)
        if let silence { log.emit(.fileTrouble(path: settings.path, reason: silence)) }
        return earlier.isOver
    }

    private mutating func endFirstListing() async {
        guard admission.adopter != nil, canCloseUnits, settler.count == 0 else { return }
        let first = FirstListing(
            journal: admission.journal, volume: admission.volume?.key, tolerance: admission.tolerance)
        // A journal that does not take it now is asked again with the next look.
        guard first.counts, (try? await first.end()) != nil else { return }
        admission.adopter = nil
    }

    /// Whether all that is on the volume has been seen, and none of it is just being taken in.
    var canTellVolume: Bool {
        admission.volume?.key != nil && canCloseUnits && settler.count == 0 && units.isEmpty
    }

    /// Each file that the journal knows is looked at: it knows those too that were there before the volume was formatted.
    private mutating func volumeEnd(_ volume: Volume, _ key: String) async throws(JournalError) -> VolumeEnd {
        let root = settings.path
        var end = VolumeEnd(root: root, volume: volume)
        (end.destinations, end.ignored) = (settings.volumeDoneAfter, admission.ignored)
        (end.wasAsked, end.unasked) = (earlier.askedFiles > 0, earlier.unanswerable)
        end.unread = unread + admission.inspector.unread
        var last = FilePath()
        while true {
            heartbeat.beat(.intake(root))
            let files = try await admission.journal.files(
                of: key, proofs: settings.volumeDoneAfter, after: last, limit: 256)
            guard let next = files.last else { break }
            last = next.path
            var turn = FolderTurn(root)
            for file in files { end.add(file, Result { try turn.look(file.path) }, earlier, admission.tolerance) }
            turn.close()
        }
        // What cannot be looked at is no reason to let it go; what was taken off meanwhile is none to keep it in.
        end.unmarked = admission.awaited.count { (try? FileLook.look(at: RootedPath(root, $0))) != .missing }
        return end
    }

    private mutating func tell(_ end: VolumeEnd) {
        // What else is on it is told with what is to be told, but is no news by itself.
        var news = end
        news.ignored = 0
        guard news != saidOfVolume else { return }
        // Silence is right: what cannot be known to be drained is asked again.
        guard (try? isDrained) == true else { return volumeQuestion.reopen() }
        saidOfVolume = news
        var end = end
        end.countOthers(WholeVolume.count(around: settings.path))
        log.emit(.volumeDone(end))
    }
}
