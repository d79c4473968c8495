package import InletCore
package import SystemPackage

/// What a checksum list says: the files of one unit as one reader finds them, below one folder.
package struct ManifestContent: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// Below the list's folder.
        package var path: FilePath
        package var size: Int64
        /// Modification time in nanoseconds since 1970-01-01 UTC.
        package var modified: Int64
        package var digest: Digest
        /// When the digest was computed.
        package var hashedAt: WallTime

        package init(path: FilePath, size: Int64, modified: Int64, digest: Digest, hashedAt: WallTime) {
            self.path = path
            self.size = size
            self.modified = modified
            self.digest = digest
            self.hashedAt = hashedAt
        }
    }

    package var startedAt: WallTime
    /// When the unit's last file was finished; the list's own date, so that writing it again gives the same bytes.
    package var endedAt: WallTime
    package var host: String
    /// Inlet's.
    package var version: String
    package var entries: [Entry]
    /// Files that lie below the folder too and are not listed, for lack of a checksum: not to be taken for foreign.
    package var unlisted: [FilePath] = []
    /// What readers may look for in vain: a name each, and why it is not among the entries.
    package var absent: [String] = []
    /// What else a reader should know, a sentence each.
    package var notes: [String] = []

    package init(startedAt: WallTime, endedAt: WallTime, host: String, version: String, entries: [Entry]) {
        self.startedAt = startedAt
        self.endedAt = endedAt
        self.host = host
        self.version = version
        self.entries = entries
    }

    /// The date in the names of lists, `2026-11-22_120000Z`.
    package var stamp: String { Self.stamp(endedAt) }

    static func stamp(_ time: WallTime) -> String {
        let text = time.rfc3339Seconds
        return text.dropLast().map { $0 == "T" ? "_" : String($0) }.joined()
            .replacing(":", with: "") + "Z"
    }

    /// The entries that `format` can hold, each with its path as text, by path; and the notes, the last of which names what
    /// the list lacks.
    func listed(_ format: ManifestRule.Format) -> (entries: [(path: String, entry: Entry)], notes: [String]) {
        var listed: [(path: String, entry: Entry)] = []
        var leftOut = absent
        for entry in entries {
            if let path = XMLText.writable(entry.path.bytes) {
                if format == .mhl, entry.size == 0 {
                    leftOut.append("\(entry.path.display) (empty)")
                } else if format == .ascmhl, Self.isReserved(entry.path) {
                    leftOut.append("\(entry.path.display) (in a folder ascmhl, which the format keeps for itself)")
                } else {
                    listed.append((path, entry))
                }
            } else {
                leftOut.append("\(entry.path.display) (its name cannot be written in XML)")
            }
        }
        listed.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
        return (listed, notes + Self.summary(leftOut))
    }

    static func isReserved(_ path: FilePath) -> Bool { path.components.contains { $0.string == "ascmhl" } }

    private static let mostNamed = 20

    private static func summary(_ leftOut: [String]) -> [String] {
        if leftOut.isEmpty { return [] }
        let more = leftOut.count > mostNamed ? " and \(leftOut.count - mostNamed) more" : ""
        return ["not in this list: " + leftOut.prefix(mostNamed).joined(separator: ", ") + more]
    }
}
