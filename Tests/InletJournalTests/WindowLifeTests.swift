import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// `expire` of files that have a window: their time counts while it is open, and nothing gives it back.
@Suite(.seated) struct WindowLifeTests {
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
        let bench = try Bench()
        var admission = FileAdmission.test(
            "big", .test(size: 100), expire: .seconds(36_000), uptime: Int64(story.uptime) * Self.hour)
        admission.plan?.window = Self.window
        let id = try await bench.admit(admission, at: Self.time(story.admitted))
        #expect(try await expiry(of: id, bench) == story.expiry)
        for event in story.events {
            try await happens(event, bench, id)
            #expect(try await expiry(of: id, bench) == event.expiry, "\(event)")
        }
    }

    private func expiry(of id: Int64, _ bench: Bench) async throws -> Int? {
        try await bench.job(id).deliveries[0].expiresAt.map { Int($0 / Self.hour) }
    }

    private func happens(_ event: Event, _ bench: Bench, _ id: Int64) async throws {
        let (now, uptime) = (Self.time(event.at), Int64(event.uptime) * Self.hour)
        switch event.step {
        case .looked(let expires):
            #expect(try await bench.journal.setUptime("r2", uptime, at: now) == (expires ? [id] : []), "\(event)")
            #expect(try await bench.job(id).file.state == (expires ? .expired : .pending), "\(event)")
        case .waits: #expect(try await !claims(bench, now, uptime), "\(event)")
        case .tried: #expect(try await claims(bench, now, uptime), "\(event)")
        }
    }

    /// With the clock as the agent knows it: the journal's own was written long ago.
    private func claims(_ bench: Bench, _ now: WallTime, _ uptime: Int64) async throws -> Bool {
        let room = ClaimRoom(destination: "r2", limits: [.big: 1], uptime: uptime)
        let settled = try await bench.journal.withClaim(.big, rooms: [room], clock: { now }) { _ in
            (Settlement.again(now, counts: true), ())
        }
        return settled != nil
    }
}
