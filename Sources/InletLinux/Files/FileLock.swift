import CLinux
import Glibc
package import SystemPackage

/// A lock that one process holds at a time, by `flock(2)`: the kernel releases it when the holder ends, however it ends.
package struct FileLock: ~Copyable, Sendable {
    private let descriptor: Descriptor

    /// Takes the lock at `path`, a file of mode 0600 that is made if need be and never removed. nil when another process
    /// (or another lock in this one) holds it. Does not wait. Root's belongs to the folder's owner, who shall be able to take
    /// it as well.
    package init?(_ path: FilePath) throws(SystemError) {
        let descriptor = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        FileOwner.give(path, toOwnerOf: DurableFile.parent(of: path))
        do throws(SystemError) {
            _ = try SystemCall.result("flock", path) { inlet_lock(descriptor.number, LOCK_EX | LOCK_NB) }
        } catch  where error.code == .resourceTemporarilyUnavailable {
            return nil
        }
        self.descriptor = descriptor
    }
}
