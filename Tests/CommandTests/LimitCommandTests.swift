import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

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
        #expect(try await place.inlet("limit").output == "all destinations: 20 MiB/s\n")

        let set = try await place.inlet("limit", "5MiB/s", "--to", "store")
        let until = "until 'inlet limit auto --to store' or "
        #expect(set.ending == .code(0) && set.output.hasPrefix("store: 5 MiB/s by 'inlet limit', \(until)"), "\(set)")
        let told = try await agent.line("limit.changed", number: 2)
        #expect(told["destination"] == "store" && told["cause"] == "command" && told["bandwidth"] == "5 MiB/s")
        #expect(try await place.inlet("limit", "0").output.hasPrefix("all destinations: 0 (nothing is sent) by "))
        #expect(try await place.inlet("limit").output.split(separator: "\n").count == 2)

        let limits = try await place.status().all["limits"] as? [[String: Any]]
        #expect(limits?.map { $0["destination"] as? String } == [nil, "store"])
        #expect(limits?.map { $0["bytes_per_second"] as? Int } == [0, 5 << 20])
        #expect(limits?.map { $0["why"] as? String } == ["command", "command"])
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
