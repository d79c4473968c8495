/// A moment of the civil clock, in milliseconds since 1970-01-01 UTC: what the journal stores and log lines print.
///
/// Waiting inside the process uses `ContinuousClock`; this type is for times that must survive a restart.
package struct WallTime: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// A time from nanoseconds since the epoch, as `stat` gives it; rounded down.
    package init(nanoseconds: Int64) { milliseconds = nanoseconds.flooredDivision(by: 1_000_000) }

    package static func < (left: WallTime, right: WallTime) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (time: WallTime, duration: Duration) -> WallTime {
        WallTime(milliseconds: time.milliseconds.addingReportingOverflow(duration.milliseconds).partialValue)
    }

    /// Time from `right` to `left`; negative when `left` is earlier.
    package static func - (left: WallTime, right: WallTime) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }

    /// RFC 3339 in UTC with milliseconds, e.g. `2026-11-21T07:20:00.000Z` (proleptic Gregorian calendar).
    package var rfc3339: String {
        let day = milliseconds.flooredDivision(by: 86_400_000)
        let rest = milliseconds - day * 86_400_000
        let date = CivilDate(daysSinceEpoch: day)
        var text: [UInt8] = []
        text.reserveCapacity(24)
        Self.append(date.year, 4, "-", to: &text)
        Self.append(Int64(date.month), 2, "-", to: &text)
        Self.append(Int64(date.day), 2, "T", to: &text)
        Self.append(rest / 3_600_000, 2, ":", to: &text)
        Self.append(rest / 60_000 % 60, 2, ":", to: &text)
        Self.append(rest / 1000 % 60, 2, ".", to: &text)
        Self.append(rest % 1000, 3, "Z", to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    private static func append(_ number: Int64, _ width: Int, _ end: Unicode.Scalar, to text: inout [UInt8]) {
        var place: Int64 = 1
        for _ in 1..<width { place *= 10 }
        if number >= 0, number / place < 10 {
            // Receipts have several times each, and every file has a receipt: nothing is allocated here.
            while place > 0 {
                text.append(UInt8(ascii: "0") + UInt8(number / place % 10))
                place /= 10
            }
        } else {
            // A year before 0 or after 9999.
            let digits = Array(String(number).utf8)
            for _ in digits.count..<max(width, digits.count) { text.append(UInt8(ascii: "0")) }
            text += digits
        }
        text.append(UInt8(ascii: end))
    }
}

/// A Gregorian date from and to a day number, by the era arithmetic of H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
struct CivilDate: Equatable {
    var year: Int64
    var month: Int
    var day: Int

    init(daysSinceEpoch: Int64) {
        let shifted = daysSinceEpoch + 719_468
        let era = shifted.flooredDivision(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = Int(dayOfYear - (153 * marchMonth + 2) / 5 + 1)
        month = Int(marchMonth < 10 ? marchMonth + 3 : marchMonth - 9)
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// nil when the calendar has no such date; years from 0 to 9999, which is what cameras can write.
    init?(year: Int64, month: Int, day: Int) {
        guard (0...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day <= lengths[month - 1] else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// Days since 1970-01-01.
    var daysSinceEpoch: Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = marchYear.flooredDivision(by: 400)
        let yearOfEra = marchYear - era * 400
        let marchMonth = Int64((month + 9) % 12)
        let dayOfYear = (153 * marchMonth + 2) / 5 + Int64(day) - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}

extension Int64 {
    fileprivate func flooredDivision(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded toward zero.
    package var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
