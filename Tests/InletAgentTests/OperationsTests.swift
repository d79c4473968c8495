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

@Suite struct OperationsTests {
    @Test func `systemd hears of life only when intake, journal and workers have all passed their loops`() async throws
    {
        let directory = try TemporaryDirectory()
        let manager = try DatagramSocket(at: directory.path.appending("notify"))
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let shared = Shared.test(journal, try EventLog(nil)) { $0.watch = [WatchSettings(path: "/drop")] }
        let nudges = Count()
        let workersLive = Count()
        let environment = ["NOTIFY_SOCKET": manager.path.string, "WATCHDOG_USEC": "60000"]
        let door = WakeSignal()
        let watchdog = Watchdog(
            shared: shared, manager: SystemdNotifier(SystemdSocket(environment: { environment[$0] })), door: door)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                while !manager.all.contains("STOPPING=1") {
                    await shared.signals[.lanes].wait(until: .now.advanced(by: .milliseconds(20)))
                    nudges.add()
                    shared.health.heartbeat.beat(.intake("/drop"))
                    if workersLive.value > 0 { shared.health.heartbeat.beat(.workers) }
                }
            }
            try await whileRunning([watchdog]) {
                door.raise()
                try await eventually("it was nudged") { nudges.value >= 5 }
                #expect(manager.all == ["READY=1"])
                workersLive.add()
                try await eventually("it says that it lives") { manager.all.contains("WATCHDOG=1") }
            }
            try await tasks.waitForAll()
        }
        #expect(manager.all.last == "STOPPING=1")
    }

    @Test func `an agent that ends before it could be asked never says that it is ready`() async throws {
        let directory = try TemporaryDirectory()
        let manager = try DatagramSocket(at: directory.path.appending("notify"))
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let watchdog = Watchdog(
            shared: .test(journal, try EventLog(nil)),
            manager: SystemdNotifier(SystemdSocket { $0 == "NOTIFY_SOCKET" ? manager.path.string : nil }),
            door: WakeSignal())
        try await whileRunning([watchdog]) {}
        #expect(!manager.all.contains("READY=1"))
    }

    @Test func `a reload is spoken of only between the start and the stop`() throws {
        let directory = try TemporaryDirectory()
        let socket = try DatagramSocket(at: directory.path.appending("notify"))
        let news = SystemdNotifier(SystemdSocket { $0 == "NOTIFY_SOCKET" ? socket.path.string : nil })
        news.reloading()
        news.reloaded()
        #expect(socket.all.isEmpty)
        // One that began before the start was over.
        news.reloading()
        news.ready()
        news.reloaded()
        #expect(socket.all == ["READY=1"])
        news.reloading()
        news.reloaded()
        #expect(socket.all.count == 3 && socket.all[1].hasPrefix("RELOADING=1\nMONOTONIC_USEC="))
        #expect(socket.all.last == "READY=1")
        news.reloading()
        news.stopping()
        news.reloaded()
        news.reloading()
        news.ready()
        #expect(socket.all.count == 5 && socket.all.last == "STOPPING=1")
    }

    @Test func `twenty that wait are no long queue, one more is warned of once, and twenty are calm again`()
        async throws
    {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            let log = try EventLog(nil)
            let events = EventRecord(log)
            let clocks = ExpiryClocks(
                shared: .test(stage.journal, log, scene.destinations, paused: ["here"]))
            for number in 1...20 { try scene.drop(FilePath("\(number)")) }
            try await eventually("all are admitted") { try await stage.jobs().count == 20 }
            var isLong = try await clocks.pass(clocks.waiting(), false)
            #expect(!isLong && events.names.isEmpty)
            let last = try await stage.admit("21")
            for _ in 1...3 {
                isLong = try await clocks.pass(clocks.waiting(), isLong)
                #expect(isLong && events.names == ["queue.warning"])
            }
            let fields = try #require(events.all.first).line.fields
            #expect(fields.map(\.0) == ["waiting", "limit"] && fields.map(\.1) == [.number(21), .number(20)])
            #expect(try await stage.agent.control.act(.cancel, on: last.file.id) == .done)
            isLong = try await clocks.pass(clocks.waiting(), isLong)
            #expect(!isLong && events.names == ["queue.warning", "queue.normal"])
        }
    }

    @Test func `one root that hangs is not covered by another that lives`() {
        let heartbeat = Heartbeat(roots: ["/one", "/two"])
        var last: [Heartbeat.Part: Int] = [:]
        for part in [Heartbeat.Part.journal, .workers, .intake("/one"), .intake("/one")] { heartbeat.beat(part) }
        #expect(!heartbeat.haveAllPassed(since: &last))
        heartbeat.beat(.intake("/two"))
        #expect(heartbeat.haveAllPassed(since: &last))
        #expect(!heartbeat.haveAllPassed(since: &last))
    }

    @Test func `a card that hangs does not end the agent, and one that lives does not speak for a root`() {
        let heartbeat = Heartbeat(roots: ["/drop"])
        var last: [Heartbeat.Part: Int] = [:]
        for part in [Heartbeat.Part.journal, .workers, .intake("/media/A")] { heartbeat.beat(part) }
        #expect(!heartbeat.haveAllPassed(since: &last))
        heartbeat.beat(.intake("/drop"))
        #expect(heartbeat.haveAllPassed(since: &last))
        for part in [Heartbeat.Part.journal, .workers, .intake("/drop")] { heartbeat.beat(part) }
        #expect(heartbeat.haveAllPassed(since: &last))
    }

    @Test func `a root whose file is hashed for its key is alive`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        var files = try AdmissionStage.alone(in: directory.path, journal)
        let heartbeat = files.admission.shared.health.heartbeat
        let file = try directory.write([UInt8](repeating: 7, count: 3 << 20), to: "a")
        let candidate = files.candidate("a", try #require(try FileLook.look(at: file).identity))
        heartbeat.beat(.journal)
        heartbeat.beat(.workers)
        var last: [Heartbeat.Part: Int] = [:]
        #expect(!heartbeat.haveAllPassed(since: &last))
        let results = await files.admission.admit([candidate], .found, files.hashing)
        #expect(results.map(\.outcome) == [.journal(.admitted(id: 1))])
        #expect(heartbeat.haveAllPassed(since: &last))
    }

    @Test func `a part that begins anew is no standstill, however long the others have run`() {
        let heartbeat = Heartbeat(roots: ["/in"])
        let parts: [Heartbeat.Part] = [.intake("/in"), .journal, .workers]
        var last: [Heartbeat.Part: Int] = [:]
        for _ in 0..<20 { for part in parts { heartbeat.beat(part) } }
        #expect(heartbeat.haveAllPassed(since: &last))
        heartbeat.forget(.intake("/in"))
        heartbeat.expect(.intake("/in"))
        #expect(!heartbeat.haveAllPassed(since: &last))
        for part in parts { heartbeat.beat(part) }
        #expect(heartbeat.haveAllPassed(since: &last))
        #expect(!heartbeat.haveAllPassed(since: &last))
    }

    @Test func `a root's mailbox gives what was put, wakes, and is bounded`() throws {
        let mailbox = try RootMailbox("/in")
        #expect(try mailbox.waker.wait(until: .now) == false)
        mailbox.look(again: "a")
        mailbox.look(again: "b")
        #expect(try mailbox.waker.wait(until: .now))
        #expect(mailbox.take().looks == ["a", "b"])
        #expect(mailbox.take().looks.isEmpty)
        for _ in 0..<10_001 { mailbox.look(again: "a") }
        let requests = mailbox.take()
        #expect(requests.looks.count == 10_000 && requests.wantsListing)
        #expect(!mailbox.isStopped)
        mailbox.stop()
        #expect(mailbox.isStopped)
        #expect(try mailbox.waker.wait(until: .now))
    }

    @Test func `a state directory belongs to one process at a time`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("state")
        let first = try StateDirectory(path)
        #expect(throws: StateDirectory.Fault.self) { _ = try StateDirectory(path) }
        #expect(first.journal == path.appending("journal.sqlite"))
    }

    @Test func `a state directory too deep for a socket is refused with the limit`() throws {
        let deep = FilePath("/tmp").appending(String(repeating: "x", count: 100))
        #expect {
            _ = try StateDirectory(deep)
        } throws: {
            "\($0)".contains("at most 94 bytes")
        }
    }
}

extension AdmissionStage {
    /// Those of a folder without an agent; their keys are their checksums.
    static func alone(
        in root: FilePath, _ journal: Journal, _ route: Route? = nil, limit: QueueLimit = QueueLimit(),
        settle: Duration = .zero
    ) throws -> AdmissionStage {
        let route = try route ?? Route(name: "all", key: KeyTemplate("{sha256}"), to: ["here"])
        var watch = WatchSettings(path: root)
        (watch.settle, watch.settleEmpty) = (settle, .zero)
        let shared = Shared.test(journal, try EventLog(nil), [.scripted("here", ScriptedPipeline())]) {
            $0.watch = [watch]
            $0.routes = [route]
            $0.queueLimit = limit
        }
        return AdmissionStage(watch, Admission(shared), hashing: BlockingPool(name: "hash", threads: 1))
    }
}

/// What is counted for `/metrics`.
@Suite struct MetricsTallyTests {
    private static func ref(_ destination: String) -> AgentEvent.JobRef {
        AgentEvent.JobRef(job: 1, delivery: 2, path: "/in/a", route: "r", destination: destination)
    }

    private static let proof = Proof(key: "k", size: 7, method: .size)
    private static let busy = DeliveryError(.retry(after: nil), .timedOut, "busy")
    private static let held = DeliveryError(.cancelled, .heldByLimit, "held")

    /// What one event does to the figures of destination `d`: by how each ended, bytes, durations, retries, resumed.
    private static let events: [(AgentEvent, FileState?, [Int])] = [
        (.jobDelivered(ref("d"), proof, duration: .milliseconds(1500)), .delivered, [7, 1, 0, 0]),
        (.jobFailed(ref("d"), state: .failed, busy), .failed, [0, 0, 0, 0]),
        (.jobFailed(ref("d"), state: .gone, busy), .gone, [0, 0, 0, 0]),
        (.jobFailed(ref("d"), state: .superseded, busy), .superseded, [0, 0, 0, 0]),
        (.jobFailed(ref("d"), state: .cancelled, busy), .cancelled, [0, 0, 0, 0]),
        (.jobExpired(job: 1, path: "/in/a", route: "r", destinations: ["d"]), .expired, [0, 0, 0, 0]),
        (
            .jobDuplicate(job: 1, path: "/in/a", route: "r", destinations: ["d"], sameAs: 3), .duplicate, [0, 0, 0, 0]
        ),
        (.jobRetry(ref("d"), busy, attempt: 1, wait: .zero), nil, [0, 0, 1, 0]),
        (.jobRetry(ref("d"), held, attempt: 1, wait: .zero), nil, [0, 0, 0, 0]),
        (.jobStarted(ref("d"), key: "k", attempt: 2, size: 7, isResumed: true), nil, [0, 0, 0, 1]),
        (.jobStarted(ref("d"), key: "k", attempt: 2, size: 7), nil, [0, 0, 0, 0]),
        (.transferProgress(ref("d"), sent: 3, size: 7), nil, [0, 0, 0, 0]),
    ]

    @Test(arguments: events.indices)
    func `an event is counted at its destination, and only there`(index: Int) {
        let (event, end, numbers) = Self.events[index]
        let tally = MetricsCollector(destinations: ["d", "e"], routes: ["r"])
        tally.count(event)
        let figures = tally.figures
        let found = figures.destinations["d"] ?? .init()
        #expect(found.ends == (end.map { [$0: 1] } ?? [:]))
        #expect([Int(found.deliveredBytes), found.durations.count, found.retries, found.resumed] == numbers)
        #expect(figures.destinations["e"] == .init() && figures.destinations[MetricsCollector.other] == .init())
        #expect(figures.files == [MetricsCollector.other: [:], "r": [:]])
    }

    @Test func `what ends is counted by its route, and what names none with all that nobody knows`() {
        let tally = MetricsCollector(destinations: ["d"], routes: ["r"])
        for route in ["r", "r", "", "of last year"] {
            tally.count(.jobFinished(job: 1, path: "/in/a", state: .delivered, disposition: "kept", route: route))
        }
        tally.count(.jobFinished(job: 2, path: "/in/b", state: .rejected, disposition: "kept", route: "r"))
        tally.count(.jobDelivered(Self.ref("gone"), Self.proof, duration: .seconds(1)))
        let figures = tally.figures
        #expect(figures.files == ["r": [.delivered: 2, .rejected: 1], MetricsCollector.other: [.delivered: 2]])
        #expect(figures.destinations.keys.sorted() == ["d", MetricsCollector.other])
        #expect(figures.destinations[MetricsCollector.other]?.deliveredBytes == 7)
    }

    @Test func `a reload adds names and takes nothing back, up to a bound`() {
        let tally = MetricsCollector(destinations: ["d"], routes: ["r"])
        tally.count(.jobDelivered(Self.ref("d"), Self.proof, duration: .seconds(1)))
        tally.add(destinations: ["d", "e"], routes: [])
        tally.count(.jobDelivered(Self.ref("e"), Self.proof, duration: .seconds(1)))
        #expect(tally.figures.destinations["d"]?.ends == [.delivered: 1])
        #expect(tally.figures.destinations["e"]?.ends == [.delivered: 1])
        let names = (0..<2 * MetricsCollector.mostNames).map { "\($0)" }
        tally.add(destinations: names, routes: names)
        #expect(tally.figures.destinations.count == MetricsCollector.mostNames)
        #expect(tally.figures.files.count == MetricsCollector.mostNames)
    }

    @Test func `what concerns no destination is counted for all`() {
        let tally = MetricsCollector(destinations: [], routes: [])
        tally.count(.watchOverflow(root: "/in"))
        tally.count(.jobRecovered(claims: 3, parked: 1, unparked: 1))
        tally.count(.queueResumed(ResumeSummary(of: 2, resumed: 2)))
        #expect(tally.figures.overflows == 1 && tally.figures.recovered == 3)
        #expect(tally.figures.resume == ResumeSummary(of: 2, resumed: 2))
    }

    @Test func `an agent counts what it delivers, tries again and gives up`() async throws {
        let scene = try Scene()
        scene.here.script("bad", .fail(.hopeless))
        scene.here.script("late", .fail(Self.busy))
        try await scene.run { stage in
            for name in ["a", "late", "bad"] { try scene.drop(FilePath(name)) }
            try await stage.finished("a")
            try await stage.finished("late")
            try await stage.finished("bad", .failed)
            let tally = try #require(stage.agent.control.live?.tally)
            // The journal has it a moment before it is said.
            try await eventually("all ends are counted") { tally.figures.files["all"] == [.delivered: 2, .failed: 1] }
            let here = try #require(tally.figures.destinations["here"])
            #expect(here.ends == [.delivered: 2, .failed: 1] && here.deliveredBytes == 14)
            #expect(here.retries == 1 && here.durations.count == 2 && here.durations.sum > 0)
            #expect(stage.journal.writeTimes.count > 0 && stage.journal.writeTimes.sum > 0)
        }
    }
}
