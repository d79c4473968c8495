internal import InletCore
internal import InletJournal
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// The folder at the end of a path, by its numbers.
struct FolderIdentity: Equatable {
    let device: UInt64
    private let inode: UInt64

    var isThere: Bool { inode != 0 }

    /// Zeros for a missing folder.
    init(_ path: FilePath) {
        if let identity = FileLook.folder(at: path) { self.init(identity) } else { self.init(0, 0) }
    }

    init(_ identity: FileIdentity) { self.init(identity.device, identity.inode) }

    private init(_ device: UInt64, _ inode: UInt64) { (self.device, self.inode) = (device, inode) }
}

/// The mount of a pattern's folder when its watch began. Something may be mounted there, or unmounted, at any time.
struct VolumeMount: Sendable {
    let place: FolderIdentity
    let identity: VolumeIdentity
    /// Below the top of the file system.
    let folder: String
    /// Whether that is another file system than the one at the pattern's beginning.
    let isVolume: Bool
    /// The identity of its files' volume.
    var volume: Volume

    init(place: FolderIdentity, identity: VolumeIdentity, folder: String, isVolume: Bool) {
        (self.place, self.identity, self.folder, self.isVolume) = (place, identity, folder, isVolume)
        volume = isVolume ? Volume(identity, folder: folder) : Volume(name: identity.name)
    }

    /// Blocks.
    ///
    /// - Throws: `SystemError`; with `isMissing` also when it changed meanwhile.
    init(of root: FilePath, _ pattern: RootPattern) throws {
        guard case .directory(let own) = try FileLook.look(at: root),
            case .directory(let parent) = try FileLook.look(at: pattern.parent)
        else { throw Self.missing(root) }
        let (identity, folder) = try VolumeFinder().place(of: root)
        self.init(
            place: FolderIdentity(own), identity: identity, folder: folder, isVolume: parent.device != own.device)
        // Otherwise these would mix the number of one folder with the volume of another.
        guard FolderIdentity(root) == place else { throw Self.missing(root) }
    }

    private static func missing(_ root: FilePath) -> SystemError {
        SystemError(call: "stat", path: root, code: .noSuchFileOrDirectory)
    }

    /// The watched folder that conflicts with it.
    ///
    /// - Returns: with `isSame`, the same file system is mounted there too, and its runner has the files. Otherwise
    ///   another file system there has the same label or UUID: a copy of the card, or a card of the same camera. nil
    ///   without a conflict.
    func twin(among others: [FilePath: VolumeMount]) -> (root: FilePath, isSame: Bool)? {
        guard isVolume else { return nil }
        let alike = others.filter { $1.isVolume && $1.identity.key == identity.key && $1.folder == folder }
            .sorted { $0.key.string < $1.key.string }
        if let same = alike.first(where: { $0.value.place.device == place.device }) { return (same.key, true) }
        return alike.first.map { ($0.key, false) }
    }

    /// Identifies its files by its device number too: files of another volume must not pass for them.
    mutating func distinguish() {
        volume.key = "\(identity.key)@\(String(place.device, radix: 16))/\(folder)"
    }

    /// Whether `root` is the same as when its watch began, under the same name. Blocks.
    func isStill(at root: FilePath) -> Bool {
        guard FolderIdentity(root) == place else { return false }
        if !isVolume { return true }
        // Then its runner restarts, and reports the fault.
        guard let now = try? VolumeFinder().place(of: root) else { return false }
        return isStill(now.volume) && now.folder == folder && FolderIdentity(root) == place
    }

    /// Whether the volume is the same, by its former name. Under a better name it starts anew; otherwise its files
    /// would be new the next time.
    func isStill(_ now: VolumeIdentity) -> Bool { now.isSame(as: identity) != false && !identity.isOutnamed(by: now) }

    /// `CardRow.key`: its files' volume without the folder.
    var cardKey: String { String((volume.key ?? identity.key).dropLast(folder.utf8.count + 1)) }

    /// Earlier keys of its card.
    var weakerCardKeys: [String] { cardKey == identity.key ? identity.weakerKeys : [] }

    /// Earlier identities of this volume, from before its UUID was known; none for a volume with a double.
    var weakerKeys: [String] {
        guard isVolume, volume.key == Volume(identity, folder: folder).key else { return [] }
        return identity.weakerKeys.map { "\($0)/\(folder)" }
    }
}

/// The steps when a removable volume comes or goes: its waiting files are found at their present place, and continue.
extension Shared {
    /// Files checked between two transactions.
    private static let group = 256

    /// Gives it the name of its card, and tells the card.
    ///
    /// - Parameter isNew: whether it came after the start.
    func volumeArrived(
        _ place: inout VolumeMount, at root: FilePath, _ settings: WatchSettings, isNew: Bool
    ) async throws {
        guard let key = place.volume.key else { return roots.set(.present(volume: nil), root) }
        let insertion = try await insertion(&place, at: root, isNew: isNew)
        let volume = place.volume
        // First: files known by another name would pass for another volume's.
        try await inherit(place.weakerKeys, key, at: root)
        try await journal.volumeArrived(key, at: root)
        let waiting = try await recognise(key, at: root)
        roots.set(.present(volume: key), root)
        cards.arrived(insertion.row, mount: insertion.mount, root, settings.at(root), volume: key)
        try await journal.volumeIsBack(key, at: .now)
        log.emit(.volumeAdded(root: root, volume: volume.name, waiting: waiting))
        if waiting == 0 { return }
        signals.raiseDeliverable()
        signals.raise(.finishable)
    }

    /// Files of a card are to be sent again: they are found at its present place.
    func filesReturn(to root: FilePath, of volume: String) async throws {
        try await journal.volumeArrived(volume, at: root)
        _ = try await recognise(volume, at: root)
        signals.raise(.finishable)
    }

    /// The card's stay: of a card that is in already, or one that begins or goes on now.
    private func insertion(
        _ place: inout VolumeMount, at root: FilePath, isNew: Bool
    ) async throws -> (row: InsertionRow, mount: FilePath) {
        let mount = try MountTable.current().mount(of: root.resolved)?.point ?? root
        let card = try await journal.card(
            place.identity, key: place.cardKey, weaker: place.weakerCardKeys, at: .now)
        place.volume.name = card.name
        if let known = cards.all.first(where: { $0.key == card.key && $0.mount == mount }) {
            return (known.state.withLock(\.insertion), mount)
        }
        let row = try await journal.insertion(of: card.id, at: mount, isNew: isNew, now: .now)
        setCardLabels(row.labels, of: card.key)
        return (row, mount)
    }

    /// Files that were known by their root's path, or by a weaker name of the volume, get its best name: present files
    /// match by size and time.
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
                // An unreadable file is compared by size and time once it is readable; until then it stays known.
                guard let look = try? turn.look(file.path) else { return true }
                return look.identity?.isKnown(as: file.identity, tolerance: tolerance) == true
            }
            turn.close()
            if !same.isEmpty { try await journal.inherit(same, by: key) }
        }
    }

    /// On FAT, files have another inode after each mount: waiting ones match by size and time.
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
                // A file that awaits its disposal is compared with the proved content at its turn: it may have been
                // edited.
                guard file.state == .pending else { return nil }
                // An unreadable file is compared when it is opened for its delivery.
                guard let now = turn.file(at: file.path), now != file.identity,
                    now.isKnown(as: file.identity, tolerance: tolerance)
                else { return nil }
                return (file.id, now)
            }
            turn.close()
            if !moved.isEmpty { try await journal.refresh(moved) }
        }
    }

    /// - Parameter isStillIn: whether only the watch has ended, by a reload or the agent's end.
    func volumeLeft(_ volume: Volume, _ root: FilePath, isStillIn: Bool) {
        roots.set(nil, root)
        cards.left(root, isStillIn: isStillIn)
        guard let key = volume.key else { return }
        cardLabels.release(key)
        log.emit(.volumeRemoved(root: root, volume: volume.name))
    }
}
