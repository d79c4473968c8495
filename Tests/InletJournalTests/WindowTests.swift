import Foundation
import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// Deliveries whose destinations work on them.
@Suite(.seated) struct WaitingTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let later = Bench.start + .seconds(3)

    private func wait(_ saying: String?, lane: Lane = .big, at time: WallTime = Bench.start)
        async throws
    {
        #expect(try await bench.settle(.waiting(until: Self.later, saying: saying), lane: lane, at: time) != nil)
    }

    @Test func `it waits in the light lane, costs no attempt, and says why`() async throws {
        let id = try await bench.admit("a")
        try await wait("generating, 81 %")
        let row = try await bench.job(id).deliveries[0]
        #expect(row.attempts == 0 && row.waits == 1 && row.isBeingWorkedOn && row.nextAt == Self.later)
        #expect(row.reason == "generating, 81 %" && row.code == nil)
        #expect(try await bench.settle(.test(.failed), lane: .big, at: Self.later) == nil)
        try await wait(nil, lane: .small, at: Self.later)
        let again = try await bench.job(id).deliveries[0]
        #expect(again.waits == 2 && again.attempts == 0 && again.reason == nil)
        #expect(try await bench.settle(.test(.delivered), lane: .small, at: Self.later)?.attempts == 1)
    }

    @Test func `other loops hear of it when it changes lanes`() async throws {
        try await bench.admit("a")
        for (lane, isNews) in [(Lane.big, true), (.small, false)] {
            let waits = ClaimOutcome.waiting(until: Self.later, saying: nil)
            let settled = try await bench.journal.settle(waits, lane: lane, at: Self.later)
            #expect(settled?.file.hasReleased == isNews)
        }
    }

    @Test func `what is worked on is listed until something else is heard of it`() async throws {
        let id = try await bench.admit("a", .test(size: 7))
        try await bench.admit("b")
        #expect(try await bench.journal.waiting(limit: 10).isEmpty)
        try await wait("step 1")
        let row = try await bench.job(id).deliveries[0]
        let listed = try await bench.journal.waiting(limit: 10)
        #expect(listed.map(\.id) == [row.id] && listed.map(\.file) == [id] && listed.map(\.path) == ["/in/a"])
        #expect(listed.map(\.size) == [7] && listed.map(\.route) == ["all"] && listed.map(\.destination) == ["r2"])
        #expect(listed.map(\.saying) == ["step 1"] && listed.map(\.until) == [Self.later])
        #expect(listed.map(\.admittedAt) == [Bench.start])
        #expect(try await bench.journal.waiting(limit: 0).isEmpty)
        try await bench.settle(.again(), lane: .small, at: Self.later)
        #expect(try await bench.journal.waiting(limit: 10).isEmpty)
        try await wait("step 2", lane: .small, at: Self.later)
        #expect(try await bench.journal.waiting(limit: 10).map(\.saying) == ["step 2"])
        try await bench.cancel(id, at: Self.later)
        #expect(try await bench.journal.waiting(limit: 10).isEmpty)
    }

    @Test func `what is worked on does not expire, and what then fails has all its time`() async throws {
        let journal = bench.journal
        let id = try await bench.admit("a", expire: .seconds(10))
        let other = try await bench.admit("b", expire: .seconds(30))
        try await wait("queued")
        #expect(try await journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 30_000])
        #expect(try await journal.setUptime("r2", 20_000, at: Self.later).isEmpty)
        // An end of ours says nothing about it.
        try await bench.settle(
            .again(at: Self.later, countsAttempt: false, code: nil, reason: nil), lane: .small, at: Self.later)
        #expect(try await journal.setUptime("r2", 21_000, at: Self.later).isEmpty)
        try await bench.settle(.again(Self.later), lane: .small, at: Self.later)
        #expect(try await journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 30_000])
        #expect(try await journal.setUptime("r2", 30_999, at: Self.later) == [other])
        // A second failure gives it no more.
        try await bench.settle(.again(Self.later), lane: .small, at: Self.later)
        #expect(try await journal.nextExpiries(of: ["r2", "disk", "spaces"]) == ["r2": 31_000])
        #expect(try await journal.setUptime("r2", 31_000, at: Self.later) == [id])
    }

    @Test func `what never expires does not begin to when it fails`() async throws {
        let id = try await bench.admit("a")
        try await wait("queued")
        try await bench.settle(.again(Self.later), lane: .small, at: Self.later)
        #expect(try await bench.job(id).deliveries[0].expiresAt == nil)
        #expect(try await bench.journal.nextExpiries(of: ["r2", "disk", "spaces"]).isEmpty)
    }
}

/// Deliveries that may begin at some hours only.
@Suite(.seated) struct WindowTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// From 22:00 to 06:00 UTC, for files from 100 bytes. The bench's clock starts at 22:13:20 UTC.
    private static let window = DeliveryWindow(DaySpan(from: 22 * 60, to: 6 * 60), above: 100, zone: "UTC")
    private static let midday = Bench.start + .seconds(14 * 3600)
    private static let opening: WallTime = Bench.start + .seconds(86_400 - 800)

    private static func admission(
        _ name: String, size: Int64 = 100, lane: Lane = .big, expire: Duration? = nil
    ) -> FileAdmission {
        var admission = FileAdmission.test(name, .test(size: size), lane: lane, expire: expire)
        admission.plan?.window = window
        return admission
    }

    private func admit(_ admission: FileAdmission, at time: WallTime = midday) async throws -> Int64 {
        try await bench.admit(admission, at: time)
    }

    @Test func `outside of its window a big file waits for it, uncounted and with the reason, and a small one goes`()
        async throws
    {
        let big = try await admit(Self.admission("big"))
        let small = try await admit(Self.admission("small", size: 99))
        #expect(try await bench.settle(.test(.delivered), at: Self.midday)?.fileID == small)
        #expect(try await bench.settle(.test(.delivered), at: Self.midday) == nil)
        let waiting = try await bench.job(big).deliveries[0]
        #expect(waiting.state == .ready && waiting.attempts == 0 && waiting.nextAt == Self.opening)
        #expect(waiting.reason == "waits for its window (22:00 to 06:00)" && waiting.code == nil)
        #expect(waiting.startedAt == nil)
        #expect(try await bench.nextDue(["r2"]) == Self.opening)
        #expect(try await bench.journal.queueCounts()["r2"]?.retrying == 0)
        let sent = try await bench.settle(.test(.delivered), at: Self.opening)
        #expect(sent?.fileID == big && sent?.attempts == 1 && sent?.reason == nil)
    }

    @Test func `ten thousand that wait are put back once, and hold nobody up`() async throws {
        let names = (0..<10_000).map { "\($0)" }
        for start in stride(from: 0, to: names.count, by: 1000) {
            _ = try await bench.journal.admit(names[start..<start + 1000].map { Self.admission($0) }, at: Self.midday)
        }
        let other = try await admit(Self.admission("other", size: 1), at: Self.midday + .seconds(1))
        let now = Self.midday + .seconds(2)
        var looks = 0
        var found: Int64?
        while found == nil, looks < 1000 {
            looks += 1
            found = try await bench.settle(.test(.delivered), at: now)?.fileID
        }
        #expect(found == other)
        // 256 are put back in one transaction.
        #expect(looks <= 41)
        #expect(try await bench.settle(.test(.delivered), at: now) == nil)
        #expect(try await bench.nextDue(["r2"]) == Self.opening)
    }

    @Test func `the time to live does not run while the window is closed, and begins when it is let in`() async throws {
        let id = try await admit(Self.admission("big", expire: .seconds(60)))
        #expect(try await bench.settle(.test(.delivered), at: Self.midday) == nil)
        // The destination was up for hours meanwhile.
        let hours: Int64 = 8 * 3_600_000
        #expect(try await bench.setUptime("r2", hours, at: Self.opening).isEmpty)
        #expect(try await bench.journal.nextExpiries(of: ["r2"]).isEmpty)
        let later = Self.opening + .seconds(30)
        #expect(try await bench.settle(.again(later, counts: true), at: Self.opening) != nil)
        #expect(try await bench.job(id).deliveries[0].expiresAt == hours + 60_000)
        #expect(try await bench.setUptime("r2", hours + 59_000, at: later).isEmpty)
        #expect(try await bench.setUptime("r2", hours + 60_000, at: later) == [id])
        #expect(try await bench.job(id).file.state == .expired)
    }

    @Test func `an attempt that failed inside waits for the next opening, and what a destination works on does not`()
        async throws
    {
        let tried = try await admit(Self.admission("tried"), at: Bench.start)
        try await bench.settle(.again(Self.midday, counts: true))
        #expect(try await bench.settle(.test(.delivered), at: Self.midday) == nil)
        let row = try await bench.job(tried).deliveries[0]
        #expect(row.attempts == 1 && row.nextAt == Self.opening)
        let worked = try await admit(Self.admission("worked"), at: Bench.start)
        try await bench.settle(.waiting(until: Self.midday, saying: nil))
        #expect(try await bench.settle(.test(.delivered), lane: .small, at: Self.midday)?.fileID == worked)
    }

    @Test
    func `one that waits for its window and then for another of its content gets its time to live`() async throws {
        try await bench.admit(.content(1, "first", .skip), at: Self.midday)
        var admission = FileAdmission.content(1, "second", .skip)
        admission.plan?.window = DeliveryWindow(DaySpan(from: 22 * 60, to: 6 * 60), above: 1, zone: "UTC")
        admission.plan?.retry = RetryPolicy(expire: .seconds(60))
        let second = try await bench.admit(admission, at: Self.midday)
        let first = try await bench.claimAll(at: Self.midday)
        #expect(try await bench.job(second).deliveries[0].nextAt == Self.opening)
        #expect(try await bench.claimAll(at: Self.opening).isEmpty)
        #expect(try await bench.job(second).deliveries[0].reason == "waits: job 1 sends the same content now")
        try await bench.end(first[0], .test(.failed), at: Self.opening)
        let claims = try await bench.claimAll(at: Self.opening)
        #expect(claims.map(\.file.id) == [second] && claims.map(\.delivery.expiresAt) == [60_000])
        #expect(try await bench.job(second).deliveries[0].expiresAt == 60_000)
    }

    @Test func `a registration sends no bytes and waits for no window`() async throws {
        var admission = FileAdmission.test("big", .test(size: 100), to: ["r2", "spaces"])
        admission.plan?.window = Self.window
        admission.storages = ["spaces": "r2"]
        let id = try await admit(admission, at: Bench.start)
        #expect(try await bench.settle(.test(.delivered)) != nil)
        #expect(try await bench.settle(.test(.delivered), of: "spaces", lane: .small, at: Self.midday)?.fileID == id)
    }

    @Test func `the window is frozen with the policy, and a policy without one reads as before`() async throws {
        #expect(try await bench.job(admit(Self.admission("big"))).file.policy.window == Self.window)
        let plain = FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy())
        let written = try JSONEncoder().encode(plain)
        #expect(!String(decoding: written, as: UTF8.self).contains("window"))
        #expect(try JSONDecoder().decode(FilePolicy.self, from: written) == plain)
    }
}

/// `expire` of files that have a window: their time counts while it is open, and nothing gives it back.
@Suite(.seated) struct WindowLifeTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    /// From 22:00 to 06:00 UTC, for files from 100 bytes.
    private static let window = DeliveryWindow(DaySpan(from: 22 * 60, to: 6 * 60), above: 100, zone: "UTC")
    /// Midnight before the bench's clock begins, which the hours of the tables count from.
    private static let midnight = WallTime(milliseconds: Bench.start.milliseconds / 86_400_000 * 86_400_000)
    private static let hour: Int64 = 3_600_000

    private static func time(_ hours: Int) -> WallTime { midnight + .milliseconds(Int64(hours) * hour) }

    enum Step: Sendable {
        /// Somebody wants to claim: it is put back.
        case waits
        /// It is tried, and fails.
        case tried
        /// Its destination's clock is written; whether it expires.
        case looked(expires: Bool)
    }

    /// Something happens at an hour of the wall, when the destination's clock has counted so many; afterwards the clock of
    /// the delivery ends at an hour of that, or stands with so many hours left (negative).
    struct Event: Sendable, CustomTestStringConvertible {
        var at: Int
        var uptime: Int
        var step: Step
        var expiry: Int
        var testDescription: String { "\(step) at \(at), \(uptime)" }
    }

    struct Story: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var admitted: Int
        var uptime: Int
        /// After admission, as in events.
        var expiry: Int
        var events: [Event]
    }

    /// All have ten hours.
    private static let stories = [
        Story(
            testDescription: "closed at admission: the whole time is left at the opening, however busy all are",
            admitted: 12, uptime: 5, expiry: -10,
            events: [
                Event(at: 21, uptime: 14, step: .looked(expires: false), expiry: -10),
                Event(at: 25, uptime: 18, step: .looked(expires: false), expiry: -10),
                Event(at: 25, uptime: 18, step: .tried, expiry: 28),
            ]),
        Story(
            testDescription: "open at admission, and nobody looked before it had closed: only the open hours count",
            admitted: 23, uptime: 0, expiry: 10,
            events: [
                Event(at: 34, uptime: 11, step: .waits, expiry: -3),
                Event(at: 46, uptime: 23, step: .tried, expiry: 26),
            ]),
        Story(
            testDescription: "its time seems to be over while it is closed: it is put back with what is left",
            admitted: 23, uptime: 0, expiry: 10,
            events: [
                Event(at: 34, uptime: 11, step: .looked(expires: false), expiry: -3),
                Event(at: 46, uptime: 23, step: .tried, expiry: 26),
                Event(at: 49, uptime: 26, step: .looked(expires: true), expiry: 26),
            ]),
        Story(
            testDescription: "tried each night: no closed window gives time back",
            admitted: 22, uptime: 0, expiry: 10,
            events: [
                Event(at: 23, uptime: 1, step: .tried, expiry: 10),
                Event(at: 30, uptime: 8, step: .waits, expiry: -2),
                Event(at: 46, uptime: 24, step: .tried, expiry: 26),
                Event(at: 47, uptime: 25, step: .tried, expiry: 26),
                Event(at: 48, uptime: 26, step: .looked(expires: true), expiry: 26),
            ]),
        Story(
            testDescription: "the destination was away after it had closed: no more than the whole is left",
            admitted: 23, uptime: 0, expiry: 10,
            events: [
                Event(at: 40, uptime: 7, step: .waits, expiry: -10)
            ]),
        Story(
            testDescription: "over before it closed: it expires whenever somebody looks",
            admitted: 23, uptime: 0, expiry: 10,
            events: [
                Event(at: 31, uptime: 12, step: .looked(expires: true), expiry: 10)
            ]),
    ]

    @Test(arguments: stories)
    func `the time of a file with a window counts while that is open, and is never renewed`(story: Story) async throws {
        var admission = FileAdmission.test(
            "big", .test(size: 100), expire: .seconds(36_000), uptime: Int64(story.uptime) * Self.hour)
        admission.plan?.window = Self.window
        let id = try await bench.admit(admission, at: Self.time(story.admitted))
        #expect(try await expiry(of: id) == story.expiry)
        for event in story.events {
            try await happens(event, id)
            #expect(try await expiry(of: id) == event.expiry, "\(event)")
        }
    }

    private func expiry(of id: Int64) async throws -> Int? {
        try await bench.job(id).deliveries[0].expiresAt.map { Int($0 / Self.hour) }
    }

    private func happens(_ event: Event, _ id: Int64) async throws {
        let (now, uptime) = (Self.time(event.at), Int64(event.uptime) * Self.hour)
        switch event.step {
        case .looked(let expires):
            #expect(try await bench.setUptime("r2", uptime, at: now) == (expires ? [id] : []), "\(event)")
            #expect(try await bench.job(id).file.state == (expires ? .expired : .pending), "\(event)")
        case .waits: #expect(try await !claims(bench, now, uptime), "\(event)")
        case .tried: #expect(try await claims(bench, now, uptime), "\(event)")
        }
    }

    /// With the clock as the agent knows it: the journal's own was written long ago.
    private func claims(_ bench: Bench, _ now: WallTime, _ uptime: Int64) async throws -> Bool {
        let room = ClaimCapacity(destination: "r2", limits: [.big: 1], uptime: uptime)
        return try await bench.journal.settle(.again(now, counts: true), [room], at: now) != nil
    }
}
