import InletCore
import SystemPackage

/// Where relative paths of the configuration start from.
struct PathResolution: Sendable {
    /// The configuration file's folder; absolute.
    var folder: FilePath
    /// nil when HOME is not set.
    var home: FilePath?

    /// Linux's PATH_MAX without the terminating NUL.
    static let longest = 4095

    /// An absolute path without `.` and `..`; nil for an empty or too long text, and for `~/` without a home.
    func resolve(_ text: String) -> FilePath? {
        guard !text.isEmpty, text.utf8.count <= Self.longest else { return nil }
        if text == "~" || text.hasPrefix("~/") {
            guard let home else { return nil }
            return home.appending(text.dropFirst(2).description).lexicallyNormalized()
        }
        return folder.pushing(FilePath(text)).lexicallyNormalized()
    }
}

extension FilePath {
    /// Whether this path is `folder` or lies below it; both absolute and normalised.
    func isInside(_ folder: FilePath) -> Bool { starts(with: folder) }

    /// The components behind `folder`, of which this path is known to be inside.
    func components(below folder: FilePath) -> [FilePath.Component] {
        Array(components.dropFirst(folder.components.count))
    }
}
