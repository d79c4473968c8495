import Glibc
package import InletCore
package import SystemPackage

/// All files of a file system, counted by `walk`.
package struct VolumeInventory: Sendable, Equatable {
    /// A file, or anything else that is not a folder.
    package struct File: Sendable, Hashable {
        package enum Kind: Sendable, Hashable {
            case regular
            /// A symlink, FIFO, socket or device.
            case other
        }

        /// Below `VolumeInventory.top`.
        package var path: FilePath
        package var kind: Kind
        /// nil for anything but a regular file.
        package var identity: FileIdentity?

        package var size: Int64 { identity?.size ?? 0 }
    }

    /// A folder or file whose content is unknown.
    package struct Unreadable: Sendable, Hashable {
        /// Below `VolumeInventory.top`.
        package var path: FilePath
        package var error: SystemError
    }

    /// The file system's mount point.
    package let top: FilePath
    /// The folder of the file system that is mounted at `top`: `/`, unless only a part of it is visible.
    package let folder: FilePath
    /// Regular files, and the sum of their sizes.
    package private(set) var files = 0
    package private(set) var bytes: Int64 = 0
    /// Symlinks, FIFOs, sockets and devices.
    package private(set) var others = 0
    /// The first of them: a failing card has thousands.
    package private(set) var unreadable: [Unreadable] = []
    package private(set) var unreadableCount = 0
    /// Whether there are more entries than the limit.
    package private(set) var isCut = false
    /// Whether `lost+found` may not be listed, as is usual for anybody but root.
    package private(set) var hasClosedLostFound = false
    private var sum = InventorySum()

    /// Whether `walk` saw the whole file system.
    package var isWhole: Bool { folder == "/" && unreadableCount == 0 && !isCut }

    /// A checksum over path, size and mtime of all files, in any order. Equal ones mean the same files, as far as a
    /// stat can show. nil where some are unknown.
    package var digest: String? { unreadableCount == 0 && !isCut ? sum.text : nil }

    private init(top: FilePath, folder: FilePath) { (self.top, self.folder) = (top, folder) }
}

extension VolumeInventory {
    private static let mostErrors = 100
    /// How many entries pass between two beats.
    private static let beatInterval = 256

    /// Passes every file of the file system around `root` to `body`, in no order. Follows no symlink, and stays out of
    /// other file systems: a folder that one of them covers is unreadable. Memory grows with the number of folders only.
    /// Blocks.
    ///
    /// Leaves out the folders that operating systems keep for themselves (`isSystemFolder`).
    ///
    /// - Parameters:
    ///   - root: any folder of the file system; it must exist.
    ///   - limit: stops after that many entries.
    ///   - beat: called from time to time, to show that a long walk is alive.
    /// - Throws: where the file system's top cannot be listed; all other errors are in the result.
    package static func walk(
        around root: FilePath, limit: Int, beat: () -> Void = {}, _ body: (File) -> Void
    ) throws(SystemError) -> VolumeInventory {
        // Of a missing root, the mount table would name the file system above.
        let device = UInt64(try SystemCall.status(of: root, following: true).st_dev)
        let (real, table) = (root.resolved, try MountTable.current())
        let mount = table.mount(of: real)
        let top = try Folder(mount?.point ?? real)
        var walk = InventoryWalk(
            top: top, device: try top.identity().device, tolerance: top.kind?.modifiedTolerance ?? 0,
            mounts: Set(table.below(top.path).map(\.point)), limit: limit)
        guard walk.device == device || top.hasSubvolumes else {
            // Mounted or unmounted meanwhile.
            throw SystemError(call: "stat", path: root, code: .noSuchFileOrDirectory)
        }
        var found = VolumeInventory(top: top.path, folder: mount?.root ?? "/")
        try found.fill(from: &walk, beat, body)
        return found
    }

    private mutating func fill(
        from walk: inout InventoryWalk, _ beat: () -> Void, _ body: (File) -> Void
    ) throws(SystemError) {
        while let path = walk.waiting.popLast() {
            beat()
            do throws(SystemError) {
                let folder = try walk.enter(path)
                var vanished: Set<FilePath.Component> = []
                var names = try folder.list()
                while let entry = try names.next() {
                    walk.seen += 1
                    if walk.seen > walk.limit {
                        isCut = true
                        return
                    }
                    if walk.seen.isMultiple(of: Self.beatInterval) { beat() }
                    if !add(entry.name, in: folder, path, &walk, body) { vanished.insert(entry.name) }
                }
                try confirm(vanished, in: folder, path)
            } catch {
                if path.isEmpty { throw error }
                // Only root may list it, and only file system checks put something in.
                if path == "lost+found", error.isPermission { hasClosedLostFound = true } else { fail(path, error) }
            }
        }
    }

    /// - Returns: false for a name that its folder has, and that nothing can be found by.
    private mutating func add(
        _ name: FilePath.Component, in folder: Folder, _ above: FilePath, _ walk: inout InventoryWalk,
        _ body: (File) -> Void
    ) -> Bool {
        let path = above.appending(name)
        do throws(SystemError) {
            let status = try folder.status(name)
            if status.isDirectory {
                if !above.isEmpty || !Self.isSystemFolder(name) { walk.waiting.append(path) }
                return true
            }
            let identity = status.isRegular ? status.identity : nil
            if let identity {
                files += 1
                bytes &+= identity.size
            } else {
                others += 1
            }
            sum.add(path, identity, tolerance: walk.tolerance)
            body(File(path: path, kind: identity == nil ? .other : .regular, identity: identity))
        } catch {
            if error.isMissing { return false }
            fail(path, error)
        }
        return true
    }

    /// Names that went away meanwhile are no errors; those that a damaged folder still has are.
    private mutating func confirm(
        _ vanished: Set<FilePath.Component>, in folder: Folder, _ path: FilePath
    ) throws(SystemError) {
        if vanished.isEmpty { return }
        var names = try folder.list()
        while let entry = try names.next() {
            guard vanished.contains(entry.name) else { continue }
            do throws(SystemError) {
                _ = try folder.status(entry.name)
            } catch {
                note(Unreadable(path: path.appending(entry.name), error: error))
            }
        }
    }

    /// A name that went away meanwhile is no error.
    private mutating func fail(_ path: FilePath, _ error: SystemError) {
        if !error.isMissing { note(Unreadable(path: path, error: error)) }
    }

    private mutating func note(_ one: Unreadable) {
        unreadableCount += 1
        if unreadable.count < Self.mostErrors { unreadable.append(one) }
    }

    /// Whether an operating system keeps a folder of that name at the top of a volume for itself. It holds a search
    /// index, a log of changes, restore points, or deleted files.
    package static func isSystemFolder(_ name: FilePath.Component) -> Bool {
        let name = name.string.lowercased()
        return systemFolders.contains(name) || name.hasPrefix(trash)
    }

    private static let systemFolders: Set<String> = [
        // macOS.
        ".spotlight-v100", ".fseventsd", ".trashes", ".temporaryitems", ".documentrevisions-v100",
        // Windows.
        "system volume information", "$recycle.bin",
    ]
    /// `.Trash-1000` (freedesktop.org's trash specification).
    private static let trash = ".trash-"
}

/// The state of a walk over a file system.
private struct InventoryWalk {
    let top: Folder
    let device: UInt64
    /// The difference between two readings of a file's mtime, in nanoseconds.
    let tolerance: Int64
    /// The places of other mounts.
    let mounts: Set<FilePath>
    let limit: Int
    /// Folders below `top`.
    var waiting: [FilePath] = [""]
    var seen = 0

    /// The open folder. Throws where another file system is mounted over it, and hides its files.
    func enter(_ path: FilePath) throws(SystemError) -> Folder {
        if path.isEmpty || !mounts.contains(top.path.pushing(path)) {
            let folder = try top.folder(path)
            if try folder.identity().device == device || folder.hasSubvolumes { return folder }
        }
        throw SystemError(call: "openat", path: top.path.pushing(path), code: .resourceBusy)
    }
}

extension Folder {
    /// Whether folders of its file system have device numbers of their own: a subvolume needs no mount.
    fileprivate var hasSubvolumes: Bool { ["btrfs", "bcachefs"].contains(kind?.name) }
}

/// The sum of the files' hashes modulo 2^64, twice: the same in any order.
package struct InventorySum: Sendable, Equatable {
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    package init() {}

    package var text: String {
        [high, low].map { half in
            let digits = String(half, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    /// - Parameter tolerance: FAT cuts times to that when a file leaves the kernel's memory.
    package mutating func add(_ path: FilePath, _ identity: FileIdentity?, tolerance: Int64) {
        let modified = identity?.modified ?? -1
        let rest = tolerance > 0 ? (modified % tolerance + tolerance) % tolerance : 0
        var hash = SHA256()
        // With its NUL, which ends the path.
        path.withPlatformString { hash.update(UnsafeRawBufferPointer(start: $0, count: path.length + 1)) }
        for number in [identity?.size ?? -1, modified &- rest] {
            withUnsafeBytes(of: number.littleEndian) { hash.update($0) }
        }
        let bytes = hash.bytes
        high &+= bytes[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low &+= bytes[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
