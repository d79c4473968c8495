internal import CLinux
internal import Glibc
package import InletCore
internal import Synchronization
package import SystemPackage

/// A bound on how many files are read at once from one disk (`readers:`). The head of a disk that turns moves for each
/// change of file: four files at once arrive later than the same four one after the other.
///
/// A reader takes a turn for some megabytes, not for a whole file: one that is sent slowly holds up nobody.
package final class DiskTurns: Sendable {
    // The kernel keeps its users apart.
    private nonisolated(unsafe) let free: UnsafeMutablePointer<sem_t>

    init(_ count: Int) {
        free = .allocate(capacity: 1)
        sem_init(free, 0, UInt32(count))
    }

    deinit {
        sem_destroy(free)
        free.deallocate()
    }

    /// Runs `body` in a turn. Blocks until there is one.
    func take(_ body: () -> Void) {
        // A signal interrupts it.
        while sem_wait(free) != 0 {}
        defer { sem_post(free) }
        body()
    }
}

/// The turns of all disks that files are read from.
package final class DiskReaders: Sendable {
    private struct State {
        /// By `st_dev` of files, and their rule; nil where nothing is bounded.
        var known: [UInt64: [ReaderRule: DiskTurns?]] = [:]
        /// By the disk below.
        var disks: [UInt64: [Int: DiskTurns]] = [:]
    }

    private let state = Mutex(State())
    private let sysfs: FilePath

    package init(sysfs: FilePath = "/sys") { self.sysfs = sysfs }

    /// The turns for files of a device (`st_dev`); nil where nothing is bounded. Blocks when it is asked first.
    package func turns(of device: UInt64, _ rule: ReaderRule) -> DiskTurns? {
        if let known = state.withLock({ $0.known[device]?[rule] }) { return known }
        let disk = Self.mounted(device, sysfs)?.disk
        let count = rule.count(isRotating: disk?.isRotating ?? false)
        return state.withLock { state in
            let turns = count.map { count in
                let number = disk?.number ?? device
                let turns = state.disks[number]?[count] ?? DiskTurns(count)
                state.disks[number, default: [:]][count] = turns
                return turns
            }
            state.known[device, default: [:]][rule] = .some(turns)
            return turns
        }
    }

    /// A file system without a device number of its own, such as btrfs, is found by its mount.
    private static func mounted(_ device: UInt64, _ sysfs: FilePath) -> BlockDevice? {
        if let found = BlockDevice(number: device, sysfs: sysfs) { return found }
        // Without a list of mounts nothing is known of the disk, and nothing is bounded.
        guard let table = try? MountTable.current() else { return nil }
        return table.mounts.first { inlet_device($0.major, $0.minor) == device }
            .flatMap { BlockDevice(of: $0, sysfs: sysfs) }
    }
}
