import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// The journal backed up, restored and reset by the commands.
@Suite(.serialized) struct BackupCommandTests {
    @Test func `a backup made under load and restored loses no file and makes no second object`() async throws {
        let (place, agent) = try await Place.running()
        try await place.deliver("before.txt", bytes(10), by: agent)
        for number in 0..<40 { try place.put(FilePath("a\(number).bin"), bytes(2000, seed: UInt64(number))) }
        try await agent.line("job.finished", number: 2)
        let backup = place.folder.path.appending("backup.sqlite")
        try await place.inlet("queue", "backup", backup.string, code: 0, says: backup.string)
        for number in 0..<20 { try place.put(FilePath("b\(number).bin"), bytes(2000, seed: UInt64(100 + number))) }
        try await agent.line("job.finished", number: 61)
        try await place.inlet("queue", "restore", backup.string, "--yes", code: 75)
        // Another over its own name, and one by itself under the time.
        let other = place.folder.path.appending("other.sqlite").string
        for _ in 0..<2 { try await place.inlet("queue", "backup", other, code: 0) }
        try await place.inlet("queue", "backup", says: "state/backups/journal-")
        let mode = try FileManager.default.attributesOfItem(atPath: backup.string)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(try await agent.stop() == .code(0))

        try place.put("c.bin", bytes(10))
        try await place.inlet("queue", "restore", backup.string, code: 64)
        try await place.inlet("queue", "restore", backup.string, "--yes", code: 0, says: "was kept as")
        let again = try await place.run()
        try await eventually("all is delivered") { try await place.balance()["delivered"] == 62 }
        let balance = try await place.balance()
        #expect(balance.values.reduce(0, +) == 62, "\(balance)")
        try await again.stop()
        // What the backup knows is not begun again, and what came after it has the same places.
        #expect(!again.lines("job.started").contains { $0.isAbout("before.txt") })
        let names = Place.files(below: place.library).keys
        #expect(names.count == 62 && names.contains("before.txt"), "\(names)")
        for number in 0..<40 {
            let name = "a\(number).bin"
            #expect(try place.content(place.library.appending(name)) == bytes(2000, seed: UInt64(number)), "\(name)")
        }
    }

    @Test func `a reset keeps the journal and begins an empty one, and not while the agent runs`() async throws {
        let (place, agent) = try await Place.running()
        try place.put("a.txt", bytes(10))
        try await agent.line("job.finished")
        try await place.inlet("queue", "reset", "--yes", code: 75)
        try await agent.stop()
        try await place.inlet("queue", "reset", code: 64)
        try await place.inlet("queue", "reset", "--yes", code: 0, says: "are new ones then")
        let kept = try FileManager.default.contentsOfDirectory(atPath: place.state.string)
        let old = try #require(kept.first { $0.hasPrefix("journal.sqlite.reset-") })
        #expect(place.exists(place.drop.appending("a.txt")))
        #expect(try await place.balance()["delivered"] == 0)
        // And back again.
        let aside = place.state.appending(old).string
        try await place.inlet("queue", "restore", aside, "--yes", code: 0)
        #expect(try await place.balance()["delivered"] == 1)
    }

    @Test func `a start without its journal ends with what to do, and status says so too`() async throws {
        let (place, agent) = try await Place.running()
        try place.put("a.txt", bytes(10))
        try await agent.line("job.finished")
        try await agent.stop()
        try FileManager.default.removeItem(atPath: place.state.appending("journal.sqlite").string)
        for command in ["run", "status"] {
            try await place.inlet(command, code: 78, errors: "queue restore")
        }
        try await place.inlet("queue", "reset", "--yes", code: 0)
        let again = try await place.run()
        try await again.line("job.finished")
        try await again.stop()
    }

    @Test func `a reset waits for a command that has the journal for a moment`() async throws {
        let place = try Place()
        try await place.run().stop()
        var lock = try FileLock(place.state.appending("lock"))
        let isHeld = lock != nil
        #expect(isHeld)
        async let reset = place.inlet("queue", "reset", "--yes")
        // Held for as long as another command takes.
        try await place.inlet("config", "show", code: 0)
        lock = nil
        #expect(try await reset.ending == .code(0))
    }

    @Test(arguments: [true, false])
    func `a backup is not written over what is no backup`(_ running: Bool) async throws {
        let place = try Place()
        let agent = running ? try await place.run() : nil
        let precious = try place.folder.write("precious".utf8, to: "precious.mov")
        let journal = place.state.appending("journal.sqlite").string
        for target in [precious.string, journal, place.drop.string] {
            try await place.inlet("queue", "backup", target, code: 1, errors: "no backup was made")
        }
        #expect(try place.content(precious) == Data("precious".utf8))
        try await agent?.stop()
    }
}
