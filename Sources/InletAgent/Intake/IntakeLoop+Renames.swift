internal import InletCore
internal import InletLinux
internal import SystemPackage

/// Renames inside the root: the kernel tells them as two events with one cookie.
extension IntakeLoop {
    /// Remembers where the file or folder at `path` came from. What follows of the event is as for any other.
    mutating func follow(_ record: InotifyRecord, _ path: FilePath) {
        if record.mask.contains(.movedFrom) {
            admission.renames.leaves(path, cookie: record.cookie)
        } else if record.mask.contains(.movedTo) {
            admission.renames.reaches(path, cookie: record.cookie)
        } else if record.mask.contains(.created) {
            // Something new has that name.
            admission.renames.forget(path)
        }
    }
}
