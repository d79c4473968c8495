import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// Cards as loop devices with ext4, taken out by the machine's own programs and by a service in the place of udisks2.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct VolumeEjectTests {
    private let pool = BlockingPool(name: "eject", threads: 2)
    private let folder: TemporaryDirectory
    private let point: FilePath
    private let card: DiskImage

    /// No bus is there.
    private static let noBus = "unix:path=/nonexistent"

    init() throws {
        folder = try TemporaryDirectory()
        point = try folder.makeDirectory("card").resolved
        card = try DiskImage(label: "EOS")
        try card.mount(at: point)
    }

    private var mount: MountTable.Mount? {
        get throws {
            let mount = try MountTable.current().mount(of: point)
            return mount?.point == point ? mount : nil
        }
    }

    private func eject(_ bus: String = noBus, timeout: Duration = .seconds(60), sysfs: FilePath = "/sys") async
        -> VolumeEject.Outcome
    {
        await Ejection(point: point, timeout: timeout, pool: pool, bus: bus, sysfs: sysfs).run()
    }

    private func udisks(unmount: String, powerOff: String = "", device: FilePath? = nil) async throws -> UDisksDaemon {
        let mount = try #require(try mount)
        let node = try device ?? #require(BlockDevice(of: mount)).node
        return try await UDisksDaemon(device: node, unmount: unmount, powerOff: powerOff)
    }

    /// A program with its working folder on the card.
    private func holder() throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sleep")
        process.arguments = ["600"]
        process.currentDirectoryURL = URL(fileURLWithPath: point.string)
        try process.run()
        Leash.hold(process.processIdentifier)
        return process
    }

    private func text(_ outcome: VolumeEject.Outcome) -> String {
        switch outcome {
        case .out(let text), .refused(let text): text
        }
    }

    // MARK: - With the machine's own programs

    @Test func `a card is written and unmounted, and a second time is out already`() async throws {
        try Data("x".utf8).write(to: URL(fileURLWithPath: point.appending("file").string))
        let outcome = await eject()
        #expect(outcome == .out("\(point) is unmounted; take the card out"))
        #expect(try mount == nil)
        #expect(await eject() == .out("nothing is mounted at \(point); take the card out"))
    }

    @Test func `a card in use stays, and the program that uses it is named`() async throws {
        let holder = try holder()
        defer { kill(holder.processIdentifier, SIGKILL) }
        let said = await eject()
        #expect(
            said
                == .refused(
                    "\(point) is in use by sleep (process \(holder.processIdentifier)); close its files there, and eject "
                        + "the card again"))
        #expect(try mount != nil)
    }

    @Test func `Inlet's own files on it are told apart from another program's`() async throws {
        try Data("x".utf8).write(to: URL(fileURLWithPath: point.appending("file").string))
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: point.appending("file").string))
        #expect(text(await eject()).contains("in use by Inlet itself"))
        try file.close()
        #expect(await eject() == .out("\(point) is unmounted; take the card out"))
    }

    @Test func `a mapped file counts as open`() throws {
        try Data(count: 4096).write(to: URL(fileURLWithPath: point.appending("file").string))
        let file = open(point.appending("file").string, O_RDONLY)
        let mapping = mmap(nil, 4096, PROT_READ, MAP_PRIVATE, file, 0)
        close(file)
        let device = try SystemCall.status(of: point).st_dev
        #expect(OpenWriters.users(of: UInt64(device)).map(\.process) == [getpid()])
        munmap(mapping, 4096)
        #expect(OpenWriters.users(of: UInt64(device)).isEmpty)
    }

    @Test func `a card that is mounted at two places is not called out`() async throws {
        let other = try folder.makeDirectory("other").resolved
        let second = try TestMount(folder: point, at: other)
        #expect(await eject() == .refused("\(point) is mounted at \(other) too; unmount that first"))
        second.unmount()
        #expect(await eject() == .out("\(point) is unmounted; take the card out"))
    }

    @Test(.enabled(if: TestMount.hasBindfs, "needs bindfs and /dev/fuse"))
    func `a file system of a program (FUSE) is unmounted too`() async throws {
        let place = try folder.makeDirectory("fuse").resolved
        let mount = try TestMount(bindfs: folder.makeDirectory("below"), at: place)
        let outcome = await Ejection(point: place, timeout: .seconds(60), pool: pool, bus: Self.noBus).run()
        #expect(outcome == .out("\(place) is unmounted"))
        withExtendedLifetime(mount) {}
    }

    // MARK: - With udisks2

    @Test(.enabled(if: UDisksDaemon.isAvailable, Comment(rawValue: UDisksDaemon.reason)))
    func `udisks2 unmounts it, and nothing else is tried`() async throws {
        let daemon = try await udisks(unmount: "subprocess.run(['umount', '\(point)'], check=True)")
        #expect(await eject(daemon.bus) == .out("\(point) is unmounted; take the card out"))
        #expect(try mount == nil)
    }

    @Test(
        .enabled(if: UDisksDaemon.isAvailable, Comment(rawValue: UDisksDaemon.reason)),
        arguments: [
            (
                "fail('NotAuthorizedCanObtain', 'Not authorized to perform operation')",
                ["may not unmount", "polkit rule"]
            ),
            ("fail('DeviceBusy', 'target is busy')", ["in use by a program that this user may not see", "fuser -vm"]),
            ("time.sleep(600)", ["did not come out within 4s", "leave the card in"]),
        ])
    func `a service that refuses, is busy or hangs leaves it in, with a remedy`(_ answer: String, _ words: [String])
        async throws
    {
        let daemon = try await udisks(unmount: answer)
        // A busy card is waited for first.
        let outcome = await eject(daemon.bus, timeout: .seconds(4))
        guard case .refused(let said) = outcome else { throw Errno.badMessage }
        for word in words { #expect(said.contains(word), "\(said)") }
        #expect(try mount != nil)
    }

    @Test(.enabled(if: UDisksDaemon.isAvailable, Comment(rawValue: UDisksDaemon.reason)))
    func `a program that just looks around is waited for`() async throws {
        let seen = folder.path.appending("seen")
        let daemon = try await udisks(
            unmount: """
                subprocess.run(['umount', '\(point)'], check=True) if os.path.exists('\(seen)') else (
                    open('\(seen)', 'w').close(), fail('DeviceBusy', 'target is busy'))
                """)
        #expect(await eject(daemon.bus) == .out("\(point) is unmounted; take the card out"))
        #expect(FileManager.default.fileExists(atPath: seen.string))
    }

    @Test(
        .enabled(if: UDisksDaemon.isAvailable, Comment(rawValue: UDisksDaemon.reason)),
        arguments: ["os._exit(1)", "fail('Failed', 'no idea')"])
    func `where the service vanishes or fails, the machine's own program unmounts it`(_ answer: String) async throws {
        let daemon = try await udisks(unmount: answer)
        #expect(await eject(daemon.bus) == .out("\(point) is unmounted; take the card out"))
        #expect(try mount == nil)
    }

    @Test(.enabled(if: UDisksDaemon.isAvailable, Comment(rawValue: UDisksDaemon.reason)))
    func `a card that somebody else takes out meanwhile is out, whatever the service says`() async throws {
        let daemon = try await udisks(
            unmount: "subprocess.run(['umount', '\(point)']); fail('NotMounted', 'not mounted')")
        #expect(await eject(daemon.bus) == .out("\(point) is unmounted; take the card out"))
    }

    @Test(.enabled(if: UDisksDaemon.isAvailable, Comment(rawValue: UDisksDaemon.reason)))
    func `an external disk is switched off, a reader stays on for the next card`() async throws {
        let off = folder.path.appending("off")
        for isReader in [false, true] {
            if try mount == nil { try card.mount(at: point) }
            let sysfs = try FakeSysfs(in: folder.makeDirectory(isReader ? "reader" : "disk").resolved)
            try sysfs.add("usb1/1-2", ["idVendor": "1234"])
            let number = try #require(try mount).number
            try sysfs.add("usb1/1-2/host6/block/sdz", ["removable": isReader ? "1" : "0", "dev": number], as: number)
            let daemon = try await udisks(
                unmount: "subprocess.run(['umount', '\(point)'], check=True)", powerOff: "open('\(off)', 'w').close()",
                device: "/dev/sdz")
            let said = await eject(daemon.bus, sysfs: sysfs.path)
            let isOff = FileManager.default.fileExists(atPath: off.string)
            #expect(isOff == !isReader, "\(said)")
            #expect(text(said).contains("its disk is off") == !isReader, "\(said)")
            try? FileManager.default.removeItem(atPath: off.string)
        }
    }
}

/// What `/sys` says of devices that this machine does not have.
struct FakeSysfs {
    let path: FilePath

    init(in path: FilePath) throws {
        self.path = path
        for folder in ["dev/block", "class/block"] {
            try FileManager.default.createDirectory(
                atPath: path.pushing(FilePath(folder)).string, withIntermediateDirectories: true)
        }
    }

    /// - Parameter number: `major:minor` of a block device; nil for another one.
    func add(_ device: FilePath, _ attributes: [String: String], as number: String? = nil) throws {
        let folder = path.appending("devices").pushing(device)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        for (name, text) in attributes {
            try Data("\(text)\n".utf8).write(to: URL(fileURLWithPath: folder.appending(name).string))
        }
        guard let number, let name = device.lastComponent?.string else { return }
        for link in ["dev/block/\(number)", "class/block/\(name)"] {
            try FileManager.default.createSymbolicLink(
                atPath: path.pushing(FilePath(link)).string, withDestinationPath: folder.string)
        }
    }
}

extension MountTable.Mount {
    fileprivate var number: String { "\(major):\(minor)" }
}

/// Disks, readers and ports from what the kernel says of them.
@Suite struct BlockDeviceTests {
    private let folder: TemporaryDirectory
    private let sysfs: FakeSysfs

    init() throws {
        folder = try TemporaryDirectory()
        sysfs = try FakeSysfs(in: folder.path.resolved)
    }

    private func device(_ major: UInt32, _ minor: UInt32) throws -> BlockDevice {
        try #require(BlockDevice(number: UInt64(major) << 8 | UInt64(minor), sysfs: sysfs.path))
    }

    @Test func `a USB reader with two slots is one port, its cards are removable, and a partition has its disk`() throws
    {
        try sysfs.add("pci/usb1/1-2", ["idVendor": "1234"])
        try sysfs.add("pci/usb1/1-2/block/sdb", ["removable": "1", "dev": "8:16"], as: "8:16")
        try sysfs.add("pci/usb1/1-2/block/sdb/sdb1", ["partition": "1", "dev": "8:17"], as: "8:17")
        try sysfs.add("pci/usb1/1-2/block/sdc", ["removable": "1", "dev": "8:32"], as: "8:32")
        try sysfs.add("pci/ata1/block/sda", ["removable": "0", "dev": "8:0"], as: "8:0")
        let card = try device(8, 17)
        #expect(card.isPartition && card.node == "/dev/sdb1" && card.disk.node == "/dev/sdb")
        #expect(card.disk.partitions == [card] && card.partitions.isEmpty)
        #expect(card.hasRemovableMedium && card.isRemovable)
        #expect(card.usbPort == sysfs.path.pushing("devices/pci/usb1/1-2"))
        #expect(card.sharingPort.map(\.node) == ["/dev/sdb", "/dev/sdb1", "/dev/sdc"])
        let inner = try device(8, 0)
        #expect(!inner.isRemovable && inner.usbPort == nil && inner.sharingPort == [inner])
        #expect(BlockDevice(number: 9 << 8, sysfs: sysfs.path) == nil)
    }

    @Test func `a slot on a host controller, a USB disk and a disk at an outer PCI port are removable`() throws {
        try sysfs.add("mmc0/mmc0:aaaa/block/mmcblk0/device", ["type": "SD"])
        try sysfs.add("mmc0/mmc0:aaaa/block/mmcblk0", ["removable": "0", "dev": "179:0"], as: "179:0")
        try sysfs.add("mmc1/mmc1:0001/block/mmcblk1/device", ["type": "MMC"])
        try sysfs.add("mmc1/mmc1:0001/block/mmcblk1", ["removable": "0", "dev": "179:8"], as: "179:8")
        try sysfs.add("pci/usb2/2-1", ["idVendor": "1234"])
        try sysfs.add("pci/usb2/2-1/block/sdd", ["removable": "0", "dev": "8:48"], as: "8:48")
        try sysfs.add("pci/tb", ["removable": "removable"])
        try sysfs.add("pci/tb/nvme/nvme1n1", ["removable": "0", "dev": "259:4"], as: "259:4")
        let found = try [(179, 0), (179, 8), (8, 48), (259, 4)].map { try device($0.0, $0.1) }
        #expect(found.map(\.isRemovable) == [true, false, true, true])
        #expect(found.map(\.hasRemovableMedium) == [true, false, false, false])
    }
}
