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
    private func take(
        _ sink: String = "ops", at time: WallTime = Bench.start
    ) async throws -> [QueuedNotification] {
        var taken: [QueuedNotification] = []
        while let next = try await notice(sink, at: time) {
            taken.append(next)
            try await bench.journal.removeNotices([next.id])
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

    // MARK: - Removable volumes

    private func card(
        _ name: String, _ event: NotificationEvent = .volumeDone, word: String = "safe", second: Int64 = 0
    ) async throws {
        try await bench.journal.post(
            event, Array("\(name) \(word)".utf8), at: Bench.start + .seconds(second), once: (name, word))
    }

    /// The texts of the next message for people; nil when it is not its time.
    private func message(second: Int64) async throws -> [String]? {
        let next = try await bench.journal.nextNotice("ops", gathers: true, at: Bench.start + .seconds(second))
        guard case .due(let notice) = next else { return nil }
        let notices = notice.event.isOfVolume ? try await bench.journal.gathered(with: notice) : [notice]
        try await bench.journal.removeNotices(notices.map(\.id))
        return notices.map { String(decoding: $0.payload, as: UTF8.self) }
    }

    @Test func `good news of one minute is one message, and programs do not wait for it`() async throws {
        try await bench.setSinks([Self.all, NotificationSink(name: "hook", events: [.volumeDone])])
        try await card("A")
        try await card("B", second: 20)
        try await card("C", second: 60)
        try await card("D", second: 61)
        #expect(try await take("hook", at: Bench.start + .seconds(61)).count == 4)
        #expect(
            try await bench.journal.nextNotice("ops", gathers: true, at: Bench.start + .seconds(59))
                == .later(Bench.start + .seconds(60)))
        #expect(try await message(second: 60) == ["A safe", "B safe", "C safe"])
        #expect(try await message(second: 120) == nil)
        #expect(try await message(second: 121) == ["D safe"])
        #expect(try await bench.journal.outboxBacklog() == (0, 0))
    }

    @Test func `a problem goes at once with what was gathered, and other notices wait for neither`() async throws {
        try await bench.setSinks([Self.all])
        try await card("A")
        try await bench.journal.post(.destinationUp, Array("up".utf8), at: Bench.start + .seconds(1))
        #expect(try await message(second: 1) == ["up"])
        #expect(try await message(second: 1) == nil)
        try await card("B", .volumeProblem, word: "problem", second: 2)
        #expect(try await message(second: 2) == ["A safe", "B problem"])
        #expect(try await bench.journal.outboxBacklog() == (0, 0))
    }

    @Test func `a message that waited for its receiver has everything newer about its volumes`() async throws {
        try await bench.setSinks([Self.all])
        try await card("A")
        try await card("B", second: 1)
        try await card("A", .volumeProblem, word: "problem", second: 300)
        #expect(try await message(second: 400) == ["A safe", "B safe", "A problem"])
    }

    @Test func `what was not taken stays gathered, and gathers no longer`() async throws {
        try await bench.setSinks([Self.all])
        try await card("A")
        try await card("B", second: 1)
        let ids = try await bench.journal.gathered(with: #require(try await notice(at: Bench.start))).map(\.id)
        let again = Bench.start + .seconds(5)
        try await bench.journal.noticesFailed(ids, again: again, holdsLine: true, reason: "away")
        #expect(
            try await bench.journal.nextNotice("ops", gathers: true, at: Bench.start + .seconds(4))
                == .blocked(until: again))
        #expect(try await message(second: 5) == ["A safe", "B safe"])
    }

    @Test func `a volume that is not done any more takes its gathering message back, and may be done again`()
        async throws
    {
        try await bench.setSinks([Self.all, NotificationSink(name: "hook", events: [.volumeDone])])
        try await card("A")
        try await card("B")
        try await bench.journal.withdrawDone(of: "A", from: ["ops"])
        #expect(try await take("hook").count == 2)
        try await card("A", second: 30)
        #expect(try await message(second: 60) == ["B safe", "A safe"])
        // Nothing was waiting: it is the same word still.
        try await bench.journal.withdrawDone(of: "A", from: ["ops"])
        try await card("A", second: 61)
        #expect(try await message(second: 200) == nil)
    }

    @Test func `what gathers and what was said of a volume outlive a restart`() async throws {
        let directory = try TemporaryDirectory()
        func journal() async throws -> Journal {
            let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: Bench.start)
            _ = try await journal.setSinks([Self.all], at: Bench.start)
            return journal
        }
        func post(_ journal: Journal, _ event: NotificationEvent, _ word: String) async throws -> Int {
            try await journal.post(event, Array(word.utf8), at: Bench.start, once: ("A", word))
            return try await journal.outboxBacklog().waiting
        }
        let first = try await journal()
        #expect(try await post(first, .volumeDone, "safe") == 1)
        first.close()
        let second = try await journal()
        #expect(try await post(second, .volumeDone, "safe") == 1)
        guard case .due(let kept) = try await second.nextNotice("ops", gathers: true, at: Bench.start + .seconds(60))
        else { throw Unexpected(what: "no notice") }
        try await second.removeNotices([kept.id])
        #expect(try await post(second, .volumeDone, "safe") == 0)
        #expect(try await post(second, .volumeProblem, "problem") == 1)
        second.close()
        let third = try await journal()
        defer { third.close() }
        #expect(try await post(third, .volumeProblem, "problem") == 1)
        #expect(try await post(third, .volumeDone, "safe") == 2)
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
        try await bench.journal.noticesFailed([first.id], again: later, holdsLine: true, reason: "away")
        #expect(try await bench.journal.nextNotice("ops", at: Bench.start) == .blocked(until: later))
        #expect(try await notice(at: later)?.attempts == 1)
        try await bench.journal.noticesFailed([first.id], again: later, holdsLine: false, reason: "no")
        #expect(try await take().map(\.payload) == [[2], [3]])
        #expect(try await bench.journal.nextNotice("ops", at: Bench.start) == .later(later))
        #expect(try await notice(at: later)?.payload == [1])
        try await bench.journal.noticesGivenUp([first.id], reason: "no")
        #expect(try await bench.journal.nextNotice("ops", at: later) == .none)
        #expect(try await bench.journal.outboxBacklog() == (0, 1))
    }

    @Test
    func `what was refused is tried again where its time is in the line, and not before all the others`() async throws {
        try await bench.setSinks([Self.all])
        try await bench.post(.destinationUp, [1])
        let refused = try #require(try await notice())
        try await bench.journal.noticesFailed(
            [refused.id], again: Bench.start + .seconds(5), holdsLine: false, reason: "no")
        for (number, second) in [(2, 4), (3, 5), (4, 6)] {
            try await bench.journal.post(.destinationUp, [UInt8(number)], at: Bench.start + .seconds(second))
        }
        var told: [[UInt8]] = []
        while let next = try await notice(at: Bench.start + .seconds(60)) {
            told.append(next.payload)
            try await bench.journal.removeNotices([next.id])
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
