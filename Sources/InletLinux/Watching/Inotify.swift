import CLinux
import Glibc
package import SystemPackage

/// The kernel's news about watched folders: an owner of one inotify descriptor. For one thread at a time.
package struct Inotify: ~Copyable, Sendable {
    private let descriptor: Descriptor
    /// It reports nothing.
    package let isSilent: Bool
    /// Why the kernel gave no instance.
    package let refusal: SystemError?

    var number: CInt { descriptor.number }

    /// Throws `EMFILE` with the sysctl to raise when this user has too many instances.
    package init() throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("inotify_init1") { inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC)) })
        (isSilent, refusal) = (false, nil)
    }

    /// One that reports nothing, for a tree that is polled: it takes none of the user's instances, and every `add` throws
    /// `isWatchLimit`.
    package init(silentFor refusal: SystemError? = nil) throws(SystemError) {
        descriptor = Descriptor(
            owning: try SystemCall.result("eventfd") { eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC)) })
        isSilent = true
        self.refusal = refusal
    }

    /// A silent one where this user has no instances left.
    package static func orSilent() throws(SystemError) -> Inotify {
        do throws(SystemError) {
            return try Inotify()
        } catch  where error.code == .tooManyOpenFiles {
            return try Inotify(silentFor: error)
        }
    }

    /// Watches a folder (not what is below it) and returns the watch's number; a folder that is watched already, under
    /// whatever name, gives the same number again. Symlinks are not followed. Throws `isWatchLimit` when the user has no
    /// watches left, `isMissing` for a path that is no folder.
    ///
    /// - Parameter onlyItself: what becomes of the folder is told, what happens in it is not.
    package func add(_ directory: FilePath, onlyItself: Bool = false) throws(SystemError) -> Int32 {
        if isSilent { throw SystemError(call: "inotify_add_watch", path: directory, code: .noSpace) }
        let mask: InotifyRecord.Mask = onlyItself ? [.itself, .manners] : [.watched, .manners]
        return try SystemCall.result("inotify_add_watch", directory) {
            directory.withPlatformString { inotify_add_watch(descriptor.number, $0, mask.rawValue) }
        }
    }

    /// The same of an open folder: what is watched is what is read through it.
    package func add(_ folder: Folder, onlyItself: Bool = false) throws(SystemError) -> Int32 {
        do throws(SystemError) {
            return try folder.itself { (path) throws(SystemError) in try add(path, onlyItself: onlyItself) }
        } catch {
            throw SystemError(call: error.call, path: folder.path, code: error.code)
        }
    }

    /// Watches one file for a change of its owner or of the number of its names, wherever these are: the folder of a name
    /// is not told that another one has gone.
    package func add(file name: FilePath.Component, in folder: Folder) throws(SystemError) -> Int32 {
        let path = folder.path.appending(name)
        if isSilent { throw SystemError(call: "inotify_add_watch", path: path, code: .noSpace) }
        let mask: InotifyRecord.Mask = [.attributes, .notFollowed]
        let number = descriptor.number
        return try folder.at(name) { (way) throws(SystemError) in
            try SystemCall.result("inotify_add_watch", way) {
                way.withPlatformString { inotify_add_watch(number, $0, mask.rawValue) }
            }
        }
    }

    /// Ends a watch; one that the kernel ended already is no error. Records that wait may still name it.
    package func remove(_ watch: Int32) { inotify_rm_watch(descriptor.number, watch) }

    /// The records that wait, up to 64 KiB of them; empty when there are none. Does not block.
    package func read() throws(SystemError) -> [InotifyRecord] {
        try KernelRecords.read(descriptor.number, Self.parse)
    }

    /// Whether all records have been read that the kernel has queued until now.
    package var isDrained: Bool {
        get throws(SystemError) { try !Poll.wait(descriptor.number, descriptor.number, until: .now).first }
    }

    /// Blocks until records wait, `waker` is woken or `deadline` has passed (nil: no deadline). A wake-up is taken: the
    /// next wait blocks again.
    ///
    /// - Parameter other: something else that ends the wait when it can be read.
    package func wait(
        until deadline: ContinuousClock.Instant?, waker: Waker, other: WaitSource? = nil
    ) throws(SystemError) -> WaitOutcome {
        let ready = try Poll.wait([descriptor.number, waker.number, other?.number ?? -1], until: deadline)
        if ready[1] { waker.drain() }
        return WaitOutcome(isReadable: ready[0] || ready[2], isWoken: ready[1])
    }
}

/// Why a wait ended; neither is set when the deadline passed.
package struct WaitOutcome: Sendable, Hashable {
    package var isReadable: Bool
    package var isWoken: Bool
    package var isTimedOut: Bool { !isReadable && !isWoken }

    package init(isReadable: Bool, isWoken: Bool) {
        self.isReadable = isReadable
        self.isWoken = isWoken
    }
}
