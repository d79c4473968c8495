package import InletCore
package import SystemPackage

/// How changes on one mount are noticed, and why so.
package struct WatchStrategy: Sendable, Hashable {
    /// Whether folders are looked at again and again; otherwise the kernel tells.
    package var isPolled: Bool
    /// For people.
    package var reason: String
    /// Whether other machines may write there, whose clocks are not this one's.
    package var isForeign = false
    /// Whether a folder's own time says that nothing was added to it.
    package var times: PollState.Times

    package init(isPolled: Bool, reason: String, times: PollState.Times = .whenSeen) {
        self.isPolled = isPolled
        self.reason = reason
        self.times = times
    }

    /// The decision for a mount of `table`.
    ///
    /// - Parameter kind: what statfs(2) says of the mount; asked for types that are not known by name.
    package static func decide(
        _ mount: MountTable.Mount, in table: MountTable, mode: WatchSettings.Mode, kind: () -> FileSystemKind?
    ) -> WatchStrategy {
        let hidden = hiding(mount, in: table, kind: kind)
        return WatchStrategy(mode, hidden: hidden, name: mount.type, times: times(of: mount.type))
    }

    /// The decision where the mounts cannot be listed.
    package static func decide(_ kind: FileSystemKind?, mode: WatchSettings.Mode) -> WatchStrategy {
        let name = kind?.name ?? "unknown"
        return WatchStrategy(
            mode, hidden: kind?.isNetwork == true ? remote(name) : nil, name: name, times: times(of: name))
    }

    private init(_ mode: WatchSettings.Mode, hidden: String?, name: String, times: PollState.Times) {
        switch mode {
        case .auto, .fanotify: self.init(isPolled: hidden != nil, reason: hidden ?? name, times: times)
        case .inotify: self.init(isPolled: false, reason: "mode: inotify, on \(name)", times: times)
        case .poll: self.init(isPolled: true, reason: "mode: poll, on \(name)", times: times)
        }
        isForeign = hidden != nil
    }

    /// Why changes on the mount may come without events; nil = they do not.
    ///
    /// - Parameter depth: how many overlays lie above it.
    private static func hiding(
        _ mount: MountTable.Mount, in table: MountTable, kind: () -> FileSystemKind?, depth: Int = 0
    ) -> String? {
        if mount.type == "overlay" {
            return depth < 4 ? hidingLayer(of: mount, in: table, depth: depth) : nil
        }
        if local.contains(mount.type) { return nil }
        let isFUSE = mount.type == "fuse" || mount.type.hasPrefix("fuse.")
        if isFUSE || distributed.contains(mount.type) || kind()?.isNetwork == true { return remote(mount.type) }
        return nil
    }

    /// An overlay tells of what is done through it. Without a layer of its own to write to, all changes are made behind it; a
    /// layer that another machine writes to changes behind it too.
    private static func hidingLayer(of overlay: MountTable.Mount, in table: MountTable, depth: Int) -> String? {
        guard overlay.options.contains(where: { $0.name == "upperdir" && !$0.value.isEmpty }) else {
            return "overlay without a writable layer: changes of its layers raise no events"
        }
        for layer in layers(of: overlay) {
            guard let mount = table.mount(of: layer), mount.id != overlay.id,
                hiding(mount, in: table, kind: { nil }, depth: depth + 1) != nil
            else { continue }
            return "overlay: its layer \(layer.display) is on \(mount.type), whose changes raise no events here"
        }
        return nil
    }

    /// Those that are named by absolute paths; a colon in a name is escaped.
    private static func layers(of overlay: MountTable.Mount) -> [FilePath] {
        let names = ["lowerdir", "lowerdir+", "upperdir"]
        return overlay.options.filter { names.contains($0.name) }.flatMap { option -> [FilePath] in
            var layers: [[UInt8]] = [[]]
            var isEscaped = false
            for byte in option.value {
                if !isEscaped, byte == UInt8(ascii: "\\") {
                    isEscaped = true
                    continue
                }
                if !isEscaped, byte == UInt8(ascii: ":") {
                    layers.append([])
                } else {
                    layers[layers.count - 1].append(byte)
                }
                isEscaped = false
            }
            return layers.map { FilePath(bytes: $0) }.filter(\.isAbsolute)
        }
    }

    private static func remote(_ name: String) -> String { "\(name): changes made elsewhere raise no events here" }

    private static func times(of type: String) -> PollState.Times {
        if timeless.contains(type) { return .never }
        return local.contains(type) || type.hasPrefix("nfs") ? .always : .whenSeen
    }

    /// FAT's top folder has no time, whichever program drives the disk; an overlay shows that of its upper layer only.
    private static let timeless: Set<String> = ["vfat", "msdos", "exfat", "fuseblk", "overlay"]

    /// Everything is written through this machine's kernel. `fuseblk` is a disk in the hands of one program (ntfs-3g).
    private static let local: Set<String> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "zfs", "f2fs", "jfs", "reiserfs", "nilfs2", "tmpfs",
        "ramfs", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "hfs", "hfsplus", "iso9660", "udf", "squashfs",
        "ecryptfs",
    ]

    /// Other machines, or the host of this one, write to them too.
    fileprivate static let distributed: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "coda", "gfs2", "ocfs2", "lustre",
        "gpfs", "beegfs", "fhgfs", "glusterfs", "orangefs", "pvfs2", "davfs", "vboxsf", "vmhgfs", "prl_fs", "drvfs",
        "acfs",
    ]
}

extension MountTable.Mount {
    /// Whether such file systems are often taken away and put back while a machine runs: those of servers, those that are
    /// mounted when they are asked for, and those of cards and sticks.
    package var comesAndGoes: Bool {
        WatchStrategy.distributed.contains(type) || Self.portable.contains(type) || type == "autofs" || type == "fuse"
            || type.hasPrefix("fuse.")
    }

    private static let portable: Set = [
        "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "hfs", "hfsplus", "iso9660", "udf",
    ]
}

/// How each mount of one watched folder is watched: the one that the folder is on, and those below it.
package struct WatchModes: Sendable, Hashable {
    /// By the folder that a mount is at, relative to the root; the empty path is the root itself.
    package private(set) var places: [FilePath: WatchStrategy]
    /// Which mount is at each place; empty where that cannot be known.
    private var mounts: [FilePath: MountTable.Mount] = [:]

    package init(_ places: [FilePath: WatchStrategy]) { self.places = places }

    /// Decides for the mounts that are there now. Blocks while a network server does not answer for a mount whose type has an
    /// unknown name.
    package init(of watch: WatchSettings) {
        let root = watch.path.resolved
        let table: MountTable
        do throws(SystemError) {
            table = try MountTable.current()
        } catch {
            // Polling sees what a mount that could not be listed would hide from events.
            let isSeen = error.isMissing || watch.mode == .inotify
            self.init([
                "": isSeen
                    ? WatchStrategy.decide(Self.kind(of: watch.path), mode: watch.mode)
                    : WatchStrategy(isPolled: true, reason: "the mounts cannot be listed: \(error)")
            ])
            return
        }
        guard let mount = table.mount(of: root) else {
            self.init(["": WatchStrategy.decide(Self.kind(of: watch.path), mode: watch.mode)])
            return
        }
        self.init(table, mount, root, watch, kind: Self.kind)
    }

    /// nil where nothing is; what does not answer counts as a file system of other machines.
    private static func kind(of path: FilePath) -> FileSystemKind? {
        do throws(SystemError) {
            return try FileSystemKind.of(path)
        } catch {
            return error.isMissing ? nil : FileSystemKind(name: "unknown", isNetwork: true)
        }
    }

    /// - Parameters:
    ///   - mount: the one that `root` is on.
    ///   - root: without symlinks.
    ///   - kind: what statfs(2) says of a path; asked for types that are not known by name.
    package init(
        _ table: MountTable, _ mount: MountTable.Mount, _ root: FilePath, _ watch: WatchSettings,
        kind: (FilePath) -> FileSystemKind?
    ) {
        places = ["": WatchStrategy.decide(mount, in: table, mode: watch.mode, kind: { kind(root) })]
        mounts = ["": Self.sign(of: mount)]
        guard watch.recursive else { return }
        for mount in table.below(root) {
            var relative = mount.point
            guard relative.removePrefix(root), !IgnoreList(user: watch.ignore).ignores(relative, isDirectory: true)
            else { continue }
            places[relative] = WatchStrategy.decide(mount, in: table, mode: watch.mode, kind: { kind(mount.point) })
            mounts[relative] = Self.sign(of: mount)
        }
    }

    /// What tells one mount at a place from the next one there: its number, device, folder and source.
    private static func sign(of mount: MountTable.Mount) -> MountTable.Mount {
        var sign = mount
        (sign.parent, sign.point, sign.type, sign.options) = (0, "", "", [])
        return sign
    }

    /// How `directory` is watched, and the place whose mount it is on.
    package func way(for directory: FilePath) -> (place: FilePath, way: WatchStrategy) {
        var place = directory
        if places.count > 1 {
            while !place.isEmpty {
                if let way = places[place] { return (place, way) }
                place.removeLastComponent()
            }
        }
        return ("", places[""] ?? WatchStrategy(isPolled: false, reason: ""))
    }

    /// Whether other machines may write the file at `path`.
    package func isForeign(_ path: FilePath) -> Bool {
        places.count > 1 ? way(for: path).way.isForeign : places[""]?.isForeign ?? false
    }

    /// Whether `folder`, or a mount below it, is polled.
    package func isPolled(inOrBelow folder: FilePath) -> Bool {
        way(for: folder).way.isPolled || places.contains { $0.value.isPolled && $0.key.isWithin(folder) }
    }

    /// Whether a mount below `folder` is not polled.
    package func isMixed(below folder: FilePath) -> Bool {
        places.contains { !$0.value.isPolled && $0.key != folder && $0.key.isWithin(folder) }
    }

    /// The places where another mount is now, where one has come or gone, or that are watched in another way.
    package func changes(since last: WatchModes) -> [FilePath] {
        Set(places.keys).union(last.places.keys)
            .filter { places[$0] != last.places[$0] || mounts[$0] != last.mounts[$0] }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// In the order of their paths.
    package var sorted: [(place: FilePath, way: WatchStrategy)] {
        places.map { ($0.key, $0.value) }.sorted { $0.0.bytes.lexicographicallyPrecedes($1.0.bytes) }
    }
}
