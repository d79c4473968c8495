package import InletCore
package import SystemPackage

/// How changes on one mount are noticed, and why.
package struct WatchStrategy: Sendable, Hashable {
    /// Whether folders are polled; otherwise the kernel reports changes.
    package var isPolled: Bool
    /// For people.
    package var reason: String
    /// Whether other machines, with other clocks, may write there.
    package var isForeign = false
    /// Whether a folder's own time proves that nothing was added to it.
    package var times: PollState.Times

    package init(isPolled: Bool, reason: String, times: PollState.Times = .whenSeen) {
        self.isPolled = isPolled
        self.reason = reason
        self.times = times
    }

    /// The decision for a mount of `table`.
    ///
    /// - Parameter kind: the answer of statfs(2) for the mount; called for types of unknown name.
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

    /// Why changes on the mount may raise no events; nil = they always do.
    ///
    /// - Parameter depth: the number of overlays above it.
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

    /// An overlay reports only changes made through it. Without its own writable layer, all changes happen behind it; a
    /// layer that another machine writes to also changes behind it.
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

    /// Layers named by absolute paths; a colon in a name is escaped.
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

    /// FAT's top folder has no time, whichever program drives the disk; an overlay shows only its upper layer's.
    private static let timeless: Set<String> = ["vfat", "msdos", "exfat", "fuseblk", "overlay"]

    /// All writes go through this machine's kernel. `fuseblk` is a disk driven by one program (ntfs-3g).
    private static let local: Set<String> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "bcachefs", "zfs", "f2fs", "jfs", "reiserfs", "nilfs2", "tmpfs",
        "ramfs", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "hfs", "hfsplus", "iso9660", "udf", "squashfs",
        "ecryptfs",
    ]

    /// Other machines, or this one's host, write to them too.
    fileprivate static let distributed: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "coda", "gfs2", "ocfs2", "lustre",
        "gpfs", "beegfs", "fhgfs", "glusterfs", "orangefs", "pvfs2", "davfs", "vboxsf", "vmhgfs", "prl_fs", "drvfs",
        "acfs",
    ]
}

extension MountTable.Mount {
    /// Whether such file systems often come and go while a machine runs: those of servers, those mounted on demand, and
    /// those of cards and sticks.
    package var comesAndGoes: Bool {
        WatchStrategy.distributed.contains(type) || Self.portable.contains(type) || type == "autofs" || type == "fuse"
            || type.hasPrefix("fuse.")
    }

    private static let portable: Set = [
        "vfat", "msdos", "exfat", "ntfs", "ntfs3", "fuseblk", "hfs", "hfsplus", "iso9660", "udf",
    ]
}

/// How each mount of one watched folder is watched: the folder's own, and those below it.
package struct WatchModes: Sendable, Hashable {
    /// By the mount's folder, relative to the root; the empty path is the root itself.
    package private(set) var places: [FilePath: WatchStrategy]
    /// The mount at each place; empty where that is unknown.
    private var mounts: [FilePath: MountTable.Mount] = [:]

    package init(_ places: [FilePath: WatchStrategy]) { self.places = places }

    /// Decides for the current mounts. Blocks while a network server does not answer for a mount whose type has an
    /// unknown name.
    package init(of watch: WatchSettings) {
        let root = watch.path.resolved
        let table: MountTable
        do throws(SystemError) {
            table = try MountTable.current()
        } catch {
            // Polling sees changes that a mount missing from the list would hide from events.
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

    /// nil where nothing is; a file system that does not answer counts as another machine's.
    private static func kind(of path: FilePath) -> FileSystemKind? {
        do throws(SystemError) {
            return try FileSystemKind.of(path)
        } catch {
            return error.isMissing ? nil : FileSystemKind(name: "unknown", isNetwork: true)
        }
    }

    /// - Parameters:
    ///   - mount: the mount of `root`.
    ///   - root: without symlinks.
    ///   - kind: the answer of statfs(2) for a path; called for types of unknown name.
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

    /// Distinguishes one mount at a place from the next one there: its number, device, folder and source.
    private static func sign(of mount: MountTable.Mount) -> MountTable.Mount {
        var sign = mount
        (sign.parent, sign.point, sign.type, sign.options) = (0, "", "", [])
        return sign
    }

    /// How `directory` is watched, and the place of its mount.
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

    /// Places where a mount has changed, come or gone, or is watched in another way.
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
