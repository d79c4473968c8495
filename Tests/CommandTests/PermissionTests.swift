import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// `permissions:` with the built binary.
@Suite(.serialized) struct PermissionTests {
    /// A configuration that takes a credential from a file that everyone may read.
    private static func place(_ rule: String) throws -> (Place, FilePath) {
        let place = try Place(top: ["permissions: \(rule)", "ping_url: \"http://127.0.0.1:1/${file:ping}\""])
        let file = try place.folder.write(Data("ping-canary\n".utf8), to: "ping")
        try set(0o644, file)
        return (place, file)
    }

    private static func set(_ mode: Int, _ file: FilePath) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.string)
    }

    @Test func `strict refuses what others may read or write, with its place`() async throws {
        let (place, file) = try Self.place("strict")
        let open = try await place.inlet(
            "run", code: 78, errors: "inlet.yaml:", "is a credential that everyone can read", file.string)
        #expect(!open.errors.contains("ping-canary"))
        try Self.set(0o600, file)
        try Self.set(0o620, place.configuration)
        try await place.inlet("run", code: 78, errors: "can be changed by others")
        try Self.set(0o600, place.configuration)
        let agent = try await place.run()
        #expect(!agent.errors.contains("warning: "))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a start and a reload say in lines of the log what should be changed, unless they are told not to`()
        async throws
    {
        let (place, file) = try Self.place("warn")
        let agent = try await place.run()
        let line = try await agent.line("config.warning") {
            $0.description.contains("is a credential that everyone can read")
        }
        #expect(line["level"] == "warning" && line["path"] == place.configuration.string, "\(line)")
        try Self.set(0o600, file)
        let fine = try await place.inlet("reload", code: 0)
        #expect(!fine.errors.contains("may be read"), "\(fine)")
        try Self.set(0o644, file)
        try await place.inlet("reload", code: 0, errors: "is a credential that everyone can read")
        try await agent.line("config.reloaded") {
            $0["level"] == "warning" && $0.description.contains("is a credential that everyone can read")
        }
        try place.configure(replacing: "permissions: warn", with: "permissions: off")
        let quiet = try await place.inlet("reload", code: 0)
        #expect(!quiet.errors.contains("may be read"), "\(quiet)")
        #expect(try await agent.stop() == .code(0))
        #expect(agent.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") })
        let checked = try await place.inlet("check")
        #expect(!(checked.output + checked.errors).contains("may be read"), "\(checked)")
    }

    @Test(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"), arguments: [false, true])
    func `check warns of a configuration that the agent could change`(_ isLoggedBeside: Bool) async throws {
        let place = try Place()
        if isLoggedBeside { try place.configure(replacing: "level: debug", with: "level: debug, output: inlet.log") }
        let text = try await place.inlet("check").output
        #expect(text.contains("inlet.yaml lies where the agent may write") == isLoggedBeside, "\(text)")
    }
}

/// What those may do who may write to the control socket, and are neither root nor the agent's user.
@Suite(.enabled(if: Nobody.isAvailable, "needs root and setpriv")) struct SocketGroupTests {
    /// Another user of the socket's group.
    private static let launcher = [Nobody.launcher[0], "--reuid=65534", "--regid=0", "--clear-groups"]

    private static func start(_ command: [String], _ place: Place) throws -> InletProcess {
        try InletProcess(
            command + ["--config", place.configuration.string], in: place.folder.path, launcher: launcher)
    }

    @Test func `the socket's group sees and steers, and does nothing with the agent's rights`() async throws {
        let place = try Place()
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: place.configuration.string)
        let agent = try await place.run()
        for command in [["status"], ["pause"], ["resume"], ["queue", "list"]] {
            let allowed = try Self.start(command, place)
            #expect(try await allowed.ending() == .code(0), "\(command): \(allowed.errors)")
        }
        let secret = try place.folder.write(bytes(10), to: "private.txt")
        let copy = place.folder.path.appending("copy.sqlite")
        for command in [["send", secret.string], ["queue", "backup", copy.string]] {
            let refused = try Self.start(command, place)
            #expect(try await refused.ending() == .code(1), "\(command): \(refused.errors)")
            #expect(refused.errors.contains("only root and the agent's own user may do this"), "\(refused.errors)")
        }
        #expect(agent.lines("job.admitted").isEmpty && !FileManager.default.fileExists(atPath: copy.string))
        #expect(try await agent.stop() == .code(0))
    }
}

/// The socket's mode.
struct SocketModeTests {
    @Test(arguments: ["000", "022", "077"])
    func `the socket is for user and group, whatever the umask is, and that stays as it was`(mask: String) async throws
    {
        let place = try Place()
        let launcher = ["/bin/sh", "-c", "umask \(mask); exec \"$@\"", "sh"]
        let agent = try await place.run(launcher: launcher)
        // It is ready when it can be asked.
        let facts = try FileManager.default.attributesOfItem(atPath: place.state.appending("control.sock").string)
        #expect((facts[.posixPermissions] as? NSNumber)?.intValue == 0o660)
        let status = try String(contentsOfFile: "/proc/\(agent.id)/status", encoding: .utf8)
        #expect(status.contains("Umask:\t0\(mask)\n"))
        #expect(try await agent.stop() == .code(0))
    }
}

/// The rights of what a delivery to a folder makes.
struct FolderModeTests {
    private static func mode(_ path: FilePath) throws -> Int? {
        let facts = try FileManager.default.attributesOfItem(atPath: path.string)
        return (facts[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test(arguments: [("022", 0o755), ("002", 0o775), ("027", 0o750), ("000", 0o777)])
    func `a new folder has what the umask leaves, and a copy what its source has`(mask: String, mode: Int) async throws
    {
        let launcher = ["/bin/sh", "-c", "umask \(mask); exec \"$@\"", "sh"]
        let (place, agent) = try await Place.running(launcher: launcher)
        try place.put("gigs/a.bin", bytes(10))
        let source = try #require(try Self.mode(place.drop.pushing("gigs/a.bin")))
        try await agent.line("job.finished") { $0["state"] == "delivered" }
        #expect(try Self.mode(place.library.appending("gigs")) == mode)
        #expect(try Self.mode(place.library.pushing("gigs/a.bin")) == source)
        #expect(try await agent.stop() == .code(0))
    }
}

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
        let rooms = [ClaimCapacity(destination: "store", limits: [.small: 1])]
        // What is made today is escaped by its maker; what is set afterwards is not.
        var proof = Proof(key: Self.hostile, size: 10, method: .size)
        (proof.etag, proof.url, proof.details) = (Self.hostile, Self.hostile, [Self.hostile: Self.hostile])
        let ends: [ClaimOutcome] = [.delivered(proof), .ended(.failed, code: .badRequest, reason: Self.hostile)]
        for (path, end) in zip([Self.name, FilePath(Self.hostile)], ends) {
            let identity = try #require(try FileLook.look(at: place.drop.pushing(path)).identity)
            let plan = Plan(
                route: "all", category: "other", key: Self.hostile, mediaType: "text/plain", destinations: ["store"])
            let admission = FileAdmission(
                FoundFile(root: place.drop, path: path, identity: identity), plan: plan, lanes: ["store": .small],
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
        // What is no UTF-8 was a raw byte; a table in a pipe has TABs of its own.
        let raw = text.unicodeScalars.filter {
            $0 != "\n" && $0 != "\t"
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
        ["fetch", hostile, "--from", "store"], ["fetch", hostile, "--from", hostile], ["logs", "level", hostile],
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
