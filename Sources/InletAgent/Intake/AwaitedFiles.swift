internal import SystemPackage

/// Files of a removable volume that wait for their marker, or for a file that does: nothing else remembers them. Bounded.
struct AwaitedFiles: Sendable {
    private var paths: Set<FilePath> = []
    /// Those beyond `most`; they count until the next listing.
    private var others = 0
    private let most: Int

    init(most: Int = 10_000) { self.most = most }

    mutating func insert(_ path: FilePath) {
        if paths.contains(path) { return }
        if paths.count < most { paths.insert(path) } else { others += 1 }
    }

    mutating func remove(_ path: FilePath) { paths.remove(path) }

    /// How many still wait, without those that are not there any more.
    mutating func count(where isThere: (FilePath) -> Bool) -> Int {
        paths = paths.filter(isThere)
        return paths.count + others
    }
}
