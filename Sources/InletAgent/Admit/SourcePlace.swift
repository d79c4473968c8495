internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Where a file lies, as routes and destinations see it.
struct SourcePlace: Sendable, Equatable {
    let root: FilePath
    /// Below `root`.
    let path: FilePath

    /// A file that a person named, as its route would see it in a watched root; elsewhere just its name in its folder.
    init(_ path: FilePath, roots: [FilePath]) {
        for root in roots {
            var relative = path
            guard relative.removePrefix(root) else { continue }
            (self.root, self.path) = (root, relative)
            return
        }
        root = path.removingLastComponent()
        self.path = path.lastComponent.map { FilePath(root: nil, [$0]) } ?? path
    }

    /// - Parameter roots: the watched folders, for files that have none of their own.
    init(_ file: FileRow, roots: [FilePath]) {
        self = file.root.isEmpty ? SourcePlace(file.path, roots: roots) : SourcePlace(root: file.root, path: file.path)
    }

    private init(root: FilePath, path: FilePath) {
        self.root = root
        self.path = path
    }
}

extension Arrival {
    /// How it is found on the disk.
    var place: RootedPath { RootedPath(root, path) }
}

extension FileRow {
    /// How it is found on the disk.
    var place: RootedPath { RootedPath(root, path) }
}
