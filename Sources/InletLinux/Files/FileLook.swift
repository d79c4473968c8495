import Glibc
package import InletCore
package import SystemPackage

/// What is at a path, seen without opening it and without following a symlink.
package enum FileLook: Sendable, Hashable {
    case missing
    case directory(FileIdentity)
    /// `owner` is a user ID, `links` the number of hard links.
    case regular(FileIdentity, owner: UInt32, links: UInt64)
    case symlink
    /// A FIFO, socket or device.
    case other

    /// Looks by `lstat(2)`. A missing file is an answer, not an error, and so is one whose name no file can have. May block on
    /// network file systems.
    package static func look(at path: FilePath) throws(SystemError) -> FileLook {
        do throws(SystemError) {
            return FileLook(try SystemCall.status(of: path))
        } catch  where error.isMissing || error.isUnnameable {
            return .missing
        }
    }

    /// The same without following a symlink on the way below the root: what is behind one is missing.
    package static func look(at file: RootedPath) throws(SystemError) -> FileLook {
        do throws(SystemError) {
            if file.path.isEmpty { return .directory(try Folder(file.root).identity()) }
            let (folder, name) = try file.parent()
            return try folder.look(name)
        } catch  where error.isMissing || error.isUnnameable {
            return .missing
        }
    }

    init(_ status: stat) {
        self =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular(status.identity, owner: status.st_uid, links: UInt64(status.st_nlink))
            case S_IFDIR: .directory(status.identity)
            case S_IFLNK: .symlink
            default: .other
            }
    }

    /// Why `rule` leaves it out; nil for what it takes, and for what is no regular file.
    package func refusal(by rule: SourceRule) -> SourceRule.Refusal? {
        if rule.isOff { return nil }
        guard case .regular(_, let owner, let links) = self else { return nil }
        return rule.refusal(owner: owner, links: links)
    }

    /// The identity of a regular file, nil for everything else.
    package var identity: FileIdentity? {
        if case .regular(let identity, _, _) = self { identity } else { nil }
    }
}
