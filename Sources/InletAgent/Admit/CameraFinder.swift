internal import InletCore
internal import InletLinux
internal import InletMedia
internal import SystemPackage

/// Finds the camera of a file: by the file's metadata, then by the XML beside a clip, then by the names of the card.
enum CameraFinder {
    /// The most names of a card to read.
    private static let mostNames = 500

    /// Without values if nothing tells. Blocks.
    ///
    /// - Parameter cardTop: a folder of the card, to be listed if the file's own path does not tell.
    static func camera(of path: RootedPath, cardTop: FilePath?) throws(SystemError) -> Camera {
        let system = CameraStructure(of: path.whole) ?? cardTop.flatMap(structure)
        var tags = try CameraTags.read(from: try SourceFile(opening: path))
        if tags.model == nil { tags = try clipTags(beside: path) ?? tags }
        return Camera(make: tags.make, model: tags.model, system: system)
    }

    /// The tags in the XML that Sony's cameras write for each clip: `C0001M01.XML` for `C0001.MP4`.
    private static func clipTags(beside path: RootedPath) throws(SystemError) -> CameraTags? {
        let name = FileName(path.path)
        guard ["mp4", "mxf"].contains(name.plainExtension.lowercased()) else { return nil }
        var file = path
        file.path = path.path.removingLastComponent().pushing(FilePath(bytes: Array(name.stem) + Array("M01.XML".utf8)))
        do throws(SystemError) {
            return try CameraTags.read(from: try SourceFile(opening: file))
        } catch {
            // Most clips have none; a folder or a link is none.
            guard try FileLook.look(at: file).identity != nil else { return nil }
            throw error
        }
    }

    private static func structure(_ top: FilePath) -> CameraStructure? {
        var paths: [FilePath] = []
        for folder in names(top, below: "", &paths) { _ = names(top, below: folder, &paths) }
        return CameraStructure(listing: paths)
    }

    /// Adds the names in a folder. - Returns: its folders.
    private static func names(_ top: FilePath, below folder: FilePath, _ paths: inout [FilePath]) -> [FilePath] {
        var folders: [FilePath] = []
        do throws(SystemError) {
            var stream = try DirectoryStream(top.pushing(folder))
            while paths.count < mostNames, let entry = try stream.next() {
                let path = folder.appending(entry.name)
                paths.append(path)
                if entry.kind == .directory { folders.append(path) }
            }
        } catch {
            // The listing of the root reports what it cannot read; the camera stays unknown.
        }
        return folders
    }
}
