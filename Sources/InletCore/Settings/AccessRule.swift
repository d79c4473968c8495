package import SystemPackage

/// A folder with all that is below it, or a file, that a confined process may go on using.
package struct AccessRule: Sendable, Hashable {
    /// Absolute and without symlinks.
    package var path: FilePath
    /// Whether names may be made, renamed, removed and written there, besides being read.
    package var mayWrite: Bool

    package init(_ path: FilePath, mayWrite: Bool = false) {
        self.path = path
        self.mayWrite = mayWrite
    }

    /// Whether this allows what `other` asks for.
    package func covers(_ other: AccessRule) -> Bool {
        other.path.isWithin(path) && (mayWrite || !other.mayWrite)
    }
}
