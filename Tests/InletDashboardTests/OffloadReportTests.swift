import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletDashboard

/// The offload report: what failed comes first, and nothing that a file's name says becomes markup.
@Suite struct OffloadReportTests {
    private func report(
        _ change: (inout [Job]) -> Void = { _ in }, _ body: (OffloadReport) throws -> Void
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
        try body(OffloadReport(batch, jobs, at: .now))
    }

    @Test func `what was not delivered comes first, and the sums are right`() async throws {
        try await report { report in
            #expect(report.files.map(\.path) == ["z\\x1B[31m", "<script>&'\"", "a"])
            #expect(report.source == "/in/A001" && report.batch.state == "failed")
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
}
