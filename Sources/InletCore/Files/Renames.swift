package import SystemPackage

/// Which path a file or folder had before, as the two halves of renames tell (inotify's cookies).
///
/// A rename is seen as a path that is left and one that is reached, with the same cookie. What is remembered is bounded: the
/// oldest goes first, and its files are then new like any other.
package struct Renames: Sendable {
    private let capacity: Int
    /// First halves whose second has not come (yet): most of them have left the tree.
    private var left: [(cookie: UInt32, path: FilePath)] = []
    private var origins: [FilePath: FilePath] = [:]
    /// Keys of `origins`, oldest first; some are no longer there.
    private var order: [FilePath] = []

    /// The two halves follow each other closely (inotify(7)).
    private static let mostLeft = 64

    package init(capacity: Int = 10_000) { self.capacity = capacity }

    package var isEmpty: Bool { origins.isEmpty }

    /// The first half.
    package mutating func leaves(_ path: FilePath, cookie: UInt32) {
        if left.count == Self.mostLeft { left.removeFirst() }
        left.append((cookie, path))
    }

    /// The second half; without the first, the file has come from outside.
    package mutating func reaches(_ path: FilePath, cookie: UInt32) {
        guard let index = left.lastIndex(where: { $0.cookie == cookie }) else { return forget(path) }
        let old = left.remove(at: index).path
        // Renamed twice before anybody asked: the first name counts.
        let first = origin(of: old) ?? old
        origins[old] = nil
        guard first != path else { return forget(path) }
        if origins.updateValue(first, forKey: path) == nil { order.append(path) }
        dropOldest()
    }

    /// The path that what is at `path` had before, by its own rename or by that of a folder above it; nil = it was not renamed,
    /// as far as is known.
    package func origin(of path: FilePath) -> FilePath? {
        if origins.isEmpty { return nil }
        if let origin = origins[path] { return origin }
        var folder = path
        while folder.removeLastComponent(), !folder.isEmpty {
            guard let origin = origins[folder] else { continue }
            var rest = path
            guard rest.removePrefix(folder) else { return nil }
            return origin.pushing(rest)
        }
        return nil
    }

    /// Nothing is asked any more about `path` itself; what is below it may be.
    package mutating func forget(_ path: FilePath) { origins[path] = nil }

    private mutating func dropOldest() {
        while origins.count > capacity, !order.isEmpty { origins[order.removeFirst()] = nil }
        if order.count > 2 * capacity + 16 { order = order.filter { origins[$0] != nil } }
    }
}
