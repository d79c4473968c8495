import Foundation
import InletCore
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

/// When receivers are tried again, and what they read.
@Suite struct NoticeTests {
    private static let start = WallTime(milliseconds: 1_700_000_000_000)

    private func notice(
        _ event: NotificationEvent = .failed, id: Int64 = 7, attempts: Int = 0, payload: String = "{\"a\":1}"
    ) -> QueuedNotification {
        QueuedNotification(
            id: id, sink: "ops", event: event, subject: nil, createdAt: Self.start, payload: Array(payload.utf8),
            attempts: attempts)
    }

    @Test func `who does not answer is asked after 5 s, then twice as long each time, at most an hour`() {
        let delays = (1...12).map { NotificationSchedule.delay($0).components.seconds }
        #expect(delays == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600])
    }

    @Test func `no answer holds the line, and its Retry-After counts where it is longer`() {
        var schedule = NotificationSchedule()
        let away = NotificationOutcome.unanswered(after: nil, reason: "away")
        #expect(
            schedule.event(away, of: notice(), at: Self.start) == .again(at: Self.start + .seconds(5), holdsLine: true))
        #expect(schedule.pausedUntil == Self.start + .seconds(5))
        let busy = NotificationOutcome.unanswered(after: .seconds(120), reason: "busy")
        #expect(
            schedule.event(busy, of: notice(attempts: 1), at: Self.start)
                == .again(at: Self.start + .seconds(120), holdsLine: true))
        #expect(schedule.event(.taken, of: notice(attempts: 2), at: Self.start) == .remove)
        #expect(schedule.pausedUntil == nil && schedule.failures == 0)
    }

    @Test func `a refused notice steps aside, a program's for a few times only`() {
        var schedule = NotificationSchedule()
        let refused = NotificationOutcome.refused(reason: "no", tries: 5)
        for attempts in 0..<4 {
            let again = schedule.event(refused, of: notice(attempts: attempts), at: Self.start)
            #expect(again == .again(at: Self.start + NotificationSchedule.delay(attempts + 1), holdsLine: false))
        }
        #expect(schedule.event(refused, of: notice(attempts: 4), at: Self.start) == .giveUp)
        #expect(schedule.event(.gone(reason: "410"), of: notice(), at: Self.start) == .giveUp)
        #expect(schedule.event(.cancelled, of: notice(), at: Self.start) == .leave)
    }

    @Test func `one notice that is refused pauses nothing, several in a row do, longer and longer`() {
        var schedule = NotificationSchedule()
        let refused = NotificationOutcome.refused(reason: "no", tries: nil)
        var pauses: [Int64?] = []
        for id in [1, 1, 2, 2, 3, 4] as [Int64] {
            _ = schedule.event(refused, of: notice(id: id), at: Self.start)
            pauses.append(schedule.pausedUntil.map { ($0 - Self.start).components.seconds })
        }
        #expect(pauses == [nil, nil, 5, 5, 10, 20])
        for id in 5...40 as ClosedRange<Int64> { _ = schedule.event(refused, of: notice(id: id), at: Self.start) }
        #expect(schedule.pausedUntil == Self.start + NotificationSchedule.longestDelay && schedule.isFailing)
        _ = schedule.event(.taken, of: notice(id: 41), at: Self.start)
        #expect(!schedule.isFailing)
        _ = schedule.event(refused, of: notice(id: 42), at: Self.start)
        #expect(schedule.pausedUntil == nil && schedule.isFailing)
    }

    @Test func `three days are enough, unless it was hardly tried`() {
        let away = NotificationOutcome.unanswered(after: nil, reason: "away")
        let late = Self.start + .seconds(3 * 86_400)
        var schedule = NotificationSchedule()
        #expect(schedule.event(away, of: notice(attempts: 7), at: late) == .giveUp)
        #expect(schedule.event(away, of: notice(attempts: 6), at: late) != .giveUp)
        #expect(schedule.event(away, of: notice(attempts: 99), at: late + .seconds(-1)) != .giveUp)
    }

    @Test(arguments: [
        (NotificationEvent.delivered, "file"), (.failed, "file"), (.rejected, "file"), (.batchDone, "batch"),
        (.destinationDown, "destination"), (.destinationUp, "destination"), (.volumeDone, "volume"),
        (.volumeProblem, "volume"), (.rootPaused, "folder"), (.rootQuiet, "folder"), (.rootRecovered, "folder"),
        (.agentSilent, "agent"),
    ])
    func `a notice is one JSON object with the same bytes each time`(_ event: NotificationEvent, _ key: String) throws {
        let text = NotificationText(notice(event), identity: "j1", host: "box")
        #expect(text.body == NotificationText(notice(event, attempts: 3), identity: "j1", host: "box").body)
        let expected =
            "{\"id\":\"inlet-j1-7\",\"event\":\"\(event.rawValue)\",\"at\":\"\(Self.start.rfc3339)\",\"host\":\"box\","
            + "\"\(key)\":{\"a\":1}}"
        #expect(String(decoding: text.body, as: UTF8.self) == expected)
    }

    @Test(
        arguments: [
            ([.delivered: 2], "complete"), ([.delivered: 1, .duplicate: 1, .superseded: 1], "complete"),
            ([.delivered: 1, .failed: 1], "partial"), ([.failed: 1, .rejected: 2], "failed"),
        ] as [([FileState: Int], String)])
    func `a batch is complete, partial or failed`(_ counts: [FileState: Int], _ expected: String) {
        #expect(Batch.outcome(counts) == expected)
    }

    // MARK: - What is said of a batch

    private func batch(_ counts: [FileState: Int]) -> Batch {
        Batch(
            id: 3, name: "A001", unit: "A001", root: "/in", route: "all", state: FileState.worst(counts.keys),
            createdAt: Self.start, closedAt: Self.start, endedAt: Self.start + .seconds(1), generation: 1,
            counts: counts, labels: [:])
    }

    /// A file of the batch; a delivered one is at two destinations, of which one has told us where.
    private func job(_ id: Int64, _ state: FileState = .delivered) -> Job {
        var file = FileRow(
            id: id, root: "/in", path: FilePath("A001/\(id)"),
            identity: FileIdentity(size: 5, modified: 0, changed: 0, inode: 1, device: 1), state: state,
            mediaType: "text/plain", policy: FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy()),
            admittedAt: Self.start, labels: [:], digests: [])
        guard state == .delivered else {
            (file.code, file.reason) = (.badRequest, "no")
            return Job(file: file, deliveries: [])
        }
        let deliveries = [nil, "https://cdn/\(id)"].map { url in
            DeliveryRow(
                id: id, fileID: id, destination: "here", key: "k", fields: [:], state: .delivered, attempts: 1,
                nextAt: Self.start, proof: Proof(key: "k", size: 5, method: .size, url: url), waits: 0, crashes: 0)
        }
        return Job(file: file, deliveries: deliveries)
    }

    @Test func `a batch that ended in part is told with what arrived, where, and with what did not, and why`() {
        let told = NotificationText.batch(batch([.delivered: 1, .failed: 1]), [job(2, .failed), job(1)])
        let expected =
            #"{"batch":3,"name":"A001","path":"/in/A001","route":"all","outcome":"partial","state":"failed","#
            + #""files":2,"counts":{"delivered":1,"failed":1},"created_at":"\#(Self.start.rfc3339)","#
            + #""ended_at":"\#((Self.start + .seconds(1)).rfc3339)","#
            + #""delivered":[{"job":1,"path":"A001/1","size":5,"state":"delivered","urls":["https://cdn/1"]}],"#
            + #""not_delivered":[{"job":2,"path":"A001/2","size":5,"state":"failed","code":"bad_request","#
            + #""reason":"no"}]}"#
        #expect(String(decoding: told, as: UTF8.self) == expected)
    }

    @Test(arguments: [(999, nil), (1000, 1), (4999, 4000)] as [(Int, Int?)])
    func `of a large batch a thousand files are named, what did not arrive first, and the others counted`(
        _ delivered: Int, _ left: Int?
    ) throws {
        let jobs = [job(5000, .failed)] + (1...Int64(NotificationText.mostFiles - 1)).map { job($0) }
        let told = NotificationText.batch(batch([.delivered: delivered, .failed: 1]), jobs)
        let object = try #require(try JSONSerialization.jsonObject(with: Data(told)) as? [String: Any])
        #expect(object["outcome"] as? String == "partial" && object["files"] as? Int == delivered + 1)
        #expect(object["counts"] as? [String: Int] == ["delivered": delivered, "failed": 1])
        #expect((object["delivered"] as? [Any])?.count == 999)
        #expect((object["not_delivered"] as? [[String: Any]])?.compactMap { $0["job"] as? Int } == [5000])
        #expect(object["not_listed"] as? Int == left)
    }

    @Test(arguments: [
        (ChildProcess.End.exited(0), NotificationOutcome.taken),
        (.exited(75), .unanswered(after: nil, reason: "the program asked for a retry: why")),
        (.exited(3), .refused(reason: "the program ended with 3: why", tries: 5)),
        (.signalled(9), .refused(reason: "the program was ended by signal 9: why", tries: 5)),
        (.timedOut, .refused(reason: "the program took too long and was ended: why", tries: 5)),
        (.stuck, .refused(reason: "the program took too long and could not be ended: why", tries: 5)),
        (.cancelled, .cancelled),
    ])
    func `a program's end is an answer`(_ end: ChildProcess.End, _ expected: NotificationOutcome) {
        #expect(NotificationReceiver.outcome(ChildProcess.Outcome(end: end, errors: Array("why".utf8))) == expected)
    }

    @Test func `a program reads its notice as one whole line`() async {
        // `read` takes a line without its end for the end of the input.
        let words = ["/bin/sh", "-c", "IFS= read -r line && ! read -r more && case $line in {*}) ;; *) exit 9 ;; esac"]
        let outlet = NotificationReceiver(
            NotifySettings(name: "ops", receiver: .exec(words), timeout: .seconds(60)),
            pool: BlockingPool(name: "hook", threads: 1))
        #expect(await outlet.test(at: Self.start) == .taken)
    }
}

@Suite struct NotifierTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private let log: EventLog

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        log = try EventLog(nil)
    }

    private func hook(
        _ name: String, _ script: String, _ argument: FilePath,
        on events: [NotificationEvent] = NotificationEvent.allCases
    ) -> NotificationReceiver {
        let words = ["/bin/sh", "-c", script, "sh", argument.string]
        return NotificationReceiver(
            NotifySettings(
                name: name, receiver: .exec(words), events: Set(events), timeout: .seconds(60)),
            pool: BlockingPool(name: "hook", threads: 4))
    }

    @Test func `each receiver gets its notices in their order, and one that hangs holds up nobody`() async throws {
        defer { journal.close() }
        let events = EventRecord(log)
        let book = directory.path.appending("book")
        let notificationClients = [
            hook("hanging", "exec sleep 600", book),
            hook(
                "writing",
                #"echo "$INLET_EVENT $INLET_DESTINATION $INLET_STATE" >> "$1"; cat >> "$1"; echo >> "$1""#, book),
        ]
        let notifier = try await NotificationSender(notificationClients, journal: journal, log: log)
        try await whileRunning([notifier]) {
            log.emit(.destinationDown(destination: "store", reason: "no route", probe: .now))
            log.emit(.destinationUp(destination: "store"))
            try await eventually("both are told") { events.count("notification.sent") == 2 }
        }
        let lines = try text(book).split(separator: "\n")
        try #require(lines.count == 4, "\(lines)")
        #expect(lines[0] == "destination_down store down" && lines[2] == "destination_up store up", "\(lines)")
        #expect(lines[1].contains(#""destination":{"name":"store","state":"down","reason":"no route""#), "\(lines)")
        // What the hanging one was in the middle of is told after the next start.
        #expect(try await journal.outboxBacklog() == (2, 0))
    }

    @Test func `while a notice that was refused waits, the next one goes`() async throws {
        defer { journal.close() }
        let events = EventRecord(log)
        let server = try ScriptedServer { connection in
            while true {
                let body = String(decoding: try connection.readRequest().body, as: UTF8.self)
                try connection.answer(body.contains("destination_down") ? "400 Bad Request" : "204 No Content")
            }
        }
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = NotifySettings(
            name: "ops", receiver: .webhook(Secret("http://127.0.0.1:\(server.port)/")),
            events: Set(NotificationEvent.allCases), timeout: .seconds(60))
        var clients = NotificationClients()
        clients.webhooks["ops"] = try factory.webhook(settings)
        let outlet = NotificationReceiver(settings, clients, pool: BlockingPool(name: "hook", threads: 1))
        let notifier = try await NotificationSender([outlet], journal: journal, log: log)
        try await whileRunning([notifier]) {
            log.emit(.destinationDown(destination: "store", reason: "no route", probe: .now))
            try await eventually("the first is refused") { events.count("notification.failed") == 1 }
            // The first is refused however often it is tried: it must not be before this one each time.
            log.emit(.destinationUp(destination: "store"))
            try await eventually("the second is told") { events.count("notification.sent") == 1 }
        }
        #expect(try await journal.outboxBacklog() == (1, 0))
    }

    /// A receiver on a phone, and its topic's server.
    private func phone(_ server: ScriptedServer, _ factory: PipelineFactory) throws -> NotificationReceiver {
        let topic = MessageService.ntfy(topic: Secret("http://127.0.0.1:\(server.port)/topic"), token: nil)
        let settings = NotifySettings(name: "phone", receiver: .service(topic), timeout: .seconds(60))
        var clients = NotificationClients()
        clients.services["phone"] = try factory.messages(settings)
        return NotificationReceiver(settings, clients, pool: BlockingPool(name: "hook", threads: 1))
    }

    @Test func `a phone gets a problem at once, with the cards that waited, and of each card the newest verdict`()
        async throws
    {
        defer { journal.close() }
        let bodies = Mutex<[String]>([])
        let server = try ScriptedServer { connection in
            while true {
                let body = String(decoding: try connection.readRequest().body, as: UTF8.self)
                bodies.withLock { $0.append(body) }
                try connection.answer()
            }
        }
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let sender = try await NotificationSender([phone(server, factory)], journal: journal, log: log)
        func post(_ event: NotificationEvent, _ name: String, _ state: String) async throws {
            let payload = Array(#"{"name":"\#(name)","state":"\#(state)"}"#.utf8)
            try await journal.post(event, payload, at: .now, once: (name, state))
        }
        try await post(.volumeDone, "A", "safe")
        try await post(.volumeDone, "B", "safe")
        try await post(.volumeProblem, "B", "problem")
        try await whileRunning([sender]) {
            try await eventually("everything is sent") { try await journal.outboxBacklog() == (0, 0) }
        }
        let sent = bodies.withLock(\.self)
        #expect(sent.count == 1 && sent[0].contains(#""title":"CALL SOMEBODY: B · SAFE TO REMOVE: A""#), "\(sent)")
        #expect(sent.first?.contains(#""priority":4"#) == true && sent.first?.contains("SAFE TO REMOVE: B") == false)
    }

    @Test func `good news about a card waits for more, and is taken back when the card is no longer done`() async throws
    {
        defer { journal.close() }
        let server = try ScriptedServer { $0.waitForEnd() }
        let factory = PipelineFactory(pool: BlockingPool(name: "hook", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let sender = try await NotificationSender([phone(server, factory)], journal: journal, log: log, listens: false)
        var report = VolumeReport(root: "/media/EOS/DCIM", volume: "EOS")
        report.isSafe = true
        sender.hear(.volumeDone(report))
        #expect(await sender.flush())
        guard case .later = try await journal.nextNotice("phone", gathers: true, at: .now) else {
            throw Unexpected(description: "it does not wait")
        }
        report.isSafe = false
        sender.hear(.volumeDone(report))
        #expect(await sender.flush())
        #expect(try await journal.outboxBacklog() == (0, 0))
        report.isSafe = true
        sender.hear(.volumeDone(report))
        #expect(await sender.flush())
        #expect(try await journal.outboxBacklog() == (1, 0))
        #expect(server.connections == 0)
    }

    @Test func `a folder that is still paused after a restart is not told again, one that was well in between is`()
        async throws
    {
        defer { journal.close() }
        let receiver = hook("ops", "exit 0", directory.path, on: [.rootPaused])
        func restart(_ events: AgentEvent...) async throws -> Int {
            let sender = try await NotificationSender([receiver], journal: journal, log: log, listens: false)
            for event in events { sender.hear(event) }
            #expect(await sender.flush())
            return try await journal.outboxBacklog().waiting
        }
        let paused = AgentEvent.watchPaused(root: "/in", reason: "another disk")
        let watched = AgentEvent.watchAdded(root: "/in", directories: 1, writerCheck: "on")
        #expect(try await restart(paused) == 1)
        #expect(try await restart(paused) == 1)
        #expect(try await restart(.watchPaused(root: "/in", reason: "it is empty")) == 2)
        #expect(try await restart(watched) == 2)
        #expect(try await restart(paused) == 3)
    }

    @Test func `a file is told with its real path and its receipt`() async throws {
        defer { journal.close() }
        let book = directory.path.appending("book")
        let script =
            #"printf '%s|%s|%s|%s\n' "$INLET_PATH" "$INLET_STATE" "$INLET_ROUTE" "$INLET_DESTINATION" > "$1"; cat >> "$1""#
        let notifier = try await NotificationSender([hook("one", script, book)], journal: journal, log: log)
        let admission = FileAdmission.made("a b$(x)\n.mov", in: directory.path, key: "k", .big)
        _ = try await journal.admit(admission, at: .now)
        try await settle { _ in .ended(.failed, code: .badRequest, reason: "no") }
        try await whileRunning([notifier]) {
            try await eventually("it is told") { try await journal.outboxBacklog() == (0, 0) }
        }
        let told = try text(book)
        #expect(told.hasPrefix("\(directory.path.string)/a b$(x)\n.mov|failed|all|here\n"), "\(told)")
        #expect(told.contains(#""event":"failed""#) && told.contains(#""file":{"job":1,"#), "\(told)")
    }

    /// Ends the delivery that is due so, and its file with it.
    private func settle(_ ending: (DeliveryRow) -> ClaimOutcome) async throws {
        let room = ClaimCapacity(destination: "here", limits: [.big: 1])
        let settled = try await journal.withClaim(
            .big, rooms: [room], clock: { .now }, ending: Receipt.atOnce
        ) { claim in (ending(claim.delivery), true) }
        #expect(settled?.1 == true)
    }

    /// A unit of two files, of which one fails. - Returns: that one's number.
    private func endPartialUnit(_ root: FilePath) async throws -> Int64 {
        for name in ["good", "bad"] {
            var admission = FileAdmission.made("A001/\(name)", in: root, key: name, .big)
            admission.unit = "A001"
            _ = try await journal.admit(admission, at: .now)
        }
        _ = try await journal.closeUnit("A001", root: root, routes: ["all"], marker: nil, uptimes: [:], at: .now)
        for _ in 1...2 {
            try await settle { delivery in
                delivery.key == "good"
                    ? .delivered(Proof(key: "good", size: 1, method: .size, url: "/library/good"))
                    : .ended(.failed, code: .badRequest, reason: "no")
            }
        }
        return try #require(try await journal.jobs(FileFilter(limit: 9)).first { $0.file.state == .failed }).file.id
    }

    @Test func `a batch is told with the same words at each try, also when it has gone on since`() async throws {
        defer { journal.close() }
        let (first, second) = (directory.path.appending("first"), directory.path.appending("second"))
        // It reads the notice, and is ended before it says that it has taken it.
        let hanging = hook("one", #"cat > "$1.part"; mv "$1.part" "$1"; exec sleep 600"#, first, on: [.batchDone])
        let notifier = try await NotificationSender([hanging], journal: journal, log: log)
        let failed = try await endPartialUnit(directory.path)
        try await whileRunning([notifier]) {
            try await eventually("it is read") { FileManager.default.fileExists(atPath: first.string) }
        }
        #expect(try await journal.outboxBacklog() == (1, 0))
        #expect(try await journal.retry(failed, uptimes: [:], at: .now))
        let taking = hook("one", #"cat > "$1""#, second, on: [.batchDone])
        let next = try await NotificationSender([taking], journal: journal, log: log)
        try await whileRunning([next]) {
            try await eventually("it is told") { try await journal.outboxBacklog() == (0, 0) }
        }
        let told = try text(second)
        #expect(told == (try text(first)))
        #expect(told.contains(#""outcome":"partial""#) && told.contains(#""urls":["/library/good"]"#), "\(told)")
    }

    @Test func `a batch that goes on before anybody was told is not told`() async throws {
        defer { journal.close() }
        let book = directory.path.appending("book")
        let outlet = hook("one", #"cat > "$1""#, book, on: [.batchDone])
        let notifier = try await NotificationSender([outlet], journal: journal, log: log)
        let failed = try await endPartialUnit(directory.path)
        #expect(try await journal.outboxBacklog() == (1, 0))
        #expect(try await journal.retry(failed, uptimes: [:], at: .now))
        try await whileRunning([notifier]) {
            try await eventually("its notice is gone") { try await journal.outboxBacklog() == (0, 0) }
        }
        #expect(!FileManager.default.fileExists(atPath: book.string))
    }
}

@Suite struct PingerTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private let lines = Words()

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
    }

    /// One that takes down what it is asked.
    private func server(_ status: String = "200 OK") throws -> ScriptedServer {
        try ScriptedServer { [lines] connection in
            while true {
                lines.add(try connection.readRequest().line)
                try connection.answer(status)
            }
        }
    }

    @Test func `a service that hears of us hears when we are well, and when we are not`() async throws {
        defer { journal.close() }
        let server = try server()
        let factory = PipelineFactory(pool: BlockingPool(name: "ping", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = PingSettings(url: Secret("http://127.0.0.1:\(server.port)/id"), interval: .milliseconds(30))
        let shared = Shared.test(journal, try EventLog(nil))
        let scheduler = Scheduler([.ping: Pinger(shared, try factory.ping(settings), settings)])
        try await whileRunning([scheduler]) {
            try await eventually("it is well") { lines.all.contains("GET /id HTTP/1.1") }
            shared.health.journal.fails(.full(journal.path))
            try await eventually("it is not") { lines.all.contains("POST /id/fail HTTP/1.1") }
        }
        #expect(lines.all.first == "GET /id/start HTTP/1.1")
    }

    @Test func `a loop that stands still is told, and a service that is away is said once`() async throws {
        defer { journal.close() }
        let server = try server("500 Oops")
        let factory = PipelineFactory(pool: BlockingPool(name: "ping", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = PingSettings(
            url: Secret("http://127.0.0.1:\(server.port)/id-canary"), interval: .milliseconds(20))
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let shared = Shared.test(journal, log)
        let scheduler = Scheduler([.ping: Pinger(shared, try factory.ping(settings), settings, patience: .zero)])
        try await whileRunning([scheduler]) {
            try await eventually("it is told") { lines.all.count { $0.contains("/fail") } >= 3 }
        }
        #expect(events.count("notification.failed") == 1)
        #expect(!"\(events.all)".contains("canary"))
    }
}
