import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite(.serialized) struct ChecklistGapsTests {
    @Test func `status shows how far each transfer is, in bytes and percent`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            sandbox.faults.add(Fault(.stall, at: .part, part: 2, times: nil))
            let agent = try await place.run()
            let size = 16 << 20
            try place.put("film.mov", bytes(size))
            try await agent.wait("the second part") { sandbox.traffic.partOrder.contains(2) }
            let status = try await place.inlet("status", "--json").object()
            let transfer = try #require((status["in_flight"] as? [[String: Any]])?.first)
            let sent = try #require(transfer["sent"] as? Int)
            #expect(sent >= 5 << 20 && sent <= 10 << 20)
            #expect(transfer["size"] as? Int == size)
            #expect(transfer["path"] as? String == place.drop.appending("film.mov").string)
            let text = try await place.inlet("status").output
            let shown = try #require(text.firstMatch(of: /(\d+) %/))
            #expect((31...62).contains(Int(shown.1) ?? -1), "\(text)")
        }
    }

    @Test func `the public address of what was stored is printed, logged and kept in the receipt`() async throws {
        try await withSpiral("public_url: \"https://cdn.example/media\"") { place, sandbox in
            let agent = try await place.run()
            let file = try place.folder.write(bytes(10), to: "elsewhere/live set.mov")
            let sent = try await place.inlet("send", file.string)
            let address = "https://cdn.example/media/live_set.mov"
            #expect(sent.output.contains(address), "\(sent.output)")
            #expect(try await agent.line("job.delivered")["url"] == address)
            try await agent.line("job.finished")
            let deliveries = try await place.inlet("receipts").objects().first?["deliveries"] as? [[String: Any]]
            #expect(deliveries?.first?["url"] as? String == address)
            #expect(sandbox.objects().map(\.key) == ["live_set.mov"])
        }
    }
}
