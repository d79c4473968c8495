import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import ServiceLifecycle
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
            shared: shared, manager: SystemdNotifier(ServiceNotify(environment: { environment[$0] })), door: door)
        let group = ServiceGroup(quietly: [watchdog])
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                while !manager.all.contains("STOPPING=1") {
                    await shared.signals[.lanes].wait(until: .now.advanced(by: .milliseconds(20)))
                    nudges.add()
                    shared.health.heartbeat.beat(.intake("/drop"))
                    if workersLive.value > 0 { shared.health.heartbeat.beat(.workers) }
                }
            }
            door.raise()
            try await eventually("it was nudged") { nudges.value >= 5 }
            #expect(manager.all == ["READY=1"])
            workersLive.add()
            try await eventually("it says that it lives") { manager.all.contains("WATCHDOG=1") }
            await group.triggerGracefulShutdown()
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
            manager: SystemdNotifier(ServiceNotify { $0 == "NOTIFY_SOCKET" ? manager.path.string : nil }),
            door: WakeSignal())
        let group = ServiceGroup(quietly: [watchdog])
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
        }
        #expect(!manager.all.contains("READY=1"))
    }

    @Test func `a reload is spoken of only between the start and the stop`() throws {
        let directory = try TemporaryDirectory()
        let socket = try DatagramSocket(at: directory.path.appending("notify"))
        let news = SystemdNotifier(ServiceNotify { $0 == "NOTIFY_SOCKET" ? socket.path.string : nil })
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
            try scene.drop("21")
            let last = try await stage.job("21")
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
