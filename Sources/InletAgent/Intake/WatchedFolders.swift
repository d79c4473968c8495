package import InletCore
package import SystemPackage

/// The folders that a pattern stands for.
package enum WatchedFolders {
    /// Those that are there now, in order. Blocks.
    package static func now(_ pattern: RootPattern) -> [FilePath] {
        FoundRoots(pattern).roots.keys.sorted { $0.string < $1.string }
    }
}
