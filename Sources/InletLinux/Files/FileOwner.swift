import Glibc
package import SystemPackage

/// Whose files are. Root that works in another user's folder would leave files there that this user's own processes can
/// neither read nor write.
package enum FileOwner {
    /// Gives the file or folder at `path` to the owner of `folder`, where we are root and he is not. As far as the system
    /// lets us: what was made is worth more than whose it is. Blocks.
    package static func give(_ path: FilePath, toOwnerOf folder: FilePath) {
        guard let owner = heir(of: folder) else { return }
        _ = path.withPlatformString { lchown($0, owner.user, owner.group) }
    }

    /// The same of an open file.
    static func give(_ descriptor: CInt, toOwnerOf folder: FilePath) {
        guard let owner = heir(of: folder) else { return }
        _ = fchown(descriptor, owner.user, owner.group)
    }

    /// nil where what we make is his anyway, or ours.
    private static func heir(of folder: FilePath) -> (user: uid_t, group: gid_t)? {
        var status = stat()
        guard geteuid() == 0, folder.withPlatformString({ stat($0, &status) }) == 0, status.st_uid != 0 else {
            return nil
        }
        return (status.st_uid, status.st_gid)
    }
}
