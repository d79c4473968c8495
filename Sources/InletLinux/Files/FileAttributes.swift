import CLinux
import Glibc
import InletCore
import SystemPackage

/// What a copy keeps of its source besides the content.
enum FileAttributes {
    /// Copies permissions, extended attributes and mtime onto the descriptor `target`.
    ///
    /// Set-user-ID and set-group-ID are left out: the copy belongs to the agent's user, and would lend its rights.
    static func copy(from source: SourceFile, to target: CInt, _ path: FilePath) throws(SystemError) {
        for name in extendedNames(source.descriptor.number) { copyExtended(name, source.descriptor.number, target) }
        _ = try SystemCall.result("chmod", path) { fchmod(target, mode_t(source.mode & 0o777)) }
        let times = [
            timespec(tv_sec: 0, tv_nsec: inlet_utime_omit), timespec(nanoseconds: source.opened.modified),
        ]
        _ = try SystemCall.result("utimensat", path) { futimens(target, times) }
    }

    /// `security.*` and `trusted.*` carry rights or belong to the file system that they are on, so they stay behind.
    private static func extendedNames(_ descriptor: CInt) -> [[CChar]] {
        let length = flistxattr(descriptor, nil, 0)
        guard length > 0 else { return [] }
        var list = [CChar](repeating: 0, count: length)
        let filled = flistxattr(descriptor, &list, list.count)
        guard filled > 0 else { return [] }
        return list[..<filled].split(separator: 0).map { $0 + [0] }.filter { name in
            let text = String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return text.hasPrefix("user.") || text == "system.posix_acl_access"
        }
    }

    // Best effort: many targets (FAT, NFS, a full attribute block on ext4) cannot hold what the source has, and the
    // content is what was asked for.
    private static func copyExtended(_ name: [CChar], _ source: CInt, _ target: CInt) {
        let length = fgetxattr(source, name, nil, 0)
        guard length >= 0 else { return }
        var value = [UInt8](repeating: 0, count: length)
        let filled = fgetxattr(source, name, &value, value.count)
        if filled >= 0 { _ = fsetxattr(target, name, value, filled, 0) }
    }
}
