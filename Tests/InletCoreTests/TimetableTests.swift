import InletCore
import InletTestSupport
import Testing

/// When which rate holds. Times are given in UTC; the zones have other clocks.
struct TimetableTests {
    private static let mib: Int64 = 1 << 20

    private func at(_ text: String) throws -> WallTime { try #require(WallTime(rfc3339: text + ":00Z")) }

    private func span(_ from: String, _ to: String, _ days: [Weekday] = []) throws -> DaySpan {
        DaySpan(from: try #require(DaySpan.minute(from)), to: try #require(DaySpan.minute(to)), days: days)
    }

    private func table(
        _ from: String, _ to: String, _ days: [Weekday] = [], zone: String = "UTC"
    ) throws -> Timetable {
        Timetable(20 * Self.mib, [.init(try span(from, to, days), rate: 5 * Self.mib)], zone: zone)
    }

    @Test(
        arguments: [
            ("00:00", 0), ("8:05", 485), ("08:05", 485), ("23:59", 1439), ("24:00", 1440), ("24:01", nil), ("7", nil),
            ("12:60", nil), ("-1:00", nil), ("08:5", nil), ("008:05", nil), ("", nil), ("٠٨:٠٥", nil), ("8:00:00", nil),
        ] as [(String, Int?)])
    func `times of the day are read exactly`(text: String, minute: Int?) { #expect(DaySpan.minute(text) == minute) }

    // 2026-06-05 is a Friday.
    @Test func `an entry holds from its first minute up to its last, and the base outside`() throws {
        let table = try table("08:00", "18:00")
        for (time, rate) in [("07:59", 20), ("08:00", 5), ("17:59", 5), ("18:00", 20), ("00:00", 20)] {
            #expect(table.rate(at: try at("2026-06-05T\(time)")) == Int64(rate) * Self.mib, "\(time)")
        }
        #expect(table.nextChange(after: try at("2026-06-05T08:00")) == (try at("2026-06-05T18:00")))
        #expect(table.nextChange(after: try at("2026-06-05T07:00")) == (try at("2026-06-05T08:00")))
        #expect(table.nextChange(after: try at("2026-06-05T18:00")) == (try at("2026-06-06T08:00")))
    }

    @Test func `an entry that never holds is found, whatever days and nights those before it are`() throws {
        let night = Timetable.Entry(try span("22:00", "06:00"), rate: 1)
        let early = Timetable.Entry(try span("00:00", "05:00", [.sat]), rate: 2)
        let weekend = Timetable.Entry(try span("20:00", "23:00", [.sat, .sun]), rate: 3)
        let saturday = Timetable.Entry(try span("21:00", "22:30", [.sat]), rate: 4)
        #expect(Timetable(nil, [night, early, weekend, saturday]).hidden == [early, saturday])
        #expect(Timetable(nil, [early, saturday, weekend, night]).hidden.isEmpty)
        #expect(Timetable(5).hidden.isEmpty)
    }

    @Test func `one over midnight belongs to the day on which it begins`() throws {
        let table = try table("22:00", "06:00", [.fri])
        for (time, isSlow) in [
            ("05T21:59", false), ("05T22:00", true), ("06T05:59", true), ("06T06:00", false), ("06T22:00", false),
            ("05T05:00", false),
        ] {
            #expect(table.rate(at: try at("2026-06-\(time)")) == (isSlow ? 5 : 20) * Self.mib, "\(time)")
        }
        #expect(table.nextChange(after: try at("2026-06-06T06:00")) == (try at("2026-06-12T22:00")))
    }

    @Test func `of entries that overlap the first holds, and the end of a day is 24:00`() throws {
        let table = Timetable(
            nil, [.init(try span("12:00", "13:00"), rate: nil), .init(try span("00:00", "24:00"), rate: 0)],
            zone: "UTC")
        #expect(table.rate(at: try at("2026-06-05T12:30")) == nil)
        #expect(table.rate(at: try at("2026-06-05T23:59")) == 0)
        #expect(table.nextChange(after: try at("2026-06-05T13:00")) == (try at("2026-06-06T12:00")))
        #expect(table.isLimited && !table.isClosed)
        let noon = try at("2026-06-05T13:00")
        #expect(Timetable(0).isClosed && Timetable(0).nextChange(after: noon) == nil)
        #expect(!Timetable().isLimited)
    }

    @Test func `an hour that the clocks skip does not happen, one that comes twice counts twice`() throws {
        // Berlin, 2026-03-29: 02:00 becomes 03:00 at 01:00 UTC; 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC.
        let table = try table("02:00", "03:00", zone: "Europe/Berlin")
        #expect(table.nextChange(after: try at("2026-03-28T02:00")) == (try at("2026-03-30T00:00")))
        #expect(table.nextChange(after: try at("2026-10-24T23:30")) == (try at("2026-10-25T00:00")))
        #expect(table.nextChange(after: try at("2026-10-25T00:00")) == (try at("2026-10-25T02:00")))
        let morning = try self.table("02:30", "08:00", zone: "Europe/Berlin")
        // It begins with the clock's jump.
        #expect(morning.nextChange(after: try at("2026-03-28T20:00")) == (try at("2026-03-29T01:00")))
        // 02:30 comes at 00:30 and at 01:30 UTC; between them the clock shows 02:00 again.
        #expect(morning.nextChange(after: try at("2026-10-25T00:30")) == (try at("2026-10-25T01:00")))
        #expect(morning.nextChange(after: try at("2026-10-25T01:00")) == (try at("2026-10-25T01:30")))
    }

    @Test func `the next change is the first minute with another rate`() throws {
        let starts = try ["2026-03-27T00:00", "2026-10-23T00:00", "2026-04-03T00:00", "2026-06-05T00:00"].map(at)
        let zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
        for seed in [1, 2, 3, 5, 8, 13, UInt64.random(in: 100 ... .max)] {
            var random = SeededGenerator(seed: seed)
            let table = Self.any(zone: zones[Int.random(in: 0..<zones.count, using: &random)], &random)
            let start = starts[Int.random(in: 0..<starts.count, using: &random)]
            let from = start + .seconds(60 * Int64.random(in: 0..<1440, using: &random))
            let rate = table.rate(at: from)
            let scanned = (1...(4 * 1440)).lazy.map { from + .seconds(60 * Int64($0)) }
                .first { table.rate(at: $0) != rate }
            let found = table.nextChange(after: from)
            if let scanned {
                #expect(found == scanned, "seed \(seed): \(table) from \(from.rfc3339)")
            } else if let found {
                #expect(found > from + .seconds(4 * 86_400), "seed \(seed)")
            }
        }
    }

    private static func any(zone: String, _ random: inout SeededGenerator) -> Timetable {
        let entries = (0..<Int.random(in: 1...4, using: &random)).map { _ -> Timetable.Entry in
            let from = Int.random(in: 0..<96, using: &random) * 15
            let length = Int.random(in: 1..<96, using: &random) * 15
            let end = from + length
            let days = Weekday.allCases.filter { _ in Bool.random(using: &random) }
            let rate = [nil, 0, mib, 5 * mib][Int.random(in: 0..<4, using: &random)]
            return Timetable.Entry(DaySpan(from: from, to: end > 1440 ? end - 1440 : end, days: days), rate: rate)
        }
        return Timetable(Bool.random(using: &random) ? nil : 20 * mib, entries, zone: zone)
    }

    @Test func `the week is told in words, a line for each kind of day`() throws {
        #expect(
            try table("08:00", "18:00").lines == ["20 MiB/s, from 08:00 5 MiB/s, from 18:00 20 MiB/s"])
        let workdays = try table("08:00", "18:00", [.mon, .tue, .wed, .thu, .fri])
        #expect(
            workdays.lines == [
                "mon to fri: 20 MiB/s, from 08:00 5 MiB/s, from 18:00 20 MiB/s", "sat, sun: 20 MiB/s",
            ])
        #expect(Timetable(nil).lines == ["unlimited"])
    }

    @Test func `a window opens and closes by its clock, and concerns big files only`() throws {
        let window = DeliveryWindow(try span("22:00", "06:00"), zone: "Europe/Berlin")
        #expect(window.concerns(size: 1 << 30) && !window.concerns(size: 1 << 30 - 1))
        #expect(window.opening(at: try at("2026-06-05T12:00")) == (try at("2026-06-05T20:00")))
        #expect(window.opening(at: try at("2026-06-05T20:00")) == nil)
        #expect(window.opening(at: try at("2026-06-06T03:59")) == nil)
        #expect(window.opening(at: try at("2026-06-06T04:00")) == (try at("2026-06-06T20:00")))
        #expect(window.nextChange(after: try at("2026-06-05T20:00")) == (try at("2026-06-06T04:00")))
        #expect(window.reason == "waits for its window (22:00 to 06:00)")
        #expect(window.text == "22:00 to 06:00, for files from 1 GiB")
        let weekend = DeliveryWindow(try span("00:00", "24:00", [.sat, .sun]), zone: "UTC")
        #expect(weekend.opening(at: try at("2026-06-05T12:00")) == (try at("2026-06-06T00:00")))
    }

    @Test func `a window knows for how long it has been closed, over a change of the clocks and over a week`() throws {
        let window = DeliveryWindow(try span("22:00", "06:00"), zone: "Europe/Berlin")
        #expect(window.closedTime(until: try at("2026-06-05T20:00")) == .zero)
        #expect(window.closedTime(until: try at("2026-06-06T04:00")) == .zero)
        #expect(window.closedTime(until: try at("2026-06-06T19:59")) == .seconds(15 * 3600 + 59 * 60))
        // On the last Sunday of March 06:00 comes an hour sooner.
        #expect(window.closedTime(until: try at("2026-03-29T12:00")) == .seconds(8 * 3600))
        #expect(window.closedTime(until: try at("2026-03-28T12:00")) == .seconds(7 * 3600))
        let weekend = DeliveryWindow(try span("00:00", "24:00", [.sat, .sun]), zone: "UTC")
        #expect(weekend.closedTime(until: try at("2026-06-12T12:00")) == .seconds(4 * 86_400 + 12 * 3600))
        #expect(weekend.closedTime(until: try at("2026-06-13T00:00")) == .zero)
    }

    @Test(arguments: [
        ("Europe/Berlin", "2026-06-05T12:00", "2026-06-05T14:00:00+02:00"),
        ("Europe/Berlin", "2026-11-22T23:30", "2026-11-23T00:30:00+01:00"),
        ("America/St_Johns", "2026-11-22T12:00", "2026-11-22T08:30:00-03:30"),
        ("UTC", "2026-11-22T12:00", "2026-11-22T12:00:00+00:00"),
    ])
    func `a time is told by the clock of a zone, with its offset`(zone: String, time: String, told: String) throws {
        #expect(try at(time).rfc3339(in: zone) == told)
    }
}
