import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// Routes that are made milder between two runs of a confined agent, while a file is under way by what they said before.
@Suite(.enabled(if: Landlock.isAvailable, "needs Linux 5.19 with Landlock"))
struct MilderRouteTests {
    private func mayWriteTheDrop(_ place: Place) async throws -> Bool {
        let report = try await place.inlet("status", "--json").object()["confinement"] as? [String: Any]
        return (report?["writable"] as? [String] ?? []).contains(place.drop.string)
    }

    @Test func `it is archived as was meant, and then the folder is only read`() async throws {
        let place = try Place(route: ["on_success: archive"])
        try await place.inlet("pause", "store", code: 0)
        let first = try await place.run()
        try place.put("a.bin", bytes(1000))
        try await first.line("job.admitted") { $0.isAbout("a.bin") }
        #expect(try await first.stop() == .code(0))

        try place.configure(replacing: "on_success: archive", with: "on_success: keep")
        let second = try await place.run()
        #expect(try await mayWriteTheDrop(place))
        try await place.inlet("resume", "store", code: 0)
        try await second.line("job.finished") { $0.isAbout("a.bin") && $0["state"] == "delivered" }
        #expect(try place.content(place.drop.pushing(".inlet/done/a.bin")) == bytes(1000))
        try await place.deliver("b.bin", bytes(500), by: second)
        #expect(place.exists(place.drop.appending("b.bin")))
        #expect(try await second.stop() == .code(0))

        // The third notes that nothing is owed any more, the fourth goes by that.
        for mayWrite in [true, false] {
            let agent = try await place.run()
            #expect(try await mayWriteTheDrop(place) == mayWrite)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
