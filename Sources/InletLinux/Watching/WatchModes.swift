package import InletCore
package import SystemPackage

/// How each mount of one watched folder is watched: the one that the folder is on, and those below it.
package struct WatchModes: Sendable, Hashable {
    /// By the folder that a mount is at, relative to the root; the empty path is the root itself.
    package private(set) var places: [FilePath: WatchWay]
    /// Which mount is at each place; empty where that cannot be known.
    private var mounts: [FilePath: Sign] = [:]

    /// What tells one mount at a place from the next one there.
    private struct Sign: Hashable {
        var id: Int
        var major: UInt32
        var minor: UInt32
        var root: FilePath
        var source: FilePath

        init(_ mount: MountTable.Mount) {
            (id, major, minor) = (mount.id, mount.major, mount.minor)
            (root, source) = (mount.root, mount.source)
        }
    }

    package init(_ places: [FilePath: WatchWay]) { self.places = places }

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
                    ? WatchWay.decide(Self.kind(of: watch.path), mode: watch.mode)
                    : WatchWay(isPolled: true, reason: "the mounts cannot be listed: \(error)")
            ])
            return
        }
        guard let mount = table.mount(of: root) else {
            self.init(["": WatchWay.decide(Self.kind(of: watch.path), mode: watch.mode)])
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
        places = ["": WatchWay.decide(mount, in: table, mode: watch.mode, kind: { kind(root) })]
        mounts = ["": Sign(mount)]
        guard watch.recursive else { return }
        for mount in table.below(root) {
            var relative = mount.point
            guard relative.removePrefix(root), !IgnoreList(user: watch.ignore).ignores(relative, isDirectory: true)
            else { continue }
            places[relative] = WatchWay.decide(mount, in: table, mode: watch.mode, kind: { kind(mount.point) })
            mounts[relative] = Sign(mount)
        }
    }

    /// How `directory` is watched, and the place whose mount it is on.
    package func way(for directory: FilePath) -> (place: FilePath, way: WatchWay) {
        var place = directory
        if places.count > 1 {
            while !place.isEmpty {
                if let way = places[place] { return (place, way) }
                place.removeLastComponent()
            }
        }
        return ("", places[""] ?? WatchWay(isPolled: false, reason: ""))
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
    package var sorted: [(place: FilePath, way: WatchWay)] {
        places.map { ($0.key, $0.value) }.sorted { $0.0.bytes.lexicographicallyPrecedes($1.0.bytes) }
    }
}
