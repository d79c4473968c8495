import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// Names and words of others that would clear the screen, end the line, turn the direction of what is read, or pass for a
/// field of the log: none of them comes out of a command as it is.
@Suite(.serialized) struct HostileNameTests {
    private static let hostile = "a\u{1B}[2J\n\u{202E}\u{9B}31m\" job=7 \u{2028}\u{7F}"
    /// The same, and a byte that is a control by itself.
    private static let name = FilePath(bytes: Array(hostile.utf8) + [0x9B])

    private func put(_ name: FilePath, in place: Place) throws {
        let draft = try place.folder.write(bytes(10), to: "draft")
        let done = draft.withPlatformString { from in
            place.drop.pushing(name).withPlatformString { rename(from, $0) }
        }
        #expect(done == 0)
    }

    /// A queue with a delivered and a failed file, as an earlier version may have left it.
    private func fill(_ place: Place) async throws {
        let agent = try await place.run()
        #expect(try await agent.stop() == .code(0))
        try put(Self.name, in: place)
        try put(FilePath(Self.hostile), in: place)
        let journal = try Journal(path: place.state.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let rooms = [ClaimRoom(destination: "store", limits: [.small: 1])]
        // What is made today is escaped by its maker; what is set afterwards is not.
        var proof = Proof(key: Self.hostile, size: 10, method: .size)
        (proof.etag, proof.url, proof.details) = (Self.hostile, Self.hostile, [Self.hostile: Self.hostile])
        let ends: [Settlement] = [.delivered(proof), .ended(.failed, code: .badRequest, reason: Self.hostile)]
        for (path, end) in zip([Self.name, FilePath(Self.hostile)], ends) {
            let identity = try #require(try FileLook.look(at: place.drop.pushing(path)).identity)
            let plan = Plan(
                route: "all", category: "other", key: Self.hostile, mediaType: "text/plain", destinations: ["store"])
            let admission = FileAdmission(
                Arrival(root: place.drop, path: path, identity: identity), plan: plan, lanes: ["store": .small],
                uptimes: [:])
            guard case .admitted(let id) = try await journal.admit(admission, at: .now) else {
                Issue.record("not admitted")
                return
            }
            _ = try await journal.withClaim(.small, rooms: rooms, clock: { .now }) { _ in (end, ()) }
            let job = try #require(try await journal.job(id))
            let receipt = Array("{\"job\":\(id),\"path\":\"[2J\u{202E}\u{9B}31m\u{2028}\"}".utf8)
            _ = try await journal.finish(job.file, disposition: Self.hostile, receipt: receipt, at: .now)
        }
    }

    private func expectHarmless(_ text: String, _ what: String) {
        // What is no UTF-8 was a raw byte.
        let raw = text.unicodeScalars.filter {
            $0 != "\n"
                && ($0.properties.generalCategory == .control || "\u{202E}\u{2028}\u{FFFD}".unicodeScalars.contains($0))
        }
        #expect(raw.isEmpty, "\(what): \(DisplayText.escape(text))")
        // No end of line within a name: what follows it there begins none.
        let lines = text.split(separator: "\n")
        #expect(!lines.contains { $0.hasPrefix("\\xE2\\x80\\xAE") || $0.hasPrefix("\\u202e") }, "\(what): \(text)")
    }

    private func run(_ place: Place, _ command: [String], shows: Bool) async throws -> Place.Finished {
        let ended = try await place.inlet(command)
        let what = DisplayText.escape(command.joined(separator: " "))
        expectHarmless(ended.output, what)
        expectHarmless(ended.errors, what)
        if shows { #expect((ended.output + ended.errors).contains("[2J"), "\(what): \(ended.output) \(ended.errors)") }
        return ended
    }

    /// Those that repeat it.
    private static let showing = [
        ["queue", "list"], ["queue", "list", "--json"], ["queue", "show", "1"], ["queue", "show", "1", "--json"],
        ["queue", "show", "2"], ["queue", "show", "2", "--json"], ["receipts"], ["route", hostile],
        ["queue", "list", "--state", hostile],
    ]
    /// Those that may.
    private static let others = [
        ["status"], ["status", "--json"], ["check"], ["check", "--json"], ["config", "show"], ["batch", "list"],
        ["batch", "list", "--json"], ["report"], ["verify", "--all"], ["verify", "--all", "--json"],
        ["fetch", hostile, "--from", "store"], ["fetch", hostile, "--from", hostile], ["log", "level", hostile],
        ["queue", "show", hostile], ["pause", hostile], ["resume", hostile], ["send", hostile, "--to", hostile],
        ["queue", "retry", "--path", hostile, "--dry-run"], [hostile],
    ]

    @Test func `no command writes them where no agent runs`() async throws {
        let place = try Place()
        try await fill(place)
        for command in Self.showing { _ = try await run(place, command, shows: true) }
        for command in Self.others { _ = try await run(place, command, shows: false) }
        let job = try await run(place, ["queue", "show", "2", "--json"], shows: true).object()
        let delivery = try #require((job["deliveries"] as? [[String: Any]])?.first)
        #expect(delivery["reason"] as? String == Self.hostile)
        let text = try await run(place, ["queue", "show", "2"], shows: true).output
        #expect(text.contains("      a\\x1B[2J\\x0A\\xE2\\x80\\xAE\\xC2\\x9B31m\" job=7"), "\(text)")
        try FileManager.default.removeItem(atPath: place.state.string)
        for command in [["run", "--dry-run"], ["run", "--dry-run", "--json"]] {
            _ = try await run(place, command, shows: true)
        }
        _ = try await run(place, ["send", place.drop.appending(Self.hostile).string, "--to", "store"], shows: true)
    }

    @Test func `no command writes them beside an agent, nor does its log`() async throws {
        let place = try Place()
        try await fill(place)
        let agent = try await place.run()
        for command in Self.showing { _ = try await run(place, command, shows: true) }
        for command in Self.others { _ = try await run(place, command, shows: false) }
        let tail = try place.start("tail", "-n", "100", "--level", "debug")
        try put(FilePath(bytes: Array("new ".utf8) + Self.name.bytes), in: place)
        try await agent.line("job.finished")
        try await tail.wait("the file is told") { tail.output.contains("new a\\x1B[2J") }
        tail.signal(SIGINT)
        _ = try await tail.ending()
        expectHarmless(tail.output, "tail")
        #expect(try await agent.stop() == .code(0))
        expectHarmless(agent.errors, "run")
    }

    @Test func `the log as text quotes them`() async throws {
        let place = try Place()
        try place.configure(replacing: "level: debug", with: "level: debug, format: text")
        let agent = try place.start("run")
        try await agent.wait("it is ready") { agent.errors.contains("agent.ready") }
        try put(Self.name, in: place)
        try await agent.wait("it is finished") { agent.errors.contains("job.finished") }
        #expect(try await agent.stop() == .code(0))
        expectHarmless(agent.errors, "run")
        // The quote and the spaces of the name are within its own field.
        let line = try #require(agent.errors.split(separator: "\n").first { $0.contains("job.finished") })
        #expect(line.contains("31m\\\" job=7 "), "\(line)")
        #expect(line.contains(" path=\"/"), "\(line)")
    }
}
