package import SystemPackage

/// Files that a watched folder's rule excludes: counts each once, and reports once for each folder. Memory is bounded.
package struct RefusedFiles: Sendable {
    /// The subject of one log line.
    package struct Group: Hashable, Sendable {
        /// Relative to the root; empty for the root.
        package var directory: FilePath
        package var refusal: SourceRule.Refusal
    }

    /// The number of excluded files, up to `fileLimit`.
    package var total: Int { seen.count }

    private var seen: Set<Int> = []
    private var said: Set<Group> = []
    /// The first file and the number of files of each unreported group.
    private var news: [Group: (path: FilePath, files: Int)] = [:]
    /// Files that wait until one of their names is removed.
    private var linked: [FilePath] = []

    private let fileLimit: Int
    private let groupLimit: Int

    package init(fileLimit: Int = 100_000, groupLimit: Int = 1000) {
        self.fileLimit = fileLimit
        self.groupLimit = groupLimit
    }

    package mutating func note(_ path: FilePath, _ refusal: SourceRule.Refusal) {
        if refusal == .links, linked.count < groupLimit { linked.append(path) }
        guard seen.count < fileLimit, seen.insert(path.hashValue).inserted else { return }
        let group = Group(directory: path.removingLastComponent(), refusal: refusal)
        if news[group] != nil {
            news[group]?.files += 1
        } else if said.count < groupLimit, said.insert(group).inserted {
            news[group] = (path, 1)
        }
    }

    /// The file is taken after all.
    package mutating func forget(_ path: FilePath) {
        if !seen.isEmpty { seen.remove(path.hashValue) }
    }

    /// The unreported groups, each with its first file, ordered by path.
    package mutating func takeNews() -> [(path: FilePath, files: Int, refusal: SourceRule.Refusal)] {
        if news.isEmpty { return [] }
        defer { news = [:] }
        return news.map { ($1.path, $1.files, $0.refusal) }
            .sorted { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }
    }

    package mutating func takeLinked() -> [FilePath] {
        if linked.isEmpty { return [] }
        defer { linked = [] }
        return linked
    }
}

/// Counts files that no route takes, each once, by directory and extension; memory is bounded.
package struct IgnoreCounts: Sendable {
    /// The subject of one log line and one row of the status.
    package struct Group: Hashable, Sendable {
        /// Relative to the root; empty for the root.
        package var directory: FilePath
        /// Lower case, without the dot; empty for none.
        package var fileExtension: String
    }

    /// The total number of files. Beyond `fileLimit`, a file that comes again counts again.
    package private(set) var total = 0
    /// The files of each group, up to `groupLimit` groups.
    package private(set) var counts: [Group: Int] = [:]
    /// The number of files in groups beyond `groupLimit`.
    package private(set) var overflow = 0

    private var seen: Set<Int> = []
    private let fileLimit: Int
    private let groupLimit: Int

    package init(fileLimit: Int = 100_000, groupLimit: Int = 10_000) {
        self.fileLimit = fileLimit
        self.groupLimit = groupLimit
    }

    /// Counts the file at `path`. True if its group is new and should be logged, once; the first group beyond the limit
    /// is the last one logged.
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
