import CLinux
import Glibc
import InletCore
package import SystemPackage

/// A lock that one process holds at a time, by `flock(2)`: the kernel releases it however the holder ends.
package struct FileLock: ~Copyable, Sendable {
    private let descriptor: Descriptor

    /// Takes the lock at `path`, a file of mode 0600 that is created if needed and never removed. nil when another
    /// process, or another lock in this one, holds it. Does not wait. Root's lock file belongs to the folder's owner,
    /// so that the owner can take it too.
    package init?(_ path: FilePath) throws(SystemError) {
        let descriptor = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        FileOwner.give(path, toOwnerOf: DurableFile.parent(of: path))
        guard try descriptor.lock(path) else { return nil }
        self.descriptor = descriptor
    }
}

extension Descriptor {
    /// Locks the open file for this descriptor alone (flock(2)), without waiting. - Returns: false when it is taken.
    func lock(_ path: FilePath) throws(SystemError) -> Bool {
        do throws(SystemError) {
            _ = try SystemCall.result("flock", path) { inlet_lock(number, LOCK_EX | LOCK_NB) }
            return true
        } catch  where error.code == .resourceTemporarilyUnavailable {
            return false
        }
    }
}

/// The lock of a watched folder, held as long as this lives: `.inlet/lock` in it. Agents with separate state
/// directories know of each other by it. The kernel releases it however its holder ends.
///
/// It belongs to an open file (fcntl(2), `F_OFD_SETLK`), which prevents unmounting its file system.
package final class WatchLock: Sendable {
    package enum Outcome: Sendable {
        case ours(WatchLock)
        /// Another agent holds it; its description of itself.
        case theirs(String)
    }

    /// In the watched folder.
    package static let folder: FilePath = ".inlet"
    private static let name: FilePath.Component = "lock"
    private static let mostText = 300

    private let descriptor: Descriptor

    private init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    /// Takes the lock, for which the folder must be writable. Does not wait for another holder; blocks as long as a
    /// server does not answer.
    ///
    /// - Parameter holder: the description of this agent that the others show.
    package static func take(in root: FilePath, as holder: String) throws(SystemError) -> Outcome {
        // For another user's file only this can be asked.
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
        // The lock holds without the text, too: others just know less.
        _ = ftruncate(descriptor.number, 0)
        _ = Array(holder.utf8.prefix(mostText)).withUnsafeBytes {
            pwrite(descriptor.number, $0.baseAddress, $0.count, 0)
        }
        return .ours(WatchLock(descriptor))
    }

    /// The holder's description of itself; nil where there is none. Creates nothing. Blocks as `take` does.
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
