package import SystemPackage

/// Which paths a file or folder had before, as the two halves of renames tell (inotify's cookies).
///
/// A rename is seen as a path that is left and one that is reached, with the same cookie. Of several renames each path in
/// between counts: who asks may know the file by any of them. What is remembered is bounded: the oldest goes first, and its
/// files are then new like any other.
package struct Renames: Sendable {
    private let capacity: Int
    /// First halves whose second has not come (yet): most of them have left the tree.
    private var left: [(cookie: UInt32, path: FilePath)] = []
    /// The earlier paths of what was renamed itself, latest first.
    private var origins: [FilePath: [FilePath]] = [:]
    /// Keys of `origins`, oldest first; some are no longer there.
    private var order: [FilePath] = []

    /// The two halves follow each other closely (inotify(7)).
    private static let mostLeft = 64
    /// Of one file or folder: each is a question to the journal.
    private static let mostNames = 8

    package init(capacity: Int = 10_000) { self.capacity = capacity }

    package var isEmpty: Bool { origins.isEmpty && left.isEmpty }

    /// The first half.
    package mutating func leaves(_ path: FilePath, cookie: UInt32) {
        if left.count == Self.mostLeft { left.removeFirst() }
        left.append((cookie, path))
    }

    /// The second half; without the first, the file has come from outside.
    ///
    /// - Parameter isFolder: what was renamed before below a folder goes along with it; that takes a look at all that is known.
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

    /// The paths that what is at `path` had before, by its own renames or by those of folders above it, latest first; empty when
    /// it was not renamed, as far as is known.
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

    /// Of what was moved, under its own name, to a folder so new that nobody watched it yet: only the first half was told.
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

    /// Nothing is asked any more about `path` itself; what is below it may be.
    package mutating func forget(_ path: FilePath) { origins[path] = nil }

    /// What was renamed inside a folder goes along with it.
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
