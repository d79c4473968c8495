import Foundation
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
        let open = try await place.inlet("run", code: 78, errors: "inlet.yaml:", "may be read by everyone", file.string)
        #expect(!open.errors.contains("ping-canary"))
        try Self.set(0o600, file)
        try Self.set(0o620, place.configuration)
        try await place.inlet("run", code: 78, errors: "may be written by others")
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
        let line = try await agent.line("config.warning") { $0.description.contains("may be read by everyone") }
        #expect(line["level"] == "warning" && line["path"] == place.configuration.string, "\(line)")
        try Self.set(0o600, file)
        let fine = try await place.inlet("reload", code: 0)
        #expect(!fine.errors.contains("may be read"), "\(fine)")
        try Self.set(0o644, file)
        try await place.inlet("reload", code: 0, errors: "may be read by everyone")
        try await agent.line("config.reloaded") {
            $0["level"] == "warning" && $0.description.contains("may be read by everyone")
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
            #expect(refused.errors.contains("for root and the user that the agent runs as"), "\(refused.errors)")
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
