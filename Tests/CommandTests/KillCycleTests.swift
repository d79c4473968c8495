import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// SIGKILL at any moment, again and again, while files keep coming.
@Suite(.serialized) struct KillCycleTests {
    static let cycles = 15
    static let sizes = [0, 1, 700, 40_000, 2 << 20, (5 << 20) + 1, 11 << 20]

    @Test(arguments: [UInt64(20_261_121)])
    func `fifteen kills at random moments lose nothing and send nothing twice`(_ seed: UInt64) async throws {
        try await withSpiral(route: "on_success: archive") { place, sandbox in
            var random = SeededGenerator(seed: seed)
            var expected: [FilePath: Data] = [:]
            for cycle in 0..<Self.cycles {
                let agent = try place.start("run")
                for number in 0..<Int.random(in: 1...4, using: &random) {
                    let name = FilePath("day\(cycle % 3)/\(cycle)-\(number).bin")
                    let content = bytes(Self.sizes.randomElement(using: &random) ?? 0, seed: random.next())
                    try place.put(name, content)
                    expected[name] = content
                }
                // The moment itself is what is random here; nothing is waited for.
                try await Task.sleep(for: .milliseconds(Int.random(in: 40...350, using: &random)))
                try await agent.kill()
            }
            let last = try await place.run()
            try await last.wait("the end of every file") {
                let receipts = try await place.inlet("receipts", "--limit", "1000").objects()
                return receipts.count >= expected.count
            }
            #expect(try await last.stop() == .code(0))
            try await check(expected, place, sandbox)
        }
    }

    private func check(_ expected: [FilePath: Data], _ place: Place, _ sandbox: SpiralSandbox) async throws {
        let objects = Dictionary(sandbox.objects().map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        #expect(Set(objects.keys) == Set(expected.keys.map(\.string)))
        #expect(try CrashScene.withParts(sandbox.openUploads(), in: place.folder.path.appending("store")) == [])
        let aftermath = Aftermath(place)
        for (name, content) in expected {
            let object = try #require(objects[name.string])
            #expect(try place.content(object.path) == content)
            try aftermath.checkSource(name, content, "archive")
        }
        let receipts = try await place.inlet("receipts", "--limit", "1000").objects()
        #expect(receipts.filter { $0["state"] as? String != "delivered" }.map(\.description) == [])
        #expect(receipts.count == expected.count)
        #expect(Set(receipts.compactMap { $0["path"] as? String }).count == expected.count)
        let balance = try await place.balance()
        #expect(balance["delivered"] == expected.count)
        #expect(balance["pending"] == 0)
    }

    @Test func `an upload that a kill cut off is told as resumed, a new one is not, and both tell their address`()
        async throws
    {
        try await withSpiral("parallel_parts: 1, public_url: \"https://cdn.example/media\"") { place, _ in
            try place.put("film.bin", bytes(11 << 20))
            let killed = try place.start("run", environment: ["INLET_FAILPOINT": "partUploaded"])
            #expect(try await killed.ending() == .signal(SIGKILL))
            #expect(killed.lines("job.started") { $0.flag("resumed") != nil }.isEmpty)
            let next = try await place.run()
            let started = try await next.line("job.started")
            #expect(started.isAbout("film.bin") && started.flag("resumed") == true, "\(started)")
            let delivered = try await next.line("job.delivered") { $0.isAbout("film.bin") }
            #expect(delivered["url"] == "https://cdn.example/media/film.bin")
            #expect(delivered.number("job") == started.number("job"))
            try place.put("new.bin", bytes(11 << 20, seed: 2))
            let fresh = try await next.line("job.delivered") { $0.isAbout("new.bin") }
            #expect(fresh["url"] == "https://cdn.example/media/new.bin")
            let told = next.lines("job.started")
            #expect(told.map { $0.flag("resumed") } == [true, nil] && told.last?.isAbout("new.bin") == true, "\(told)")
            #expect(try await next.stop() == .code(0))
        }
    }

    @Test func `cancelling a running upload takes effect at once and aborts it`() async throws {
        try await withSpiral { place, sandbox in
            sandbox.faults.add(Fault(.stall, at: .part, times: nil))
            let agent = try await place.run()
            try place.put("unwanted.bin", bytes(11 << 20))
            try await agent.wait("a stalled part") { sandbox.traffic.counts[.part] ?? 0 >= 1 }
            try await place.inlet("queue", "cancel", "1", code: 0)
            try await agent.line("job.finished") { $0["state"] == "cancelled" }
            try await agent.wait("the abort") { sandbox.openUploads().isEmpty }
            #expect(try await agent.stop() == .code(0))
        }
    }
}
