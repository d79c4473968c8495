import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// The journal backed up, restored and reset by the commands.
@Suite(.serialized) struct BackupCommandTests {
    @Test func `a backup made under load and restored loses no file and makes no second object`() async throws {
        let place = try Place()
        let agent = try await place.run()
        for number in 0..<40 { try place.put(FilePath("a\(number).bin"), bytes(2000, seed: UInt64(number))) }
        try await agent.line("job.finished")
        let backup = place.folder.path.appending("backup.sqlite")
        let made = try await place.inlet("queue", "backup", backup.string)
        #expect(made.ending == .code(0) && made.output.contains(backup.string), "\(made.errors)")
        for number in 0..<20 { try place.put(FilePath("b\(number).bin"), bytes(2000, seed: UInt64(100 + number))) }
        try await agent.line("job.finished", number: 60)
        let refused = try await place.inlet("queue", "restore", backup.string, "--yes")
        #expect(refused.ending == .code(75), "\(refused.output)")
        // Another over its own name, and one by itself under the time.
        let other = place.folder.path.appending("other.sqlite").string
        for _ in 0..<2 { #expect(try await place.inlet("queue", "backup", other).ending == .code(0)) }
        #expect(try await place.inlet("queue", "backup").output.contains("state/backups/journal-"))
        let mode = try FileManager.default.attributesOfItem(atPath: backup.string)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(try await agent.stop() == .code(0))

        try place.put("c.bin", bytes(10))
        let restored = try await place.inlet("queue", "restore", backup.string, "--yes")
        #expect(restored.ending == .code(0) && restored.output.contains("was kept as"), "\(restored.errors)")
        let again = try await place.run()
        try await eventually("all is delivered") { try await place.balance()["delivered"] == 61 }
        let balance = try await place.balance()
        #expect(balance.values.reduce(0, +) == 61, "\(balance)")
        try await again.stop()
        let names = try FileManager.default.contentsOfDirectory(atPath: place.library.string)
        #expect(names.filter { $0.hasSuffix(".bin") }.count == 61, "\(names)")
        for number in 0..<40 {
            let name = "a\(number).bin"
            #expect(try place.content(place.library.appending(name)) == bytes(2000, seed: UInt64(number)), "\(name)")
        }
    }

    @Test func `files that came after the backup are new ones after a restore, at the same places`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try place.put("before.txt", bytes(10))
        try await agent.line("job.finished")
        let backup = place.folder.path.appending("backup.sqlite")
        #expect(try await place.inlet("queue", "backup", backup.string).ending == .code(0))
        try place.put("since.txt", bytes(20))
        try await agent.line("job.finished", number: 2)
        try await agent.stop()
        #expect(try await place.inlet("queue", "restore", backup.string).ending == .code(64))
        #expect(try await place.inlet("queue", "restore", backup.string, "--yes").ending == .code(0))
        let again = try await place.run()
        try await again.line("job.finished") { $0.isAbout("since.txt") }
        try await again.stop()
        #expect(try await place.balance()["delivered"] == 2)
        #expect(again.lines("job.started").allSatisfy { $0.isAbout("since.txt") })
        let names = try FileManager.default.contentsOfDirectory(atPath: place.library.string)
        #expect(names.filter { $0.hasSuffix(".txt") }.sorted() == ["before.txt", "since.txt"], "\(names)")
    }

    @Test func `a reset keeps the journal and begins an empty one, and not while the agent runs`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try place.put("a.txt", bytes(10))
        try await agent.line("job.finished")
        #expect(try await place.inlet("queue", "reset", "--yes").ending == .code(75))
        try await agent.stop()
        #expect(try await place.inlet("queue", "reset").ending == .code(64))
        let reset = try await place.inlet("queue", "reset", "--yes")
        #expect(reset.ending == .code(0) && reset.output.contains("are new ones then"), "\(reset.errors)")
        let kept = try FileManager.default.contentsOfDirectory(atPath: place.state.string)
        let old = try #require(kept.first { $0.hasPrefix("journal.sqlite.reset-") })
        #expect(place.exists(place.drop.appending("a.txt")))
        #expect(try await place.balance()["delivered"] == 0)
        // And back again.
        let aside = place.state.appending(old).string
        #expect(try await place.inlet("queue", "restore", aside, "--yes").ending == .code(0))
        #expect(try await place.balance()["delivered"] == 1)
    }

    @Test func `a start without its journal ends with what to do, and status says so too`() async throws {
        let place = try Place()
        let agent = try await place.run()
        try place.put("a.txt", bytes(10))
        try await agent.line("job.finished")
        try await agent.stop()
        try FileManager.default.removeItem(atPath: place.state.appending("journal.sqlite").string)
        for command in ["run", "status"] {
            let refused = try await place.inlet(command)
            #expect(refused.ending == .code(78) && refused.errors.contains("queue restore"), "\(refused.errors)")
        }
        #expect(try await place.inlet("queue", "reset", "--yes").ending == .code(0))
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
        #expect(try await place.inlet("config", "show").ending == .code(0))
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
            let refused = try await place.inlet("queue", "backup", target)
            #expect(refused.ending == .code(1) && refused.errors.contains("no backup was made"), "\(refused.errors)")
        }
        #expect(try place.content(precious) == Data("precious".utf8))
        try await agent?.stop()
    }
}
