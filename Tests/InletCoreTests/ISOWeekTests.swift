import InletCore
import SystemPackage
import Testing

/// Weeks around New Year; expected values are the calendar's (ISO 8601: a week belongs to the year of its Thursday).
struct ISOWeekTests {
    @Test(arguments: [
        ((2020, 12, 27), "2020-W52-7"), ((2020, 12, 28), "2020-W53-1"), ((2020, 12, 31), "2020-W53-4"),
        ((2021, 1, 1), "2020-W53-5"), ((2021, 1, 2), "2020-W53-6"), ((2021, 1, 3), "2020-W53-7"),
        ((2021, 1, 4), "2021-W01-1"), ((2021, 12, 31), "2021-W52-5"), ((2022, 1, 2), "2021-W52-7"),
        ((2022, 1, 3), "2022-W01-1"), ((2023, 1, 1), "2022-W52-7"), ((2024, 1, 1), "2024-W01-1"),
        ((2024, 2, 29), "2024-W09-4"), ((2024, 12, 29), "2024-W52-7"), ((2024, 12, 30), "2025-W01-1"),
        ((2024, 12, 31), "2025-W01-2"), ((2025, 12, 28), "2025-W52-7"), ((2025, 12, 29), "2026-W01-1"),
        ((2026, 1, 1), "2026-W01-4"), ((2026, 1, 4), "2026-W01-7"), ((2026, 1, 5), "2026-W02-1"),
        ((2026, 12, 27), "2026-W52-7"), ((2026, 12, 28), "2026-W53-1"), ((2026, 12, 31), "2026-W53-4"),
        ((2027, 1, 3), "2026-W53-7"), ((2027, 1, 4), "2027-W01-1"), ((2000, 1, 1), "1999-W52-6"),
        ((2004, 12, 31), "2004-W53-5"), ((2005, 1, 2), "2004-W53-7"), ((2008, 12, 29), "2009-W01-1"),
    ])
    func `the year of the week goes with the week`(date: (Int, Int, Int), expected: String) throws {
        let time = try #require(
            CaptureTime(year: date.0, month: date.1, day: date.2, hour: 23, minute: 59, second: 59))
        let fields = KeyFields(
            path: "x", modified: time.wall * 1_000_000, category: "", admitted: WallTime(milliseconds: time.wall),
            captured: .at(time, origin: ""))
        for field in ["mtime", "now", "captured"] {
            #expect(try KeyTemplate("{\(field):YYYY-'W'ww-e@UTC}").text(fields) == expected)
        }
    }

    @Test(arguments: ["captured", "mtime"])
    func `a year that does not go with the week is refused`(field: String) throws {
        #expect(throws: PatternError.self) { try KeyTemplate("{\(field):yyyy-'W'ww}") }
        #expect(throws: PatternError.self) { try KeyTemplate("{\(field):YYYY-MM-dd}") }
        #expect(throws: Never.self) { try KeyTemplate("{\(field):YYYY-'W'ww}/{\(field):yyyy-MM-dd}") }
    }
}
