internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Renames inside the root: the kernel tells them as two events with one cookie. A kernel whose fanotify does not tell the two
/// names together (before 5.17) gives none: such files are new.
extension IntakeLoop {
    /// Remembers where the file or folder at `path` came from. What follows of the event is as for any other.
    mutating func follow(_ record: InotifyRecord, _ path: FilePath) {
        let isFolder = record.mask.contains(.isDirectory)
        if record.mask.contains(.movedFrom), record.cookie != 0 {
            // Copy programs end each file by a rename; no journal knows what it was called before.
            if ignore.ignores(path, isDirectory: isFolder), admission.renames.origins(of: path).isEmpty { return }
            admission.renames.leaves(path, cookie: record.cookie)
        } else if record.mask.contains(.movedTo), record.cookie != 0 {
            admission.renames.reaches(path, cookie: record.cookie, isFolder: isFolder)
        } else if !record.mask.isDisjoint(with: [.created, .movedTo]) {
            // Something new has that name.
            admission.renames.forget(path)
        }
    }
}
