import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct CaptureTimeTests {
    private func text(_ template: String, _ captured: Captured?, zone: String? = "Europe/Berlin") throws -> String {
        // 2024-10-20T17:40:00Z
        let fields = KeyFields(
            path: "a.jpg", modified: 1_729_446_000_000_000_000, category: "images", admitted: WallTime(milliseconds: 0),
            captured: captured, zone: zone)
        return try KeyTemplate(template).text(fields)
    }

    private func time(
        _ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0,
        offset: Int64? = nil
    ) throws -> CaptureTime {
        try #require(
            CaptureTime(
                year: year, month: month, day: day, hour: hour, minute: minute, second: second, offset: offset))
    }

    @Test(arguments: [
        // A clock whose zone is known is converted, one whose zone is not shows what it showed.
        (32_400 as Int64?, "{captured:yyyy-MM-dd HH.mm}", "2026-11-21 15.30"),
        (32_400, "{captured:yyyy-MM-dd HH.mm@Asia/Tokyo}", "2026-11-21 23.30"),
        (0, "{captured:yyyy-MM-dd HH.mm xxx}", "2026-11-22 00.30 +01:00"),
        (nil, "{captured:yyyy-MM-dd HH.mm xxx}", "2026-11-21 23.30 +01:00"),
        (nil, "{captured:yyyy-MM-dd HH.mm xxx@Asia/Tokyo}", "2026-11-21 23.30 +09:00"),
        (nil, "{captured:YYYY-'W'ww}/{name}", "2026-W47/a.jpg"),
    ])
    func `a date of capture is written in the template's zone`(
        offset: Int64?, template: String, expected: String
    ) throws {
        let captured = Captured.at(try time(2026, 11, 21, 23, 30, offset: offset), origin: "EXIF DateTimeOriginal")
        #expect(try text(template, captured) == expected)
    }

    @Test func `without a date of capture the mtime stands in`() throws {
        for captured in [nil, Captured.unknown] {
            #expect(try text("{captured:yyyy-MM-dd HH.mm}", captured) == "2024-10-20 19.40")
        }
        #expect(try KeyTemplate("{captured:yyyy}/{name}").facts == [.captured])
        #expect(try KeyTemplate("{mtime:yyyy}/{name}").facts.isEmpty)
    }

    @Test(arguments: [
        // The night when Berlin's clocks go forward, and the one when they go back; the skipped and the doubled hour
        // keep their reading.
        (3, 29, 1, 59, "01.59 +01:00"), (3, 29, 2, 30, "02.30 +0"), (3, 29, 3, 0, "03.00 +02:00"),
        (10, 25, 1, 59, "01.59 +02:00"), (10, 25, 2, 30, "02.30 +0"), (10, 25, 3, 0, "03.00 +01:00"),
    ])
    func `a local time keeps its reading through a change of clocks`(
        month: Int, day: Int, hour: Int, minute: Int, expected: String
    ) throws {
        let captured = Captured.at(try time(2026, month, day, hour, minute), origin: "")
        #expect(try text("{captured:HH.mm xxx}", captured).hasPrefix(expected))
    }

    @Test(arguments: [
        (2026, 2, 29, 0, 0, 0), (2100, 2, 29, 0, 0, 0), (2026, 0, 1, 0, 0, 0), (2026, 13, 1, 0, 0, 0),
        (2026, 4, 31, 0, 0, 0), (2026, 1, 0, 0, 0, 0), (2026, 1, 1, 24, 0, 0), (2026, 1, 1, 0, 60, 0),
        (2026, 1, 1, 0, 0, 61), (-1, 1, 1, 0, 0, 0), (10_000, 1, 1, 0, 0, 0), (2026, 1, 1, -1, 0, 0),
    ])
    func `what is on no calendar or clock is no time`(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int
    ) {
        #expect(
            CaptureTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second) == nil)
    }

    @Test func `leap days and leap seconds are times, a whole day is no offset`() throws {
        #expect(try time(2024, 2, 29).display == "2024-02-29T00:00:00.000")
        #expect(try time(2000, 2, 29).display == "2000-02-29T00:00:00.000")
        #expect(try time(2016, 12, 31, 23, 59, 60).display == "2016-12-31T23:59:59.000")
        #expect(
            CaptureTime(year: 2026, month: 1, day: 1, hour: 0, minute: 0, second: 0, offset: 86_400) == nil)
    }

    @Test func `every day of four centuries is the day that it was written as`() throws {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<2000 {
            let wall = Int64.random(in: -11_000_000_000...6_000_000_000, using: &generator) * 1000
            let display = CaptureTime(instant: WallTime(milliseconds: wall)).display
            let digits = display.split { !$0.isNumber }.compactMap { Int($0) }
            #expect(
                try time(digits[0], digits[1], digits[2], digits[3], digits[4], digits[5]).wall == wall, "\(display)")
        }
    }

    @Test func `a display tells what is known of the zone`() throws {
        #expect(try time(2026, 11, 21, 7, 8, 9).display == "2026-11-21T07:08:09.000")
        #expect(try time(2026, 11, 21, 7, 8, 9, offset: 0).display == "2026-11-21T07:08:09.000Z")
        #expect(try time(2026, 11, 21, 7, 8, 9, offset: -12_600).display == "2026-11-21T07:08:09.000-03:30")
        #expect(CaptureTime(instant: WallTime(milliseconds: 5)).display == "1970-01-01T00:00:00.005Z")
    }

    @Test func `dates of clocks that were never set, and of the future, are not believed`() throws {
        // 2026-11-21T00:00:00Z
        let now = WallTime(milliseconds: 1_795_219_200_000)
        #expect(try time(2026, 11, 21).isPlausible(at: now))
        #expect(try time(2026, 11, 21, 14).isPlausible(at: now))
        #expect(try time(2026, 11, 22, 13, offset: 50_400).isPlausible(at: now))
        #expect(try !time(2026, 11, 22, 0, 1).isPlausible(at: now))
        #expect(try time(1990, 1, 1).isPlausible(at: now))
        for year in [0, 1904, 1970, 1980, 1989, 2027, 9999] { #expect(try !time(year, 6, 1).isPlausible(at: now)) }
        for extreme in [Int64.min, Int64.max] {
            #expect(!CaptureTime(instant: WallTime(milliseconds: extreme)).isPlausible(at: now))
        }
    }
}
