import Foundation
import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// Deliveries that may begin at some hours only.
@Suite(.seated) struct WindowTests {
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

    private func admit(_ bench: Bench, _ admission: FileAdmission, at time: WallTime = midday) async throws -> Int64 {
        guard case .admitted(let id) = try await bench.journal.admit(admission, at: time) else {
            throw Unexpected(what: "not admitted")
        }
        return id
    }

    @Test func `outside of its window a big file waits for it, uncounted and with the reason, and a small one goes`()
        async throws
    {
        let bench = try Bench()
        let big = try await admit(bench, Self.admission("big"))
        let small = try await admit(bench, Self.admission("small", size: 99))
        #expect(try await bench.settle(.test(.delivered), at: Self.midday)?.fileID == small)
        #expect(try await bench.settle(.test(.delivered), at: Self.midday) == nil)
        let waiting = try await bench.job(big).deliveries[0]
        #expect(waiting.state == .ready && waiting.attempts == 0 && waiting.nextAt == Self.opening)
        #expect(waiting.reason == "waits for its window (22:00 to 06:00)" && waiting.code == nil)
        #expect(waiting.startedAt == nil)
        #expect(try await bench.journal.nextDue(destinations: ["r2"]) == Self.opening)
        #expect(try await bench.journal.queueCounts()["r2"]?.retrying == 0)
        let sent = try await bench.settle(.test(.delivered), at: Self.opening)
        #expect(sent?.fileID == big && sent?.attempts == 1 && sent?.reason == nil)
    }

    @Test func `ten thousand that wait are put back once, and hold nobody up`() async throws {
        let bench = try Bench()
        let names = (0..<10_000).map { "\($0)" }
        for start in stride(from: 0, to: names.count, by: 1000) {
            _ = try await bench.journal.admit(
                names[start..<start + 1000].map { Self.admission($0) }, at: Self.midday)
        }
        let other = try await admit(bench, Self.admission("other", size: 1), at: Self.midday + .seconds(1))
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
        #expect(try await bench.journal.nextDue(destinations: ["r2"]) == Self.opening)
    }

    @Test func `the time to live does not run while the window is closed, and begins when it is let in`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, Self.admission("big", expire: .seconds(60)))
        #expect(try await bench.settle(.test(.delivered), at: Self.midday) == nil)
        // The destination was up for hours meanwhile.
        let hours: Int64 = 8 * 3_600_000
        #expect(try await bench.journal.setUptime("r2", hours, at: Self.opening).isEmpty)
        #expect(try await bench.journal.nextExpiries(of: ["r2"]).isEmpty)
        let later = Self.opening + .seconds(30)
        #expect(try await bench.settle(.again(later, counts: true), at: Self.opening) != nil)
        #expect(try await bench.job(id).deliveries[0].expiresAt == hours + 60_000)
        #expect(try await bench.journal.setUptime("r2", hours + 59_000, at: later).isEmpty)
        #expect(try await bench.journal.setUptime("r2", hours + 60_000, at: later) == [id])
        #expect(try await bench.job(id).file.state == .expired)
    }

    @Test func `an attempt that failed inside waits for the next opening, and what a destination works on does not`()
        async throws
    {
        let bench = try Bench()
        let tried = try await admit(bench, Self.admission("tried"), at: Bench.start)
        try await bench.settle(.again(Self.midday, counts: true))
        #expect(try await bench.settle(.test(.delivered), at: Self.midday) == nil)
        let row = try await bench.job(tried).deliveries[0]
        #expect(row.attempts == 1 && row.nextAt == Self.opening)
        let worked = try await admit(bench, Self.admission("worked"), at: Bench.start)
        try await bench.settle(.waiting(until: Self.midday, saying: nil))
        #expect(try await bench.settle(.test(.delivered), lane: .small, at: Self.midday)?.fileID == worked)
    }

    @Test func `one that waits for its window and then for another of its content gets its time to live`() async throws
    {
        let bench = try Bench()
        _ = try await bench.admit(.content(1, "first", .skip), at: Self.midday)
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
        let bench = try Bench()
        var admission = FileAdmission.test("big", .test(size: 100), to: ["r2", "spaces"])
        admission.plan?.window = Self.window
        admission.storages = ["spaces": "r2"]
        let id = try await admit(bench, admission, at: Bench.start)
        #expect(try await bench.settle(.test(.delivered)) != nil)
        let registered = try await bench.settle(.test(.delivered), of: "spaces", lane: .small, at: Self.midday)
        #expect(registered?.fileID == id)
    }

    @Test func `the window is frozen with the policy, and a policy without one reads as before`() async throws {
        let bench = try Bench()
        let id = try await admit(bench, Self.admission("big"))
        #expect(try await bench.job(id).file.policy.window == Self.window)
        let plain = FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy())
        let written = try JSONEncoder().encode(plain)
        #expect(!String(decoding: written, as: UTF8.self).contains("window"))
        #expect(try JSONDecoder().decode(FilePolicy.self, from: written) == plain)
    }
}
