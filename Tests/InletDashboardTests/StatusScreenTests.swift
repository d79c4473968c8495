import InletCore
import Testing

@testable import InletDashboard

/// What `inlet status --watch` shows.
@Suite struct StatusScreenTests {
    private func lines(_ status: WatchedStatus, _ columns: Int, _ rows: Int? = nil) -> [String] {
        StatusView(status, columns: columns, rows: rows).lines(clock: "12:00:00")
            .map { $0.text(hasColour: false) }
    }

    private func moving(_ count: Int, _ path: String = "/srv/drop/日本語の動画🎬.mov") throws -> WatchedStatus {
        func report(_ sent: Int64) throws -> StatusReport {
            try SampleStatus.report { report in
                report.in_flight = (1...count).map {
                    SampleStatus.transfer(Int64($0), path, sent: sent, of: 10 << 20)
                }
                report.bytes["pending"] = Int64(count) * 10 << 20
            }
        }
        var status = WatchedStatus(try report(0), at: 0)
        status.take(try report(1 << 20), at: 1, clock: "12:00:00")
        return status
    }

    @Test func `the first lines say whether it is well, how fast it goes, and how long it takes`() throws {
        let shown = lines(try moving(1), 120)
        #expect(shown[0] == "inlet 1.2.3 running  12:00:00")
        #expect(shown[1] == "✓ 1 delivery waits for store; 1 file is being sent.")
        #expect(shown[3] == "1 MiB/s · 1 in flight · 1 waiting · 9 MiB to go, about 9s", "\(shown[3])")
        #expect(shown[5] == "In flight")
        #expect(shown[6].contains("film") == false && shown[6].contains("→ store"))
        #expect(shown[6].contains("10 %  1 MiB/s  9s"), "\(shown[6])")
        #expect(shown.contains("Destinations") && !shown.contains { $0.contains("Watched") })
    }

    @Test func `it fits every terminal, and names how many transfers are left out`() throws {
        let status = try moving(30)
        for columns in [1, 10, 20, 33, 40, 60, 80, 200] {
            for rows in [1, 2, 5, 10, 24, 50] {
                let shown = lines(status, columns, rows)
                #expect(shown.count <= rows)
                #expect(shown.allSatisfy { DisplayWidth.of($0) <= columns }, "\(columns) by \(rows)")
            }
        }
        let shown = lines(status, 80, 24)
        #expect(shown.count == 24 && shown.contains { $0.contains("… and ") && $0.contains(" more") })
        #expect(shown.contains("Destinations"))
        #expect(lines(status, 80).count > 36)
    }

    @Test func `roots are listed only when something is wrong with them`() throws {
        let status = WatchedStatus(try SampleStatus.report { $0.roots[0].state = "missing" }, at: 0)
        let shown = lines(status, 100)
        #expect(shown.contains("  /srv/drop  missing"), "\(shown)")
        #expect(shown[1].hasPrefix("! /srv/drop is not there"))
    }

    @Test func `an agent that stops and is started again is told of, and nothing of the old one moves on`() throws {
        var status = try moving(2)
        status.lose(hasStopped: true, clock: "12:01:00")
        #expect(status.notice == "The agent stopped at 12:01:00; these were its last numbers.")
        #expect(!status.report.running && status.report.in_flight.isEmpty && status.report.health?.state == .trouble)
        let gone = lines(status, 100)
        #expect(gone[0].contains("not running") && gone[1].contains("stopped at 12:01:00"))
        status.lose(hasStopped: true, clock: "12:01:01")
        #expect(status.notice?.contains("12:01:00") == true)
        status.take(
            try SampleStatus.report { $0.started_at = "2026-11-22T12:02:00.000Z" }, at: 90, clock: "12:02:01")
        #expect(status.notice == "The agent was started again at 12:02:01." && status.rates.total == nil)
        status.lose(hasStopped: false, clock: "12:03:00")
        #expect(status.notice?.contains("does not answer since 12:03:00") == true && status.report.running)
        status.take(
            try SampleStatus.report { $0.started_at = "2026-11-22T12:02:00.000Z" }, at: 99, clock: "12:03:04")
        #expect(status.notice == "The agent answers again since 12:03:04.")
    }

    @Test func `colours take no room, and none are written where none are wanted`() {
        let line = StyledText("good", .good) + StyledText(" and 日本", .bad)
        #expect(line.width == 13 && line.cut(13) == line)
        #expect(line.cut(12).text(hasColour: false) == "good and 日…")
        #expect(line.cut(4).text(hasColour: false) == "goo…" && line.cut(0).width == 0)
        #expect(line.text(hasColour: true) == "\u{1B}[32mgood\u{1B}[0m\u{1B}[31m and 日本\u{1B}[0m")
        #expect(!line.text(hasColour: false).contains("\u{1B}"))
    }

    @Test func `the line of send has the file, its pace and the sum, and fits`() {
        var line = SendLine()
        var sum = SendLine.Sum()
        (sum.files, sum.ended, sum.bytes, sum.endedBytes) = (3, 1, 4 << 20, 1 << 20)
        let file = FollowReport.File(
            job: 2, path: "/films/a long name of a film.mov", size: 2 << 20, state: "pending", places: [])
        _ = line.text(file, [SampleStatus.transfer(sent: 0, of: 2 << 20)], sum, at: 0, columns: 100)
        let text = line.text(file, [SampleStatus.transfer(sent: 1 << 20, of: 2 << 20)], sum, at: 1, columns: 100)
            .text(hasColour: false)
        #expect(text.contains("film.mov") && text.contains(" 50 %  1 MiB/s, 2s left  2 of 3"), "\(text)")
        for columns in [1, 20, 40, 80] {
            let narrow = line.text(file, [], sum, at: 2, columns: columns)
            #expect(narrow.width <= max(1, columns - 1))
        }
        sum.ended = 2
        #expect(SendLine.end(sum, after: .seconds(2)) == "2 files, 1 MiB in 2s (512 KiB/s)")
    }
}

/// Bytes per second from what an agent says of its transfers.
@Suite struct TransferRatesTests {
    private func isNear(_ value: Double?, _ other: Double) -> Bool { value.map { abs($0 - other) < 0.5 } ?? false }

    @Test func `one look says nothing, two say how fast it goes`() throws {
        var rates = TransferRates()
        let transfer = SampleStatus.transfer(sent: 100)
        rates.look([transfer], delivered: 0, files: 0, at: 0)
        #expect(rates.total == nil && rates.rate(of: transfer) == nil)
        rates.look([SampleStatus.transfer(sent: 300)], delivered: 0, files: 0, at: 2)
        #expect(isNear(rates.total, 100) && isNear(rates.rate(of: transfer), 100))
        // Too close to the look before: nothing is learned.
        rates.look([SampleStatus.transfer(sent: 900)], delivered: 0, files: 0, at: 2.01)
        #expect(isNear(rates.total, 100))
    }

    @Test func `what a transfer had sent before it was seen is not counted, nor what an attempt loses`() {
        var rates = TransferRates()
        rates.look([], delivered: 0, files: 0, at: 0)
        rates.look([SampleStatus.transfer(sent: 1 << 40, of: 1 << 41)], delivered: 0, files: 0, at: 1)
        #expect(rates.total == 0)
        rates.look([SampleStatus.transfer(sent: 0, of: 1 << 41)], delivered: 0, files: 0, at: 2)
        #expect(rates.total == 0)
    }

    @Test func `files that came and went between two looks are counted, and no byte twice`() {
        var rates = TransferRates()
        rates.look([SampleStatus.transfer(sent: 400)], delivered: 5000, files: 5, at: 0)
        // That one has arrived (600 were left), and so have two of 100 that were never seen.
        rates.look([], delivered: 6200, files: 8, at: 1)
        #expect(isNear(rates.total, 800) && isNear(rates.files, 3))
    }

    @Test func `a change shows little by little`() {
        var rates = TransferRates()
        var sent: Int64 = 0
        for second in 0...10 {
            rates.look([SampleStatus.transfer(sent: sent, of: 1 << 30)], delivered: 0, files: 0, at: Double(second))
            sent += 1000
        }
        #expect(isNear(rates.total, 1000))
        rates.look([SampleStatus.transfer(sent: sent - 1000, of: 1 << 30)], delivered: 0, files: 0, at: 11)
        let afterPause = rates.total ?? 0
        #expect(afterPause > 700 && afterPause < 900)
        for second in 12...60 {
            rates.look(
                [SampleStatus.transfer(sent: sent - 1000, of: 1 << 30)], delivered: 0, files: 0, at: Double(second))
        }
        #expect(isNear(rates.total, 0))
    }

    @Test(arguments: [
        (Int64(1000), Double?.some(100), Duration?.some(.seconds(10))), (1001, 100, .seconds(11)), (0, 100, .zero),
        (-5, 100, .zero), (1000, nil, nil), (1000, 0, nil), (Int64.max, 1, nil),
    ])
    func `the time left is whole seconds, or unknown`(_ bytes: Int64, _ rate: Double?, _ time: Duration?) {
        #expect(TransferRates.time(for: bytes, at: rate) == time)
    }
}
