import Foundation
import InletCore
import Testing

@testable import InletAgent
@testable import InletDashboard

/// The sentence that one reads first.
@Suite struct HealthTests {
    @Test func `an agent that nobody needs to look after says so, and what moves`() throws {
        let health = Health(try SampleStatus.report())
        #expect(health == Health(try SampleStatus.report()) && health.state == .ok && health.needs.isEmpty)
        #expect(health.sentence == "1 delivery waits for store; 1 file is being sent.")
        let again = Health(try SampleStatus.report { ($0.queue.waiting, $0.queue.retrying) = (3, 2) })
        #expect(again.state == .ok)
        #expect(again.sentence == "3 deliveries wait for store, 2 after an error; 1 file is being sent.")
    }

    private static func idle(_ change: (inout StatusReport) -> Void = { _ in }) throws -> StatusReport {
        try SampleStatus.report { report in
            (report.queue.in_flight, report.queue.waiting, report.pending) = (0, 0, 0)
            change(&report)
        }
    }

    @Test func `all is well only when nothing waits, settles, moves or failed`() throws {
        #expect(Health(try Self.idle()).sentence == "All is well.")
        let writing = StatusReport.SettlingFile(path: "a", writer: true, waits_for: nil, held_by: nil, waiting_ms: nil)
        let cases: [(String, (inout StatusReport) -> Void)] = [
            ("1 file is being sent.", { $0.queue.in_flight = 1 }),
            ("1 delivery waits for store.", { $0.queue.held = 1 }),
            ("2 new files are not complete yet.", { $0.roots[0].settling = 2 }),
            (
                "1 file is still being written.",
                { ($0.roots[0].settling, $0.roots[0].unsettled, $0.queue.waiting) = (2, [writing], 3) }
            ), ("/srv/drop is being listed.", { $0.roots[0].state = "starting" }),
            ("2 files are not finished yet.", { $0.pending = 2 }), ("3 files failed.", { $0.files["failed"] = 3 }),
        ]
        for (sentence, change) in cases { #expect(Health(try Self.idle(change)).sentence == sentence) }
    }

    @Test func `a destination that is down says since when, and when the next try is`() throws {
        let now = try #require(WallTime(rfc3339: "2026-11-22T10:40:00Z"))
        let report = try SampleStatus.report { report in
            report.destinations[0].state = "down"
            report.destinations[0].since = "2026-11-22T10:32:00Z"
            report.destinations[0].next_probe = "2026-11-22T10:40:40Z"
        }
        let sentence = Health(report, now: now).sentence
        #expect(sentence.contains(/^store is down since .*\d\d:\d\d; next try in 40s\.$/), "\(sentence)")
    }

    /// What is changed, and what then comes first.
    static let cases: [(String, Health.State, @Sendable (inout StatusReport) throws -> Void)] = [
        ("the journal cannot be written", .trouble, { $0.journal_failing = true }),
        (
            "backing up the journal has stopped unexpectedly", .trouble,
            { $0.incidents = [.init(service: "backing up the journal", reason: "no disk")] }
        ),
        (
            "the log cannot be written", .attention,
            { $0.log = .init(reason: "standard error takes no lines: who reads it stands still", lost: 0) }
        ),
        ("3 log lines are lost", .attention, { $0.log = .init(reason: "/s/l: No space left", lost: 3) }),
        ("no agent runs", .trouble, { $0.running = false }),
        ("no agent runs", .attention, { ($0.running, $0.pending) = (false, 0) }),
        ("store refuses its credentials", .trouble, { $0.destinations[0].state = "credentials refused" }),
        ("store is down", .attention, { $0.destinations[0].state = "down" }),
        ("store is paused", .attention, { $0.destinations[0].state = "paused" }),
        ("/srv/drop is not what it was", .trouble, { $0.roots[0].state = "paused: another disk" }),
        ("/srv/drop cannot be watched", .trouble, { $0.roots[0].state = "failing: no permission" }),
        ("/srv/drop is not there", .attention, { $0.roots[0].state = "missing" }),
        (
            "/srv/drop is quiet since \(WallTime(rfc3339: SampleStatus.start)?.shortClock ?? "")", .attention,
            { ($0.roots[0].quiet_since, $0.roots[0].expect) = (SampleStatus.start, "24h") }
        ),
        ("1 file failed", .attention, { $0.files["failed"] = 1 }),
        ("3 files expired", .attention, { $0.files["expired"] = 3 }),
        ("2 files rejected", .attention, { $0.files["rejected"] = 2 }),
        (
            "7 files could not be archived, deleted or quarantined", .attention,
            { $0.stuck = .init(files: 7, reason: "unlink: /srv/drop/a: read-only file system") }
        ),
        (
            "3 files may not be read by Inlet", .attention,
            { $0.forbidden = .init(files: 3, reason: "open /srv/drop/a: Permission denied") }
        ),
        (
            "1 file or folder in /srv/drop cannot be taken now", .attention,
            { $0.roots[0].stuck = .init(files: 1, reason: "opendir /srv/drop/b: Permission denied") }
        ),
        ("5 files were gone within seconds of their admission", .attention, { $0.gone_soon = 5 }),
        (
            "3 files wait for the card or disk that was at /media/EOS/DCIM", .attention,
            { $0.away = [.init(volume: "uuid:1234-ABCD/DCIM", path: "/media/EOS/DCIM", files: 3)] }
        ),
        ("4 deliveries have no destination", .attention, { $0.queue.parked = 4 }),
        ("5 notifications failed", .attention, { $0.notices_failed = 5 }),
        ("nothing is sent: the limit is 0", .attention, { $0.limits = [try limit(0, "command")] }),
    ]

    private static func limit(_ rate: Int, _ why: String, _ more: String = "") throws -> LimitReport {
        let text = #"{"bytes_per_second": \#(rate), "why": "\#(why)"\#(more)}"#
        return try JSONDecoder().decode(LimitReport.self, from: Data(text.utf8))
    }

    @Test(arguments: cases.indices)
    func `what needs a person is said with its remedy`(_ index: Int) throws {
        let (what, state, change) = Self.cases[index]
        let health = Health(try SampleStatus.report(change))
        #expect(health.state == state, "\(health)")
        #expect(health.sentence.contains(what) && health.needs.count == 1, "\(health)")
        #expect(health.needs[0].hasPrefix("\(what): ") && health.needs[0].count > what.count + 10, "\(health)")
        let finding = try #require(health.findings?.first)
        #expect(finding.state == state && finding.text == what && finding.line == health.needs[0])
        #expect(health.findings?.count == 1 && health.needing == 1, "\(health)")
    }

    @Test func `whether all is safe is said for the files, not for the agent's other problems`() throws {
        let cases: [(String, (inout StatusReport) -> Void)] = [
            ("Yes: every file that came is where it belongs.", { _ in }),
            ("Yes: every file that came is where it belongs.", { $0.destinations[0].state = "paused" }),
            ("Yes: every file that came is where it belongs.", { $0.roots[0].quiet_since = SampleStatus.start }),
            ("Not yet: 3 files are on the way.", { ($0.pending, $0.roots[0].settling) = (2, 1) }),
            ("Not yet: /srv/drop is being listed.", { $0.roots[0].state = "starting" }),
            ("No: 1 file is not where it belongs.", { $0.files["failed"] = 1 }),
            ("No: 3 files are not where they belong.", { ($0.files["expired"], $0.files["rejected"]) = (3, 1) }),
            // Files that nothing will send are named, and are not lost.
            (
                "Yes: every file that came is where it belongs; but 2 rejected, and not sent.",
                { $0.files["rejected"] = 2 }
            ),
            (
                "Yes: every file that came is where it belongs; but 1 rejected, and not sent; "
                    + "2 gone before Inlet could send them; 3 cancelled by somebody.",
                {
                    $0.files.merge(["rejected": 5, "gone": 2, "cancelled": 3]) { $1 }
                    $0.rejected_left = 4
                }
            ),
            // A person has said that it may stay.
            (
                "Yes: every file that came is where it belongs.",
                { ($0.files["rejected"], $0.rejected_left) = (2, 2) }
            ),
            ("No: 2 files cannot be taken.", { $0.roots[0].stuck = .init(files: 2, reason: "no") }),
            ("Not known: a part of Inlet cannot work.", { $0.journal_failing = true }),
            ("Yes: every file that came is where it belongs.", { $0.destinations[0].state = "credentials refused" }),
            ("Not known: /srv/drop is not watched.", { $0.roots[0].state = "missing" }),
            ("Unknown: no agent runs.", { $0.running = false }),
        ]
        for (safety, change) in cases { #expect(Health(try Self.idle(change)).safety == safety) }
    }

    @Test func `rejected files that were left in their places need nobody`() throws {
        let some = Health(try SampleStatus.report { ($0.files["rejected"], $0.rejected_left) = (3, 1) })
        #expect(some.needing == 1 && some.findings?.first?.text == "2 files rejected")
        let none = Health(try SampleStatus.report { ($0.files["rejected"], $0.rejected_left) = (3, 3) })
        #expect(none.state == .ok && none.needing == 0, "\(none)")
    }

    @Test func `what is worth knowing is told, and needs nobody`() throws {
        let until = "2026-11-22T18:00:00+01:00"
        let health = Health(
            try SampleStatus.report { report in
                (report.destinations[0].state, report.destinations[0].last_error) = ("asks for time", "slow down")
                report.limits = [
                    try Self.limit(0, "schedule", #", "destination": "store", "until": "\#(until)""#),
                    try Self.limit(0, "configuration"), try Self.limit(1000, "command"),
                ]
            })
        #expect(health.state == .ok && health.needs.isEmpty && health.needing == 0, "\(health)")
        #expect(
            health.findings?.map(\.line) == [
                "store asks for time: Inlet sends more slowly (slow down)",
                "nothing is sent to store: the limit is 0: by the schedule, until \(until)",
                "nothing is sent: the limit is 0: as configured",
            ])
        #expect(health.findings?.map(\.state) == [.ok, .ok, .ok])
        #expect(health.findings?.map(\.about) == [.destination, .limit, .limit])
    }

    @Test func `a finding names what it is about`() throws {
        let health = Health(
            try SampleStatus.report { report in
                report.files["failed"] = 1
                report.destinations[0].state = "down"
                report.roots[0].state = "missing"
            })
        let found = health.findings?.map { ($0.about, $0.name) } ?? []
        #expect(found.map(\.0) == [.destination, .root, .files])
        #expect(found.map(\.1) == ["store", "/srv/drop", "failed"])
    }

    @Test func `a journal that fails has the reason that the log has`() throws {
        let health = Health(
            try SampleStatus.report { report in
                (report.journal_failing, report.journal_reason) = (true, "/s/j: the disk is full\u{1B}")
            })
        #expect(health.findings?.first?.remedy == "/s/j: the disk is full\\x1B")
    }

    @Test func `what has stopped comes before what only needs a look, and the list stays short`() throws {
        let health = Health(
            try SampleStatus.report { report in
                report.files["failed"] = 3
                report.journal_failing = true
                let root = report.roots[0]
                report.roots = (0..<20).map { number in
                    var missing = root
                    (missing.path, missing.state) = ("/srv/\(number)", "missing")
                    return missing
                }
            })
        #expect(
            health.state == .trouble
                && health.sentence == "the journal cannot be written (and 21 more).")
        #expect(health.needs.count == 9 && health.needs.last == "and 14 more", "\(health.needs)")
        #expect(health.findings?.count == 8 && health.needing == 22)
    }

    @Test func `a destination's words cannot change the terminal`() throws {
        let health = Health(
            try SampleStatus.report {
                ($0.destinations[0].state, $0.destinations[0].last_error) = ("down", "it said \u{1B}[2J")
            })
        #expect(!health.needs[0].contains("\u{1B}") && health.needs[0].contains("\\x1B[2J"))
    }
}

/// An agent's answer, with what a test wants to be different.
enum SampleStatus {
    static let start = "2026-11-22T10:00:00.000Z"

    static func report(_ change: (inout StatusReport) throws -> Void = { _ in }) throws -> StatusReport {
        let text = """
            {"running": true, "version": "1.2.3", "started_at": "\(start)", "journal_failing": false, "seen": 9,
             "pending": 2, "ignored": 0, "files": {"pending": 2, "delivered": 7}, "bytes": {"pending": 3000, "delivered": 0},
             "queue": {"total": 2, "in_flight": 1, "waiting": 1, "retrying": 0, "held": 0, "parked": 0, "failed": 0,
                       "expired": 0},
             "destinations": [{"name": "store", "type": "r2", "state": "up", "waiting": 1}],
             "roots": [{"path": "/srv/drop", "state": "watching", "directories": 1, "polled": 0, "settling": 0,
                        "ignored": 0, "unsettled": []}],
             "in_flight": []}
            """
        var report = try JSONDecoder().decode(StatusReport.self, from: Data(text.utf8))
        try change(&report)
        return report
    }

    static func transfer(
        _ job: Int64 = 1, _ path: String = "/srv/drop/film.mov", sent: Int64, of size: Int64 = 1000
    ) -> StatusReport.Transfer {
        StatusReport.Transfer(job: job, path: path, destination: "store", sent: sent, size: size, since: start)
    }
}
