/// Identifies a file system, as far as the system knows.
package struct VolumeIdentity: Sendable, Hashable, Codable {
    /// The usual name of its type, e.g. `vfat`.
    package var kind: String
    /// As in `/dev/disk/by-uuid`; FAT has a short one.
    package var uuid: String?
    /// As in `/dev/disk/by-label`. Cameras give all their cards the same label.
    package var label: String?
    /// `f_fsid` of statfs(2) in hexadecimal, if the file system derives it from its UUID; also available in containers.
    package var fsid: String?
    /// The mounted device, `server:/export`, `tmpfs`…
    package var source: String

    package init(
        kind: String, uuid: String? = nil, label: String? = nil, fsid: String? = nil, source: String = ""
    ) {
        self.kind = kind
        self.uuid = uuid
        self.label = label
        self.fsid = fsid
        self.source = source
    }

    /// The best available key for files in the journal. First the kernel's value derived from the UUID: it is the same
    /// with and without udev, and differs between subvolumes. A device comes last, because two cards in one reader
    /// share it.
    package var key: String { keys[0] }

    /// The keys it had, or would have had, with less information, best first.
    package var weakerKeys: [String] { Array(keys.dropFirst()) }

    private var keys: [String] {
        [fsid.map { "fsid:\($0)" }, uuid.map { "uuid:\($0)" }, label.map { "label:\($0)" }].compactMap(\.self)
            + ["device:\(source)"]
    }

    /// Whether to use the name of `other`, the same file system, from now on: a better one from udev, or another of the
    /// same rank. Losing information is not a reason.
    package func isOutnamed(by other: VolumeIdentity) -> Bool {
        other.rank > rank || other.rank == rank && other.key != key
    }

    /// Whether other volumes may have the same name, so that a better one may come.
    package var isWeak: Bool { rank < 2 }

    private var rank: Int { fsid != nil ? 3 : uuid != nil ? 2 : label != nil ? 1 : 0 }

    /// For people and `{volume}`: the label, else the UUID, else the mounted source.
    package var name: String {
        label ?? uuid ?? fsid ?? source.split(separator: "/").last.map(String.init) ?? kind
    }

    /// Whether both are the same file system; nil if that is unknown.
    package func isSame(as other: VolumeIdentity) -> Bool? {
        if let uuid, let theirs = other.uuid, uuid != theirs { return false }
        if kind != other.kind { return false }
        // Subvolumes of btrfs share a UUID, but have their own IDs.
        if let fsid, let theirs = other.fsid { return fsid == theirs }
        if uuid != nil, other.uuid != nil { return true }
        if let label, let theirs = other.label, label != theirs { return false }
        // Device names follow the order of detection; exports have names of their own.
        return isExport && other.isExport ? source == other.source : nil
    }

    private var isExport: Bool { source.contains(":/") || source.hasPrefix("//") }

    /// Whether it outlives a restart of the machine or container: for others, a different one says nothing.
    package var isLasting: Bool { !["tmpfs", "ramfs", "overlay"].contains(kind) }
}

/// The file system of a root, for its files.
package struct Volume: Sendable, Hashable {
    /// For `{volume}`.
    package var name: String
    /// For a removable volume: the key of its files in the journal, wherever it is mounted, including the root's folder
    /// on it. Otherwise nil, and the root's path identifies them.
    package var key: String?

    package init(name: String, key: String? = nil) {
        self.name = name
        self.key = key
    }

    /// A removable volume.
    ///
    /// - Parameter folder: the root, below the mount point.
    package init(_ identity: VolumeIdentity, folder: String) {
        self.init(name: identity.name, key: "\(identity.key)/\(folder)")
    }
}

/// Identifies a watched folder.
package struct RootMark: Sendable, Equatable, Codable {
    package var volume: VolumeIdentity
    /// The folder on that file system, wherever it is mounted; nil if unknown.
    package var folder: String?
    /// Whether Inlet saw it become or stay empty until watching it ended normally.
    package var wasEmptied: Bool?

    package init(volume: VolumeIdentity, folder: String? = nil, wasEmptied: Bool? = nil) {
        self.volume = volume
        self.folder = folder
        self.wasEmptied = wasEmptied
    }
}

extension RootMark {
    /// Why a watched folder is paused, for people: it is not the folder that was watched before, or it is the empty
    /// mount point of that folder. Inlet touches nothing in it until the right folder is back, or a person confirms
    /// this one. nil if it is watched.
    ///
    /// An empty folder alone is harmless: Inlet never deletes anything because a source is missing. But waiting files
    /// would end as gone, and nobody would notice a missing share or disk. So it is paused unless Inlet saw it being
    /// emptied.
    ///
    /// - Parameters:
    ///   - before: its identity when it was last watched; nil for never, or by an older version.
    ///   - holdsFiles: whether the journal has files of it that wait, or that were kept in it.
    package static func pauseReason(before: RootMark?, now: RootMark, isEmpty: Bool, holdsFiles: Bool) -> String? {
        guard holdsFiles else { return nil }
        // A folder in memory is new after every start of the machine.
        if let before, before.volume.isLasting, before.volume.isSame(as: now.volume) == false {
            return "it is on another file system (\(now.volume.key)) than before (\(before.volume.key))"
        }
        guard isEmpty else { return nil }
        // Another folder of the same file system: the right one is not mounted here.
        let isMoved = before?.folder != nil && before?.folder != now.folder
        if before?.wasEmptied == true, !isMoved { return nil }
        return
            "it is empty, but the journal has files of it; mount it, or run 'inlet resume --root' if it should be empty. "
            + "It resumes with the first file in it"
    }
}
