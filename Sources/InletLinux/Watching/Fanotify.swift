import CLinux
import Glibc
package import SystemPackage

/// The kernel's news about whole file systems: an owner of one fanotify descriptor. One mark stands for every folder there
/// is and will be, so that a tree of millions costs no watches; it also tells of what nobody asked for. For one thread at a
/// time. Linux 5.9, with `CAP_SYS_ADMIN` and, for the names of folders, `CAP_DAC_READ_SEARCH`.
package struct Fanotify: ~Copyable, Sendable {
    private let descriptor: Descriptor

    /// The queue has the kernel's limit (`fs.fanotify.max_queued_events`): whoever may write to the file system could fill the
    /// memory otherwise, while nobody reads. Throws `EPERM`, `ENOSYS`, `EINVAL` (before Linux 5.9) or `EMFILE`, with what can be
    /// done about it.
    package init() throws(SystemError) {
        descriptor = Descriptor(owning: try SystemCall.result("fanotify_init") { inlet_fanotify_init() })
    }

    /// Has everything reported that happens in the file system of `directory`, by whatever mount; the mark ends when it is
    /// unmounted, and does not stand in the way of that. Marking it again is no error.
    ///
    /// Throws `EPERM`, `EXDEV` (a btrfs subvolume), `ENODEV`, `EOPNOTSUPP` (no numbers or handles that stay), and `isMissing`
    /// for a path that is no folder.
    package func mark(_ directory: FilePath) throws(SystemError) {
        do throws(SystemError) {
            try mark(directory, Self.basic | Self.rename)
        } catch {
            // Before Linux 5.17 the two halves of a rename come by themselves.
            guard error.code == .invalidArgument else { throw error }
            try mark(directory, Self.basic | UInt64(InotifyRecord.Mask([.movedFrom, .movedTo]).rawValue))
        }
    }

    private func mark(_ directory: FilePath, _ mask: UInt64) throws(SystemError) {
        _ = try SystemCall.result("fanotify_mark", directory) {
            directory.withPlatformString { inlet_fanotify_mark(descriptor.number, mask, $0) }
        }
    }

    /// What inotify is asked for too; folders included.
    private static let basic = UInt64(
        InotifyRecord.Mask([.attributes, .closedAfterWriting, .created, .deleted, .isDirectory]).rawValue)
    /// `FAN_RENAME`
    private static let rename: UInt64 = 0x1000_0000

    /// The records that wait, up to 64 KiB of them; empty when there are none. Does not block.
    package func read() throws(SystemError) -> [FanotifyRecord] {
        try KernelRecords.read(descriptor.number, Self.parse)
    }

    /// Whether all records have been read that the kernel has queued until now.
    package var isDrained: Bool {
        get throws(SystemError) { try !Poll.wait([descriptor.number], until: .now)[0] }
    }

    /// Ends a wait when records come.
    package var source: WaitSource { WaitSource(number: descriptor.number) }
}
