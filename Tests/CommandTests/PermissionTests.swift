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
        try await place.inlet("reload", code: 0, errors: "may be read by everyone")
        let line = try await agent.line("config.reloaded")
        #expect(line["level"] == "warning" && line.description.contains("may be read by everyone"), "\(line)")
        try place.configure(replacing: "permissions: warn", with: "permissions: off")
        let quiet = try await place.inlet("reload", code: 0)
        #expect(!quiet.errors.contains("may be read"), "\(quiet)")
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
