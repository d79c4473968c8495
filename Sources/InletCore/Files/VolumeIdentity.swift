/// What tells one file system from another, as far as the system says.
package struct VolumeIdentity: Sendable, Hashable, Codable {
    /// The type's usual name, e.g. `vfat`.
    package var kind: String
    /// As in `/dev/disk/by-uuid`; FAT has a short one.
    package var uuid: String?
    /// As in `/dev/disk/by-label`. Cameras give all their cards the same.
    package var label: String?
    /// `f_fsid` of statfs(2) in hexadecimal, where the file system makes it from its UUID: known in containers too.
    package var fsid: String?
    /// What is mounted: a device, `server:/export`, `tmpfs`…
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

    /// By what the journal knows its files: the best that there is. What the kernel made of the UUID itself comes first: it is
    /// the same whether udev is there or not, and each subvolume has its own. A device comes last; two cards in one reader
    /// have the same.
    package var key: String { keys[0] }

    /// What `key` would be, or would have been, where less is known of it: the best of them first.
    package var weakerKeys: [String] { Array(keys.dropFirst()) }

    private var keys: [String] {
        [fsid.map { "fsid:\($0)" }, uuid.map { "uuid:\($0)" }, label.map { "label:\($0)" }].compactMap(\.self)
            + ["device:\(source)"]
    }

    /// Whether `other`, which is the same file system, has a name that should be used from now on: a better one, which udev has
    /// given it meanwhile, or another of the same kind. That it is not known now any more is no reason.
    package func isOutnamed(by other: VolumeIdentity) -> Bool {
        other.rank > rank || other.rank == rank && other.key != key
    }

    /// Whether the name is one that other volumes may have too, so that a better one may come.
    package var isWeak: Bool { rank < 2 }

    private var rank: Int { fsid != nil ? 3 : uuid != nil ? 2 : label != nil ? 1 : 0 }

    /// For people and for `{volume}`: the label, else the UUID, else what is mounted.
    package var name: String {
        label ?? uuid ?? fsid ?? source.split(separator: "/").last.map(String.init) ?? kind
    }

    /// Whether both are the same file system; nil where that cannot be told.
    package func isSame(as other: VolumeIdentity) -> Bool? {
        if let uuid, let theirs = other.uuid, uuid != theirs { return false }
        if kind != other.kind { return false }
        // Subvolumes of btrfs have one UUID, and an ID each.
        if let fsid, let theirs = other.fsid { return fsid == theirs }
        if uuid != nil, other.uuid != nil { return true }
        if let label, let theirs = other.label, label != theirs { return false }
        // Devices are numbered as they come; exports have names of their own.
        return isExport && other.isExport ? source == other.source : nil
    }

    private var isExport: Bool { source.contains(":/") || source.hasPrefix("//") }

    /// Gone with the machine's memory, or made anew with a container: another one says nothing.
    package var isLasting: Bool { !["tmpfs", "ramfs", "overlay"].contains(kind) }
}

/// The file system that a root is on, for its files.
package struct Volume: Sendable, Hashable {
    /// For `{volume}`.
    package var name: String
    /// Of a removable one: by what the journal knows its files, wherever it is mounted, with the root's folder on it. nil where
    /// they are known by the path of their root.
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

/// By what a watched folder is recognised.
package struct RootMark: Sendable, Equatable, Codable {
    package var volume: VolumeIdentity
    /// The folder on that file system, wherever it is mounted; nil where it was not asked for.
    package var folder: String?
    /// Whether it was seen to become empty, or to stay so, until watching it ended in order.
    package var wasEmptied: Bool?

    package init(volume: VolumeIdentity, folder: String? = nil, wasEmptied: Bool? = nil) {
        self.volume = volume
        self.folder = folder
        self.wasEmptied = wasEmptied
    }
}

extension RootMark {
    /// Why a watched folder is paused, for people: it is not the one that was watched before, or the empty place where that
    /// should be mounted. Nothing of it is touched until it is back, or a person says that it is right so. nil = it is watched.
    ///
    /// An empty folder is no harm by itself: nothing is ever deleted because a source is not there. But what waits in the queue
    /// would end as gone, and nobody would learn that a share or disk is missing. So it is paused unless it was seen to be
    /// emptied: that has told of itself.
    ///
    /// - Parameters:
    ///   - before: as it was watched last; nil = never, or by a version that did not ask.
    ///   - holdsFiles: whether the journal has files of it that wait, or that were kept in it.
    package static func pauseReason(before: RootMark?, now: RootMark, isEmpty: Bool, holdsFiles: Bool) -> String? {
        guard holdsFiles else { return nil }
        // A folder in memory is a new one after every start of the machine.
        if let before, before.volume.isLasting, before.volume.isSame(as: now.volume) == false {
            return "it is on another file system (\(now.volume.key)) than before (\(before.volume.key))"
        }
        guard isEmpty else { return nil }
        // Another folder of the same file system: what was mounted here is not.
        let isMoved = before?.folder != nil && before?.folder != now.folder
        if before?.wasEmptied == true, !isMoved { return nil }
        return
            "it is empty, but the journal has files of it; mount it, or run 'inlet resume --root' if it should be empty. "
            + "It resumes with the first file in it"
    }
}
