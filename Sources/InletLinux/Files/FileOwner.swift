import CLinux
import Glibc
package import InletCore
package import SystemPackage

/// Owners of files, and who may use them. Root working in another user's folder would leave files there that this
/// user's own processes can neither read nor write.
package enum FileOwner {
    /// Gives the file or folder at `path` to the owner of `folder`, where we are root and that owner is not. Best
    /// effort: the file matters more than its owner. Blocks.
    ///
    /// Only a file that root owns, with one name, and not a symlink: the folder's owner may have replaced it meanwhile,
    /// even by a link to someone else's file.
    package static func give(_ path: FilePath, toOwnerOf folder: FilePath) {
        // A file that cannot be opened was not created, or has gone: it needs no owner.
        guard let owner = heir(of: folder),
            let descriptor = try? Descriptor(opening: path, inlet_o_path | O_NOFOLLOW)
        else { return }
        var status = stat()
        guard fstat(descriptor.number, &status) == 0, status.st_uid == 0,
            status.isDirectory || status.st_nlink == 1, !status.isSymlink
        else { return }
        _ = fchownat(descriptor.number, "", owner.user, owner.group, inlet_at_empty_path)
    }

    /// The same for an open file.
    static func give(_ descriptor: CInt, toOwnerOf folder: FilePath) {
        guard let owner = heir(of: folder) else { return }
        _ = fchown(descriptor, owner.user, owner.group)
    }

    /// Refuses a symlink at `path` that is not root's, where we are root and `folder` belongs to somebody else: that
    /// user may have set it as a trap.
    ///
    /// - Throws: `isLinked` for that, or the error of looking. Blocks.
    package static func requireOwn(_ path: FilePath, in folder: FilePath) throws(SystemError) {
        guard heir(of: folder) != nil else { return }
        let status = try SystemCall.status(of: path)
        if status.isSymlink, status.st_uid != 0 {
            throw FolderSteps.linked(path)
        }
    }

    /// Gives the folder at `path` the group of `model` and `mode`, whatever the umask was at its creation. Blocks.
    ///
    /// - Parameter owner: its new owner; nil keeps the one that it has.
    package static func share(
        _ path: FilePath, withGroupOf model: FilePath, owner: UInt32? = nil, mode: UInt32
    ) throws(SystemError) {
        let group = try SystemCall.status(of: model, following: true).st_gid
        let descriptor = try Descriptor(opening: path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, call: "opendir")
        let number = descriptor.number
        _ = try SystemCall.result("chown", path) { fchown(number, owner ?? uid_t.max, group) }
        _ = try SystemCall.result("chmod", path) { fchmod(number, mode_t(mode)) }
    }

    /// nil where our files belong to that owner anyway, or to us.
    private static func heir(of folder: FilePath) -> (user: uid_t, group: gid_t)? {
        var status = stat()
        guard geteuid() == 0, folder.withPlatformString({ stat($0, &status) }) == 0, status.st_uid != 0 else {
            return nil
        }
        return (status.st_uid, status.st_gid)
    }

    /// The owner of the folder at `path`, and its permission bits (`st_mode & 07777`). Blocks.
    package static func ofFolder(_ path: FilePath) throws(SystemError) -> (owner: UInt32, mode: UInt32) {
        let status = try SystemCall.status(of: path)
        return (status.st_uid, status.permissions)
    }

    /// Whose the file at `path` is. Blocks.
    package static func ofFile(_ path: FilePath) throws(SystemError) -> (user: UInt32, group: UInt32) {
        let status = try SystemCall.status(of: path)
        return (status.st_uid, status.st_gid)
    }

    /// Takes those rights from the file at `path` that `model` does not give. Blocks.
    package static func narrow(_ path: FilePath, to model: FilePath) throws(SystemError) {
        let rights = try SystemCall.status(of: path).permissions
        let wanted = rights & (try SystemCall.status(of: model).permissions)
        if wanted != rights { try setMode(path, wanted) }
    }

    /// Gives the file at `path` to a user; its group stays. Blocks.
    ///
    /// - Throws: for a symlink, a file with other names, or one that is not regular: whoever may write in the folder
    ///   may have put it there meanwhile.
    package static func set(_ path: FilePath, user: UInt32) throws(SystemError) {
        // A FIFO would wait for its writer.
        let descriptor = try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        let number = descriptor.number
        var status = stat()
        _ = try SystemCall.result("stat", path) { fstat(number, &status) }
        guard status.isRegular, status.st_nlink == 1 else {
            throw SystemError(call: "chown", path: path, code: .notPermitted)
        }
        _ = try SystemCall.result("chown", path) { fchown(number, user, gid_t.max) }
    }

    /// Sets the permission bits of the file at `path` (chmod(2)). Blocks.
    package static func setMode(_ path: FilePath, _ mode: UInt32) throws(SystemError) {
        _ = try SystemCall.result("chmod", path) { path.withPlatformString { chmod($0, mode_t(mode)) } }
    }

    /// Looks a user up by name in the system's database, which may ask a server.
    package static func user(named name: String) -> UserLookup {
        var room = 1024
        while true {
            var entry = passwd()
            var found: UnsafeMutablePointer<passwd>?
            var texts = [CChar](repeating: 0, count: room)
            let code = getpwnam_r(name, &entry, &texts, room, &found)
            if code == ERANGE, room < 1 << 20 {
                room *= 4
            } else if code == EINTR {
                continue
            } else if found != nil {
                return .found(entry.pw_uid)
            } else {
                // getpwnam(3): some systems answer so for an unknown name.
                return [0, ENOENT, ESRCH, EBADF, EPERM].contains(code) ? .unknown : .failed("\(Errno(rawValue: code))")
            }
        }
    }

    /// Whether the kernel lets users make hard links only to files that they own, or may read and write; nil where it does not
    /// say.
    package static func protectsLinks(_ path: FilePath = "/proc/sys/fs/protected_hardlinks") -> Bool? {
        DurableFile.readIfPossible(path, limit: 16)?.first.map { $0 != UInt8(ascii: "0") }
    }
}
