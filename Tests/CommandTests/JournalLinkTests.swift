import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Commands of root in a folder that somebody else may write to.
struct JournalLinkTests {
    @Test(arguments: ["", "-wal", "-shm"])
    func `a link in the place of the journal leads no command to another file`(_ suffix: String) async throws {
        let place = try Place()
        try place.folder.makeDirectory("state")
        let other = try place.folder.write([], to: "other")
        #expect(chmod(other.string, 0o644) == 0)
        let name = place.state.appending("journal.sqlite" + suffix).string
        for make in [{ symlink($0, $1) }, { Foundation.link($0, $1) }] as [(String, String) -> Int32] {
            #expect(make(other.string, name) == 0)
            for command in [["status"], ["queue", "list"], ["run"]] {
                let refused = try await place.inlet(command, errors: "a journal has one name")
                #expect(refused.ending != .code(0), "\(refused)")
            }
            let facts = try FileManager.default.attributesOfItem(atPath: other.string)
            #expect((facts[.posixPermissions] as? NSNumber)?.intValue == 0o644)
            #expect((facts[.size] as? NSNumber)?.intValue == 0)
            #expect(unlink(name) == 0)
        }
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `in another user's folder no backup of root goes through a link to others`() async throws {
        let place = try Place()
        try place.folder.makeDirectory("state")
        let elsewhere = try place.folder.makeDirectory("elsewhere")
        let link = place.state.appending("backups").string
        #expect(symlink(elsewhere.string, link) == 0)
        // Its own is followed: backups may be on another disk.
        try await place.inlet("queue", "backup", code: 0)
        #expect(lchown(link, 65_534, 65_534) == 0)
        try Nobody.own(place.state)
        let before = Place.files(below: elsewhere).count
        let refused = try await place.inlet("queue", "backup", errors: "backups")
        #expect(refused.ending != .code(0), "\(refused)")
        #expect(before >= 1 && Place.files(below: elsewhere).count == before)
        try await place.inlet("queue", "list", code: 0)
    }

    @Test func `a link in the place of a journal that is restored leads to no other file`() async throws {
        let place = try Place()
        let backup = place.folder.path.appending("backup.sqlite").string
        try await place.inlet("queue", "backup", backup, code: 0)
        let other = try place.folder.write(Data("precious".utf8), to: "other")
        let link = place.state.appending("journal.sqlite.restoring").string
        #expect(symlink(other.string, link) == 0)
        let refused = try await place.inlet("queue", "restore", backup, "--yes", errors: "a journal has one name")
        #expect(refused.ending != .code(0), "\(refused)")
        #expect(try place.content(other) == Data("precious".utf8))
        #expect(unlink(link) == 0)
        try await place.inlet("queue", "restore", backup, "--yes", code: 0)
    }
}
