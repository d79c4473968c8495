import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct DatePatternTests {
    @Test(arguments: [
        ("2024-12-30T12:00:00Z", "YYYY-'W'ww-e", "2025-W01-1"), ("2021-01-03T12:00:00Z", "YYYY-'W'ww-e", "2020-W53-7"),
        ("2027-01-01T00:00:00Z", "YYYY'W'ww yyyy", "2026W53 2027"), ("2024-02-29T00:00:00Z", "D", "60"),
        ("2026-11-21T07:08:09Z", "EEEE d MMMM y G", "Saturday 21 November 2026 AD"),
        ("2026-11-21T00:08:09Z", "h-K-k-H a", "12-0-24-0 AM"),
        ("2026-11-21T12:08:09Z", "hh''mm''ss.SSS", "12'08'09.000"),
        ("2026-11-21T07:08:09Z", "QQQ QQQQ EEEEEE MMMMM yy", "Q4 4th quarter Sa N 26"),
        ("1969-12-31T23:59:59Z", "yyyy-MM-dd HH:mm:ss", "1969-12-31 23:59:59"),
        ("2026-11-21T07:08:09Z", "yyyy'@'Z", "2026@+0000"),
        ("2026-11-21T07:08:09Z", "X XX XXX x xxx ZZZZZ", "Z Z Z +00 +00:00 Z"),
    ])
    func `dates are written as TR35 says`(date: String, format: String, expected: String) throws {
        #expect(try Self.text(try Date(date, strategy: .iso8601), format + "@UTC") == expected)
    }

    @Test func `the hour that comes twice keeps its offset`() throws {
        let before = try Date("2026-10-25T00:30:00Z", strategy: .iso8601)
        #expect(try Self.text(before, "HH:mmxxx@Europe/Berlin") == "02:30+02:00")
        #expect(try Self.text(before.addingTimeInterval(3600), "HH:mmxxx@Europe/Berlin") == "02:30+01:00")
        #expect(try Self.text(before, "yyyy-MM-dd@America/New_York") == "2026-10-24")
    }

    @Test func `random moments agree with the system's formatter`() throws {
        var generator = SeededGenerator(seed: 11)
        let zones = [
            "UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe",
        ]
        let formats = [
            "yyyy-MM-dd", "yyyy/MM/dd/HH-mm-ss.SSS", "YYYY-'W'ww", "yy.M.d.D", "EEE.EEEE.EEEEEE", "MMM.MMMM.MMMMM.LLL",
            "h.hh.K.KK.k.kk.a", "X.XX.XXX.x.xx.xxx", "Z.ZZZZ.ZZZZZ", "QQ.QQQ.QQQQ", "A", "G.GGGG.u",
        ]
        let formatter = DateFormatter()
        var calendar = Calendar(identifier: .iso8601)
        for zone in zones {
            calendar.timeZone = try #require(TimeZone(identifier: zone))
            formatter.calendar = calendar
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = calendar.timeZone
            for format in formats {
                formatter.dateFormat = format
                for _ in 0..<25 {
                    let seconds = Int64.random(in: -900_000_000...4_000_000_000, using: &generator)
                    let date = Date(timeIntervalSince1970: Double(seconds) + 0.25)
                    let expected = formatter.string(from: date)
                    #expect(try Self.text(date, "\(format)@\(zone)") == expected, "\(format) \(zone) \(seconds)")
                }
            }
        }
    }

    private static func text(_ date: Date, _ format: String) throws -> String {
        let milliseconds = Int64((date.timeIntervalSince1970 * 1000).rounded())
        let fields = KeyFields(
            path: "x", modified: milliseconds * 1_000_000, category: "", admitted: WallTime(milliseconds: milliseconds))
        let text = try KeyTemplate("{now:\(format)}").text(fields)
        #expect(try KeyTemplate("{mtime:\(format)}").text(fields) == text)
        return text
    }
}
