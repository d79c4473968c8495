package import SystemPackage

/// The earlier paths of files and folders, from the two halves of renames (inotify's cookies).
///
/// A rename appears as a path that is left and one that is reached, with the same cookie. After several renames every
/// path counts, because callers may know the file by any of them. The number of renames is bounded: the oldest are
/// dropped, and their files then count as new.
package struct Renames: Sendable {
    private let capacity: Int
    /// First halves without a second one (yet): most of them have left the tree.
    private var left: [(cookie: UInt32, path: FilePath)] = []
    /// The earlier paths of each renamed item, latest first.
    private var origins: [FilePath: [FilePath]] = [:]
    /// The keys of `origins`, oldest first; some no longer exist.
    private var order: [FilePath] = []

    /// The two halves follow each other closely (inotify(7)).
    private static let mostLeft = 64
    /// The most earlier paths of an item: each costs a query to the journal.
    private static let mostNames = 8

    package init(capacity: Int = 10_000) { self.capacity = capacity }

    package var isEmpty: Bool { origins.isEmpty && left.isEmpty }

    /// Notes the first half of a rename.
    package mutating func leaves(_ path: FilePath, cookie: UInt32) {
        if left.count == Self.mostLeft { left.removeFirst() }
        left.append((cookie, path))
    }

    /// Notes the second half; without a first one, the file came from outside.
    ///
    /// - Parameter isFolder: whether to move earlier renames below the folder along; this scans all known renames.
    package mutating func reaches(_ path: FilePath, cookie: UInt32, isFolder: Bool = false) {
        guard let index = left.lastIndex(where: { $0.cookie == cookie }) else { return forget(path) }
        let old = left.remove(at: index).path
        var names: [FilePath] = []
        for name in [old] + origins(of: old) where name != path && !names.contains(name) { names.append(name) }
        origins[old] = nil
        if isFolder { follow(old, to: path) }
        set(path, names)
        dropOldest()
    }

    /// The earlier paths of `path`, by its own renames or those of folders above it, latest first; empty if no rename
    /// is known.
    package func origins(of path: FilePath) -> [FilePath] {
        if isEmpty { return [] }
        var found = origins[path] ?? []
        var folder = path
        while folder.removeLastComponent(), !folder.isEmpty {
            guard let names = origins[folder] else { continue }
            var rest = path
            guard rest.removePrefix(folder) else { break }
            for name in names.map({ $0.pushing(rest) }) where name != path && !found.contains(name) {
                found.append(name)
            }
        }
        for name in unseenOrigins(of: path) where name != path && !found.contains(name) { found.append(name) }
        return Array(found.prefix(Self.mostNames))
    }

    /// For items moved, under the same name, to a folder so new that it was unwatched: only the first half was seen.
    private func unseenOrigins(of path: FilePath) -> [FilePath] {
        if left.isEmpty { return [] }
        var found: [FilePath] = []
        var (folder, rest) = (path, FilePath(""))
        while let name = folder.lastComponent {
            for half in left.reversed() where half.path.lastComponent == name { found.append(half.path.pushing(rest)) }
            folder.removeLastComponent()
            rest = FilePath(root: nil, [name]).pushing(rest)
        }
        return found
    }

    /// Forgets `path` itself, but not items below it.
    package mutating func forget(_ path: FilePath) { origins[path] = nil }

    /// Moves the renames within a folder along with it.
    private mutating func follow(_ old: FilePath, to new: FilePath) {
        for path in origins.keys.filter({ $0.isWithin(old) }) {
            var rest = path
            guard rest.removePrefix(old), let names = origins.removeValue(forKey: path) else { continue }
            set(new.pushing(rest), names)
        }
    }

    private mutating func set(_ path: FilePath, _ names: [FilePath]) {
        let names = Array(names.prefix(Self.mostNames))
        if names.isEmpty { return forget(path) }
        if origins.updateValue(names, forKey: path) == nil { order.append(path) }
    }

    private mutating func dropOldest() {
        while origins.count > capacity, !order.isEmpty { origins[order.removeFirst()] = nil }
        if order.count > 2 * capacity + 16 { order = order.filter { origins[$0] != nil } }
    }
}
