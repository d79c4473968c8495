import Foundation
import InletCore
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

@Suite struct NotifierTests {
    private func hook(
        _ name: String, _ script: String, _ argument: FilePath, on events: [NoticeEvent] = NoticeEvent.allCases
    ) -> NotificationReceiver {
        let words = ["/bin/sh", "-c", script, "sh", argument.string]
        return NotificationReceiver(
            NotifySettings(
                name: name, receiver: .exec(words), events: Set(events), timeout: .seconds(60)),
            webhook: nil, pool: BlockingPool(name: "hook", threads: 4))
    }

    @Test func `each receiver gets its notices in their order, and one that hangs holds up nobody`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let book = directory.path.appending("book")
        let outlets = [
            hook("hanging", "exec sleep 600", book),
            hook(
                "writing",
                #"echo "$INLET_EVENT $INLET_DESTINATION $INLET_STATE" >> "$1"; cat >> "$1"; echo >> "$1""#, book),
        ]
        let notifier = try await Notifier(outlets, journal: journal, log: log)
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
        #expect(try await journal.outboxBacklog() == OutboxBacklog(waiting: 2, failed: 0))
    }

    @Test func `while a notice that was refused waits, the next one goes`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
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
            events: Set(NoticeEvent.allCases), timeout: .seconds(60))
        let outlet = NotificationReceiver(
            settings, webhook: try factory.webhook(settings), pool: BlockingPool(name: "hook", threads: 1))
        let notifier = try await Notifier([outlet], journal: journal, log: log)
        try await whileRunning([notifier]) {
            log.emit(.destinationDown(destination: "store", reason: "no route", probe: .now))
            try await eventually("the first is refused") { events.count("notification.failed") == 1 }
            // The first is refused however often it is tried: it must not be before this one each time.
            log.emit(.destinationUp(destination: "store"))
            try await eventually("the second is told") { events.count("notification.sent") == 1 }
        }
        #expect(try await journal.outboxBacklog() == OutboxBacklog(waiting: 1, failed: 0))
    }

    @Test func `a file is told with its real path and its receipt`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let book = directory.path.appending("book")
        let script =
            #"printf '%s|%s|%s|%s\n' "$INLET_PATH" "$INLET_STATE" "$INLET_ROUTE" "$INLET_DESTINATION" > "$1"; cat >> "$1""#
        let notifier = try await Notifier([hook("one", script, book)], journal: journal, log: log)
        _ = try await journal.admit(admission(directory.path, "a b$(x)\n.mov", key: "k"), at: .now)
        try await settle(journal) { _ in .ended(.failed, code: .badRequest, reason: "no") }
        try await whileRunning([notifier]) {
            try await eventually("it is told") { try await journal.outboxBacklog() == OutboxBacklog() }
        }
        let told = try text(book)
        #expect(told.hasPrefix("\(directory.path.string)/a b$(x)\n.mov|failed|all|here\n"), "\(told)")
        #expect(told.contains(#""event":"failed""#) && told.contains(#""file":{"job":1,"#), "\(told)")
    }

    private func admission(_ root: FilePath, _ path: FilePath, key: String) -> FileAdmission {
        let arrival = Arrival(
            root: root, path: path, identity: FileIdentity(size: 1, modified: 1, changed: 1, inode: 1, device: 1))
        let plan = Plan(
            route: "all", category: "other", key: key, mediaType: "text/plain", destinations: ["here"],
            retry: RetryPolicy())
        return FileAdmission(arrival, plan: plan, lanes: ["here": .big], uptimes: [:])
    }

    /// Ends the delivery that is due so, and its file with it.
    private func settle(_ journal: Journal, _ ending: (DeliveryRow) -> Settlement) async throws {
        let room = ClaimRoom(destination: "here", limits: [.big: 1])
        let settled = try await journal.withClaim(
            .big, rooms: [room], clock: { .now }, ending: Receipt.atOnce
        ) { claim in (ending(claim.delivery), true) }
        #expect(settled?.1 == true)
    }

    /// A unit of two files, of which one fails. - Returns: that one's number.
    private func endPartialUnit(_ journal: Journal, _ root: FilePath) async throws -> Int64 {
        for name in ["good", "bad"] {
            var admission = admission(root, FilePath("A001/\(name)"), key: name)
            admission.unit = "A001"
            _ = try await journal.admit(admission, at: .now)
        }
        _ = try await journal.closeUnit(
            "A001", root: root, routes: ["all"], marker: nil, uptimes: [:], at: .now)
        for _ in 1...2 {
            try await settle(journal) { delivery in
                delivery.key == "good"
                    ? .delivered(Proof(key: "good", size: 1, method: .size, url: "/library/good"))
                    : .ended(.failed, code: .badRequest, reason: "no")
            }
        }
        return try #require(try await journal.jobs(FileFilter(limit: 9)).first { $0.file.state == .failed }).file.id
    }

    @Test func `a batch is told with the same words at each try, also when it has gone on since`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let (first, second) = (directory.path.appending("first"), directory.path.appending("second"))
        // It reads the notice, and is ended before it says that it has taken it.
        let hanging = hook("one", #"cat > "$1.part"; mv "$1.part" "$1"; exec sleep 600"#, first, on: [.batchDone])
        let notifier = try await Notifier([hanging], journal: journal, log: log)
        let failed = try await endPartialUnit(journal, directory.path)
        try await whileRunning([notifier]) {
            try await eventually("it is read") { FileManager.default.fileExists(atPath: first.string) }
        }
        #expect(try await journal.outboxBacklog() == OutboxBacklog(waiting: 1, failed: 0))
        #expect(try await journal.retry(failed, uptimes: [:], at: .now))
        let taking = hook("one", #"cat > "$1""#, second, on: [.batchDone])
        let next = try await Notifier([taking], journal: journal, log: log)
        try await whileRunning([next]) {
            try await eventually("it is told") { try await journal.outboxBacklog() == OutboxBacklog() }
        }
        let told = try text(second)
        #expect(told == (try text(first)))
        #expect(told.contains(#""outcome":"partial""#) && told.contains(#""urls":["/library/good"]"#), "\(told)")
    }

    @Test func `a batch that goes on before anybody was told is not told`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let book = directory.path.appending("book")
        let outlet = hook("one", #"cat > "$1""#, book, on: [.batchDone])
        let notifier = try await Notifier([outlet], journal: journal, log: try EventLog(nil))
        let failed = try await endPartialUnit(journal, directory.path)
        #expect(try await journal.outboxBacklog() == OutboxBacklog(waiting: 1, failed: 0))
        #expect(try await journal.retry(failed, uptimes: [:], at: .now))
        try await whileRunning([notifier]) {
            try await eventually("its notice is gone") { try await journal.outboxBacklog() == OutboxBacklog() }
        }
        #expect(!FileManager.default.fileExists(atPath: book.string))
    }
}
