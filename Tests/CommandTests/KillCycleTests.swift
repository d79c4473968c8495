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

/// The process dies while it does what a person asked for: that is wholly done or not at all, and can be asked again.
@Suite(.serialized, .timeLimit(.minutes(15))) struct CommandCrashTests {
    private static let cancelling = [
        ["queue", "cancel", "--destination", "store", "--yes"], ["queue", "clear", "--yes"],
    ]

    /// Three files that wait for a destination that is not there.
    private func waiting(_ agent: InletProcess, _ place: Place) async throws {
        for name in ["a", "b", "c"] { try place.put(FilePath(name), bytes(10)) }
        try await agent.line("job.admitted", number: 3)
        try await agent.line("destination.down")
    }

    /// All is cancelled once the command was given again, and stays so.
    private func checkCancelled(_ command: [String], _ place: Place, repeats: Bool) async throws {
        if repeats { try await place.inlet(command, code: 0) }
        let next = try await place.run()
        #expect(try await next.stop() == .code(0))
        let balance = try await place.balance()
        #expect(balance["cancelled"] == 3 && balance["pending"] == 0, "\(balance)")
        for name in ["a", "b", "c"] { #expect(try place.content(place.drop.appending(name)) == bytes(10)) }
    }

    @Test(arguments: cancelling, CrashPoints.command.list)
    func `a cancelling that dies has cancelled all or nothing`(_ command: [String], _ point: String) async throws {
        let place = try Place(.spiral(try FreePort.any()))
        let agent = try await place.run()
        try await waiting(agent, place)
        #expect(try await agent.stop() == .code(0))
        let killed = try await place.inlet(command, environment: ["INLET_FAILPOINT": point])
        #expect(killed.ending == .signal(SIGKILL))
        let balance = try await place.balance()
        #expect(balance[point == "acted" ? "cancelled" : "pending"] == 3, "\(balance)")
        try await checkCancelled(command, place, repeats: point == "acting")
    }

    @Test(arguments: cancelling, CrashPoints.command.list)
    func `an agent that dies over a cancelling has cancelled all or nothing`(
        _ command: [String], _ point: String
    ) async throws {
        let place = try Place(.spiral(try FreePort.any()))
        let agent = try await place.run(environment: ["INLET_FAILPOINT": point])
        try await waiting(agent, place)
        // It may find no agent any more, and then does it itself.
        let asked = try await place.inlet(command)
        #expect(try await agent.ending() == .signal(SIGKILL))
        let balance = try await place.balance()
        let isDone = point == "acted" || asked.ending == .code(0)
        #expect(balance[isDone ? "cancelled" : "pending"] == 3, "\(balance)")
        try await checkCancelled(command, place, repeats: !isDone)
    }

    @Test(arguments: CrashPoints.command.list)
    func `a file is forgotten or it is not`(_ point: String) async throws {
        let place = try Place(route: ["on_success: archive"])
        try place.put("a.mov", bytes(10))
        try await place.runUntil("job.finished")
        let killed = try await place.inlet("queue", "forget", "1", environment: ["INLET_FAILPOINT": point])
        #expect(killed.ending == .signal(SIGKILL))
        try await place.inlet("queue", "show", "1", code: point == "acted" ? 1 : 0)
        if point == "acting" { try await place.inlet("queue", "forget", "1", code: 0) }
        try place.put("b.mov", bytes(11))
        try await place.runUntil("job.finished") { $0.isAbout("b.mov") }
        try await place.inlet("queue", "show", "1", code: 1)
        #expect(try await place.balance()["delivered"] == 1)
        #expect(Place.files(below: place.library) == ["a.mov": bytes(10), "b.mov": bytes(11)])
    }

    @Test(arguments: ["pause", "resume"], CrashPoints.command.list)
    func `a destination is paused or it is not`(_ command: String, _ point: String) async throws {
        let place = try Place()
        if command == "resume" { try await place.inlet("pause", "store", code: 0) }
        let killed = try await place.inlet(command, "store", environment: ["INLET_FAILPOINT": point])
        #expect(killed.ending == .signal(SIGKILL))
        let agent = try await place.run()
        try place.put("held.txt", bytes(10))
        try await agent.line("job.admitted")
        if (command == "pause") == (point == "acted") {
            let status = try await place.inlet("status", "--json").object()
            let destination = (status["destinations"] as? [[String: Any]])?.first
            #expect(destination?["state"] as? String == "paused" && destination?["waiting"] as? Int == 1)
            #expect(agent.lines("job.started").isEmpty)
            try await place.inlet("resume", "store", code: 0)
        }
        try await agent.line("job.finished")
        #expect(try await agent.stop() == .code(0))
        #expect(try place.content(place.library.appending("held.txt")) == bytes(10))
    }

    @Test(arguments: CrashPoints.command.list)
    func `a retry that dies can be asked for again, and sends once`(_ point: String) async throws {
        let place = try Place()
        try place.folder.write(bytes(7), to: "library/clip.mov")
        try place.put("clip.mov", bytes(10))
        try await place.runUntil("job.finished") { $0["state"] == "failed" }
        try FileManager.default.removeItem(atPath: place.library.appending("clip.mov").string)
        let killed = try await place.inlet("queue", "retry", "1", environment: ["INLET_FAILPOINT": point])
        #expect(killed.ending == .signal(SIGKILL))
        if point == "acting" { try await place.inlet("queue", "retry", "1", code: 0) }
        try await place.runUntil("job.finished") { $0["state"] == "delivered" }
        #expect(Place.files(below: place.library) == ["clip.mov": bytes(10)])
        #expect(try await place.inlet("receipts").objects().count == 1)
    }
}
