internal import InletCore
internal import SystemPackage

/// Which inotify watch stands for which directory of a root; both ways, because renames come by watch and removals by
/// path.
struct WatchTable: Sendable {
    private var paths: [Int32: FilePath] = [:]
    private var watches: [FilePath: Int32] = [:]

    var count: Int { paths.count }

    /// The directory, relative to the root, that `watch` stands for.
    func path(of watch: Int32) -> FilePath? { paths[watch] }

    func contains(_ path: FilePath) -> Bool { watches[path] != nil }

    /// Remembers a watch. The kernel gives one number per inode: a directory that was renamed keeps its own, and then
    /// stands for its new path.
    mutating func add(_ watch: Int32, _ path: FilePath) {
        if let old = paths[watch], old != path { watches[old] = nil }
        paths[watch] = path
        watches[path] = watch
    }

    mutating func remove(_ watch: Int32) {
        guard let path = paths.removeValue(forKey: watch) else { return }
        if watches[path] == watch { watches[path] = nil }
    }

    /// Forgets one directory, but nothing below it.
    mutating func remove(_ directory: FilePath) {
        guard let watch = watches.removeValue(forKey: directory) else { return }
        if paths[watch] == directory { paths[watch] = nil }
    }

    /// Forgets `directory` and all below it. - Returns: the watches that stood for them.
    mutating func remove(below directory: FilePath) -> [Int32] {
        let gone = watches.filter { $0.key.isWithin(directory) }
        for (path, watch) in gone {
            watches[path] = nil
            paths[watch] = nil
        }
        return Array(gone.values)
    }
}
