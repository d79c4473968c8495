internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Which folder a path leads to, as far as numbers tell.
struct FolderIdentity: Equatable {
    let device: UInt64
    private let inode: UInt64

    var isThere: Bool { inode != 0 }

    /// Zeros for what is not there.
    init(_ path: FilePath) {
        if let identity = FileLook.folder(at: path) { self.init(identity) } else { self.init(0, 0) }
    }

    init(_ identity: FileIdentity) { self.init(identity.device, identity.inode) }

    private init(_ device: UInt64, _ inode: UInt64) { (self.device, self.inode) = (device, inode) }
}

/// What a folder of a pattern was on when it was taken up. Something may be mounted there, or unmounted, at any time.
struct VolumeMount: Sendable {
    let place: FolderIdentity
    let identity: VolumeIdentity
    /// Below the top of the file system.
    let folder: String
    /// Whether that is another file system than the one that the pattern begins on.
    let isVolume: Bool
    /// What its files are known by.
    var volume: Volume

    init(place: FolderIdentity, identity: VolumeIdentity, folder: String, isVolume: Bool) {
        (self.place, self.identity, self.folder, self.isVolume) = (place, identity, folder, isVolume)
        volume = isVolume ? Volume(identity, folder: folder) : Volume(name: identity.name)
    }

    /// Blocks.
    ///
    /// - Throws: `SystemError`, one with `isMissing` also for what has changed meanwhile.
    init(of root: FilePath, _ pattern: RootPattern) throws {
        guard case .directory(let own) = try FileLook.look(at: root),
            case .directory(let parent) = try FileLook.look(at: pattern.parent)
        else { throw Self.missing(root) }
        let (identity, folder) = try VolumeFinder().place(of: root)
        self.init(
            place: FolderIdentity(own), identity: identity, folder: folder, isVolume: parent.device != own.device)
        // Else these would be the number of one folder and the volume of another.
        guard FolderIdentity(root) == place else { throw Self.missing(root) }
    }

    private static func missing(_ root: FilePath) -> SystemError {
        SystemError(call: "stat", path: root, code: .noSuchFileOrDirectory)
    }

    /// The folder that stands in its way among those that are watched.
    ///
    /// - Returns: where `isSame`, the same file system is mounted there too, and its runner has the files; else another one there
    ///   has the same label, or the same UUID: the copy of a card, or cards of one camera. nil when there is none.
    func twin(among others: [FilePath: VolumeMount]) -> (root: FilePath, isSame: Bool)? {
        guard isVolume else { return nil }
        let alike = others.filter { $1.isVolume && $1.identity.key == identity.key && $1.folder == folder }
            .sorted { $0.key.string < $1.key.string }
        if let same = alike.first(where: { $0.value.place.device == place.device }) { return (same.key, true) }
        return alike.first.map { ($0.key, false) }
    }

    /// Has its files known by the number of its device too: those of another one must not be taken for them.
    mutating func distinguish() {
        volume.key = "\(identity.key)@\(String(place.device, radix: 16))/\(folder)"
    }

    /// Whether `root` is what it was when it was taken up, under the same name. Blocks.
    func isStill(at root: FilePath) -> Bool {
        guard FolderIdentity(root) == place else { return false }
        if !isVolume { return true }
        // Then its runner starts again, and reports what is wrong.
        guard let now = try? VolumeFinder().place(of: root) else { return false }
        return isStill(now.volume) && now.folder == folder && FolderIdentity(root) == place
    }

    /// Whether it is the volume that it was, by the name that it had: under a better one it is taken up anew, or its files would be
    /// new the next time.
    func isStill(_ now: VolumeIdentity) -> Bool { now.isSame(as: identity) != false && !identity.isOutnamed(by: now) }

    /// Earlier identities of this volume, from before its UUID was known; none for one that has a double.
    var weakerKeys: [String] {
        guard isVolume, volume.key == Volume(identity, folder: folder).key else { return [] }
        return identity.weakerKeys.map { "\($0)/\(folder)" }
    }
}

/// What is done when a removable volume comes and goes: what waits of it is found where it is now, and goes on.
extension Shared {
    /// Files looked at between two transactions.
    private static let group = 256

    /// - Parameter isNew: whether it was not there at the start: what was said of it before is said again.
    func volumeArrived(_ place: VolumeMount, at root: FilePath, isNew: Bool) async throws {
        let volume = place.volume
        guard let key = volume.key else { return roots.set(.present(volume: nil), root) }
        if isNew { try await journal.forgetLastWord(of: key) }
        // First: what is known by another name would be taken for another volume's.
        try await inherit(place.weakerKeys, key, at: root)
        try await journal.volumeArrived(key, at: root)
        let waiting = try await recognise(key, at: root)
        roots.set(.present(volume: key), root)
        try await journal.volumeIsBack(key, at: .now)
        log.emit(.volumeAdded(root: root, volume: volume.name, waiting: waiting))
        if waiting == 0 { return }
        signals.raiseDeliverable()
        signals.raise(.finishable)
    }

    /// Files that were known by the path of their root, or by a weaker name of the volume, are known by its best one from now on:
    /// those that are there, by size and time.
    private func inherit(_ weaker: [String], _ key: String, at root: FilePath) async throws {
        if weaker.isEmpty { return }
        let tolerance = try FileSystemKind.of(root).modifiedTolerance
        var last: FilePath = ""
        while true {
            let files = try await journal.inheritance(
                of: key, from: weaker, at: root, after: last, limit: Self.group)
            guard let end = files.last else { return }
            last = end.path
            var turn = FolderCache(root)
            let same = files.filter { file in
                // What cannot be looked at now is held against size and time when it can: until then it stays known.
                guard let look = try? turn.look(file.path) else { return true }
                return look.identity?.isKnown(as: file.identity, tolerance: tolerance) == true
            }
            turn.close()
            if !same.isEmpty { try await journal.inherit(same, by: key) }
        }
    }

    /// Of FAT, files have another inode after each mount: those that wait are the same by size and time.
    private func recognise(_ key: String, at root: FilePath) async throws -> Int {
        let tolerance = try FileSystemKind.of(root).modifiedTolerance
        var (last, count) = (Int64(0), 0)
        while true {
            let files = try await journal.unfinished(of: key, after: last, limit: Self.group)
            guard let end = files.last else { return count }
            last = end.id
            count += files.count
            var turn = FolderCache(root)
            let moved = files.compactMap { file -> (id: Int64, identity: FileIdentity)? in
                // What awaits its disposal is compared with what was proved when its turn comes: it may have been edited.
                guard file.state == .pending else { return nil }
                // What cannot be looked at now is compared when it is opened for its delivery.
                guard let now = turn.file(at: file.path), now != file.identity,
                    now.isKnown(as: file.identity, tolerance: tolerance)
                else { return nil }
                return (file.id, now)
            }
            turn.close()
            if !moved.isEmpty { try await journal.refresh(moved) }
        }
    }

    func volumeLeft(_ volume: Volume, _ root: FilePath) {
        roots.set(nil, root)
        if volume.key != nil { log.emit(.volumeRemoved(root: root, volume: volume.name)) }
    }
}
