import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Which volumes are one, by numbers and names.
@Suite struct RootPlaceTests {
    private static let card = VolumeIdentity(kind: "vfat", label: "Untitled", source: "/dev/sdb1")

    private func place(
        _ identity: VolumeIdentity = card, device: UInt64 = 1, folder: String = "DCIM", isVolume: Bool = true
    ) -> RootPlace {
        let numbers = FileIdentity(size: 0, modified: 0, changed: 0, inode: 1, device: device)
        return RootPlace(place: FolderPlace(numbers), identity: identity, folder: folder, isVolume: isVolume)
    }

    @Test func `a file system that is mounted twice is watched once, and a copy of it is another`() {
        let others: [FilePath: RootPlace] = ["/media/A": place(), "/media/B": place(device: 2)]
        let claims: [(RootPlace, RootPlace.Claim)] = [
            (place(), .twice(other: "/media/A")), (place(device: 2), .twice(other: "/media/B")),
            (place(device: 3), .alike(other: "/media/A")), (place(folder: "PRIVATE"), .free),
            (place(VolumeIdentity(kind: "vfat", label: "EOS")), .free), (place(isVolume: false), .free),
        ]
        for (new, claim) in claims { #expect(new.claim(among: others) == claim) }
        #expect(place().claim(among: [:]) == .free)
    }

    @Test func `volumes of one name that are there together are known apart`() {
        var (first, second) = (place(device: 2), place(device: 3))
        let plain = first.volume
        first.distinguish()
        second.distinguish()
        #expect(Set([plain.key, first.volume.key, second.volume.key]).count == 3)
        // In keys of files they have their name.
        #expect(first.volume.name == "Untitled" && second.volume.name == "Untitled")
        // It stays known whose copy it is: the third is like the second.
        #expect(place(device: 4).claim(among: ["/media/B": first]) == .alike(other: "/media/B"))
        #expect(place(device: 2).claim(among: ["/media/B": first]) == .twice(other: "/media/B"))
    }
}
