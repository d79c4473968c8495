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
        guard let volume = admission.volume, let key = volume.key, canCloseUnits, settler.count == 0, units.isEmpty,
            let standing = try? await admission.journal.standing(of: key, proofs: settings.volumeDoneAfter)
        else { return }
        // What was taken off the volume meanwhile is no reason to keep it in; what cannot be looked at is.
        let unproved = standing.unproved.count { (try? FileLook.look(at: settings.path.pushing($0))) != .missing }
        let end = VolumeEnd(
            root: settings.path, volume: volume.name, standing, unproved: unproved, unread: unread + admission.unread,
            ignored: admission.ignored)
        // What no route takes is told with what is to be told, but is no news by itself.
        var news = end
        news.ignored = 0
        guard news != saidOfVolume, (try? isDrained) == true else { return }
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
    /// Files and folders that could not be looked at: what they hold is not known.
    package var unread: Int
    /// Files that no route takes, and what is never read.
    package var ignored: Int

    init(
        root: FilePath, volume: String, _ standing: VolumeStanding, unproved: Int, unread: Int = 0, ignored: Int
    ) {
        self.root = root
        self.volume = volume
        files = standing.proved
        bytes = standing.bytes
        self.unproved = unproved
        self.unread = unread
        self.ignored = ignored
    }

    package var isSafe: Bool { unproved == 0 && unread == 0 }
}
