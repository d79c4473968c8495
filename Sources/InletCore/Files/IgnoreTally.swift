package import SystemPackage

/// Counts files that no route takes, each once, by directory and extension; memory is bounded.
package struct IgnoreTally: Sendable {
    /// What one log line and one row of the status speak for.
    package struct Group: Hashable, Sendable {
        /// Relative to the root; empty for the root itself.
        package var directory: FilePath
        /// Lower case, without the dot; empty for none.
        package var fileExtension: String
    }

    /// Files counted in all. Beyond `fileLimit` files a file that comes again counts again.
    package private(set) var total = 0
    /// Files by group, as far as `groupLimit` reaches.
    package private(set) var counts: [Group: Int] = [:]
    /// Files of groups beyond `groupLimit`.
    package private(set) var overflow = 0

    private var seen: Set<Int> = []
    private let fileLimit: Int
    private let groupLimit: Int

    package init(fileLimit: Int = 100_000, groupLimit: Int = 10_000) {
        self.fileLimit = fileLimit
        self.groupLimit = groupLimit
    }

    /// Counts the file at `path`. True when its group is new and should be logged, once; the first group beyond the
    /// limit is the last to be.
    package mutating func count(_ path: FilePath) -> Bool {
        let hash = path.hashValue
        if seen.contains(hash) { return false }
        if seen.count < fileLimit { seen.insert(hash) }
        total += 1
        let group = Group(directory: path.removingLastComponent(), fileExtension: FileName(path).plainExtension)
        if counts[group] == nil, counts.count >= groupLimit {
            overflow += 1
            return overflow == 1
        }
        counts[group, default: 0] += 1
        return counts[group] == 1
    }
}
