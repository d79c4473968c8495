internal import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

/// Removable volumes: whether one is still there, and whether it can be taken out.
extension IntakeLoop {
    /// Whether the folder of a pattern is another one by now: what was seen in it must not be taken for files of the volume that
    /// it was on. Then it is lost. Asked after files were looked at, and before the journal takes them.
    mutating func losesPassing() -> Bool {
        guard settings.pattern != nil else { return false }
        if !isLost, FolderPlace(settings.path) != place { loseRoot() }
        return isLost
    }

    /// Says it once everything on the volume has been seen and has ended: proved by as many destinations as were asked for, or
    /// not.
    mutating func tellVolume() async {
        await endFirstListing()
        guard let volume = admission.volume, let key = volume.key, canTellVolume, volumeQuestion.isDue(at: .now) else {
            return
        }
        do {
            let standing = try await admission.journal.standing(of: key, proofs: settings.volumeDoneAfter)
            volumeQuestion.asked(isAnswered: true, at: .now)
            if let standing { tell(volume, standing) }
        } catch {
            volumeQuestion.asked(isAnswered: false, at: .now)
        }
    }

    private mutating func endFirstListing() async {
        guard admission.adopter != nil, canCloseUnits, settler.count == 0 else { return }
        let first = FirstListing(
            journal: admission.journal, volume: admission.volume?.key, tolerance: admission.tolerance)
        guard first.counts, (try? await first.end()) != nil else { return }
        admission.adopter = nil
    }

    /// Whether all that is on the volume has been seen, and none of it is just being taken in.
    var canTellVolume: Bool {
        admission.volume?.key != nil && canCloseUnits && settler.count == 0 && units.isEmpty
    }

    private mutating func tell(_ volume: Volume, _ standing: VolumeStanding) {
        // What was taken off the volume meanwhile is no reason to keep it in; what cannot be looked at is.
        let root = settings.path
        func isThere(_ path: FilePath) -> Bool { (try? FileLook.look(at: RootedPath(root, path))) != .missing }
        let end = VolumeEnd(
            root: root, volume: volume.name, standing, unproved: standing.unproved.count(where: isThere),
            unmarked: admission.awaited.count(where: isThere), unread: unread + admission.unread,
            ignored: admission.ignored)
        // What no route takes is told with what is to be told, but is no news by itself.
        var news = end
        news.ignored = 0
        guard news != saidOfVolume else { return }
        guard (try? isDrained) == true else { return volumeQuestion.reopen() }
        saidOfVolume = news
        log.emit(.volumeDone(end))
    }
}

/// What became of the files of a removable volume.
package struct VolumeEnd: Sendable, Equatable {
    package var root: FilePath
    /// Its label, or UUID.
    package var volume: String
    /// Files that have been proved, and their sizes together.
    package var files: Int
    package var bytes: Int64
    /// Files that are on it and ended otherwise.
    package var unproved: Int
    /// Files that wait for their marker.
    package var unmarked: Int
    /// Files and folders that could not be looked at: what they hold is not known.
    package var unread: Int
    /// Files that no route takes, and what is never read.
    package var ignored: Int

    init(
        root: FilePath, volume: String, _ standing: VolumeStanding, unproved: Int, unmarked: Int = 0, unread: Int = 0,
        ignored: Int
    ) {
        self.root = root
        self.volume = volume
        files = standing.proved
        bytes = standing.bytes
        self.unproved = unproved
        self.unmarked = unmarked
        self.unread = unread
        self.ignored = ignored
    }

    package var isSafe: Bool { unproved == 0 && unmarked == 0 && unread == 0 }
}
