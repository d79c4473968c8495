package import SystemPackage

/// A file, or a folder with everything below it, that a confined process may use.
package struct AccessRule: Sendable, Hashable {
    /// Absolute, without symlinks.
    package var path: FilePath
    /// Whether files may be created, renamed, removed and written, in addition to being read.
    package var mayWrite: Bool

    package init(_ path: FilePath, mayWrite: Bool = false) {
        self.path = path
        self.mayWrite = mayWrite
    }

    /// Whether this rule allows everything that `other` requests.
    package func covers(_ other: AccessRule) -> Bool {
        other.path.isWithin(path) && (mayWrite || !other.mayWrite)
    }
}

/// A program of the configuration with its arguments: the helper of a confined agent starts no others (`patterns.c`).
package struct CommandPattern: Sendable, Hashable {
    /// The configured words. Those of `derive` may contain `DeriveRule.input` and `DeriveRule.output`, which stand for
    /// any path.
    package var words: [String]
    /// The prefix of its paths, up to a slash; empty for any.
    package var place: String

    package init(_ words: [String], place: String = "") { (self.words, self.place) = (words, place) }
}
