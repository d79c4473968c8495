import InletCore
import InletLinux
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard

/// What is remembered of what happened: events, rates, and whether all is well.
@Suite struct LiveTests {
    private let start = WallTime(milliseconds: 1_000_000_000_000)
    private static let ref = AgentEvent.JobRef(job: 7, delivery: 70, path: "/in/a", route: "all", destination: "r2")

    @Test func `a ring keeps the newest, and a reader goes on where he was`() {
        var ring = EventRing(after: 100, capacity: 3)
        #expect(ring.since == nil && ring.after(0, limit: 9).isEmpty)
        for number in 1...5 { ring.append(.queueResuming(waiting: number), at: start + .seconds(number)) }
        #expect(ring.last == 105 && ring.since == start + .seconds(3))
        #expect(ring.after(103, limit: 9).map(\.seq) == [104, 105])
        #expect(ring.after(105, limit: 9).isEmpty)
        #expect(ring.after(103, limit: 1).map(\.seq) == [104])
        // Of what is forgotten, and of a number that never was, all that there is.
        for seq in [0, 101, 900] as [Int64] { #expect(ring.after(seq, limit: 9).map(\.seq) == [103, 104, 105]) }
        #expect(ring.before(105).map(\.seq) == [103, 104] && ring.before(nil).count == 3)
    }

    @Test func `bytes are spread over the time in which they left`() {
        var rates = RateHistory(from: start)
        rates.add(3000, to: "r2", from: start, until: start + .milliseconds(29_999))
        rates.add(500, to: "disk", from: start + .seconds(25), until: start + .seconds(25))
        let report = rates.series(at: start + .seconds(30))
        #expect(report.total.count == RateHistory.steps && report.step_ms == 10_000)
        #expect(report.destinations["r2"]?.suffix(4) == [0, 100, 100, 100])
        #expect(report.destinations["disk"]?.suffix(3) == [0, 0, 50])
        #expect(report.total.suffix(3) == [100, 100, 150])
        #expect(WallTime(rfc3339: report.from) == start + .seconds(30 - 3600))
    }

    @Test func `what is older than an hour is forgotten, whatever the clock does`() {
        var rates = RateHistory(from: start)
        rates.add(1000, to: "r2", from: start, until: start)
        #expect(rates.series(at: start + .seconds(10)).total.last == 100)
        #expect(rates.series(at: start + .seconds(3600)).total.first == 100)
        #expect(rates.series(at: start + .seconds(3610)).destinations.isEmpty)
        rates.add(1000, to: "r2", from: start, until: start + .seconds(99_999))
        rates.add(1000, to: "r2", from: start + .seconds(50), until: start)
        #expect(rates.series(at: start).total.allSatisfy { $0 >= 0 })
    }

    @Test(arguments: 1...50)
    func `no byte is lost or counted twice by spreading`(seed: Int) {
        var random = SystemRandomNumberGenerator()
        var rates = RateHistory(from: start)
        var sum: Int64 = 0
        for _ in 0..<seed {
            let begin = Int.random(in: 0...2_000_000, using: &random)
            let count = Int64.random(in: 1...1_000_000, using: &random) * 10
            let end = begin + Int.random(in: 0...1_000_000, using: &random)
            rates.add(count, to: "r2", from: start + .milliseconds(begin), until: start + .milliseconds(end))
            sum += count
        }
        let shown = rates.series(at: start + .seconds(3500)).total.reduce(0, +) * 10
        // Each step is shown in whole bytes per second.
        #expect(shown <= sum && sum - shown <= 10 * Int64(RateHistory.steps), "\(shown) of \(sum)")
    }

    @Test func `what was seen of a delivery is not counted again when it is delivered`() {
        var rates = RateHistory(from: start)
        let (later, end) = (start + .seconds(12), start + .seconds(22))
        #expect(rates.hear(.jobStarted(Self.ref, key: "a", attempt: 1, size: 1000), at: start) == 0)
        #expect(rates.look(300, of: 70, to: "r2", at: start) == 300)
        #expect(rates.hear(.transferProgress(Self.ref, sent: 300, size: 1000), at: later) == 0)
        let proof = Proof(key: "a", size: 1000, method: .size)
        #expect(rates.hear(.jobDelivered(Self.ref, proof, duration: .seconds(22)), at: end) == 700)
        #expect(rates.look(1000, of: 70, to: "r2", at: end) == 0)
        // What is counted at a look has left since the one before.
        #expect(rates.series(at: start + .seconds(30)).destinations["r2"]?.suffix(3) == [30, 55, 14])
    }

    @Test func `a try that goes on does not count again what the one before has sent`() {
        var rates = RateHistory(from: start)
        rates.hear(.jobStarted(Self.ref, key: "a", attempt: 1, size: 100), at: start)
        #expect(rates.look(60, of: 70, to: "r2", at: start) == 60)
        rates.hear(.jobStarted(Self.ref, key: "a", attempt: 2, size: 100), at: start)
        #expect(rates.look(60, of: 70, to: "r2", at: start) == 0)
        #expect(rates.look(100, of: 70, to: "r2", at: start) == 40)
    }

    @Test func `a clock that was put back does not stop the rates`() {
        var rates = RateHistory(from: start + .seconds(99_999))
        rates.add(1000, to: "r2", from: start, until: start)
        #expect(rates.series(at: start + .seconds(10)).total.last == 100)
    }

    @Test func `what an earlier process sent, and what only was registered, are no bytes of now`() {
        var rates = RateHistory(from: start)
        let proof = Proof(key: "a", size: 100, method: .size)
        rates.hear(.jobStarted(Self.ref, key: "a", attempt: 2, size: 100, isResumed: true), at: start)
        #expect(rates.look(60, of: 70, to: "r2", at: start) == 0)
        #expect(rates.hear(.jobDelivered(Self.ref, proof, duration: .zero), at: start) == 40)
        rates.hear(.jobStarted(Self.ref, key: "a", attempt: 1, size: 100), at: start)
        let registered = Proof(key: "a", size: 100, method: .registered)
        #expect(rates.hear(.jobDelivered(Self.ref, registered, duration: .zero), at: start) == 0)
        rates.hear(.jobStarted(Self.ref, key: "a", attempt: 1, size: 100, isPoll: true), at: start)
        #expect(rates.hear(.jobDelivered(Self.ref, proof, duration: .zero), at: start) == 0)
    }

    @Test func `a feed hears what is said, and tells it by level and by job`() throws {
        let log = try EventLog(nil)
        let feed = ActivityFeed(log)
        let before = feed.last
        log.emit(.queueRecovered)
        log.emit(.jobUnchanged(job: 7, path: "/in/a"))
        log.emit(.jobAdmitted(job: 8, path: "/in/b", route: "all", size: 3, deliveries: ["r2"]))
        #expect(feed.events(after: before, limit: 9).count == 3)
        #expect(feed.newest(9, level: .info).map(\.seq) == [before + 1, before + 3])
        #expect(feed.newest(9, level: .debug, job: 7).map(\.seq) == [before + 2])
        #expect(feed.newest(1, level: .debug).map(\.seq) == [before + 3])
        #expect(feed.newest(9, level: .debug, before: before + 2).map(\.seq) == [before + 1])
        #expect(ActivityFeed(log).last >= before)
        // Whoever looks for the name of before finds them: the page searches all values of an event.
        let told = try feed.newest(9, level: .debug).map {
            String(decoding: try JSON.answer($0), as: UTF8.self)
        }
        let names = ["queue.free", "job.known"]
        #expect(
            told.map { text in names.filter { text.contains("\"was\":\"\($0)\"") } } == [
                ["queue.free"], ["job.known"], [],
            ])
    }

    @Test(
        arguments: [
            (nil, [], [], []),
            (nil, [.watching], ["up", "down"], []),
            (nil, [.watching, .missing, .standby("inlet on b")], ["not asked yet"], []),
            ("/s/j: it is locked", [.watching], ["up"], ["the journal cannot be used: /s/j: it is locked"]),
            (nil, [.starting], ["up"], ["/0 is being listed"]),
            (
                nil, [.failing("no room"), .guarded("empty")], ["up"],
                ["/0 cannot be watched: no room", "/1 is paused: empty"]
            ),
            (
                nil, [.watching], ["down", "credentials refused"],
                ["nothing can be sent: d0 is down, d1 is credentials refused"]
            ),
            (nil, [.watching], ["paused", "down"], []),
        ] as [(String?, [RootStatus.State], [String], [String])])
    func `readiness says why not`(
        journal: String?, roots: [RootStatus.State], destinations: [String], reasons: [String]
    ) {
        let found = ReadyReport.reasons(
            journal: journal, roots: roots.enumerated().map { ("/\($0.offset)", $0.element) },
            destinations: destinations.enumerated().map { ("d\($0.offset)", $0.element) })
        #expect(found == reasons)
    }
}
