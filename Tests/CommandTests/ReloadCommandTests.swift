import Dispatch
import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// SIGHUP, `inlet reload` and `inlet config diff` with the built binary.
@Suite(.serialized) struct ReloadCommandTests {
    @Test func `inlet reload takes a right file, and shows what is wrong with a wrong one`() async throws {
        let (place, agent) = try await Place.running()
        try place.configure(replacing: "key: \"{dir}/{name}\"", with: "key: \"new/{name}\"")
        let diff = try await place.inlet("config", "diff", code: 1)
        #expect(diff.output == "routes[all].key: {dir}/{name} -> new/{name}\n", "\(diff)")
        let done = try await place.inlet("reload", code: 0, says: "routes[all].key: {dir}/{name} -> new/{name}")
        #expect(done.output.hasPrefix("reloaded: 1 change\n"), "\(done)")
        try await place.deliver("a.bin", bytes(1000), by: agent)
        #expect(place.exists(place.library.appending("new").appending("a.bin")))
        try await place.inlet("config", "diff", code: 0, says: "is what the agent runs with")

        let good = String(decoding: try place.content(place.configuration), as: UTF8.self)
        for (bad, told) in [
            (good.replacing("to: store", with: "to: stroe"), "did you mean 'store'?"),
            (good.replacing("to: store", with: "to: [store"), "inlet.yaml:"),
        ] {
            try place.configure(text: bad)
            try await place.inlet("reload", code: 78, errors: told, "^", "the old one stays")
        }
        try await agent.line("config.refused", number: 2)
        try await place.deliver("b.bin", bytes(1000), by: agent)
        try place.configure(text: good.replacing("state_dir: state", with: "workers: 7\nstate_dir: state"))
        try await place.inlet("reload", code: 0, says: "restart needed: workers")
        #expect(try await agent.stop() == .code(0))
        try await place.inlet("reload", code: 75)
        try await place.inlet("config", "diff", code: 75, errors: "nothing to compare")
    }

    @Test func `SIGHUP reloads, and a wrong file is in the log with its place`() async throws {
        let (place, agent) = try await Place.running()
        try place.configure(replacing: "key: \"{dir}/{name}\"", with: "key: \"hup/{name}\"")
        agent.signal(SIGHUP)
        let line = try await agent.line("config.reloaded")
        #expect(line.fields["changes"] == .list(["routes[all].key"]), "\(line)")
        try await place.deliver("a.bin", bytes(1000), by: agent)
        #expect(place.exists(place.library.appending("hup").appending("a.bin")))
        try place.configure(replacing: "to: store", with: "to: stroe")
        agent.signal(SIGHUP)
        let refused = try await agent.line("config.refused")
        guard case .list(let errors)? = refused.fields["errors"] else { throw agent.unexpected("no errors") }
        #expect(errors.count == 1 && errors[0].contains("inlet.yaml:") && errors[0].contains("^"), "\(errors)")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `killed right after a reload nothing is lost or doubled`() async throws {
        // A confined agent takes another folder at its start only.
        let place = try Place(top: ["landlock: off"])
        for number in 1...40 { try place.put(FilePath("old-\(number).bin"), bytes(200_000, seed: UInt64(number))) }
        let agent = try await place.run()
        try place.configure(
            replacing: "routes:\n", with: "  - path: second\n    settle: 0s\nroutes:\n")
        try place.folder.makeDirectory("second")
        for number in 1...10 { try place.folder.write(bytes(1000, seed: 9), to: FilePath("second/new-\(number).bin")) }
        try await place.inlet("reload", code: 0)
        try await agent.kill()
        let again = try await place.run()
        try await again.wait("all are delivered") {
            let names = try FileManager.default.contentsOfDirectory(atPath: place.library.string)
            return names.count { $0.hasSuffix(".bin") } == 50
        }
        try await eventually("the balance is right") {
            try await place.balance().filter { $0.value > 0 } == ["delivered": 50]
        }
        #expect(try await again.stop() == .code(0))
    }

    @Test func `a service manager hears of each reload, after the start and before the stop`() async throws {
        let place = try Place()
        let manager = try DatagramSocket(at: place.folder.path.appending("notify"))
        let agent = try await place.run(environment: ["NOTIFY_SOCKET": manager.path.string])
        try await agent.wait("it is ready") { manager.all == ["READY=1"] }
        let before = Self.monotonicMicroseconds()
        agent.signal(SIGHUP)
        try await agent.wait("the first is over") { manager.all.count == 3 }
        try await place.inlet("reload", code: 0)
        try await agent.wait("the second is over") { manager.all.count == 5 }
        let after = Self.monotonicMicroseconds()
        // One that is refused is over too.
        try place.configure(replacing: "to: store", with: "to: stroe")
        try await place.inlet("reload", code: 78)
        #expect(try await agent.stop() == .code(0))
        let reload = ["RELOADING=1", "READY=1"]
        #expect(
            manager.all.map { $0.prefix { $0 != "\n" } }
                == (["READY=1"] + reload + reload + reload + ["STOPPING=1"]).map { $0[...] })
        for reloading in [manager.all[1], manager.all[3]] {
            let time = reloading.split(separator: "\nMONOTONIC_USEC=").last.flatMap { Int64($0) }
            #expect(time.map { (before...after).contains($0) } == true, "\(reloading)")
        }
    }

    /// Dispatch's uptime is CLOCK_MONOTONIC.
    private static func monotonicMicroseconds() -> Int64 { Int64(DispatchTime.now().uptimeNanoseconds / 1000) }

    @Test func `a log that cannot be opened is refused, and nothing of that file holds`() async throws {
        let (place, agent) = try await Place.running()
        let good = String(decoding: try place.content(place.configuration), as: UTF8.self)
        let taken = try place.folder.makeDirectory("state/no-file")
        let bad = good.replacing("log: { level: debug }", with: "log: { level: debug, output: state/no-file }")
            .replacing("key: \"{dir}/{name}\"", with: "key: \"new/{name}\"")
        try place.configure(text: bad)
        try await place.inlet("reload", code: 78, errors: "nothing was changed", taken.string)
        let line = try await agent.line("config.refused")
        guard case .list(let errors)? = line.fields["errors"] else { throw agent.unexpected("no errors") }
        #expect(errors.count == 1 && errors[0].contains(taken.string), "\(errors)")
        try await place.inlet("config", "diff", code: 1, says: "routes[all].key")
        try place.put("a.bin", bytes(1000))
        // Its lines go where they went.
        try await agent.line("job.finished") { $0.isAbout("a.bin") && $0["state"] == "delivered" }
        #expect(place.exists(place.library.appending("a.bin")) && !place.exists(place.library.appending("new")))
        try place.configure(text: good)
        try await place.inlet("reload", code: 0)
        #expect(try await agent.stop() == .code(0))
    }

    /// A confined agent is told of another folder only by its start.
    @Test(arguments: ["off", "auto"])
    func `what was admitted of a folder that left is delivered after a kill, by the file that left it out`(
        _ landlock: String
    ) async throws {
        var config = ConfigText()
        config.top.append("landlock: \(landlock)")
        config.watch.append("archive_dir: .inlet/kept")
        config.route.append("on_success: archive")
        let place = try Place(config)
        try await place.inlet("pause", code: 0)
        let agent = try await place.run()
        let content = bytes(200_000)
        try place.put("a.bin", content)
        try await agent.line("job.admitted")
        try place.folder.makeDirectory("second")
        config.watch = ["settle: 0s"]
        try place.configure(text: config.text.replacing("- path: drop", with: "- path: second"))
        let isConfined = !agent.lines("agent.confined").isEmpty
        try await place.inlet("reload", code: isConfined ? 78 : 0)
        try await agent.kill()
        let again = try await place.run()
        try await place.inlet("resume", code: 0)
        try await again.line("job.finished") { $0.isAbout("a.bin") && $0["state"] == "delivered" }
        #expect(try place.content(place.library.appending("a.bin")) == content)
        let kept = place.drop.pushing(".inlet/kept/a.bin")
        try await again.wait("it is archived where its folder said") { place.exists(kept) }
        // Nobody watches its folder any more: what comes later stays.
        try place.put("late.bin", bytes(10))
        try place.folder.write(bytes(20), to: "second/b.bin")
        try await again.line("job.finished") { $0.isAbout("b.bin") && $0["state"] == "delivered" }
        #expect(try await place.balance().filter { $0.value > 0 } == ["delivered": 2])
        #expect(try await again.stop() == .code(0))
    }

    @Test func `connections that no destination uses any more end, with their threads`() async throws {
        // Nobody listens there.
        let place = try Place(.spiral(9, "connections: 40"))
        let agent = try await place.run()
        let before = Self.transferThreads(of: agent)
        try #require(before > 0)
        for number in 41...44 {
            try place.configure(replacing: "connections: \(number - 1)", with: "connections: \(number)")
            try await place.inlet("reload", code: 0)
        }
        try await agent.wait("as many run as before") { Self.transferThreads(of: agent) == before }
        #expect(try await agent.stop() == .code(0))
    }

    private static func transferThreads(of agent: InletProcess) -> Int {
        let tasks = "/proc/\(agent.id)/task"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return names.count { id in
            (try? String(contentsOfFile: "\(tasks)/\(id)/comm", encoding: .utf8))?.hasPrefix("transfer-") == true
        }
    }
}
