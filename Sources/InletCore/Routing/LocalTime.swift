/// A moment taken apart on the wall clock of one zone, in the proleptic Gregorian calendar.
struct LocalTime: Equatable {
    var date: CivilDate
    /// 1 is Monday.
    var weekday: Int
    /// 1 is the first of January.
    var dayOfYear: Int
    /// ISO 8601: weeks begin on Monday, the first of a year holds its first Thursday.
    var week: Int
    /// The year that `week` belongs to.
    var weekYear: Int64
    var millisecondOfDay: Int64
    /// Seconds east of UTC.
    var offset: Int64

    init(_ time: WallTime, offset: Int64) { self.init(wall: time.milliseconds + offset * 1000, offset: offset) }

    /// What a clock shows: milliseconds since its own 1970-01-01T00:00.
    init(wall: Int64, offset: Int64) {
        let dayLength: Int64 = 86_400_000
        millisecondOfDay = (wall % dayLength + dayLength) % dayLength
        let day = (wall - millisecondOfDay) / dayLength
        date = CivilDate(daysSinceEpoch: day)
        weekday = Self.weekday(day)
        dayOfYear = Self.dayOfYear(date)
        // A week belongs to the year of its Thursday.
        let thursday = CivilDate(daysSinceEpoch: day + Int64(4 - weekday))
        weekYear = thursday.year
        week = (Self.dayOfYear(thursday) - 1) / 7 + 1
        self.offset = offset
    }

    /// Day 0, 1970-01-01, was a Thursday.
    private static func weekday(_ day: Int64) -> Int { Int(((day + 3) % 7 + 7) % 7) + 1 }

    private static func dayOfYear(_ date: CivilDate) -> Int {
        let isLeap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0)
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][date.month - 1]
        return before + date.day + (isLeap && date.month > 2 ? 1 : 0)
    }
}
