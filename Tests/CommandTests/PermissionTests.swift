import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// `permissions:` with the built binary.
@Suite(.serialized) struct PermissionTests {
    /// A configuration that takes a credential from a file that everyone may read.
    private static func place(_ rule: String) throws -> (Place, FilePath) {
        var config = ConfigText()
        config.top.append("permissions: \(rule)")
        config.top.append("ping_url: \"http://127.0.0.1:1/${file:ping}\"")
        let place = try Place(config)
        let file = try place.folder.write(Data("ping-canary\n".utf8), to: "ping")
        try set(0o644, file)
        return (place, file)
    }

    private static func set(_ mode: Int, _ file: FilePath) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.string)
    }

    @Test func `strict refuses what others may read or write, with its place`() async throws {
        let (place, file) = try Self.place("strict")
        let open = try await place.inlet("run")
        #expect(open.ending == .code(78))
        #expect(
            open.errors.contains("inlet.yaml:") && open.errors.contains("may be read by everyone"), "\(open.errors)")
        #expect(open.errors.contains(file.string) && !open.errors.contains("ping-canary"))
        try Self.set(0o600, file)
        try Self.set(0o620, place.configuration)
        let writable = try await place.inlet("run")
        #expect(writable.ending == .code(78) && writable.errors.contains("may be written by others"), "\(writable)")
        try Self.set(0o600, place.configuration)
        let agent = try await place.run()
        #expect(!agent.errors.contains("warning: "))
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `what a start says of the configuration is a line of the log, which has no other lines`() async throws {
        let (place, _) = try Self.place("warn")
        let agent = try await place.run()
        let line = try await agent.line("config.warning") { $0.description.contains("may be read by everyone") }
        #expect(line["level"] == "warning" && line["path"] == place.configuration.string, "\(line)")
        #expect(try await agent.stop() == .code(0))
        #expect(agent.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("{") && $0.hasSuffix("}") })
    }

    @Test func `a start and a reload say what should be changed, unless they are told not to`() async throws {
        let (place, file) = try Self.place("warn")
        try Self.set(0o600, file)
        let agent = try await place.run()
        #expect(!agent.errors.contains("may be read by everyone"))
        try Self.set(0o644, file)
        let warned = try await place.inlet("reload")
        #expect(warned.ending == .code(0) && warned.errors.contains("may be read by everyone"), "\(warned)")
        let line = try await agent.line("config.reloaded")
        #expect(line["level"] == "warning" && line.description.contains("may be read by everyone"), "\(line)")
        try place.configure(replacing: "permissions: warn", with: "permissions: off")
        let quiet = try await place.inlet("reload")
        #expect(quiet.ending == .code(0) && !quiet.errors.contains("may be read"), "\(quiet)")
        try await agent.stop()
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
