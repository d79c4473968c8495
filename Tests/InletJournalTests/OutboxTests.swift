import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

@Suite(.seated) struct OutboxTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let all = NotificationSink(name: "ops", events: Set(NotificationEvent.allCases))

    private func notice(_ sink: String = "ops", at time: WallTime = Bench.start) async throws -> QueuedNotification? {
        if case .due(let notice) = try await bench.journal.nextNotice(sink, at: time) { notice } else { nil }
    }

    /// Everything that waits for `sink`, taken out of the outbox.
    private func take(_ sink: String = "ops") async throws -> [QueuedNotification] {
        var taken: [QueuedNotification] = []
        while let next = try await notice(sink) {
            taken.append(next)
            try await bench.journal.removeNotice(next.id)
        }
        return taken
    }

    @Test(
        arguments: [
            (DeliveryState.delivered, NotificationEvent.delivered), (.failed, .failed), (.expired, .failed),
            (.gone, .failed),
            (.cancelled, nil),
        ] as [(DeliveryState, NotificationEvent?)])
    func `the end of a file is told with its receipt`(_ state: DeliveryState, _ event: NotificationEvent?) async throws
    {
        try await bench.setSinks([Self.all])
        let id = try await bench.settled("a", state)
        #expect(try await notice() == nil)
        try await bench.finishAll()
        let told = try await take()
        #expect(told.map(\.event) == [event].compactMap(\.self))
        #expect(told.allSatisfy { $0.subject == id && $0.payload == Array("{}".utf8) && $0.attempts == 0 })
    }

    @Test func `a file that is finished with its last delivery is told in the same transaction`() async throws {
        try await bench.setSinks([Self.all])
        try await bench.admit("a")
        let settled = try await bench.journal.settle(
            .test(.delivered),
            ending: { _ in (Disposition.kept, Array("{\"at\":\"once\"}".utf8)) })
        #expect(settled?.file.finish != nil)
        #expect(try await take().map(\.payload) == [Array("{\"at\":\"once\"}".utf8)])
    }

    @Test func `a rejected file is told, and one that is sent again is told again`() async throws {
        try await bench.setSinks([Self.all])
        try await bench.offer(.refused("a"))
        try await bench.finishAll()
        #expect(try await take().map(\.event) == [.rejected])
        let id = try await bench.settled("b", .failed, finishes: true)
        #expect(try await bench.retry(id))
        try await bench.settleAndFinish(.test(.delivered))
        #expect(try await take().map(\.event) == [.failed, .delivered])
    }

    @Test func `each receiver gets what it asked for, of its routes`() async throws {
        let sinks = [
            NotificationSink(name: "one", events: [.delivered], routes: ["all"]),
            NotificationSink(name: "two", events: [.delivered], routes: ["other"]),
            NotificationSink(name: "three", events: [.failed, .destinationDown]),
        ]
        try await bench.setSinks(sinks)
        try await bench.settled("a", .delivered, finishes: true)
        try await bench.post(.destinationDown, Array("{}".utf8))
        #expect(try await take("one").count == 1)
        #expect(try await take("two").isEmpty)
        #expect(try await take("three").map(\.event) == [.destinationDown])
    }

    @Test func `the same about a thing is said once, and a reply only to something that was said`() async throws {
        try await bench.setSinks([Self.all])
        let thing = Journal.thing(destination: "store")
        func post(_ word: String, isReply: Bool = false) async throws -> Int {
            let event: NotificationEvent = word == "up" ? .destinationUp : .destinationDown
            try await bench.journal.post(event, [], at: Bench.start, once: (thing, word), isReply: isReply)
            return try await take().count
        }
        #expect(try await post("up", isReply: true) == 0)
        #expect(try await post("down") == 1)
        #expect(try await post("down") == 0)
        #expect(try await post("up", isReply: true) == 1)
        #expect(try await post("up", isReply: true) == 0)
        #expect(try await post("down") == 1)
        try await bench.journal.forgetLastWord(of: thing)
        #expect(try await post("down") == 1)
    }

    @Test func `a receiver that is new is told what lasts, and an old one is not told again without it`() async throws {
        func paused() async throws {
            let word = (Journal.thing(folder: "/in"), "gone")
            try await bench.journal.post(.rootPaused, [], at: Bench.start, once: word)
        }
        try await bench.setSinks([Self.all])
        try await paused()
        #expect(try await take().count == 1)
        try await bench.setSinks([Self.all])
        try await paused()
        #expect(try await take().isEmpty)
        try await bench.setSinks([Self.all, NotificationSink(name: "new", events: [.rootPaused])])
        try await paused()
        #expect(try await take("new").count == 1)
    }

    @Test func `a receiver that comes while a destination is down is told so, or that it is up again`() async throws {
        let thing = Journal.thing(destination: "store")
        func post(_ word: String) async throws -> Int {
            let event: NotificationEvent = word == "up" ? .destinationUp : .destinationDown
            try await bench.journal.post(event, [], at: Bench.start, once: (thing, word), isReply: word == "up")
            return try await take("new").count
        }
        let new = NotificationSink(name: "new", events: [.destinationDown, .destinationUp])
        for word in [Journal.down, "up"] {
            try await bench.setSinks([Self.all])
            _ = try await post(Journal.down)
            try await bench.setSinks([Self.all, new])
            #expect(try await post(word) == 1)
            // Without a fault there is nothing to say about it.
            try await bench.setSinks([Self.all])
            _ = try await post("up")
            try await bench.setSinks([Self.all, new])
            #expect(try await post("up") == 0)
        }
    }

    @Test func `without receivers nothing is kept`() async throws {
        let change = try await bench.setSinks([])
        #expect(change.identity.isEmpty && change.dropped.isEmpty)
        try await bench.settled("a", .delivered, finishes: true)
        #expect(try await bench.journal.outboxBacklog() == (0, 0))
    }

    @Test func `a batch is told at its end, with its files, unless it goes on`() async throws {
        try await bench.setSinks([NotificationSink(name: "ops", events: [.batchDone])])
        let id = try await bench.failUnit()
        let told = try #require(try await notice())
        #expect(told.event == .batchDone && told.payload.isEmpty)
        let batch = try #require(told.subject)
        let (ended, jobs) = try #require(try await bench.journal.endedBatch(batch, limit: 9))
        #expect(ended.counts == [.failed: 1] && jobs.map(\.file.id) == [id])
        try await bench.journal.keepPayload([1], of: told.id)
        #expect(try await notice()?.payload == [1])
        #expect(try await bench.retry(id))
        #expect(try await bench.journal.endedBatch(batch, limit: 9) == nil)
        try await bench.settleAndFinish(.test(.delivered))
        let again = try await take().filter { $0.id != told.id }
        #expect(again.map(\.event) == [.batchDone] && again.map(\.subject) == [batch])
        #expect(try await bench.journal.endedBatch(batch, limit: 9)?.batch.counts == [.delivered: 1])
    }

    @Test func `of a batch with more files than are wanted, those that were not delivered come first`() async throws {
        for name in ["a", "b", "c"] { try await bench.admit(.test("gigs/X/\(name)", unit: "gigs/X")) }
        let closed = try await bench.closeUnit("gigs/X")
        for state in [DeliveryState.delivered, .failed, .delivered] { try await bench.settle(.test(state)) }
        try await bench.finishAll()
        let batch = try #require(closed.first).id
        let (ended, jobs) = try #require(try await bench.journal.endedBatch(batch, limit: 2))
        #expect(ended.counts == [.delivered: 2, .failed: 1])
        #expect(jobs.map(\.file.state) == [.failed, .delivered])
    }

    @Test func `what is put off holds up the line, what was refused steps aside`() async throws {
        try await bench.setSinks([Self.all])
        for number in 1...3 { try await bench.post(.destinationUp, [UInt8(number)]) }
        let first = try #require(try await notice())
        let later = Bench.start + .seconds(5)
        try await bench.journal.noticeFailed(first.id, again: later, holdsLine: true, reason: "away")
        #expect(try await bench.journal.nextNotice("ops", at: Bench.start) == .blocked(until: later))
        #expect(try await notice(at: later)?.attempts == 1)
        try await bench.journal.noticeFailed(first.id, again: later, holdsLine: false, reason: "no")
        #expect(try await take().map(\.payload) == [[2], [3]])
        #expect(try await bench.journal.nextNotice("ops", at: Bench.start) == .later(later))
        #expect(try await notice(at: later)?.payload == [1])
        try await bench.journal.noticeGivenUp(first.id, reason: "no")
        #expect(try await bench.journal.nextNotice("ops", at: later) == .none)
        #expect(try await bench.journal.outboxBacklog() == (0, 1))
    }

    @Test
    func `what was refused is tried again where its time is in the line, and not before all the others`() async throws {
        try await bench.setSinks([Self.all])
        try await bench.post(.destinationUp, [1])
        let refused = try #require(try await notice())
        try await bench.journal.noticeFailed(
            refused.id, again: Bench.start + .seconds(5), holdsLine: false, reason: "no")
        for (number, second) in [(2, 4), (3, 5), (4, 6)] {
            try await bench.journal.post(.destinationUp, [UInt8(number)], at: Bench.start + .seconds(second))
        }
        var told: [[UInt8]] = []
        while let next = try await notice(at: Bench.start + .seconds(60)) {
            told.append(next.payload)
            try await bench.journal.removeNotice(next.id)
        }
        #expect(told == [[2], [3], [1], [4]])
    }

    @Test
    func `receivers that left the configuration take their notices with them, and the identity stays`() async throws {
        let sinks = [Self.all, NotificationSink(name: "old", events: [.destinationUp])]
        let change = try await bench.setSinks(sinks)
        #expect(!change.identity.isEmpty && change.dropped.isEmpty)
        try await bench.post(.destinationUp, [1])
        let again = try await bench.setSinks([Self.all])
        #expect(again.identity == change.identity && again.dropped == ["old": 1])
        #expect(try await take().count == 1)
    }

    @Test func `the outbox is bounded, and what was delivered goes first`() async throws {
        try await bench.setSinks([Self.all])
        try await bench.post(.destinationUp, [0])
        for number in 1...4 { try await bench.post(.delivered, [UInt8(number)]) }
        #expect(try await bench.journal.boundOutbox(to: 5) == 0)
        #expect(try await bench.journal.boundOutbox(to: 3) == 2)
        #expect(try await take().map(\.payload) == [[0], [3], [4]])
    }

    @Test func `notices outlive a restart, and are written by the next process only for its receivers`() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("journal.sqlite")
        let first = try Journal(path: path, now: Bench.start)
        let identity = try await first.setSinks([Self.all], at: Bench.start).identity
        try await first.post(.destinationDown, [1], at: Bench.start)
        first.close()
        let next = try Journal(path: path, now: Bench.start)
        defer { next.close() }
        #expect(try await next.setSinks([Self.all], at: Bench.start).identity == identity)
        guard case .due(let notice) = try await next.nextNotice("ops", at: Bench.start) else {
            throw Unexpected(what: "no notice")
        }
        #expect(notice.payload == [1])
    }
}
