internal import InletCore
internal import InletLinux
internal import SystemPackage

/// A name in an open folder. What is looked at there is what is then moved or removed, whatever is put in the place of the
/// folders above it meanwhile.
struct OpenName: Sendable {
    let folder: Folder
    let name: FilePath.Component

    var path: FilePath { folder.path.appending(name) }

    /// Blocks.
    ///
    /// - Parameters:
    ///   - root: the watched folder: below it no symlink is followed. Elsewhere root's and our own are, which administrators
    ///     have made. Empty for a file that a person named with all of its path.
    ///   - open: the same, where it is open already.
    ///   - mode: missing folders are made with it; nil = none is.
    init(
        _ path: FilePath, below root: FilePath, in open: Folder? = nil, making mode: UInt32? = nil
    ) throws(SystemError) {
        guard let name = path.lastComponent else { throw SystemError(call: "open", path: path, code: .isDirectory) }
        let above = path.removingLastComponent()
        var below = above
        if root.isEmpty {
            folder = try Folder(following: above)
        } else if below.removePrefix(root) {
            let top = if let open { open } else { try Folder(root) }
            folder = if let mode { try top.folder(below, making: mode) } else { try top.folder(below) }
        } else {
            folder = if let mode { try Folder.making(above, mode: mode) } else { try Folder(above) }
        }
        self.name = name
    }

    private init(_ folder: Folder, _ name: FilePath.Component) { (self.folder, self.name) = (folder, name) }

    /// Another name in the same folder.
    func beside(_ name: FilePath.Component) -> OpenName { OpenName(folder, name) }

    /// nil where the folder is not there, or is behind a symlink.
    static func find(_ path: FilePath, below root: FilePath, in open: Folder? = nil) throws(SystemError) -> OpenName? {
        do throws(SystemError) {
            return try OpenName(path, below: root, in: open)
        } catch  where error.isMissing {
            return nil
        }
    }

    // All of these block.

    func look() throws(SystemError) -> FileLook { try folder.look(name) }
    func source() throws(SystemError) -> SourceFile { try SourceFile(opening: name, in: folder) }
    /// Who may write to it. What cannot be opened just now (no descriptor, a disk that does not answer) throws: it says nothing
    /// of writers, and a file whose writers are unknown is held for long. Who may not read it never learns more.
    func writer() throws(SystemError) -> LeaseProbe {
        let probe = WriterProbe.look(at: name, in: folder).writer
        guard case .unknown = probe else { return probe }
        do throws(SystemError) {
            _ = try source()
        } catch  where error.code == .permissionDenied || error.code == .notPermitted {
            return probe
        }
        return probe
    }
    /// Never overwrites; durable after `synchronize` of both folders.
    func rename(to other: OpenName) throws(SystemError) { try folder.rename(name, to: other.folder, other.name) }
    func remove() throws(SystemError) { try folder.remove(name) }

    func removeIfThere() throws(SystemError) {
        do throws(SystemError) { try remove() } catch  where error.isMissing {}
    }

    /// Renames to `wanted`, or to the first of its numbered names that is free. - Returns: the name it got.
    func renameNumbered(to wanted: OpenName) throws(SystemError) -> OpenName {
        var number = 1
        while true {
            let target = wanted.numbered(number)
            do throws(SystemError) {
                try rename(to: target)
                return target
            } catch  where error.isTaken {
                number += 1
            }
        }
    }

    /// As `FinishPlaces.numbered`.
    func numbered(_ number: Int) -> OpenName {
        number > 1 ? beside(FinishPlaces.numbered(name, number, limit: folder.longestName)) : self
    }

    /// The name, or a shorter one where the folder's file system cannot have it.
    func shortened() throws(SystemError) -> OpenName {
        try folder.canHold(name) ? self : beside(name.fitting(limit: folder.longestName))
    }
}
