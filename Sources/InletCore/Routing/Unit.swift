package import SystemPackage

extension Route {
    /// The folder that is delivered as one and that the file at `path` is in: the first below the fixed part of the
    /// pattern that takes it (`gigs/**` and `gigs/X/a.mp4` give `gigs/X`), without a pattern the first below the root.
    /// nil for a file directly in the fixed part, and for a route whose unit is the file.
    package func unit(of path: FilePath) -> FilePath? {
        guard unit == .folder else { return nil }
        if match.paths.isEmpty { return path.folder(depth: 1) }
        guard let pattern = match.paths.first(where: { $0.matches(path) }) else { return nil }
        return path.folder(depth: pattern.fixedFolders.count + 1)
    }

    /// The unit that the file at `path` says is complete.
    fileprivate func unitMarked(by path: FilePath) -> FilePath? {
        guard unit == .folder, completion == .marker, path.lastComponent?.string == Completion.folderMarker else {
            return nil
        }
        let unit = path.removingLastComponent()
        let folders = unit.components.map { FilePath(root: nil, [$0]).bytes }
        let isUnit =
            match.paths.isEmpty
            ? folders.count == 1
            : match.paths.contains {
                folders.count == $0.fixedFolders.count + 1 && folders.starts(with: $0.fixedFolders)
            }
        return isUnit ? unit : nil
    }
}

/// What a marker says is complete.
package enum Marked: Sendable, Equatable {
    case file(FilePath)
    case unit(FilePath)
}

extension RouteTable {
    /// What the file at `path` is the marker of; nil for every file that is none.
    package func marked(by path: FilePath) -> Marked? {
        if hasUnits, let unit = routes.lazy.compactMap({ $0.unitMarked(by: path) }).first { return .unit(unit) }
        return belongings(of: path).first { $0.companion.kind == .marker }.map { .file($0.main) }
    }

    /// The route called `name`.
    package func named(_ name: String) -> Route? { routes.first { $0.name == name } }
}

extension FilePath {
    /// The first `depth` folders of a relative path to a file; nil when it has fewer.
    fileprivate func folder(depth: Int) -> FilePath? {
        guard components.count > depth else { return nil }
        return FilePath(root: nil, components.prefix(depth))
    }
}
