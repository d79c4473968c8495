import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What is there already is not sent again: not the second file of a content, and nothing of what a crash came after.
@Suite(.serialized) struct DuplicateTests {
    private static let size = 6 << 20

    @Test(arguments: [("skip", "duplicate"), ("link", "delivered")])
    func `no byte of a second file of the same content goes out`(rule: String, state: String) async throws {
        try await withSpiral(route: "dedupe: \(rule)", "on_success: archive") { place, sandbox in
            let agent = try await place.run()
            try place.put("a.mov", bytes(Self.size))
            try await agent.line("job.finished")
            let sent = sandbox.traffic
            #expect(sent.bytesReceived >= Int64(Self.size))
            try place.put("b.mov", bytes(Self.size))
            let line = try await agent.line("job.duplicate")
            #expect(line.isAbout("b.mov") && line.number("same_as") == 1)
            try await agent.line("job.finished", number: 2)
            #expect(sandbox.traffic.bytesReceived == sent.bytesReceived)
            #expect(sandbox.objects().map(\.key) == ["a.mov"])
            let archive = place.drop.appending(".inlet").appending("done")
            #expect(place.exists(archive.appending("a.mov")) && place.exists(archive.appending("b.mov")))
            try await Self.checkReports(place, state)
            #expect(try await agent.stop() == .code(0))
        }
    }

    /// Jobs 1 and 2 are of one content.
    private static func checkReports(_ place: Place, _ state: String) async throws {
        let receipt = try #require(try await place.inlet("receipts", "--limit", "1").objects().first)
        #expect(receipt["job"] as? Int == 2 && receipt["state"] as? String == state)
        let delivery = try #require((receipt["deliveries"] as? [[String: Any]])?.first)
        #expect(delivery["key"] as? String == "a.mov")
        #expect((delivery["details"] as? [String: String])?["same_as"] == "1")
        let status = try await place.inlet("status", "--json").object()
        let files = try #require(status["files"] as? [String: Int])
        #expect(status["seen"] as? Int == 2 && files.values.reduce(0, +) == 2)
        #expect(files[state] == (state == "delivered" ? 2 : 1))
        // A third one is not dropped, only asked about.
        let third = try place.folder.write(bytes(size), to: "third.mov")
        let route = try await place.inlet("route", third.string)
        let end = state == "delivered" ? "linked" : "skipped"
        #expect(route.output.contains("would be \(end): same content as job 1, "), "\(route.output)\(route.errors)")
        #expect(route.output.contains("a.mov, which is there as a.mov"))
    }

    // MARK: - A restart never sends again what is proved

    @Test func `killed after the proof, nothing is sent again to a store with part URLs`() async throws {
        try await withSpiral(route: "on_success: archive") { place, sandbox in
            try await Self.killAfterProof(place) { sandbox.traffic.bytesReceived }
            #expect(sandbox.objects().map(\.key) == ["clip.mov"])
        }
    }

    /// The process dies between the proof and the end of the file, twice; the next one ends it without a byte.
    private static func killAfterProof(_ place: Place, _ received: @Sendable () -> Int64) async throws {
        let content = bytes(size)
        try place.put("clip.mov", content)
        let first = try place.start("run", environment: ["INLET_FAILPOINT": Failpoint.delivered.rawValue])
        #expect(try await first.ending() == .signal(SIGKILL))
        let sent = received()
        #expect(sent >= Int64(size))
        let second = try place.start("run", environment: ["INLET_FAILPOINT": Failpoint.disposed.rawValue])
        #expect(try await second.ending() == .signal(SIGKILL))
        let last = try await place.run()
        try await last.line("job.finished")
        #expect(try await last.stop() == .code(0))
        #expect(received() == sent)
        let receipts = try await place.inlet("receipts").objects()
        #expect(receipts.map { $0["state"] as? String } == ["delivered"])
        #expect(try place.content(place.drop.appending(".inlet").appending("done").appending("clip.mov")) == content)
    }
}
