import Dispatch
import Foundation
import InletSandbox
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
        let changes = try await place.inlet("config", "diff", "--json", code: 1).objects()
        let change = ["path": "routes[all].key", "from": "{dir}/{name}", "to": "new/{name}", "effect": "now"]
        #expect(changes as? [[String: String]] == [change], "\(changes)")
        let done = try await place.inlet("reload", code: 0, says: "routes[all].key: {dir}/{name} -> new/{name}")
        #expect(done.output.hasPrefix("reloaded: 1 change\n"), "\(done)")
        try await place.deliver("a.bin", bytes(1000), by: agent)
        #expect(place.exists(place.library.appending("new").appending("a.bin")))
        try await place.inlet("config", "diff", code: 0, says: "matches the running configuration")

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

    @Test
    func `SIGHUP reloads too, a wrong file is in the log with its place, and a service manager hears of each reload`()
        async throws
    {
        let place = try Place()
        let manager = try DatagramSocket(at: place.folder.path.appending("notify"))
        let agent = try await place.run(environment: ["NOTIFY_SOCKET": manager.path.string])
        try await agent.wait("it is ready") { manager.all == ["READY=1"] }
        let before = Self.monotonicMicroseconds()
        try place.configure(replacing: "key: \"{dir}/{name}\"", with: "key: \"hup/{name}\"")
        agent.signal(SIGHUP)
        try await agent.wait("the first is over") { manager.all.count == 3 }
        try await place.inlet("reload", code: 0)
        try await agent.wait("the second is over") { manager.all.count == 5 }
        let after = Self.monotonicMicroseconds()
        let line = try await agent.line("config.reloaded")
        #expect(line.fields["changes"] == .list(["routes[all].key"]), "\(line)")
        try await place.deliver("a.bin", bytes(1000), by: agent)
        #expect(place.exists(place.library.appending("hup").appending("a.bin")))
        // One that is refused is over too.
        try place.configure(replacing: "to: store", with: "to: stroe")
        agent.signal(SIGHUP)
        let refused = try await agent.line("config.refused")
        guard case .list(let errors)? = refused.fields["errors"] else { throw agent.unexpected("no errors") }
        #expect(errors.count == 1 && errors[0].contains("inlet.yaml:") && errors[0].contains("^"), "\(errors)")
        try await agent.wait("the third is over") { manager.all.count == 7 }
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
        try await place.inlet("reload", code: 78, errors: "no change: ", taken.string)
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

/// `inlet limit`, and what `check`, `status` and `route` say of limits and windows.
@Suite(.serialized) struct LimitCommandTests {
    @Test func `a running agent is told a limit, says what holds and why, and goes back to its configuration`()
        async throws
    {
        let place = try Place(.spiral(try FreePort.any()))
        try place.configure(
            replacing: "log: { level: debug }", with: "log: { level: debug }\nlimits: { bandwidth: 20MiB/s }")
        let agent = try await place.run()
        let start = try await agent.line("limit.changed")
        #expect(
            start["destination"] == "*" && start["cause"] == "start" && start.number("bytes_per_second") == 20 << 20)
        #expect(try await place.inlet("limit").output.contains("\nall\t20 MiB/s\t"))

        let set = try await place.inlet("limit", "5MiB/s", "--to", "store")
        let until = "until 'inlet limit auto --to store' or "
        #expect(set.ending == .code(0) && set.output.hasPrefix("store: 5 MiB/s by 'inlet limit', \(until)"), "\(set)")
        let told = try await agent.line("limit.changed", number: 2)
        #expect(told["destination"] == "store" && told["cause"] == "command" && told["bandwidth"] == "5 MiB/s")
        #expect(try await place.inlet("limit", "0").output.hasPrefix("all destinations: 0 (nothing is sent) by "))
        let limits = try await place.inlet("limit").output.split(separator: "\n")
        #expect(limits.first == "DESTINATION\tLIMIT\tSET BY\tUNTIL" && limits.count == 3, "\(limits)")
        #expect(try await place.inlet("limit", "--json").objects().count == 2)

        let reported = try await place.status().all["limits"] as? [[String: Any]]
        #expect(reported?.map { $0["destination"] as? String } == [nil, "store"])
        #expect(reported?.map { $0["bytes_per_second"] as? Int } == [0, 5 << 20])
        #expect(reported?.map { $0["why"] as? String } == ["command", "command"])
        let text = try await place.inlet("status").output
        #expect(text.contains("  all destinations: 0 (nothing is sent) by 'inlet limit'"), "\(text)")

        #expect(try await place.inlet("limit", "off").output.hasPrefix("all destinations: unlimited by 'inlet limit'"))
        #expect(try await place.inlet("limit", "auto").output == "all destinations: 20 MiB/s\n")
        #expect(try await place.inlet("limit", "auto", "--to", "store").output == "store: unlimited\n")
        try await place.inlet("limit", "0", "--to", "stroe", code: 1, errors: "did you mean 'store'?")
        #expect(try await agent.stop() == .code(0))
        try await place.inlet("limit", code: 75)
        try await place.inlet("limit", "0", code: 75)
    }

    @Test func `what is no rate is 64, and says how it is written`() async throws {
        let place = try Place()
        try await place.inlet("limit", "5MiB", code: 64, errors: "did you mean '5MiB/s'?")
        try await place.inlet("limit", "20Mb/s", errors: "bits or bytes")
        try await place.inlet("limit", "--to", "store", code: 64)
    }

    @Test func `with a limit of 0 nothing arrives, and without it what waited does`() async throws {
        try await withSpiral { place, sandbox in
            let agent = try await place.run()
            try await place.inlet("limit", "0", "--to", "store", code: 0)
            try place.put("held.bin", bytes(100_000))
            try await agent.line("job.admitted")
            let held = try await place.status()
            #expect(held.files == ["pending": 1] && held.queue == ["total": 1, "waiting": 1])
            let tried = try await place.inlet("queue", "retry", "1")
            let later = "job 1 is tried later: the limit is 0 (store: 0 (nothing is sent) by 'inlet limit'"
            #expect(tried.ending == .code(0) && tried.output.hasPrefix(later), "\(tried)")
            let some = try await place.inlet("queue", "retry", "--destination", "store")
            let when = "1 file tried now, but for what waits: the limit is 0 (store: 0 (nothing is sent)"
            #expect(some.ending == .code(0) && some.output.hasPrefix(when), "\(some)")
            let named = try place.folder.write(bytes(3000), to: "named.bin")
            let sent = try await place.inlet("send", named.string, "--to", "store", code: 69)
            #expect(sent.output.contains("named.bin: waiting, the limit is 0 (store: 0 (nothing is sent)"), "\(sent)")
            // Nor has it been asked where the bytes were to go.
            #expect(sandbox.traffic.bytesReceived == 0 && sandbox.objects().isEmpty)
            try await place.inlet("limit", "auto", "--to", "store", code: 0)
            for name in ["held.bin", "named.bin"] {
                try await agent.line("job.finished") { $0.isAbout(name) && $0["state"] == "delivered" }
            }
            #expect(sandbox.objects().map(\.key) == ["held.bin", "named.bin"])
            #expect(try sandbox.objects().map { try place.content($0.path) } == [bytes(100_000), bytes(3000)])
        }
    }

    /// A span from and to so many minutes from now, by UTC.
    private static func window(_ from: Int, _ to: Int) -> String {
        let now = Int(Date().timeIntervalSince1970 / 60)
        func clock(_ minutes: Int) -> String {
            let minute = (now + minutes) % 1440
            return String(format: "\"%02d:%02d\"", minute / 60, minute % 60)
        }
        return "window: { from: \(clock(from)), to: \(clock(to)), above: 1KiB }"
    }

    private static func place(_ window: String) throws -> Place {
        return try Place(route: [window], top: ["limits: { zone: UTC }"])
    }

    @Test func `outside of its window a big file waits and says so, and a small one passes it`() async throws {
        let place = try Self.place(Self.window(120, 180))
        let agent = try await place.run()
        try place.put("big.bin", bytes(2000))
        try await agent.line("job.admitted")
        try await place.deliver("small.bin", bytes(10), by: agent)
        var shown = ""
        try await eventually("the big one waits for its window") {
            shown = try await place.inlet("queue", "show", "1").output
            return shown.contains("waits for its window (")
        }
        #expect(shown.contains("attempts 0"), "\(shown)")
        let tried = try await place.inlet("queue", "retry", "1")
        let later = /^job 1 is tried later: its window \(\d\d:\d\d to \d\d:\d\d.*\) opens at 2\d{3}-\d\d-\d\dT/
        #expect(tried.ending == .code(0) && tried.output.contains(later), "\(tried)")
        #expect(try await place.status().files == ["delivered": 1, "pending": 1])
        let text = try await place.inlet("status").output
        #expect(text.contains(/route all: \d\d:\d\d to \d\d:\d\d, for files from 1 KiB; closed until 2/), "\(text)")
        let route = try await place.inlet("route", place.drop.appending("big.bin").string).output
        #expect(route.contains("this one would wait until "), "\(route)")
        #expect(!place.exists(place.library.appending("big.bin")))
        // Who names a file wants it sent now.
        let named = try place.folder.write(bytes(3000), to: "named.bin")
        try await place.inlet("send", named.string, "--to", "store", code: 0)
        #expect(try await agent.stop() == .code(0))
        #expect(try await place.status().files == ["delivered": 2, "pending": 1])
    }

    @Test func `inside of its window a big file goes at once`() async throws {
        let place = try Self.place(Self.window(-60, 120))
        let agent = try await place.run()
        try await place.deliver("big.bin", bytes(2000), by: agent)
        let route = try await place.inlet("route", place.drop.appending("big.bin").string).output
        #expect(route.contains("for files from 1 KiB: open now"), "\(route)")
    }

    @Test func `check tells the limits and windows in words`() async throws {
        try await withSpiral(
            "schedule: [{ from: \"08:00\", to: \"18:00\", days: [mon, tue, wed, thu, fri], bandwidth: 40Mbit/s }]",
            route: "window: { from: \"22:00\", to: \"06:00\" }"
        ) { place, _ in
            try place.configure(
                replacing: "log: { level: debug }", with: "log: { level: debug }\nlimits: { bandwidth: 0 }")
            let check = try await place.inlet(
                "check", says: "limits: all destinations together: 0 (nothing is sent)", "bandwidth is 0 at all times")
            let day = "sends: mon to fri: unlimited, from 08:00 4.8 MiB/s, from 18:00 unlimited"
            #expect(check.output.contains("destination store: \(day)"), "\(check)")
            #expect(check.output.contains("route all: deliveries begin 22:00 to 06:00, for files from 1 GiB"))
            #expect(check.ending == .code(1))
        }
    }
}
