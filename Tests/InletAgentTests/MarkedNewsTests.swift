import InletCore
import InletLinux
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct MarkedNewsTests {
    typealias Mask = InotifyRecord.Mask

    @Test(
        arguments: [
            ([.created, .closedAfterWriting], true, [.created, .closedAfterWriting]),
            ([.attributes], true, [.attributes]),
            ([.movedTo], true, [.movedTo]),
            ([.deleted], false, [.deleted]),
            ([.movedFrom], false, [.movedFrom]),
            // Created, deleted and created again, in any order: one record.
            ([.created, .closedAfterWriting, .deleted], true, [.closedAfterWriting]),
            ([.created, .closedAfterWriting, .deleted], false, [.deleted]),
            // Renamed away, and another has its name already.
            ([.movedFrom], true, [.closedAfterWriting]),
            ([.created, .isDirectory], true, [.isDirectory]),
            ([.movedTo, .isDirectory], true, [.movedTo, .isDirectory]),
            ([.deleted, .isDirectory], false, [.deleted, .isDirectory]),
            ([.created, .deleted, .isDirectory], true, [.deleted, .movedTo, .isDirectory]),
            ([.movedFrom, .isDirectory], true, [.movedFrom, .movedTo, .isDirectory]),
        ] as [(Mask, Bool, Mask)])
    func `what has gone is decided by what is there`(mask: Mask, isThere: Bool, meaning: Mask) {
        #expect(FanotifyMounts.meaning(mask) { isThere } == meaning)
    }

    @Test func `only what is said to have gone costs a look at the disk`() {
        var looks = 0
        for mask in [[.created], [.closedAfterWriting, .attributes], [.movedTo, .isDirectory]] as [Mask] {
            _ = FanotifyMounts.meaning(mask) {
                looks += 1
                return true
            }
        }
        #expect(looks == 0)
    }

    @Test func `a dot is the folder itself, and the root has nothing to say of itself`() {
        let name = Array("n".utf8)
        #expect(FanotifyMounts.subject("a/b", name).map { "\($0.directory) \($0.name)" } == "a/b \(name)")
        #expect(FanotifyMounts.subject("a/n", [0x2E]).map { "\($0.directory) \($0.name)" } == "a \(name)")
        #expect(FanotifyMounts.subject("", [0x2E]) == nil)
    }

    @Test func `a path is below a root by whole names`() {
        #expect(HandleReader.path(of: "/srv/drop/a/b", below: "/srv/drop") == "a/b")
        #expect(HandleReader.path(of: "/srv/drop", below: "/srv/drop") == "")
        #expect(HandleReader.path(of: "/srv/dropped/a", below: "/srv/drop") == nil)
        #expect(HandleReader.path(of: "/srv", below: "/srv/drop") == nil)
        #expect(HandleReader.path(of: "/srv/drop", below: "/") == "srv/drop")
        #expect(HandleReader.path(of: "/", below: "/") == "")
    }

    @Test func `what is remembered of folders is bounded, and can be forgotten`() {
        var places = HandlePlaces(limit: 10)
        for number in 0..<100 as Range<UInt8> {
            let handle = FileHandle(fileSystem: 1, type: 1, bytes: [number])
            let place: FilePath? = number % 2 == 0 ? nil : "a"
            places.remember(handle, place)
            #expect(places[handle] == .some(place))
            #expect(places.count <= 10)
        }
        places.forgetAll()
        #expect(places.count == 0)
    }
}
