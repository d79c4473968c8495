import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard

/// The answer for widgets of home pages.
@Suite struct HomeTests {
    private static let keys: Set = [
        "verdict", "sentence", "needs_you", "last", "next", "quiet_since", "failed_30d", "ok_30d", "cards",
    ]

    @Test func `every key is always there, and what is not known is null`() async throws {
        try await DashboardScene(token: "full-token").serving { port in
            let answer = try await RawClient(port: port).get("home", DashboardScene.bearer("full-token"))
            #expect(answer.status == 200 && Set(answer.object.keys) == Self.keys, "\(answer.body)")
            for key in ["last", "next", "quiet_since"] { #expect(answer.object[key] is NSNull, "\(key)") }
            let cards = try #require(answer.object["cards"] as? [String: Any])
            #expect(cards["safe"] as? Int == 0 && cards["not_yet"] as? Int == 0 && cards.count == 2)
            #expect(answer.object["verdict"] as? String == "safe" && answer.object["needs_you"] as? Int == 0)
            #expect(answer.object["sentence"] as? String == "All is well.")
        }
    }

    @Test func `a reader may ask, a kiosk and strangers may not`() async throws {
        let scene = try DashboardScene(token: "full-token", reader: "the-reader", kiosk: "the-kiosk")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            #expect(try await client.get("home", DashboardScene.bearer("the-reader")).status == 200)
            #expect(try await client.get("home", DashboardScene.bearer("the-kiosk")).status == 403)
            #expect(try await client.get("home").status == 401)
        }
    }

    @Test func `it tells the newest file, the ends of the last 30 days, and the folder that is quiet the longest`()
        async throws
    {
        let now = WallTime.now
        var roots = [RootStatus(root: "/one", state: .watching), RootStatus(root: "/two", state: .watching)]
        for index in roots.indices {
            roots[index].expect = .seconds(60)
            roots[index].quietSince = now + .seconds(-3600 * (index + 1))
        }
        let scene = try DashboardScene(token: "full-token", roots: roots)
        try await scene.serving { port in
            let live = try #require(scene.control.agent.live)
            live.shared.arrivals.note(Arrival(job: 7, path: "/one/film.mov", at: now), in: "/one")
            for (job, state) in [FileState.delivered, .duplicate, .failed].enumerated() {
                live.tally.count(.jobFinished(job: Int64(job), path: "/one/a", state: state, disposition: "kept"))
            }
            let home = try await RawClient(port: port).get("home", DashboardScene.bearer("full-token")).object
            let last = try #require(home["last"] as? [String: Any])
            #expect(last["file"] as? String == "/one/film.mov" && last["at"] as? String == now.rfc3339)
            #expect(home["ok_30d"] as? Int == 2 && home["failed_30d"] as? Int == 1)
            #expect(home["quiet_since"] as? String == roots[1].quietSince?.rfc3339)
            #expect(home["verdict"] as? String == "needs_you" && home["needs_you"] as? Int == 2)
        }
    }

    @Test func `a status has the folders' last files, and what is expected of them`() async throws {
        var root = RootStatus(root: "/one", state: .watching)
        (root.lastFile, root.expect) = (WallTime(milliseconds: 1_800_000_000_000), .seconds(86_400))
        root.quietSince = root.lastFile
        let scene = try DashboardScene(roots: [root])
        defer { scene.journal.close() }
        let report = try #require(try await scene.control.status().roots.first)
        #expect(report.last_file_at == root.lastFile?.rfc3339 && report.quiet_since == root.lastFile?.rfc3339)
        #expect(report.expect == "24h")
        var page = PrometheusText()
        MetricsPage(scene.control.agent).addRoots([root], to: &page)
        #expect(page.text.contains("inlet_root_last_file_timestamp_seconds{root=\"/one\"} 1800000000\n"))
        #expect(page.text.contains("inlet_root_quiet{root=\"/one\"} 1\n"), "\(page.text)")
        root.expect = nil
        page = PrometheusText()
        MetricsPage(scene.control.agent).addRoots([root], to: &page)
        #expect(!page.text.contains("inlet_root_quiet{"), "nothing is expected of it")
    }

    private final class Count: Sendable {
        private let asked = Mutex(0)
        var value: Int { asked.withLock(\.self) }

        func add() -> Int {
            asked.withLock {
                $0 += 1
                return $0
            }
        }
    }

    @Test func `while the journal does not answer, the last report is given, and the next is asked for once`()
        async throws
    {
        struct Asked: Error {}
        let home = HomeStatus(fresh: .zero)
        let report = try SampleStatus.report()
        let (count, gate) = (Count(), WakeSignal())
        try await withThrowingTaskGroup { group in
            group.addTask {
                await home.keep {
                    // The second one hangs.
                    if count.add() > 1 { await gate.wait(until: nil) }
                    return report
                }
            }
            try await eventually("it is kept") {
                // Until then each request asks by itself.
                do {
                    _ = try await home.current { throw Asked() }
                    return true
                } catch is Asked {
                    return false
                }
            }
            for _ in 0..<20 {
                #expect(try await home.current { throw Asked() }.version == report.version)
            }
            try await eventually("the next one is asked for") { count.value == 2 }
            group.cancelAll()
        }
        #expect(count.value == 2)
    }

    static let verdicts: [(HomeReport.Verdict, @Sendable (inout StatusReport) -> Void)] = [
        (.safe, { _ in }), (.working, { $0.queue.waiting = 1 }), (.working, { $0.pending = 1 }),
        (.working, { $0.roots[0].settling = 1 }), (.needsYou, { $0.files["failed"] = 1 }),
        (.needsYou, { $0.journal_failing = true }), (.needsYou, { $0.roots[0].quiet_since = SampleStatus.start }),
        (.unknown, { $0.running = false }),
    ]

    @Test(arguments: verdicts.indices)
    func `the verdict is one word`(_ index: Int) throws {
        let report = try SampleStatus.report { report in
            (report.queue.in_flight, report.queue.waiting, report.pending) = (0, 0, 0)
            Self.verdicts[index].1(&report)
        }
        #expect(HomeReport.verdict(report, Health(report)) == Self.verdicts[index].0, "\(Health(report))")
    }

    @Test func `next is the earliest of all waits, and a wait without a time is none`() throws {
        let now = try #require(WallTime(rfc3339: SampleStatus.start))
        func next(_ change: (inout StatusReport) throws -> Void) throws -> HomeReport.Next? {
            HomeReport.next(try SampleStatus.report(change), at: now)
        }
        #expect(try next { _ in } == nil)
        let early = "2026-11-22T10:05:00.000Z"
        let down = try next { report in
            (report.destinations[0].state, report.destinations[0].next_probe) = ("down", early)
            report.windows = try [Self.window(open: false, "2026-11-22T22:00:00+01:00")]
        }
        #expect(down == HomeReport.Next(what: "store (down)", until: early))
        let window = try next { $0.windows = try [Self.window(open: false, "2026-11-22T22:00:00+01:00")] }
        #expect(window?.until == "2026-11-22T22:00:00+01:00" && window?.what == "the window of route big")
        #expect(try next { $0.windows = try [Self.window(open: true, early)] } == nil)
        #expect(
            try next { report in
                (report.destinations[0].next_probe, report.destinations[0].waiting) = (early, 0)
            } == nil, "nothing waits for it")
    }

    private static func window(open: Bool, _ change: String) throws -> WindowReport {
        let text = #"{"route": "big", "window": "w", "open": \#(open), "next_change": "\#(change)"}"#
        return try JSONDecoder().decode(WindowReport.self, from: Data(text.utf8))
    }
}
