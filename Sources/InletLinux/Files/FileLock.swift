import CLinux
import Glibc
import InletCore
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
        guard try descriptor.lock(path) else { return nil }
        self.descriptor = descriptor
    }
}

extension Descriptor {
    /// Locks the open file for this descriptor alone (flock(2)), without waiting. - Returns: false when another one has it.
    func lock(_ path: FilePath) throws(SystemError) -> Bool {
        do throws(SystemError) {
            _ = try SystemCall.result("flock", path) { inlet_lock(number, LOCK_EX | LOCK_NB) }
            return true
        } catch  where error.code == .resourceTemporarilyUnavailable {
            return false
        }
    }
}

/// The lock of a watched folder, as long as this lives: `.inlet/lock` in it, by which agents with state directories of their
/// own know of each other. The kernel gives it back when its holder ends, however it ends.
///
/// It belongs to an open file (fcntl(2), `F_OFD_SETLK`), which keeps the file system from being unmounted.
package final class WatchLock: Sendable {
    package enum Outcome: Sendable {
        case ours(WatchLock)
        /// Another one has it, which says this of itself.
        case theirs(String)
    }

    /// In the watched folder.
    package static let folder: FilePath = ".inlet"
    private static let name: FilePath.Component = "lock"
    private static let mostText = 300

    private let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// Takes the lock, for which the folder must be writable. Does not wait for another holder; blocks as long as a server does
    /// not answer.
    ///
    /// - Parameter holder: what the other agent shows of this one.
    package static func take(in root: FilePath, as holder: String) throws(SystemError) -> Outcome {
        // Of another user's file only this can be asked.
        if let other = try self.holder(in: root) { return .theirs(other) }
        let place = try Folder(root).folder(folder, making: 0o755, asFolderOwner: true)
        let descriptor = try place.at(name) { (path) throws(SystemError) in
            let descriptor = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, mode: 0o644)
            FileOwner.give(path, toOwnerOf: DurableFile.parent(of: path))
            return descriptor
        }
        let path = place.path.appending(name)
        do throws(SystemError) {
            _ = try SystemCall.result("fcntl", path) { inlet_take_lock(descriptor.number) }
        } catch  where error.code == .resourceTemporarilyUnavailable || error.code == .permissionDenied {
            return .theirs(text(in: descriptor))
        }
        // Without the text it is a lock all the same: others are told less.
        _ = ftruncate(descriptor.number, 0)
        _ = Array(holder.utf8.prefix(mostText)).withUnsafeBytes {
            pwrite(descriptor.number, $0.baseAddress, $0.count, 0)
        }
        return .ours(WatchLock(descriptor))
    }

    /// What the holder says of itself; nil where there is none. Makes nothing. Blocks as `take` does.
    package static func holder(in root: FilePath) throws(SystemError) -> String? {
        do throws(SystemError) {
            let place = try Folder(root).folder(folder)
            let descriptor = try place.at(name) { (path) throws(SystemError) in
                try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
            }
            let isLocked = try SystemCall.result("fcntl", place.path.appending(name)) {
                inlet_is_locked(descriptor.number)
            }
            return isLocked == 1 ? text(in: descriptor) : nil
        } catch  where error.isMissing {
            return nil
        }
    }

    private static func text(in descriptor: borrowing Descriptor) -> String {
        var bytes = [UInt8](repeating: 0, count: mostText)
        let number = descriptor.number
        let count = bytes.withUnsafeMutableBytes { pread(number, $0.baseAddress, $0.count, 0) }
        return count > 0 ? DisplayText.escape(bytes.prefix(count)) : "another agent"
    }
}
