import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Mounts cards in a folder of Inlet's own, for machines without a desktop. Needs root.
package struct CardMount: Sendable {
    /// A mounted card.
    package struct Mounted: Sendable, Equatable {
        package var point: FilePath
        /// Whether it was mounted before.
        package var isKnown: Bool
    }

    /// Why a card is not mounted, with the remedy.
    package struct Refused: Error, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) { self.description = description }
    }

    /// Where a folder is made for each card; by default in the machine's folder for such disks.
    private let base: FilePath
    private let writes: Bool
    /// Whether a disk that cannot be taken out may be mounted.
    private let mayBeFixed: Bool
    private let pool: BlockingPool

    private static let lock: FilePath.Component = ".inlet-cards"
    private static let timeout = Duration.seconds(60)
    private static let mostNames = 100

    /// - Parameter base: nil for `defaultBase`.
    package init(base: FilePath?, writes: Bool, mayBeFixed: Bool, pool: BlockingPool) {
        (self.base, self.writes, self.mayBeFixed) = (base ?? Self.defaultBase, writes, mayBeFixed)
        self.pool = pool
    }

    /// `/media/inlet`, or `/run/media/inlet` on a machine without `/media`.
    package static var defaultBase: FilePath {
        FilePath("/media").realPath == nil ? "/run/media/inlet" : "/media/inlet"
    }

    /// Mounts the file system on `node`. Does nothing where that is done already.
    package func mount(_ node: FilePath) async throws(Refused) -> Mounted {
        guard ProcessSetup.userID == 0 else {
            throw Refused("only root may mount; run it with sudo, or use the udev rule for cards")
        }
        let device = try Self.device(at: node)
        if let known = try known(device) { return known }
        try check(device)
        let (type, name) = try await fileSystem(on: device)
        do {
            return try await mount(device, type, name)
        } catch let refused as Refused {
            throw refused
        } catch {
            throw Refused("\(device.node.display) cannot be mounted: \(error)")
        }
    }

    private func mount(_ device: BlockDevice, _ type: String, _ name: String) async throws -> Mounted {
        try DurableFile.makeDirectories(base, mode: 0o755)
        let status = try SystemCall.status(of: base)
        guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == 0, status.st_mode & 0o022 == 0 else {
            throw Refused("\(base.display) must be a folder that only root may change; choose another one with --in")
        }
        // Two cards of one label may come at once.
        let lock = try await waitForLock()
        defer { withExtendedLifetime(lock) {} }
        if let known = try known(device) { return known }
        let point = try freePoint(name)
        try await mount(device, type, at: point)
        return Mounted(point: point, isKnown: false)
    }

    // MARK: - Whether it may be mounted

    private static func device(at node: FilePath) throws(Refused) -> BlockDevice {
        do throws(SystemError) {
            return try BlockDevice(at: node)
        } catch {
            let why = error.isMissing ? "is not there" : error.code == .notBlockDevice ? "is no disk" : "\(error)"
            throw Refused("\(node.display): \(why); 'lsblk -f' lists the disks and cards, such as /dev/sdb1")
        }
    }

    /// The card where it is mounted already.
    private func known(_ device: BlockDevice) throws(Refused) -> Mounted? {
        let mounts: [MountTable.Mount]
        do throws(SystemError) {
            mounts = try MountTable.current().mounts.filter { BlockDevice(of: $0)?.number == device.number }
        } catch {
            throw Refused("the list of mounts cannot be read: \(error)")
        }
        guard let mount = mounts.first else { return nil }
        guard mount.point.removingLastComponent() == base.resolved else {
            throw Refused(
                "\(device.node.display) is already mounted at \(mount.point.display); run 'umount \(mount.point.display)' first"
            )
        }
        if writes, mount.options.contains(where: { $0.name == "ro" }) {
            throw Refused(
                "\(device.node.display) is already mounted read-only at \(mount.point.display); run 'inlet cards unmount "
                    + "\(device.node.display)' first")
        }
        return Mounted(point: mount.point, isKnown: true)
    }

    private func check(_ device: BlockDevice) throws(Refused) {
        let parts = device.partitions
        if !parts.isEmpty {
            throw Refused(
                "\(device.node.display) is a whole disk; mount one of its partitions: "
                    + parts.map(\.node.display).joined(separator: ", "))
        }
        if mayBeFixed { return }
        if !device.isRemovable {
            throw Refused(
                "\(device.node.display) is not removable; if you mean that disk, add --not-removable")
        }
        if let system = Self.systemPoint(of: device.disk) {
            throw Refused(
                "\(device.node.display) is on the same disk as \(system.display); if you mean that disk, add --not-removable"
            )
        }
    }

    /// Where a disk is mounted that this machine runs from; nil for others.
    private static func systemPoint(of disk: BlockDevice) -> FilePath? {
        let nodes = Set((disk.partitions + [disk]).map(\.node))
        // Without the list nothing is known to be free.
        guard let table = try? MountTable.current() else { return "/" }
        return table.mounts.first { mount in
            let isForCards = ["/media", "/run/media", "/mnt"].contains { mount.point.isWithin(FilePath($0)) }
            return !isForCards && BlockDevice(of: mount).map { nodes.contains($0.node) } ?? false
        }?.point
    }

    /// The type of the file system and the name of its folder.
    private func fileSystem(on device: BlockDevice) async throws(Refused) -> (type: String, name: String) {
        let facts = try await facts(of: device)
        guard let type = facts["ID_FS_TYPE"], facts["ID_FS_USAGE"] ?? "filesystem" == "filesystem" else {
            let found = facts["ID_FS_TYPE"].map { "holds \(DisplayText.escape($0)), and" } ?? "has"
            throw Refused(
                "\(device.node.display) \(found) no file system that can be mounted; format the card in the camera")
        }
        let names = [facts["ID_FS_LABEL_ENC"], facts["ID_FS_UUID_ENC"], device.node.lastComponent?.string]
        return (type, names.lazy.compactMap { $0.flatMap(KeySanitizer.folderName) }.first ?? "card")
    }

    /// The properties of udev. blkid(8) reads the card itself; udev's own record may be older.
    private func facts(of device: BlockDevice) async throws(Refused) -> [String: String] {
        if let blkid = ProgramFinder.find("blkid") {
            // Its output would be dropped.
            let shell = ["/bin/sh", "-c", "exec \"$0\" -p -o udev -- \"$1\" >&2", blkid.string, device.node.string]
            let said = try await run(shell)
            // 2: it finds nothing.
            if said.end == .exited(0) || said.end == .exited(2) { return VolumeFinder.udevProperties(in: said.errors) }
        }
        let name = "b\(BlockDevice.major(device.number)):\(BlockDevice.minor(device.number))"
        let record = DurableFile.readIfPossible(FilePath("/run/udev/data").appending(name), limit: 1 << 20)
        return VolumeFinder.udevProperties(in: record ?? [])
    }

    // MARK: - Mounting

    private func waitForLock() async throws -> FileLock {
        let path = base.appending(Self.lock)
        for _ in 0..<100 {
            if let lock = try FileLock(path) { return lock }
            guard await Task.rest(for: .milliseconds(100)) else { break }
        }
        throw Refused("another 'inlet cards mount' has not ended for 10 s; try again later")
    }

    /// A folder of its own: an empty one of before, or a new one.
    private func freePoint(_ name: String) throws -> FilePath {
        let taken = Set(try MountTable.current().mounts.map(\.point))
        for number in 1...Self.mostNames {
            let point = base.resolved.appending(number == 1 ? name : "\(name)-\(number)")
            if taken.contains(point) { continue }
            try DurableFile.makeDirectories(point, mode: 0o755)
            let status = try SystemCall.status(of: point)
            guard status.st_mode & S_IFMT == S_IFDIR else { continue }
            var names = try DirectoryStream(point)
            if try names.next() == nil { return point }
        }
        throw Refused("\(base.display) has \(Self.mostNames) folders for '\(name)'; remove those that are not in use")
    }

    private func mount(_ device: BlockDevice, _ type: String, at point: FilePath) async throws {
        Self.set(device, !writes && Self.mayWriteReadOnly.contains(type))
        var reason = ""
        for kind in Self.drivers[type] ?? [type] {
            let options = Self.options(type, writes: writes, owner: owner).joined(separator: ",")
            let mounted = try await run(["mount", "-t", kind, "-o", options, "--", device.node.string, point.string])
            guard mounted.end == .exited(0) else {
                reason = DisplayText.escape(mounted.errors.split(separator: UInt8(ascii: "\n")).first ?? [])
                continue
            }
            // Drivers in user space pass some of them over.
            let flags = Self.flags(writes: writes).joined(separator: ",")
            let bound = try await run(["mount", "-o", "remount,bind," + flags, "--", point.string])
            if bound.end == .exited(0) { return }
            _ = try await run(["umount", "--", point.string])
            reason = "its options could not be set"
        }
        Self.release(device, at: point)
        _ = rmdir(point.string)
        throw Refused("\(device.node.display) (\(type)) cannot be mounted: \(reason); \(Self.remedy(type))")
    }

    private static func remedy(_ type: String) -> String {
        type == "exfat"
            ? "install exfat-fuse, or a kernel with exFAT (5.7 or newer)" : "check the card on another machine"
    }

    /// The drivers to try.
    private static let drivers = ["exfat": ["exfat", "exfat-fuse"], "ntfs": ["ntfs3", "ntfs-3g"]]
    private static let fat: Set = ["vfat", "exfat", "ntfs"]
    /// Those whose drivers may note errors or replay a journal even on a read-only mount.
    private static let mayWriteReadOnly: Set = ["ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "nilfs2", "hfsplus"]
    private static let noReplay = [
        "ext3": "noload", "ext4": "noload", "xfs": "norecovery", "btrfs": "rescue=nologreplay", "f2fs": "norecovery",
        "nilfs2": "norecovery",
    ]

    static func flags(writes: Bool) -> [String] { [writes ? "rw" : "ro", "nosuid", "nodev", "noexec", "noatime"] }

    /// The options of mount(8).
    ///
    /// - Parameter owner: of all files, on a file system that knows no owners.
    static func options(_ type: String, writes: Bool, owner: UInt32?) -> [String] {
        let who = fat.contains(type) ? ["umask=022"] + (owner.map { ["uid=\($0)"] } ?? []) : []
        return flags(writes: writes) + who + (writes ? [] : noReplay[type].map { [$0] } ?? [])
    }

    /// The service's user, if the card is for writing.
    private var owner: UInt32? {
        guard writes, case .found(let user) = FileOwner.user(named: "inlet") else { return nil }
        return user
    }

    /// A driver cannot write to a device that the kernel holds read-only (blockdev(8)). Best effort: the mount is
    /// read-only anyway.
    private static func set(_ device: BlockDevice, _ isReadOnly: Bool) {
        do throws(SystemError) {
            let file = try Descriptor(opening: device.node, O_RDONLY | O_NONBLOCK)
            _ = inlet_set_read_only(file.number, isReadOnly ? 1 : 0)
        } catch {
            // The card was pulled meanwhile.
        }
    }

    private func run(_ words: [String]) async throws(Refused) -> ChildProcess.Outcome {
        guard let program = ProgramFinder.find(words[0]) else {
            throw Refused("there is no \(words[0]) on this machine; install it (Debian: mount, util-linux)")
        }
        let child = ChildProcess(
            [program.string] + words.dropFirst(),
            environment: [("PATH", Array(ProgramFinder.path.utf8)), ("LANG", Array("C.UTF-8".utf8))],
            timeout: Self.timeout)
        do throws(SystemError) {
            return try await child.run(on: pool)
        } catch {
            throw Refused("\(words[0]) cannot be run: \(error)")
        }
    }

    // MARK: - Unmounting

    /// Unmounts a card of `mount`. A card that was pulled is unmounted even while programs use it; nothing of it can be
    /// lost any more. Does nothing where it is not mounted.
    ///
    /// - Parameter place: its device, which may be gone, or its mount point.
    /// - Returns: the sentence for people.
    package static func unmount(_ place: FilePath, timeout: Duration, pool: BlockingPool) async throws(Refused)
        -> String
    {
        guard let mount = try mounted(place) else { return "\(place.display) is not mounted" }
        let isGone = mount.source.starts(with: "/dev") && BlockDevice(of: mount) == nil
        if isGone, umount2(mount.point.string, CInt(MNT_DETACH)) == 0 {
            removeOwn(mount.point)
            return "\(mount.point.display) was pulled, and is unmounted now"
        }
        switch await Ejection(point: mount.point, timeout: timeout, pool: pool, switchesOff: false).run() {
        case .out(let text):
            removeOwn(mount.point)
            return text
        case .refused(let text): throw Refused(text)
        }
    }

    private static func mounted(_ place: FilePath) throws(Refused) -> MountTable.Mount? {
        let table: MountTable
        do throws(SystemError) { table = try MountTable.current() } catch { throw Refused("\(error)") }
        let real = place.resolved
        if let mount = table.mount(of: real), mount.point == real { return mount }
        return table.mounts.last { $0.source == place || $0.source == real }
    }

    /// Whether a card is mounted there by `mount`.
    private static func isOwn(_ point: FilePath) -> Bool {
        let lock = point.removingLastComponent().appending(lock)
        return lock.withPlatformString { access($0, F_OK) } == 0
    }

    /// Undoes what `mount` has set on the device.
    static func release(_ device: BlockDevice, at point: FilePath) {
        if isOwn(point) { set(device, false) }
    }

    private static func removeOwn(_ point: FilePath) {
        if isOwn(point) { _ = rmdir(point.string) }
    }
}
