import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletMedia
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// The offload report: what failed comes first, and nothing that a file's name says becomes markup.
@Suite struct OffloadReportTests {
    private func report(
        _ change: (inout [Job]) -> Void = { _ in }, clips: ([Int64]) -> [Int64: ClipReading] = { _ in [:] },
        _ body: (OffloadReport) throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        for name in ["a", "<script>&'\"", "z\u{1B}[31m"] {
            try await journal.take("A001/\(name)", size: 1000, for: "lib") { admission in
                admission.plan?.route = "cards"
                admission.plan?.key = "cards/\(name)"
                admission.plan?.digests = Digest(.xxh64, hex: "22c8b2fe096816df").map { [$0] } ?? []
                admission.unit = "A001"
            }
        }
        _ = try await journal.closeUnit("A001", root: "/in", routes: ["cards"], marker: nil, uptimes: [:], at: .now)
        let ending: EndingRule = { _ in ("kept", Array("{}".utf8)) }
        let room = ClaimCapacity(destination: "lib", limits: [.big: 9])
        for _ in 0..<3 {
            _ = try await journal.withClaim(
                .big, rooms: [room], clock: { .now }, ending: ending
            ) { claim in
                let key = claim.delivery.key ?? ""
                let end: ClaimOutcome =
                    key.hasSuffix("[31m")
                    ? .ended(.failed, code: .badRequest, reason: "the test <refuses>")
                    : .delivered(Proof(key: key, size: 1000, method: .readBack, url: "/lib/\(key)"))
                return (end, ())
            }
        }
        let batch = try #require(try await journal.batch(nil))
        var jobs = try await journal.jobs(ofBatch: batch.id)
        change(&jobs)
        try body(OffloadReport(batch, jobs, clips: clips(jobs.map(\.file.id)), at: .now))
    }

    @Test func `what was not delivered comes first, and the sums are right`() async throws {
        try await report { report in
            #expect(report.files.map(\.path) == ["z\\x1B[31m", "<script>&'\"", "a"])
            #expect(report.source == "/in/A001" && report.batch?.state == "failed")
            let totals = report.totals
            #expect(totals.files == 3 && totals.bytes == 3000)
            #expect(totals.deliveredFiles == 2 && totals.deliveredBytes == 2000)
            let text = report.text()
            let parts = [
                "NOT DELIVERED", "the test <refuses>", "DELIVERED\n<script>", "/lib/cards/a", "TOTAL  2 of 3 files",
            ]
            let places = parts.compactMap { text.firstRange(of: $0)?.lowerBound }
            #expect(places.count == parts.count && places == places.sorted())
            #expect(!text.contains("\u{1B}"))
        }
    }

    @Test func `what the journal can no longer read is said of its file and of its delivery`() async throws {
        try await report({ jobs in
            jobs[0].file.isDamaged = true
            jobs[2].deliveries[0].isDamaged = true
        }) { report in
            let damage = "its record in the journal is partly unreadable"
            #expect(report.files.map(\.path) == ["z\\x1B[31m", "<script>&'\"", "a"])
            #expect(report.files[1...].map(\.reason) == [nil, damage])
            #expect(report.files.map { $0.deliveries[0].reason } == ["the test <refuses>; \(damage)", nil, nil])
            #expect(report.text().contains(damage) && report.page().contains(damage))
        }
    }

    @Test func `the page stands alone, and escapes every text`() async throws {
        try await report { report in
            let page = report.page()
            #expect(page.hasPrefix("<!doctype html>") && page.hasSuffix("</html>\n"))
            #expect(page.contains("&lt;script&gt;&amp;&#39;&quot;") && page.contains("the test &lt;refuses&gt;"))
            for mark in ["<script", "http://", "https://", "src=", "\u{1B}"] {
                #expect(!page.contains(mark), "\(mark)")
            }
            #expect(page.contains("verified by read_back") && page.contains("xxh64:22c8b2fe096816df"))
        }
    }

    @Test func `a report for a person has numbers and dates of the locale, and one of the agent ISO 8601`() async throws
    {
        try await report { report in
            let german = try #require(ReportStyle(locale: "de_DE.UTF-8"))
            let text = report.text(german)
            #expect(text.contains("2.000 of 3.000 bytes") && text.contains("2 KiB of 2,9 KiB"), "\(text)")
            #expect(report.page(german).contains("2.000 of 3.000 bytes"))
            #expect(!text.contains(report.printed_at) && report.text().contains(report.printed_at))
            #expect(report.text().contains("2000 of 3000 bytes"))
            let plain = ReportStyle { ["LC_ALL": "C.UTF-8", "LANG": "de_DE"][$0] }
            #expect(report.text(plain) == report.text())
            let mixed = ReportStyle { ["LC_NUMERIC": "de_DE.UTF-8", "LANG": "xx_nowhere"][$0] }
            #expect(report.text(mixed).contains("2.000 of 3.000") && report.text(mixed).contains(report.printed_at))
            #expect(ReportStyle(locale: "xx_nowhere") == nil && ReportStyle(locale: "../etc") == nil)
        }
    }

    @Test func `the table has a line for each file and destination, and nothing that a spreadsheet computes`()
        async throws
    {
        try await report({ jobs in
            jobs[0].file.path = "A001/=HYPERLINK(1)"
            jobs[1].file.path = "A001/a, \"b\""
            jobs[2].deliveries = []
        }) { report in
            let lines = report.table().split(separator: "\r\n", omittingEmptySubsequences: false)
            #expect(lines.count == 5 && lines.last == "")
            #expect(
                lines.first?.hasPrefix("batch,card,insertion,inserted_at,roll,camera,operator,job,path,bytes,") == true)
            #expect(lines.contains { $0.contains(",'=HYPERLINK(1),1000,") })
            #expect(lines.contains { $0.contains(",\"a, \"\"b\"\"\",1000,") && $0.contains(",read_back,") })
            for line in lines.dropLast() where !line.contains("\"") {
                #expect(line.count { $0 == "," } == 23, "\(line)")
            }
        }
    }

    @Test func `a copy of which only the size was compared is not called verified`() async throws {
        try await report({ jobs in jobs[0].deliveries[0].proof?.method = .size }) { report in
            for form in [report.text(), report.page()] {
                #expect(form.contains("copied, sizes equal, not verified") && !form.contains("verified by size"))
            }
            #expect(report.table().contains(",size,"))
        }
    }

    @Test func `a recording to look at comes before everything else, and a missing number with it`() async throws {
        try await report({ jobs in
            for (index, name) in ["A001/C0001.MP4", "A001/C0002.MP4", "A001/C0004.MP4"].enumerated() {
                jobs[index].file.path = FilePath(name)
            }
        }) { plain in
            #expect(plain.missing == ["C0003"])
            let text = plain.text()
            let parts = ["CHECK BEFORE YOU FORMAT\nC0003 is missing", "NOT DELIVERED", "DELIVERED\nC0001"]
            let places = parts.compactMap { text.firstRange(of: $0)?.lowerBound }
            #expect(places.count == parts.count && places == places.sorted(), "\(text)")
            #expect(plain.page().contains("<h2>Check before you format</h2>"))
        }
        var facts = ClipFacts()
        (facts.duration, facts.timecode, facts.camera) = (.seconds(90), "01:00:00:00", "Sony <FX3>")
        try await report(clips: { ids in
            [
                ids[0]: ClipReading(fault: "it has no index"), ids[1]: ClipReading(facts: facts),
                ids[2]: ClipReading(isUnread: true),
            ]
        }) { report in
            #expect(report.files.map(\.path) == ["a", "z\\x1B[31m", "<script>&'\""])
            #expect(report.files[0].check == "it has no index" && report.unread == 1)
            #expect(report.text().contains("1m30s · TC 01:00:00:00 · Sony <FX3>"))
            #expect(
                report.text().contains("1m30s of recordings")
                    && report.text().contains("1 recording was not looked into"))
            #expect(report.page().contains("Sony &lt;FX3&gt;") && report.table().contains(",90.000,01:00:00:00,"))
        }
    }
}

/// Reports that join cards.
@Suite struct CardReportTests {
    /// Two cards with files of several insertions, and a file that is on none.
    private func journal(_ body: (Journal) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let hour: Int64 = 3_600_000
        for (name, key, label) in [("a", "uuid:AAAA", "EOS"), ("b", "uuid:BBBB", "EOS")] {
            let identity = VolumeIdentity(kind: "exfat", uuid: key.replacing("uuid:", with: ""), label: label)
            let card = try await journal.card(identity, key: key, weaker: [], at: WallTime(milliseconds: hour))
            for (number, time) in [hour, 10 * hour].enumerated() {
                let stay = try await journal.insertion(
                    of: card.id, at: FilePath("/media/\(name)"), isNew: true, now: WallTime(milliseconds: time))
                if number == 1 {
                    try await journal.setLabels(CardLabels(roll: "A00\(name)", operator: "Kim"), of: stay.id)
                }
                let path = "100/C000\(number * 2 + 1).MP4"
                try await journal.take("\(name)/\(path)", for: "lib", at: WallTime(milliseconds: time + 1)) {
                    admission in
                    admission.arrival.path = FilePath(path)
                    admission.arrival.volume = Volume(name: label, key: "\(key)/DCIM")
                    admission.plan?.labels = name == "b" ? ["project": "spring"] : [:]
                }
            }
        }
        try await journal.take("elsewhere.mp4", for: "lib", at: WallTime(milliseconds: 11 * hour)) { admission in
            admission.plan?.labels = ["project": "spring"]
        }
        for _ in 0..<5 {
            try await journal.settle(.delivered(Proof(key: "k", size: 9, method: .readBack, url: "/lib/k")), for: "lib")
        }
        try await body(journal)
    }

    private func report(_ selection: OffloadSelection, _ journal: Journal) async throws -> OffloadReport {
        try #require(try await journal.offload(selection).0)
    }

    @Test(arguments: ["EOS (2)", "BBBB", "bbbb", "uuid:BBBB"])
    func `a card is found by its name, UUID or key, with all of its insertions`(name: String) async throws {
        try await journal { journal in
            let report = try await report(OffloadSelection(cards: [name]), journal)
            #expect(report.cards?.map(\.name) == ["EOS (2)"] && report.name == "EOS (2)")
            #expect(report.files.map(\.path) == ["DCIM/100/C0001.MP4", "DCIM/100/C0003.MP4"])
            let card = try #require(report.cards?.first)
            #expect(card.missing == ["DCIM/100/C0002"] && card.uuid == "BBBB")
            #expect(card.insertions.map(\.roll) == [nil, "A00b"])
            #expect(report.files.map(\.insertion) == card.insertions.map(\.insertion))
            let text = report.text().replacing(/\ +/, with: " ")
            for part in [
                "CARD EOS (2)", "label EOS · UUID BBBB · exfat", "Roll A00b", "Operator Kim", "2 of 2 files",
            ] {
                #expect(text.contains(part), "\(part)\n\(text)")
            }
            #expect(report.table().contains(",A00b,,Kim,"))
        }
    }

    @Test func `cards are joined in the order of their names, each on pages of its own`() async throws {
        try await journal { journal in
            let report = try await report(OffloadSelection(cards: ["EOS (2)", "EOS"]), journal)
            #expect(report.cards?.map(\.name) == ["EOS", "EOS (2)"] && report.files.count == 4)
            let page = report.page()
            #expect(page.matches(of: /<section class="card">/).count == 2)
            #expect(page.contains("break-before: page") && page.contains("<h2>Card EOS (2)</h2>"))
            for mark in ["<script", "http://", "https://", "src="] { #expect(!page.contains(mark), "\(mark)") }
            #expect(report.fileName.hasPrefix("INLET-REPORT-EOS__EOS__2_-"), "\(report.fileName)")
        }
    }

    @Test func `files are chosen by time and by project, and both must hold`() async throws {
        try await journal { journal in
            let later = WallTime(milliseconds: 9 * 3_600_000)
            let since = try await report(OffloadSelection(since: later), journal)
            #expect(since.files.count == 2 && since.cards?.map(\.insertions.count) == [1, 1])
            let project = try await report(OffloadSelection(project: "spring"), journal)
            #expect(project.files.map(\.card) == ["EOS (2)", "EOS (2)", nil])
            #expect(project.text().contains("NOT FROM A CARD") && project.page().contains("<h2>Not from a card</h2>"))
            let both = try await report(OffloadSelection(since: later, project: "spring"), journal)
            #expect(both.files.count == 2)
            let card = try await report(OffloadSelection(cards: ["EOS"], since: later), journal)
            #expect(card.files.map(\.path) == ["DCIM/100/C0003.MP4"])
            #expect(try await report(OffloadSelection(project: "none"), journal).files.isEmpty)
        }
    }

    @Test func `an unknown card is an error, and too many files are no report`() async throws {
        try await journal { journal in
            await #expect(throws: OffloadSelection.UnknownCard.self) {
                try await journal.offload(OffloadSelection(cards: ["EOS", "NO_SUCH"]))
            }
            let (report, files) = try await journal.offload(OffloadSelection(cards: ["EOS"]), most: 1)
            #expect(report == nil && files == 2)
        }
    }

    @Test func `the time when a destination was asked stands at each file that it had then`() async throws {
        try await journal { journal in
            let stay = try #require(try await journal.insertions(of: "EOS", limit: 1).first)
            let asked = WallTime.now + .seconds(60)
            let lines = [
                CardLine(.good, "at lib 2 of 2, proved, asked \(asked.rfc3339Seconds)"),
                CardLine(.bad, "at nas 1 of 2: 1 missing, asked \(asked.rfc3339Seconds)"),
            ]
            try await journal.setVerdict(of: stay.id, .safe, CardFacts(), lines: lines, checked: nil, at: asked)
            let report = try await report(OffloadSelection(cards: ["EOS"]), journal)
            #expect(report.files.map { $0.deliveries[0].asked_at } == [asked.rfc3339Seconds, asked.rfc3339Seconds])
            let told = try #require(report.cards?.first?.insertions.last)
            #expect(
                told.sentence == "SAFE TO REMOVE"
                    && told.lines?.map(\.text) == [
                        "at lib 2 of 2, proved", "at nas 1 of 2: 1 missing",
                    ])
            #expect(told.lines?.map(\.destination) == ["lib", nil])
            #expect(report.text().contains("at lib 2 of 2, proved, asked \(asked.rfc3339Seconds)"))
        }
    }

    @Test(
        arguments: [
            ("06:00", "2026-11-27T06:00:00Z"), ("11:59:30", "2026-11-27T11:59:30Z"), ("12:00", "2026-11-26T12:00:00Z"),
            ("23:30", "2026-11-26T23:30:00Z"), ("2026-11-01T00:00:00+01:00", "2026-10-31T23:00:00Z"),
            ("12h", "2026-11-27T00:00:00Z"), ("90m", "2026-11-27T10:30:00Z"), ("24:00", nil), ("6", nil), ("", nil),
            ("yesterday", nil), ("-1:00", nil), ("06:60", nil),
        ] as [(String, String?)])
    func `a time is one of the day, a whole one, or an age`(text: String, expected: String?) throws {
        let now = try #require(WallTime(rfc3339: "2026-11-27T12:00:00Z"))
        let found = OffloadSelection.moment(text, at: now, zone: try #require(TimeZone(identifier: "UTC")))
        #expect(found?.rfc3339Seconds == expected)
    }
}

/// Reports over the port, for the page's button.
@Suite struct ReportEndpointTests {
    @Test func `the port gives a report as a page with its style, which runs nothing, and as a table`() async throws {
        let scene = try DashboardScene()
        try await scene.serving { port in
            try await scene.journal.take("film.mp4", for: "disk") { $0.plan?.labels = ["project": "spring"] }
            let client = try RawClient(port: port)
            let page = try await client.get("report/html?project=spring")
            #expect(page.status == 200 && page.body.hasPrefix("<!doctype html>") && page.body.contains("film.mp4"))
            #expect(page.headers["content-type"] == "text/html; charset=utf-8")
            let policy = try #require(page.headers["content-security-policy"])
            #expect(policy.contains("style-src 'unsafe-inline'") && policy.contains("sandbox"), "\(policy)")
            #expect(page.headers["content-disposition"]?.hasSuffix(".html\"") == true)
            let table = try await client.get("report/csv?project=spring")
            #expect(table.headers["content-type"] == "text/csv; charset=utf-8" && table.body.hasPrefix("batch,card,"))
            #expect(try await client.get("report/json?since=1h").status == 200)
            for (path, status) in [
                ("report/html?card=NO_SUCH", 404), ("report/html", 400), ("report/html?since=yesterday", 400),
                ("report/pdf?since=1h", 404),
            ] {
                #expect(try await client.get(path).status == status, "\(path)")
            }
        }
    }
}
