import InletCore
import Testing

@Suite struct RootGuardTests {
    private static let disk = VolumeIdentity(kind: "ext4", uuid: "disk", source: "/dev/sdb1")
    private static let system = VolumeIdentity(kind: "ext4", uuid: "system", source: "/dev/sda1")
    private static let layer = VolumeIdentity(kind: "overlay", source: "overlay")

    private func judge(
        _ before: RootMark?, _ now: RootMark, isEmpty: Bool = false, holdsFiles: Bool = true
    ) -> Bool {
        RootGuard.judge(before: before, now: now, isEmpty: isEmpty, holdsFiles: holdsFiles) == .watch
    }

    @Test func `another file system in the place of a known one is not watched, whatever is in it`() {
        let before = RootMark(volume: Self.disk)
        for isEmpty in [false, true] {
            #expect(!judge(before, RootMark(volume: Self.system), isEmpty: isEmpty))
            #expect(!judge(before, RootMark(volume: Self.layer), isEmpty: isEmpty))
        }
        #expect(judge(before, RootMark(volume: Self.disk)))
    }

    @Test func `a folder that somebody has emptied is still that folder`() {
        #expect(judge(RootMark(volume: Self.disk), RootMark(volume: Self.disk), isEmpty: true))
        #expect(judge(RootMark(volume: Self.layer), RootMark(volume: Self.layer), isEmpty: true))
        var elsewhere = Self.disk
        elsewhere.source = "/dev/sdz1"
        #expect(judge(RootMark(volume: Self.disk), RootMark(volume: elsewhere), isEmpty: true))
    }

    @Test func `another subvolume of a file system is another folder`() {
        var (before, now) = (Self.disk, Self.disk)
        (before.fsid, now.fsid) = ("a1", "a2")
        #expect(!judge(RootMark(volume: before), RootMark(volume: now)))
    }

    @Test func `where nothing tells file systems apart only an empty folder is suspicious`() {
        let memory = RootMark(volume: VolumeIdentity(kind: "tmpfs", fsid: "1", source: "tmpfs"))
        let now = RootMark(volume: VolumeIdentity(kind: "tmpfs", fsid: "2", source: "tmpfs"))
        for before in [nil, memory] {
            #expect(judge(before, now))
            #expect(!judge(before, now, isEmpty: true))
        }
    }

    @Test func `nothing is guarded of which the journal has no files`() {
        let before = RootMark(volume: Self.disk)
        #expect(judge(before, RootMark(volume: Self.system), isEmpty: true, holdsFiles: false))
        #expect(judge(nil, RootMark(volume: Self.layer), isEmpty: true, holdsFiles: false))
    }

    @Test func `volumes are told apart by the best that both have`() {
        let card = VolumeIdentity(kind: "vfat", uuid: "1234-ABCD", label: "EOS_DIGITAL", source: "/dev/sdb1")
        var other = card
        other.uuid = "9999-0000"
        #expect(card.isSame(as: other) == false)
        other.uuid = nil
        #expect(card.isSame(as: other) == nil)
        other.label = "ZOOM"
        #expect(card.isSame(as: other) == false)
        let share = VolumeIdentity(kind: "nfs", source: "nas:/photos")
        #expect(share.isSame(as: VolumeIdentity(kind: "nfs", source: "nas:/films")) == false)
        #expect(share.isSame(as: share) == true)
        let moved = VolumeIdentity(kind: "vfat", uuid: "1234-ABCD", label: "EOS_DIGITAL", source: "/dev/sdc1")
        #expect(card.isSame(as: moved) == true)
        #expect(card.key == moved.key)
    }

    @Test func `a volume is called by its label, else its UUID, else what is mounted`() {
        var volume = VolumeIdentity(kind: "vfat", uuid: "1234-ABCD", label: "EOS", fsid: "ff", source: "/dev/sdb1")
        #expect((volume.name, volume.key) == ("EOS", "uuid:1234-ABCD"))
        volume.label = nil
        #expect(volume.name == "1234-ABCD")
        volume.uuid = nil
        #expect((volume.name, volume.key) == ("ff", "fsid:ff"))
        volume.fsid = nil
        #expect((volume.name, volume.key) == ("sdb1", "device:/dev/sdb1"))
        #expect(Volume(volume, folder: "DCIM").key == "device:/dev/sdb1/DCIM")
    }
}
