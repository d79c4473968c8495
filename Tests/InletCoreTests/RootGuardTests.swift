import Foundation
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

    @Test func `a folder that was seen to be emptied is still that folder, one that is empty at once is suspicious`() {
        var elsewhere = Self.disk
        elsewhere.source = "/dev/sdz1"
        for (before, now) in [(Self.disk, Self.disk), (Self.disk, elsewhere), (Self.layer, Self.layer)] {
            let mark = RootMark(volume: before, folder: "drop")
            let empty = RootMark(volume: now, folder: "drop")
            #expect(!judge(mark, empty, isEmpty: true))
            #expect(judge(mark, empty, isEmpty: true, holdsFiles: false))
            #expect(judge(mark, empty))
            #expect(judge(RootMark(volume: before, folder: "drop", wasEmptied: true), empty, isEmpty: true))
            #expect(judge(RootMark(volume: before, wasEmptied: true), empty, isEmpty: true))
        }
    }

    @Test func `an empty folder under one of the same file system that is not mounted is not taken for it`() {
        let before = RootMark(volume: Self.disk, folder: "data/photos", wasEmptied: true)
        #expect(!judge(before, RootMark(volume: Self.disk, folder: "srv/photos"), isEmpty: true))
        #expect(judge(before, RootMark(volume: Self.disk, folder: "srv/photos")))
    }

    @Test func `what was written down before folders were asked for is read`() throws {
        let old = Array(#"{"volume":{"kind":"ext4","uuid":"disk","source":"/dev/sdb1"}}"#.utf8)
        #expect(try JSONDecoder().decode(RootMark.self, from: Data(old)) == RootMark(volume: Self.disk))
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
        #expect((volume.name, volume.key) == ("EOS", "fsid:ff"))
        volume.label = nil
        #expect(volume.name == "1234-ABCD")
        volume.uuid = nil
        #expect((volume.name, volume.key) == ("ff", "fsid:ff"))
        (volume.uuid, volume.fsid) = ("1234-ABCD", nil)
        #expect(volume.key == "uuid:1234-ABCD")
        (volume.uuid, volume.label) = (nil, "EOS")
        #expect(volume.key == "label:EOS")
        volume.label = nil
        #expect((volume.name, volume.key) == ("sdb1", "device:/dev/sdb1"))
        #expect(Volume(volume, folder: "DCIM").key == "device:/dev/sdb1/DCIM")
    }
}
