import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct VolumeFinderTests {
    @Test(
        arguments: [
            (
                [0x28, 0x7a, 0x1e, 0xe7, 0xf0, 0x69, 0x47, 0xb4, 0xb0, 0x60, 0xd2, 0x09, 0xbb, 0xd7, 0xd0, 0x32],
                "287a1ee7-f069-47b4-b060-d209bbd7d032"
            ),
            // As in a boot sector: the lowest byte first.
            ([0xcd, 0xab, 0x34, 0x12], "1234-ABCD"), ([0x01, 0, 0, 0], "0000-0001"),
            ([], nil), ([0, 0, 0, 0], nil), ([UInt8](repeating: 0, count: 16), nil), ([1, 2, 3], nil),
        ] as [([UInt8], String?)])
    func `a UUID is written as blkid writes it`(bytes: [UInt8], text: String?) {
        #expect(VolumeNames.uuid(bytes) == text)
    }

    @Test func `names of udev are read as they were written`() {
        #expect(VolumeFinder.unescaped(#"MY\x20CARD"#) == "MY CARD")
        #expect(VolumeFinder.unescaped(#"odd\x2"#) == #"odd\x2"#)
    }

    @Test func `the file system of a folder has a name, and the same one at each look`() throws {
        let directory = try TemporaryDirectory()
        let first = try VolumeFinder().place(of: directory.path)
        #expect(!first.volume.name.isEmpty)
        #expect(try VolumeFinder().place(of: directory.path) == first)
        #expect(("/" + first.folder).hasSuffix(directory.path.lastComponent?.string ?? "/"))
        #expect(throws: SystemError.self) { try VolumeFinder().place(of: directory.path.appending("missing")) }
    }

    @Test func `what is mounted is found in the table, by the way that leads there`() throws {
        let directory = try TemporaryDirectory()
        let real = directory.path.resolved
        let table = """
            22 1 8:2 / / rw - ext4 /dev/sda2 rw
            97 22 0:61 /cards/one \(real.string) rw - nfs4 nas:/my\\040photos rw
            """
        let file = try directory.write(Array(table.utf8), to: "mountinfo")
        try directory.makeDirectory("DCIM")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path.appending("link").string,
            withDestinationPath: directory.path.appending("DCIM").string)
        let finder = VolumeFinder(mountinfo: file)
        #expect(try finder.place(of: directory.path.appending("DCIM")).volume.source == "nas:/my photos")
        #expect(try finder.place(of: directory.path.appending("DCIM")).folder == "cards/one/DCIM")
        #expect(try finder.place(of: directory.path).folder == "cards/one")
        // Without a table the path must do.
        let blind = VolumeFinder(mountinfo: directory.path.appending("none"))
        #expect(try blind.place(of: directory.path).folder == String(real.string.dropFirst()))
    }

    @Test func `a watch of mounts tells of a folder that comes, and not of a file`() throws {
        let directory = try TemporaryDirectory()
        let waker = try Waker()
        var watch = try MountWatch()
        watch.watch([directory.path])
        try directory.write([1], to: "file")
        try directory.makeDirectory("folder")
        #expect(try watch.wait(until: .now.advanced(by: .seconds(10)), waker: waker))
        waker.wake()
        #expect(try !watch.wait(until: nil, waker: waker))
    }
}

/// Real disks in files.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"))
struct MountedVolumeTests {
    @Test func `a disk is the same at each place, a folder of it that is mounted too, and another disk is another`()
        throws
    {
        let first = try DiskImage(label: "EOS 1/2")
        let second = try DiskImage(label: "EOS 1/2")
        let (card, other) = (try first.mounted(), try second.mounted())
        #expect(card.volume.label == "EOS 1/2" && card.volume.name == "EOS 1/2")
        #expect(card.volume.isSame(as: other.volume) == false && card.volume.key != other.volume.key)
        #expect(card.folder == "DCIM")
        #expect(try first.mounted() == card)
        #expect(try first.mounted(folder: "DCIM") == card)
    }

    @Test func `udev's names are found by the device, and say what the kernel says`() throws {
        let image = try DiskImage(label: "EOS")
        try image.whileMounted { folder in
            let plain = try VolumeFinder().identity(of: folder)
            let disks = try image.directory.makeDirectory("disk")
            for (kind, name) in [("by-uuid", "9999-0000"), ("by-label", "MY\\x20CARD")] {
                let links = try image.directory.makeDirectory(FilePath("disk/\(kind)"))
                try FileManager.default.createSymbolicLink(
                    atPath: links.appending(name).string, withDestinationPath: plain.source)
            }
            let named = try VolumeFinder(disks: disks).identity(of: folder)
            #expect(named.uuid == "9999-0000" && named.label == "MY CARD")
            // It does not matter to the journal whether udev was there.
            #expect(named.key == plain.key)
        }
    }
}

/// An ext4 file system in a file, with a folder `DCIM`.
private final class DiskImage {
    let directory: TemporaryDirectory
    private var point: FilePath { directory.path.appending("point") }

    static let isAvailable = (try? DiskImage(label: "test").mounted()) != nil

    init(label: String) throws {
        directory = try TemporaryDirectory()
        try directory.makeDirectory("point")
        let image = directory.path.appending("image")
        try Data().write(to: URL(fileURLWithPath: image.string))
        try FileHandle(forWritingTo: URL(fileURLWithPath: image.string)).truncate(atOffset: 4 << 20)
        try Self.run("/usr/sbin/mkfs.ext4", "-q", "-F", "-L", label, image.string)
        try whileMounted { folder in
            try FileManager.default.createDirectory(
                atPath: folder.appending("DCIM").string, withIntermediateDirectories: false)
        }
    }

    func whileMounted<Value>(_ body: (FilePath) throws -> Value) throws -> Value {
        try Self.run("/bin/mount", "-o", "loop", directory.path.appending("image").string, point.string)
        defer { try? Self.run("/bin/umount", point.string) }
        return try body(point)
    }

    /// What its folder `DCIM` is; with `folder`, where only that is mounted a second time. Which loop device it got is chance.
    func mounted(folder: FilePath.Component? = nil) throws -> (volume: VolumeIdentity, folder: String) {
        var found = try whileMounted { top in
            guard let folder else { return try VolumeFinder().place(of: top.appending("DCIM")) }
            let second = try directory.makeDirectory("second")
            try Self.run("/bin/mount", "--bind", top.appending(folder).string, second.string)
            defer { try? Self.run("/bin/umount", second.string) }
            return try VolumeFinder().place(of: second)
        }
        found.volume.source = ""
        return found
    }

    private static func run(_ program: String, _ arguments: String...) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failed(what: program) }
    }

    private struct Failed: Error {
        let what: String
    }
}
