import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// Files of another owner, whose writers an agent without CAP_LEASE may not ask the kernel for.
@Suite(.enabled(if: Nobody.isAvailable, "needs root and setpriv")) struct ForeignWriterTests {
    /// Root without that one capability.
    private static let launcher = [Nobody.launcher[0], "--bounding-set=-lease", "--inh-caps=-lease"]

    @Test func `a writer that no lease shows is found among the processes, and waited for`() async throws {
        let place = try Place()
        let agent = try await place.run(launcher: Self.launcher)
        try await agent.line("watch.added") { $0["writer_check"]?.hasPrefix("on for own files only") ?? false }
        let draft = place.folder.path.appending("draft")
        let writer = try FileDescriptor.open(
            draft, .writeOnly, options: .create, permissions: [.ownerReadWrite, .groupRead, .otherRead])
        try writer.writeAll(bytes(1000))
        try Nobody.own(draft)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: draft.string)
        #expect(rename(draft.string, place.drop.appending("recording.wav").string) == 0)
        try await agent.line("file.settling") { $0["busy"] == "yes" }
        try place.put("other.txt", bytes(10))
        try await agent.line("job.finished") { $0.isAbout("other.txt") }
        #expect(agent.lines("job.admitted") { $0.isAbout("recording.wav") }.isEmpty)
        try await eventually("the status names this process") {
            let roots = try await place.inlet("status", "--json").object()["roots"] as? [[String: Any]]
            let files = roots?.first?["unsettled"] as? [[String: Any]]
            return (files?.first?["held_by"] as? String)?.hasSuffix("(process \(getpid()))") ?? false
        }
        try writer.close()
        try await agent.line("job.finished") { $0.isAbout("recording.wav") }
        #expect(try place.content(place.library.appending("recording.wav")) == bytes(1000))
        #expect(try await agent.stop() == .code(0))
    }
}
