import Foundation
import Glibc
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

/// Cards as loop devices, mounted without a desktop.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct CardMountTests {
    private let pool = BlockingPool(name: "cards", threads: 2)
    private let folder: TemporaryDirectory
    private let base: FilePath

    init() throws {
        folder = try TemporaryDirectory()
        base = folder.path.resolved.appending("cards")
    }

    private func mount(_ device: FilePath, writes: Bool = false, mayBeFixed: Bool = true) async throws
        -> CardMount.Mounted
    {
        try await CardMount(base: base, writes: writes, mayBeFixed: mayBeFixed, pool: pool).mount(device)
    }

    private func refusal(_ device: FilePath, writes: Bool = false, mayBeFixed: Bool = true) async -> String {
        do {
            return "mounted at \(try await mount(device, writes: writes, mayBeFixed: mayBeFixed).point)"
        } catch {
            return "\(error)"
        }
    }

    private func unmount(_ place: FilePath) async throws -> String {
        try await CardMount.unmount(place, timeout: .seconds(60), pool: pool)
    }

    /// Whether no file can be made there.
    private func isReadOnly(_ point: FilePath) -> Bool {
        let file = open(point.appending("new").string, O_WRONLY | O_CREAT, 0o644)
        if file >= 0 { close(file) }
        return file < 0
    }

    @Test func `a card is mounted by its label, nothing on it changes, and a second time is the same`() async throws {
        let card = try DiskImage(label: "EOS")
        try card.write(Array("picture".utf8), to: "DCIM/a.jpg")
        let before = try card.bytes
        let device = try card.insert()
        #expect(try await mount(device) == CardMount.Mounted(point: base.appending("EOS"), isKnown: false))
        #expect(try await mount(device) == CardMount.Mounted(point: base.appending("EOS"), isKnown: true))
        let file = base.pushing("EOS/DCIM/a.jpg")
        #expect(try Data(contentsOf: URL(fileURLWithPath: file.string)) == Data("picture".utf8))
        #expect(isReadOnly(base.appending("EOS")))
        #expect(try DiskImage.isReadOnly(device))
        #expect(try await unmount(device) == "\(base)/EOS is unmounted; take the card out")
        #expect(try await unmount(device) == "\(device) is not mounted")
        #expect(!FileManager.default.fileExists(atPath: base.appending("EOS").string))
        #expect(try card.bytes == before)
        // For whoever mounts it next.
        #expect(try !DiskImage.isReadOnly(device))
    }

    @Test func `two cards of one label get two folders, and each is unmounted by its own`() async throws {
        let cards = try [DiskImage(label: "EOS"), DiskImage(label: "EOS")]
        let devices = try cards.map { try $0.insert() }
        #expect(try await mount(devices[0]).point == base.appending("EOS"))
        #expect(try await mount(devices[1]).point == base.appending("EOS-2"))
        _ = try await unmount(base.appending("EOS"))
        #expect(try await mount(devices[1]) == CardMount.Mounted(point: base.appending("EOS-2"), isKnown: true))
        #expect(try await mount(devices[0]).point == base.appending("EOS"))
        withExtendedLifetime(cards) {}
    }

    @Test func `for writing it must be asked, and not while it is mounted read-only`() async throws {
        let card = try DiskImage(label: "EOS")
        let device = try card.insert()
        _ = try await mount(device)
        #expect(await refusal(device, writes: true).contains("run 'inlet cards unmount \(device)' first"))
        _ = try await unmount(device)
        let point = try await mount(device, writes: true).point
        #expect(!isReadOnly(point))
        _ = try await unmount(device)
    }

    @Test func `programs, devices and set-uid bits on it are without effect`() async throws {
        let card = try DiskImage(label: "EOS")
        let point = try await mount(try card.insert()).point
        var statistics = statvfs()
        try #require(statvfs(point.string, &statistics) == 0)
        let wanted = UInt(ST_RDONLY | ST_NOSUID) | 4 | 8 | 1024
        #expect(statistics.f_flag & wanted == wanted)
    }

    @Test(.enabled(if: DiskImage.hasExFAT, "needs mkfs.exfat, and exFAT in the kernel or exfat-fuse"))
    func `an exFAT card is mounted the same way`() async throws {
        let card = try DiskImage(label: "My Card", megabytes: 8, format: .exfat)
        let device = try card.insert()
        let point = try await mount(device).point
        #expect(point == base.appending("My_Card"))
        #expect(isReadOnly(point))
        var statistics = statvfs()
        try #require(statvfs(point.string, &statistics) == 0)
        // ST_NOEXEC of statvfs(3).
        #expect(statistics.f_flag & 8 == 8)
        #expect(try await unmount(point).contains("is unmounted"))
    }

    @Test func `disks of the machine, mounted ones, empty ones and what is no disk are refused with a remedy`()
        async throws
    {
        let card = try DiskImage(label: "EOS")
        let device = try card.insert()
        #expect(await refusal(device, mayBeFixed: false).contains("add --not-removable"))
        let elsewhere = try folder.makeDirectory("elsewhere").resolved
        let other = try DiskImage(label: "RED")
        try other.mount(at: elsewhere)
        let table = try MountTable.current()
        let node = try #require(table.mount(of: elsewhere)?.source)
        #expect(await refusal(node).contains("run 'umount \(elsewhere)' first"))
        let empty = try DiskImage(label: "", format: nil)
        #expect(await refusal(try empty.insert()).contains("has no file system"))
        #expect(await refusal(folder.path).contains("is no disk; 'lsblk -f'"))
        #expect(await refusal("/dev/nonexistent").contains("is not there"))
        try #require(chmod(folder.path.string, 0o777) == 0)
        let open = CardMount(base: folder.path.resolved, writes: false, mayBeFixed: true, pool: pool)
        let error = await #expect(throws: CardMount.Refused.self) { _ = try await open.mount(device) }
        #expect(error?.description.contains("only root may change") == true)
        chmod(folder.path.string, 0o755)
    }

    @Test func `each type has the options that keep its journal as it is`() {
        #expect(CardMount.options("ext4", writes: false, owner: nil).suffix(1) == ["noload"])
        #expect(CardMount.options("ext4", writes: true, owner: 7) == ["rw", "nosuid", "nodev", "noexec", "noatime"])
        #expect(CardMount.options("vfat", writes: true, owner: 7).suffix(2) == ["umask=022", "uid=7"])
        #expect(CardMount.options("xfs", writes: false, owner: nil).contains("norecovery"))
    }
}
