import Glibc
package import SystemPackage

/// Permissions of existing files.
package enum FileMode {
    /// Whose the folder at `path` is, and its permission bits (`st_mode & 07777`). Blocks.
    package static func ofFolder(_ path: FilePath) throws(SystemError) -> (owner: UInt32, mode: UInt32) {
        let status = try SystemCall.status(of: path)
        return (status.st_uid, UInt32(status.st_mode) & 0o7777)
    }

    /// Sets the permission bits of the file at `path` (chmod(2)). Blocks.
    package static func set(_ path: FilePath, _ mode: UInt32) throws(SystemError) {
        _ = try SystemCall.result("chmod", path) { path.withPlatformString { chmod($0, mode_t(mode)) } }
    }
}
