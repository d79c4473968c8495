import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import ServiceLifecycle
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// What is done every so often.
@Suite struct SchedulerTests {
    private struct Job: ScheduledJob {
        let begun = Count()
        let done = Count()
        /// Of one that never ends by itself.
        var cancelled: Count?

        func begin() -> Duration {
            begun.add()
            return .zero
        }

        func perform() async -> Duration {
            done.add()
            guard let cancelled else { return .milliseconds(1) }
            await StopFlag().wait()
            cancelled.add()
            return .zero
        }
    }

    @Test func `a job begins once, and is done again and again until the end`() async throws {
        let job = Job()
        try await whileRunning([Scheduler([.ping: job, .backup: nil])]) {
            try await eventually("it is done three times") { job.done.value >= 3 }
        }
        #expect(job.begun.value == 1)
    }

    @Test func `a job that takes another's place ends what that is at, and no other job's`() async throws {
        let (other, old, new) = (Job(cancelled: Count()), Job(cancelled: Count()), Job())
        let scheduler = Scheduler([.history: other, .ping: old])
        try await whileRunning([scheduler]) {
            try await eventually("both are at work") { old.done.value == 1 && other.done.value == 1 }
            scheduler.replace(.ping, by: new)
            try await eventually("the new one is done") { new.done.value >= 2 }
            #expect(old.cancelled?.value == 1 && other.cancelled?.value == 0)
            scheduler.replace(.ping, by: nil)
            scheduler.replace(.history, by: new)
            try await eventually("the new one has begun in the other's place") { new.begun.value == 2 }
            #expect(other.cancelled?.value == 1)
        }
        #expect(old.begun.value == 1 && other.begun.value == 1)
    }
}

@Suite struct IntakePlanTests {
    private static let (one, two) = (WatchSettings(path: "/one"), WatchSettings(path: "/two"))

    private static func plan(
        _ old: [WatchSettings], _ new: [WatchSettings], isRouted: Bool = false
    ) -> (ends: [FilePath], begins: [FilePath], renews: [FilePath]) {
        let plan = WatchChanges(from: old, to: new, isRouted: isRouted)
        return (plan.ends, plan.begins.map(\.path), plan.renews)
    }

    @Test func `only what has changed ends or begins`() {
        #expect(Self.plan([Self.one, Self.two], [Self.two, Self.one]) == ([], [], []))
        #expect(Self.plan([Self.one], [Self.one, Self.two]) == ([], ["/two"], []))
        #expect(Self.plan([Self.one, Self.two], [Self.two]) == (["/one"], [], []))
        var other = Self.one
        other.settle = .seconds(60)
        #expect(Self.plan([Self.one, Self.two], [other, Self.two]) == (["/one"], ["/one"], []))
    }

    @Test func `other routes have every folder listed anew, and those of a pattern in their place`() throws {
        var cards = WatchSettings(path: "/media/*/DCIM")
        cards.pattern = try RootPattern(cards.path)
        #expect(Self.plan([Self.one, cards], [Self.one, cards], isRouted: true) == (["/one"], ["/one"], [cards.path]))
    }
}

/// What is told of a folder that was delivered as one.
@Suite struct BatchEndTests {
    @Test func `a folder ends as partial with its counts, and as complete once the rest was sent again`() async throws {
        var scene = try Scene.units(.quiet)
        scene.route.settle = .milliseconds(300)
        scene.here.script("gigs/X/bad", .fail(.hopeless))
        for name in ["a", "b", "bad"] { try scene.drop(FilePath("gigs/X/\(name)")) }
        try await scene.run { stage in
            try await eventually("its end is said") { stage.events.count("batch.ended") == 1 }
            func field(_ name: String) -> EventValue? { stage.events.field(name, of: "batch.ended") }
            #expect(field("outcome") == .text("partial"))
            #expect(field("files") == .number(3) && field("delivered") == .number(2))
            #expect(field("counts") == .list(["delivered: 2", "failed: 1"]))
            let failed = try await stage.finished("gigs/X/bad", .failed)
            #expect(try await stage.agent.control.act(.retry, on: failed.file.id) == .done)
            try await eventually("its new end is said") { stage.events.count("batch.ended") == 2 }
            #expect(field("outcome") == .text("complete"))
            #expect(field("counts") == .list(["delivered: 3"]))
        }
    }
}

/// Destinations that are told when all of a unit has been sent to them.
@Suite struct ClosingTests {
    private func scene() throws -> Scene {
        var scene = try Scene.units(.marker)
        scene.destinations[0].closesBatches = true
        return scene
    }

    @Test func `a closing delivery comes after all files of the unit`() async throws {
        let scene = try scene()
        let gate = Gate()
        scene.here.script("gigs/X/b", .hold(gate, .deliver))
        try await scene.run { stage in
            for name in ["a", "b", "c", "DONE"] { try scene.drop(FilePath("gigs/X/\(name)")) }
            try await eventually("all but one are there") { scene.here.record.stored.count == 2 }
            #expect(scene.here.record.orders.allSatisfy { $0.batch?.isClosing == false })
            gate.open()
            for name in ["a", "b", "c"] { try await stage.finished(FilePath("gigs/X/\(name)")) }
            let last = try #require(scene.here.record.orders.last?.batch)
            #expect(last.isClosing && last.files == 3 && last.failed == 0)
            #expect(last.folder == "gigs/X" && last.firstCaptured != nil)
            #expect(scene.here.record.orders.count { $0.batch?.isClosing == true } == 1)
            #expect(Set(scene.here.record.orders.map(\.batch?.id)) == [last.id])
            try await eventually("its end is said") { stage.events.count("batch.ended") == 1 }
        }
    }

    @Test func `it needs none of the unit's files`() async throws {
        let scene = try scene()
        let gate = Gate()
        scene.here.script("gigs/X/b", .hold(gate, .deliver))
        scene.here.haveAll()
        try await scene.run { stage in
            // The closing stands with the file that came first.
            try scene.drop("gigs/X/a")
            try await eventually("it is admitted") { try await stage.jobs().count == 1 }
            for name in ["b", "DONE"] { try scene.drop(FilePath("gigs/X/\(name)")) }
            try await eventually("one is there") { scene.here.record.stored.keys.contains("gigs/X/a") }
            try remove(stage.root.pushing("gigs/X/a"))
            gate.open()
            for name in ["a", "b"] { try await stage.finished(FilePath("gigs/X/\(name)")) }
            #expect(scene.here.record.concluded.map(\.batch?.isClosing) == [true])
        }
    }
}

struct StallDetectorTests {
    private static let start = ContinuousClock.now
    private let one = lane("one")
    private let other = lane("other")

    private static func lane(_ name: String) -> LaneID { LaneID(destination: name, lane: .big) }
    private func at(_ seconds: Int) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }

    /// One with `places` places beside the lanes' own; a transfer hangs after 30 s.
    private func detector(places: Int) -> StallDetector {
        StallDetector(workers: places - StallDetector.spare, patience: .seconds(30))
    }

    /// Begins as many of `wanted` as there are places for. - Returns: their deliveries.
    private func begin(_ detector: inout StallDetector, _ wanted: [Int64], in lane: LaneID, at second: Int) -> [Int64] {
        let count = detector.take(wanted.count, for: lane, at: at(second))
        let begun = Array(wanted.prefix(count))
        detector.begin(begun, of: count, in: lane, at: at(second))
        return begun
    }

    @Test func `each lane has a place of its own, and takes more from the pool`() {
        var detector = detector(places: 2)
        #expect(begin(&detector, [1, 2, 3, 4, 5], in: one, at: 0) == [1, 2, 3])
        #expect(begin(&detector, [6, 7], in: other, at: 0) == [6])
        #expect(begin(&detector, [8], in: Self.lane("third"), at: 0) == [8])
        // Its own place comes first.
        detector.end(1)
        #expect(begin(&detector, [7], in: other, at: 0) == [7])
        detector.end(2)
        detector.end(3)
        #expect(begin(&detector, [9], in: one, at: 0) == [9])
    }

    @Test func `places that were taken count until it is known that nothing begins`() {
        var detector = detector(places: 1)
        #expect(detector.take(9, for: one, at: at(0)) == 2)
        #expect(detector.take(9, for: other, at: at(0)) == 1)
        detector.begin([], of: 2, in: one, at: at(0))
        #expect(detector.take(9, for: other, at: at(0)) == 1)
        detector.begin([3, 4], of: 2, in: other, at: at(0))
        #expect(detector.take(9, for: one, at: at(0)) == 1)
    }

    @Test func `what has not moved a byte for a while holds no place, until it goes on`() {
        var detector = detector(places: 2)
        #expect(begin(&detector, [1, 2, 3], in: one, at: 0) == [1, 2, 3])
        #expect(begin(&detector, [4, 5], in: other, at: 10) == [4])
        #expect(detector.nextLook(at: at(10)) == at(30))
        detector.note([1: 0, 2: 7, 3: 0, 4: 9], at: at(30))
        #expect(begin(&detector, [5, 6, 7], in: other, at: 30) == [5, 6])
        // What has hung goes on: for a while there are more than there are places.
        detector.note([1: 1, 3: 1], at: at(31))
        #expect(begin(&detector, [8], in: Self.lane("third"), at: 31) == [8])
        #expect(begin(&detector, [9], in: Self.lane("third"), at: 31).isEmpty)
        #expect(detector.nextLook(at: at(60)) == at(61))
    }

    @Test func `lanes in which all hang have their own place again`() {
        var detector = detector(places: 0)
        for number in 0..<5 as Range<Int64> {
            #expect(begin(&detector, [number, number + 100], in: one, at: 30 * Int(number)) == [number])
        }
        #expect(detector.nextLook(at: at(120)) == at(150))
    }
}

/// In which order the parts of an agent end.
@Suite struct StopOrderTests {
    /// Stands for a service, and takes down its end.
    private struct Witness: Service {
        let service: any Service
        let ends: Words

        func run() async throws {
            try await service.run()
            ends.add("\(type(of: service))")
        }
    }

    @Test func `first nothing new comes in, then running parts end, then what has ended is finished, then told`()
        async throws
    {
        let scene = try ReloadSite(ReloadSite.text()).scene()
        let stage = try await Stage(scene)
        defer { stage.journal.close() }
        let ends = Words()
        try await whileRunning(stage.agent.services.map { Witness(service: $0, ends: ends) }) {
            try await eventually("the agent runs") { stage.events.names.contains("agent.ready") }
            #expect(ends.all.isEmpty)
        }
        let order = [
            "Reload", "Watchdog", "RootSupervisor", "CardStage", "RecoveredDestinations", "RemovedDestinationStage",
            "ExpiryClocks",
            "DeliveryStage",
            "FinishingStage", "ManifestWriter", "BandwidthControl", "Probes", "UploadCleaner", "ArrivalMonitor",
            "Scheduler",
            "NotificationStage",
            "JournalMonitor",
        ]
        #expect(ends.all == order)
    }
}

/// What the expiry clocks wake up for.
@Suite struct ExpiryClockTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private let events: EventRecord
    private let shared: Shared
    private var clocks: ExpiryClocks { ExpiryClocks(shared: shared) }

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let log = try EventLog(nil)
        events = EventRecord(log)
        shared = .test(journal, log, [.scripted("here", ScriptedPipeline())]) { $0.queueWarning = 1 }
    }

    private func admit(_ name: String, expire: Duration?, window: DeliveryWindow? = nil) async throws {
        let admission = FileAdmission.made(name, .big) {
            ($0.retry, $0.window) = (RetryPolicy(expire: expire), window)
        }
        _ = try await journal.admit(admission, at: .now)
    }

    /// One that is closed now, for an hour at least.
    private func closed() -> DeliveryWindow {
        let minute = Int(WallTime.now.milliseconds / 60_000 % 1440)
        return DeliveryWindow(
            DaySpan(from: (minute + 60) % 1440, to: (minute + 120) % 1440), above: 1, zone: "UTC")
    }

    @Test func `what waits for its window, or cannot expire, keeps no clock running, but is counted`() async throws {
        defer { journal.close() }
        let board = shared.destinations
        try await admit("windowed", expire: .seconds(60), window: closed())
        try await admit("forever", expire: nil)
        let waiting = try await clocks.waiting()
        #expect(waiting.total == 2 && waiting.clocks.isEmpty)
        #expect(await clocks.pass(waiting, false))
        #expect(events.names == ["queue.warning"])
        try await admit("plain", expire: .seconds(60))
        #expect(try await clocks.waiting().clocks == ["here"])
        // Nor does the clock of a destination that is paused, or whose limit is 0.
        #expect(board.setPaused("here", true))
        #expect(try await clocks.waiting().clocks.isEmpty)
        #expect(board.setPaused("here", false))
        board.setShut(["here"])
        #expect(try await clocks.waiting().clocks.isEmpty)
        board.setShut([])
        #expect(try await clocks.waiting().clocks == ["here"])
    }
}
