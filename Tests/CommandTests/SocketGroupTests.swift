import Foundation
import InletTestSupport
import SystemPackage
import Testing

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
