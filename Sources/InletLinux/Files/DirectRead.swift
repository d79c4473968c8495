import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Asks the medium itself whether it is still there. After a card was pulled, the kernel's caches may answer for hours.
package enum DirectRead {
    package enum Answer: Sendable, Hashable {
        /// The medium delivered a block.
        case answers
        /// The medium, or its folder, is gone or failed.
        case failed(SystemError)
        /// Nothing can be read past the caches here.
        case unknown
    }

    /// Reads one block of the medium of `root`: of `file`, or else of the first suitable file, or else of its block
    /// device. Leaves access times alone where allowed.
    ///
    /// Blocks, for ever where the device hangs: call it by `LoopThread.result(name:within:)`, and not again before it
    /// has ended.
    ///
    /// - Parameters:
    ///   - file: a file below `root` that is probably readable.
    ///   - device: the device number (`FileIdentity.device`) that `root` must have; after an unmount, its path leads to
    ///     the file system above.
    package static func probe(_ root: FilePath, file: FilePath? = nil, device: UInt64? = nil) -> Answer {
        do throws(SystemError) {
            let top = try Folder(root)
            let found = try top.identity().device
            if let device, found != device {
                return .failed(SystemError(call: "stat", path: root, code: .operationNotSupportedByDevice))
            }
            // A server in user space may answer from a cache of its own.
            let isServed = top.kind?.isFUSE == true
            if isServed, try readDevice(of: root, found) { return .answers }
            var search = BlockSearch(top: top, device: found)
            if try search.readsFile(file) { return isServed ? .unknown : .answers }
            if !isServed, try readDevice(of: root, found) { return .answers }
            if let fault = search.faults.first { throw fault }
            return .unknown
        } catch {
            let isTrouble = error.isShortage || error.isPermission || error.isLinked || error.code == .invalidArgument
            return isTrouble ? .unknown : .failed(error)
        }
    }

    // MARK: - Files

    /// Reads a block of the file past the cache; false where the medium need not be asked for it.
    fileprivate static func reads(
        _ name: FilePath.Component, in folder: Folder, _ kind: FileSystemKind?
    ) throws(SystemError) -> Bool {
        guard let size = try folder.look(name).identity?.size, size >= least(kind) else { return false }
        let path = folder.path.appending(name)
        let flags = O_NONBLOCK | O_NOCTTY
        do throws(SystemError) {
            let opened = try folder.open(name, flags | inlet_o_direct)
            guard let offset = try data(in: opened, path) else { return false }
            // Compressed and inline files are read through the cache even so.
            posix_fadvise(opened.number, offset, off_t(block), POSIX_FADV_DONTNEED)
            return try read(opened, at: offset, path)
        } catch  where error.code == .invalidArgument {
            let opened = try folder.open(name, flags)
            guard let offset = try data(in: opened, path) else { return false }
            posix_fadvise(opened.number, offset, off_t(block), POSIX_FADV_DONTNEED)
            let isCached = isCached(opened, offset)
            return try read(opened, at: offset, path) && !isCached
        }
    }

    /// A smaller file may lie in the file system's own tables, which stay in memory. FAT has no such files.
    private static func least(_ kind: FileSystemKind?) -> Int64 {
        ["vfat", "exfat"].contains(kind?.name) ? 1 : Int64(block)
    }

    /// The first block on the medium: holes are read without asking it. nil where there is none.
    private static func data(in file: borrowing Descriptor, _ path: FilePath) throws(SystemError) -> off_t? {
        do throws(SystemError) {
            let start = try SystemCall.result("lseek", path) { lseek(file.number, 0, seekData) }
            return start / off_t(block) * off_t(block)
        } catch  where error.code == .noSuchAddressOrDevice {
            return nil
        }
    }

    /// SEEK_DATA (lseek(2)) is declared for _GNU_SOURCE only.
    private static let seekData: CInt = 3

    /// Whether the cache kept the block although it was told to release it (mincore(2)).
    private static func isCached(_ file: borrowing Descriptor, _ offset: off_t) -> Bool {
        guard let place = mmap(nil, block, PROT_READ, MAP_SHARED, file.number, offset), place != MAP_FAILED else {
            return true
        }
        defer { munmap(place, block) }
        var present = [UInt8](repeating: 0, count: block)
        return mincore(place, block, &present) != 0 || present[0] & 1 == 1
    }

    // MARK: - Devices

    /// Reads the first block of the file system's block device; false where there is none, or this user may not.
    ///
    /// - Parameter number: `st_dev`.
    private static func readDevice(of root: FilePath, _ number: UInt64) throws(SystemError) -> Bool {
        let mount = try MountTable.current().mount(of: root.resolved)
        guard let source = mount?.source, source.isAbsolute else { return false }
        do throws(SystemError) {
            let status = try SystemCall.status(of: source, following: true)
            guard status.st_mode & S_IFMT == S_IFBLK, UInt64(status.st_rdev) == number else { return false }
            let opened = try Descriptor(opening: source, O_RDONLY | O_NONBLOCK | inlet_o_direct)
            if try read(opened, at: 0, source) { return true }
        } catch  where error.isMissing || error.isPermission {
            return false
        }
        // The kernel takes all blocks from a device that is gone.
        throw SystemError(call: "read", path: source, code: .noSuchAddressOrDevice)
    }

    /// Disks' logical blocks have 512 or 4096 bytes: direct reads need buffer, offset and length in multiples of them.
    private static let block = 4096

    /// - Returns: false at the end of the file.
    private static func read(
        _ file: borrowing Descriptor, at offset: off_t, _ path: FilePath
    ) throws(SystemError) -> Bool {
        let number = file.number
        return try withUnsafeTemporaryAllocation(byteCount: block, alignment: block) {
            (room) throws(SystemError) in
            try SystemCall.result("read", path) { pread(number, room.baseAddress, block, offset) } > 0
        }
    }
}

/// The search for a file with a readable block.
private struct BlockSearch {
    let top: Folder
    let device: UInt64
    private let kind: FileSystemKind?
    private var waiting: [FilePath] = [""]
    private var seen = 0
    /// The errors of bad blocks: others may be readable.
    private(set) var faults: [SystemError] = []

    private static let mostFaults = 3
    /// Enough for a card whose first folders hold other things.
    private static let mostEntries = 4096

    init(top: Folder, device: UInt64) {
        self.top = top
        self.device = device
        kind = top.kind
    }

    /// - Parameter file: tried first.
    /// - Returns: whether a file was read; false where there is none.
    mutating func readsFile(_ file: FilePath?) throws(SystemError) -> Bool {
        if let file, let name = file.lastComponent,
            try reads({ [top] () throws(SystemError) in try top.folder(file.removingLastComponent()) }, name)
        {
            return true
        }
        while let path = waiting.popLast() {
            do throws(SystemError) {
                let folder = try top.folder(path)
                if try folder.identity().device == device, try readsFile(in: folder, path) { return true }
            } catch {
                try pass(error)
            }
        }
        return false
    }

    private mutating func readsFile(in folder: Folder, _ path: FilePath) throws(SystemError) -> Bool {
        var names = try folder.list()
        while seen < Self.mostEntries, let entry = try names.next() {
            seen += 1
            if entry.kind == .directory { waiting.append(path.appending(entry.name)) }
            if entry.kind == .regular, try reads({ folder }, entry.name) { return true }
        }
        return false
    }

    private mutating func reads(
        _ folder: () throws(SystemError) -> Folder, _ name: FilePath.Component
    ) throws(SystemError) -> Bool {
        do throws(SystemError) {
            return try DirectRead.reads(name, in: folder(), kind)
        } catch {
            try pass(error)
            return false
        }
    }

    /// A missing or forbidden file says nothing about the medium, and a bad block does not say that it is gone.
    private mutating func pass(_ error: SystemError) throws(SystemError) {
        if error.isMissing || error.isPermission { return }
        guard error.isDeviceFault, faults.count < Self.mostFaults - 1 else { throw error }
        faults.append(error)
    }
}
