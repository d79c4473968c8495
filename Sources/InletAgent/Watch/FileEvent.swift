internal import InletLinux
internal import SystemPackage

/// What happened to a name below a watched folder, or to that folder.
///
/// A rename comes as its two halves, and an exchange as four: the second half never comes where a file has left the root, and
/// nothing is held back until it does. Both names are looked at.
enum FileEvent: Sendable, Equatable {
    /// Something new has this name.
    case created(FilePath, isFolder: Bool)
    /// What has this name was written to, or touched.
    case changed(FilePath, isFolder: Bool)
    case removed(FilePath, isFolder: Bool)
    /// The first half of a rename; `rename` is nil where the kernel does not tell which halves belong together (fanotify before
    /// Linux 5.17).
    case left(FilePath, isFolder: Bool, rename: UInt32?)
    /// The second half, with the number of the first.
    case reached(FilePath, isFolder: Bool, rename: UInt32)
    /// A folder is to be listed: its mount has gone and shows what it covered, or it has the name of one that left.
    case folder(FilePath)
    /// A file that `follow(linked:)` was asked to follow has lost a name, or has another owner.
    case linked(FilePath)
    /// The root itself has gone, with the reason.
    case lost(String)
    /// Events were lost: everything is to be listed.
    case overflow

    /// The name that something happened to.
    var name: FilePath? {
        switch self {
        case .created(let path, _), .changed(let path, _), .removed(let path, _), .left(let path, _, _),
            .reached(let path, _, _):
            path
        case .folder, .linked, .lost, .overflow: nil
        }
    }

    /// What inotify says of a name, and fanotify, which puts several things into one record: then what has gone is told.
    init(_ mask: InotifyRecord.Mask, rename: UInt32?, _ path: FilePath) {
        let isFolder = mask.contains(.isDirectory)
        if mask.contains(.movedFrom) {
            self = .left(path, isFolder: isFolder, rename: rename)
        } else if mask.contains(.deleted) {
            self = .removed(path, isFolder: isFolder)
        } else if mask.contains(.movedTo), let rename {
            self = .reached(path, isFolder: isFolder, rename: rename)
        } else if !mask.isDisjoint(with: [.created, .movedTo]) {
            self = .created(path, isFolder: isFolder)
        } else {
            self = .changed(path, isFolder: isFolder)
        }
    }
}
