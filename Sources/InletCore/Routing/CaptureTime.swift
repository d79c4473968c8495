/// When a picture was taken or a recording started, according to the file: a clock's reading and, if the file has it,
/// the clock's offset from UTC.
package struct CaptureTime: Hashable, Sendable {
    /// The clock's reading in milliseconds since its own 1970-01-01T00:00 (proleptic Gregorian calendar).
    package let wall: Int64
    /// Seconds east of UTC; nil if the file has no offset, and the reading counts as local time in any zone.
    package let offset: Int64?

    /// An exactly known moment.
    package init(instant: WallTime) {
        wall = instant.milliseconds
        offset = 0
    }

    /// A clock's reading; nil for an impossible date or time. The leap second 60 counts as 59.
    ///
    /// - Parameter offset: seconds east of UTC, less than a day either way.
    package init?(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int, millisecond: Int = 0,
        offset: Int64? = nil
    ) {
        guard let date = CalendarDate(year: Int64(year), month: month, day: day), (0...23).contains(hour),
            (0...59).contains(minute), (0...60).contains(second), (0...999).contains(millisecond),
            (-86_399...86_399).contains(offset ?? 0)
        else { return nil }
        let seconds = Int64(hour) * 3600 + Int64(minute) * 60 + Int64(min(second, 59))
        wall = (date.daysSinceEpoch * 86_400 + seconds) * 1000 + Int64(millisecond)
        self.offset = offset
    }

    /// Whether a camera can have written this: since 1990, and at most a day (which covers every zone) after `now`.
    /// Clocks that were never set show 1904, 1970 or 1980.
    package func isPlausible(at now: WallTime) -> Bool {
        let utc = wall - (offset ?? 0) * 1000
        return (Self.earliest...(now.milliseconds + 86_400_000)).contains(utc)
    }

    /// 1990-01-01T00:00:00Z.
    private static let earliest: Int64 = 631_152_000_000

    /// `2026-11-21T07:08:09.000`, with `Z` or an offset if it is known.
    package var display: String {
        let reading = WallTime(milliseconds: wall).rfc3339
        guard let offset, offset != 0 else { return offset == nil ? String(reading.dropLast()) : reading }
        return reading.dropLast() + DatePattern.text(UInt8(ascii: "x"), 3, LocalTime(wall: wall, offset: offset))
    }
}

/// The result of reading `FileProperty.captured`.
package enum Captured: Hashable, Sendable {
    /// `origin` names the field of the file, for people: `EXIF DateTimeOriginal`.
    case at(CaptureTime, origin: String)
    /// The file has no plausible date: its mtime is used.
    case unknown
}

extension LocalTime {
    /// `time` in the local time of `zone`; a reading without an offset counts as local, and stays unchanged.
    static func local(_ time: CaptureTime, zone: String?) -> LocalTime {
        if let offset = time.offset {
            return local(WallTime(milliseconds: time.wall - offset * 1000), zone: zone)
        }
        // Takes the offset at the reading itself, then at the resulting moment. This is right before and after a change
        // of clocks. For a skipped or repeated hour it gives one of the two.
        let first = local(WallTime(milliseconds: time.wall), zone: zone).offset
        let offset = local(WallTime(milliseconds: time.wall - first * 1000), zone: zone).offset
        return LocalTime(wall: time.wall, offset: offset)
    }
}

/// A moment in the local time of a zone, in the proleptic Gregorian calendar.
struct LocalTime: Equatable {
    var date: CalendarDate
    /// 1 is Monday.
    var weekday: Int
    /// 1 is the first of January.
    var dayOfYear: Int
    /// ISO 8601: weeks start on Monday, and the first week of a year contains its first Thursday.
    var week: Int
    /// The year of `week`.
    var weekYear: Int64
    var millisecondOfDay: Int64
    /// Seconds east of UTC.
    var offset: Int64

    init(_ time: WallTime, offset: Int64) { self.init(wall: time.milliseconds + offset * 1000, offset: offset) }

    /// A clock's reading: milliseconds since its own 1970-01-01T00:00.
    init(wall: Int64, offset: Int64) {
        let dayLength: Int64 = 86_400_000
        millisecondOfDay = (wall % dayLength + dayLength) % dayLength
        let day = (wall - millisecondOfDay) / dayLength
        date = CalendarDate(daysSinceEpoch: day)
        // Day 0, 1970-01-01, was a Thursday.
        weekday = Int(((day + 3) % 7 + 7) % 7) + 1
        dayOfYear = Int(day - CalendarDate.days(date.year, 1, 1)) + 1
        // A week belongs to the year of its Thursday.
        let thursday = day + Int64(4 - weekday)
        weekYear = CalendarDate(daysSinceEpoch: thursday).year
        week = Int(thursday - CalendarDate.days(weekYear, 1, 1)) / 7 + 1
        self.offset = offset
    }
}
