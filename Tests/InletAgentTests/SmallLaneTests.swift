import Foundation
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Claims that wait for a connection: with eight connections, eight run and others wait at hand.
@Suite struct SmallLaneTests {
    private static let connections = 8
    private static let files = LaneSlots.most(connections) + 8

    /// Drops files, and returns when as many run as may, and as many wait at hand.
    private func fill(_ scene: Scene, _ stage: Stage) async throws {
        for number in 0..<Self.files { try scene.drop(FilePath("\(number)")) }
        try await eventually("the stock is full") {
            let claimed = try await stage.journal.deliveryCounts(.claimed)["here"]
            return claimed == LaneSlots.most(Self.connections) && scene.here.record.running == Self.connections
        }
    }

    /// What the next start finds: nothing claimed, and no attempt counted of what has not been delivered.
    private func expectAllGivenBack(_ scene: Scene, delivered: Int) async throws {
        let journal = try Journal(path: scene.journalPath, now: .now)
        defer { journal.close() }
        #expect(try await journal.deliveryCounts(.delivered)["here"] ?? 0 == delivered)
        #expect(try await journal.recover(destinations: ["here"], at: .now).freedClaims == 0)
        let open = try await journal.jobs(FileFilter(limit: 100)).flatMap(\.deliveries).filter { $0.state == .ready }
        #expect(open.allSatisfy { $0.attempts == 0 })
    }

    @Test func `at the end what runs may end, and what waits at hand goes back untried`() async throws {
        let scene = try Scene()
        scene.here.always(.untilStopping(.deliver))
        try await scene.run { stage in try await fill(scene, stage) }
        #expect(scene.here.record.orders.count == Self.connections)
        try await expectAllGivenBack(scene, delivered: Self.connections)
    }

    @Test func `after the grace what was ended is given back, too`() async throws {
        var scene = try Scene()
        scene.grace = .milliseconds(50)
        scene.here.always(.stall)
        let stalling = scene
        try await stalling.run { stage in try await fill(stalling, stage) }
        #expect(scene.here.record.orders.count == Self.connections)
        try await expectAllGivenBack(stalling, delivered: 0)
    }

    @Test func `services that end without being asked to give back what waits at hand, and begin nothing`() async throws
    {
        let scene = try Scene()
        scene.here.always(.stall)
        struct Abandoned: Error {}
        await #expect(throws: Abandoned.self) {
            try await scene.run { stage in
                try await fill(scene, stage)
                throw Abandoned()
            }
        }
        #expect(scene.here.record.orders.count == Self.connections)
        try await expectAllGivenBack(scene, delivered: 0)
    }

    @Test func `when a destination goes down, what waits at hand for it is not begun`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.always(.hold(gate, .fail(.outage)))
        scene.here.failProbes(.outage, .outage, .outage)
        try await scene.run { stage in
            try await fill(scene, stage)
            gate.open()
            try await eventually("all is given back") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(scene.here.record.orders.count == Self.connections)
            #expect(try await stage.journal.deliveryCounts(.ready) == ["here": Self.files])
            #expect(try await stage.jobs().flatMap(\.deliveries).allSatisfy { $0.attempts == 0 })
        }
    }

    @Test func `when a destination is paused, what waits at hand for it is not begun`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            try await fill(scene, stage)
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            gate.open()
            try await eventually("all is given back") { try await stage.journal.deliveryCounts(.claimed).isEmpty }
            #expect(scene.here.record.orders.count == Self.connections)
            _ = try await stage.agent.control.setPaused(false, "here", by: "test")
            try await eventually("all has arrived") { scene.here.record.stored.count == Self.files }
        }
        #expect(scene.here.record.orders.count == Self.files)
        #expect(scene.here.record.mostRunning <= Self.connections)
    }

    @Test func `what still runs for a destination that was paused keeps nobody else waiting`() async throws {
        var scene = try Scene()
        let gate = Gate()
        let other = ScriptedPipeline()
        scene.destinations = [.scripted("here", scene.here), .scripted("other", other, connections: 2)]
        scene.others = [scene.route]
        (scene.others[0].name, scene.others[0].to) = ("rest", ["other"])
        scene.route.match.extensions = ["big"]
        scene.here.always(.hold(gate, .deliver))
        let both = scene
        try await both.run { stage in
            for number in 0..<Self.connections { try both.drop(FilePath("\(number).big")) }
            try await eventually("all connections are taken") { both.here.record.running == Self.connections }
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try both.drop("small")
            try await stage.finished("small")
            #expect(both.here.record.running == Self.connections)
            gate.open()
        }
    }

    @Test func `one that is cancelled while it waits at hand is never begun, and can be sent again`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            try await fill(scene, stage)
            let begun = Set(scene.here.record.orders.map(\.key))
            let waiting = try #require(
                try await stage.jobs().first { job in
                    job.deliveries[0].state == .claimed && !begun.contains(job.deliveries[0].key ?? "")
                })
            #expect(try await stage.agent.control.act(.cancel, on: waiting.file.id) == .done)
            gate.open()
            try await stage.finished(waiting.file.path, .cancelled)
            try await eventually("the others have arrived") { scene.here.record.stored.count == Self.files - 1 }
            #expect(scene.here.record.orders.count == Self.files - 1)
            try await stage.retry(waiting)
        }
        #expect(scene.here.record.stored.count == Self.files)
    }

    @Test func `what goes back to wait for its time expires there`() async throws {
        var scene = try Scene()
        let gate = Gate()
        // Time enough to begin; then it waits for it.
        scene.route.retry.expire = .seconds(10)
        let later = DeliveryError(.retry(after: .seconds(3600)), .serverError, "come back in an hour")
        scene.here.always(.hold(gate, .fail(later)))
        let waiting = scene
        try await waiting.run { stage in
            try waiting.drop("a")
            try await eventually("a is on its way") { waiting.here.record.running == 1 }
            gate.open()
            try await stage.finished("a", .expired)
        }
        #expect(scene.here.record.orders.count == 1)
    }

    @Test func `of many files that come at once, all is said of each, once and in its order`() async throws {
        let scene = try Scene()
        for number in 0..<200 { try scene.drop(FilePath("\(number)")) }
        try await scene.run { stage in
            try await eventually("all is finished") { stage.events.count("job.finished") == 200 }
            var said: [FilePath: [String]] = [:]
            for event in stage.events.all {
                switch event {
                case .jobAdmitted(_, let path, _, _, _, _): said[path, default: []].append("admitted")
                case .jobStarted(let ref, _, _, _, _, _): said[ref.path, default: []].append("started")
                case .jobDelivered(let ref, _, _): said[ref.path, default: []].append("delivered")
                case .jobFinished(_, let path, _, _, _): said[path, default: []].append("finished")
                default: break
                }
            }
            #expect(said.count == 200)
            #expect(Set(said.values) == [["admitted", "started", "delivered", "finished"]])
        }
    }

    @Test(.enabled(if: hasSQLite))
    func `one that the journal refuses keeps the others neither from their proofs nor from their turn`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .hold(gate, .deliver))
        try await scene.run { stage in
            try await stage.start("a")
            // No policy: its row cannot be read, and its claim not be settled.
            try sql(scene.journalPath, "UPDATE file SET policy = x'00'")
            gate.open()
            try scene.drop("b")
            try await eventually("b has arrived") {
                try await stage.journal.deliveryCounts(.delivered) == ["here": 1]
            }
            #expect(try await stage.journal.deliveryCounts(.claimed) == ["here": 1])
            try scene.drop("c")
            try await eventually("c has arrived") {
                try await stage.journal.deliveryCounts(.delivered) == ["here": 2]
            }
            try sql(scene.journalPath, "UPDATE file SET policy = (SELECT policy FROM file ORDER BY id DESC LIMIT 1)")
            try await stage.finished("a")
        }
        #expect(scene.here.record.orders.map(\.key) == ["a", "b", "c"])
    }
}

/// Sets the rates: at the start, at the edges of the timetable, and when a person says so.
@Suite struct BandwidthControlTests {
    /// What was set, in its order: `*` for all together.
    private final class Taps: Sendable {
        private let values = Mutex<[String]>([])
        var all: [String] { values.withLock(\.self) }
        var valve: BandwidthValve {
            { rate, name in
                self.values.withLock { $0.append("\(name ?? "*") \(rate.map { "\($0)" } ?? "off")") }
            }
        }
    }

    /// A quarter of an hour after the start of the virtual time the entry begins, and it ends after half an hour.
    private static func limits() -> BandwidthLimits {
        let minute = Int(VirtualTime.start.milliseconds / 60_000 % 1440)
        let entry = Timetable.Entry(
            DaySpan(from: (minute + 15) % 1440, to: (minute + 30) % 1440), rate: 5000)
        return BandwidthLimits(all: Timetable(20_000, [entry], zone: "UTC"), destinations: ["a": Timetable(7000)])
    }

    private let directory: TemporaryDirectory
    /// Nothing is asked of it.
    private let journal: Journal

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        journal.close()
    }

    private func control(
        of limits: BandwidthLimits, _ taps: Taps, _ time: VirtualTime, _ log: EventLog
    ) -> BandwidthControl {
        let destinations = ["a", "b"].map { Destination.scripted($0, ScriptedPipeline()) }
        let shared = Shared.test(journal, log, destinations, clock: time.clock) { $0.bandwidth = limits }
        return BandwidthControl(shared, taps.valve)
    }

    private static func lines(_ events: EventRecord) -> [String] {
        events.all.compactMap { event in
            guard case .limitChanged(let name, let rate, let cause, _) = event else { return nil }
            return "\(name ?? "*") \(rate.map { "\($0)" } ?? "off") \(cause)"
        }
    }

    @Test func `limits hold before anything is sent, and change at the edges of the timetable`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let events = EventRecord(log)
        let control = self.control(of: Self.limits(), taps, time, log)
        #expect(taps.all == ["* 20000", "a 7000"])
        try await whileRunning([control]) {
            time.advance(to: VirtualTime.start + .seconds(16 * 60))
            control.lookNow()
            try await eventually("the entry holds") { taps.all.count == 3 }
            // The machine slept over the other edge.
            time.advance(to: VirtualTime.start + .seconds(3 * 3600))
            control.lookNow()
            try await eventually("it holds no more") { taps.all.count == 4 }
        }
        #expect(taps.all.suffix(2) == ["* 5000", "* 20000"])
        #expect(Self.lines(events) == ["* 20000 start", "a 7000 start", "* 5000 schedule", "* 20000 schedule"])
    }

    @Test func `it wakes up for an edge by itself`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let control = self.control(of: Self.limits(), taps, time, log)
        // The edge is a moment away; the clock has passed it when it wakes up.
        time.advance(to: VirtualTime.start + .seconds(15 * 60) + .milliseconds(-20 - Self.intoMinute))
        try await whileRunning([control]) {
            time.advance(to: VirtualTime.start + .seconds(16 * 60))
            try await eventually("the entry holds") { taps.all.last == "* 5000" }
        }
    }

    /// How far the virtual time begins into its minute.
    private static let intoMinute = VirtualTime.start.milliseconds % 60_000

    @Test func `a person's word holds at once, and over the timetable, until auto`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let events = EventRecord(log)
        let control = self.control(of: Self.limits(), taps, time, log)
        #expect(control.take(.rate(0), for: nil)?.rate == 0)
        #expect(control.take(.rate(1234), for: "b")?.cause == .command)
        #expect(control.take(.rate(1), for: "unknown") == nil)
        time.advance(to: VirtualTime.start + .seconds(16 * 60))
        #expect(control.take(.rate(nil), for: "a")?.rate == .some(nil))
        #expect(control.statuses().map(\.rate) == [0, nil, 1234])
        #expect(control.take(.auto, for: nil)?.cause == .schedule)
        #expect(taps.all == ["* 20000", "a 7000", "* 0", "b 1234", "a off", "* 5000"])
        #expect(Self.lines(events).suffix(4) == ["* 0 command", "b 1234 command", "a off command", "* 5000 command"])
    }

    @Test func `with a limit of 0 nothing begins and no time runs out, but in folders`() throws {
        let time = VirtualTime()
        let log = try EventLog(nil)
        var folder = Destination.scripted("b", ScriptedPipeline())
        folder.folder = "/library"
        let shared = Shared.test(journal, log, [.scripted("a", ScriptedPipeline()), folder], clock: time.clock)
        func open() -> [String] { shared.destinations.rooms().map(\.destination).sorted() }
        let control = BandwidthControl(shared)
        #expect(open() == ["a", "b"])
        #expect(control.take(.rate(0), for: nil) != nil)
        #expect(open() == ["b"])
        time.advance(to: VirtualTime.start + .seconds(3600))
        #expect(shared.destinations.uptimes() == ["a": 0, "b": 3_600_000])
        #expect(control.take(.rate(1), for: nil) != nil && control.take(.rate(0), for: "a") != nil)
        #expect(open() == ["b"])
        #expect(control.take(.auto, for: "a") != nil)
        #expect(open() == ["a", "b"])
    }

    @Test func `without limits nothing is set and nothing said`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let events = EventRecord(log)
        let control = self.control(of: BandwidthLimits(), taps, time, log)
        #expect(taps.all.isEmpty && events.names.isEmpty)
        #expect(control.statuses().map(\.destination) == [nil, "a", "b"])
        #expect(control.statuses().allSatisfy { $0.rate == nil && $0.cause == .configuration })
    }
}

@Suite struct LimitTests {
    /// Drops 12 files at a closed gate and returns how many transfers ran at once at most.
    private func most(_ scene: Scene, expected: Int) async throws -> Int {
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        for number in 0..<12 { try scene.drop(FilePath("file-\(number)")) }
        try await scene.run { stage in
            try await eventually("all are admitted") { try await stage.jobs().count == 12 }
            try await eventually("\(expected) run") { scene.here.record.running == expected }
            gate.open()
            for number in 0..<12 { try await stage.finished(FilePath("file-\(number)")) }
        }
        return scene.here.record.mostRunning
    }

    @Test func `big files have a worker each, and no more`() async throws {
        var scene = try Scene()
        scene.workers = 3
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0)]
        #expect(try await most(scene, expected: 3) == 3)
    }

    @Test func `a destination's own limit holds`() async throws {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here, smallLimit: 0, maxInFlight: 1)]
        #expect(try await most(scene, expected: 1) == 1)
    }

    @Test func `small files share the destination's connections`() async throws {
        var scene = try Scene()
        scene.workers = 1
        scene.destinations = [.scripted("here", scene.here, connections: 5)]
        #expect(try await most(scene, expected: 5) == 5)
    }

    @Test func `a destination without room does not hold up another`() async throws {
        var scene = try Scene()
        let other = ScriptedPipeline()
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        scene.destinations = [
            .scripted("here", scene.here, smallLimit: 0, maxInFlight: 1), .scripted("other", other, smallLimit: 0),
        ]
        scene.route.to = ["here", "other"]
        scene.workers = 2
        try await scene.run { stage in
            for number in 0..<6 { try scene.drop(FilePath("file-\(number)")) }
            try await eventually("the other has all") { other.record.stored.count == 6 }
            #expect(scene.here.record.stored.isEmpty)
            gate.open()
            for number in 0..<6 { try await stage.finished(FilePath("file-\(number)")) }
            #expect(scene.here.record.mostRunning == 1)
        }
    }
}
