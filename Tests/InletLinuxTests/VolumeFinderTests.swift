import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite struct VolumeFinderTests {
    private static let table = """
        22 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw
        97 22 0:61 / /srv/with\\040space rw - nfs4 nas:/my\\040photos rw,addr=10.0.0.2
        98 22 0:38 /@home /home rw,relatime shared:2 master:1 - btrfs /dev/sdb3 rw,subvol=/@home
        broken line
        99 22 0:99 / /x rw - tmpfs
        """

    @Test(arguments: [
        ("8:2", "/dev/sda2"), ("0:61", "nas:/my photos"), ("0:38", "/dev/sdb3"), ("0:99", nil), ("1:1", nil),
    ])
    func `the source of a mount is read from mountinfo`(device: String, source: String?) {
        #expect(MountSource.find(device, in: Array(Self.table.utf8)) == source)
    }

    @Test func `any bytes are no mount table, and do no harm`() {
        var random = SeededGenerator(seed: 20_261_122)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ in
                Array("0:1 -\\0478/\n\u{1}".utf8).randomElement(using: &random) ?? 0
            }
            _ = MountSource.find("0:1", in: bytes)
        }
        #expect(MountSource.unescaped(Array("a\\04".utf8)[...]) == Array("a\\04".utf8))
        #expect(MountSource.unescaped(Array("\\134\\777".utf8)[...]) == Array("\\\\777".utf8))
    }

    @Test func `names of udev are read as they were written`() {
        #expect(VolumeFinder.unescaped(#"MY\x20CARD"#) == "MY CARD")
        #expect(VolumeFinder.unescaped(#"odd\x2"#) == #"odd\x2"#)
    }

    @Test func `the file system of a folder has a name, and the same one at each look`() throws {
        let directory = try TemporaryDirectory()
        let first = try VolumeFinder().identity(of: directory.path)
        #expect(!first.name.isEmpty)
        #expect(try VolumeFinder().identity(of: directory.path) == first)
        let place = try VolumeFinder.mountPoint(of: directory.path)
        #expect(place.point.appending(place.folder).lexicallyNormalized() == directory.path)
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
