import Glibc
package import SystemPackage

/// Permissions of existing files.
package enum FileMode {
    /// Sets the permission bits of the file at `path` (chmod(2)). Blocks.
    package static func set(_ path: FilePath, _ mode: UInt32) throws(SystemError) {
        _ = try SystemCall.result("chmod", path) { path.withPlatformString { chmod($0, mode_t(mode)) } }
    }
}
