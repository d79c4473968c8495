import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// libmagic is needed where a route asks what files hold, and only there.
@Suite struct MediaTypeTests {
    private static let asking = "validate: { media_type: \"video/*\" }"

    private static func hasLoaded(_ agent: InletProcess) throws -> Bool {
        // Foundation reads no more than a page of such a file.
        let maps = try DurableFile.read(FilePath("/proc/\(agent.id)/maps"), limit: 8 << 20)
        return String(decoding: maps, as: UTF8.self).contains("libmagic")
    }

    @Test(arguments: ["run", "check"])
    func `a route that asks for media types does not start without their library`(_ command: String) async throws {
        let place = try Place(route: [Self.asking])
        // libmagic(3): where its database is.
        let ended = try await place.inlet(command, environment: ["MAGIC": "/nonexistent/magic"], code: 78)
        let said = ended.output + ended.errors
        #expect(said.contains("media types: route 'all' asks for them"), "\(said)")
        #expect(said.contains("apt install libmagic1"), "\(said)")
    }

    @Test(.enabled(if: getuid() == 0, "needs root: what the agent has mapped is nobody else's to see"))
    func `it is loaded where a route asks, and nowhere else`() async throws {
        for (route, isLoaded) in [([], false), ([Self.asking], true)] {
            let place = try Place(route: route)
            let agent = try await place.run()
            try place.put("clip.mp4", Data("MZ".utf8) + Data(count: 126))
            try await agent.line(isLoaded ? "file.rejected" : "job.finished")
            #expect(try Self.hasLoaded(agent) == isLoaded)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
