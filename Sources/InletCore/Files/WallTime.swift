/// A moment of civil time, in milliseconds since 1970-01-01 UTC, for the journal and log lines.
///
/// Waiting within the process uses `ContinuousClock`; this type is for times that must survive a restart.
package struct WallTime: Hashable, Comparable, Sendable, Codable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// A time from nanoseconds since the epoch, as in `stat`; rounded down.
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
        let date = CalendarDate(daysSinceEpoch: day)
        // Receipts contain several times, and every file has a receipt: avoids further allocations.
        var text = Array("0000-00-00T00:00:00.000Z".utf8)
        func put(_ number: Int64, _ digits: ClosedRange<Int>) {
            var rest = number
            for place in digits.reversed() {
                text[place] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
        }
        put(Int64(date.month), 5...6)
        put(Int64(date.day), 8...9)
        put(rest / 3_600_000, 11...12)
        put(rest / 60_000 % 60, 14...15)
        put(rest / 1000 % 60, 17...18)
        put(rest % 1000, 20...22)
        if (0...9999).contains(date.year) {
            put(date.year, 0...3)
        } else {
            let digits = Array(String(date.year).utf8)
            text.replaceSubrange(
                0..<4, with: repeatElement(UInt8(ascii: "0"), count: max(0, 4 - digits.count)) + digits)
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// Converts between Gregorian dates and day numbers, with the era arithmetic of H. Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms".
struct CalendarDate: Equatable {
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

    /// nil for dates that do not exist; years from 0 to 9999, which cameras can write.
    init?(year: Int64, month: Int, day: Int) {
        guard (0...9999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        self.init(daysSinceEpoch: Self.days(year, month, day))
        // A day after a month's end would be in another month.
        if self.month != month { return nil }
    }

    /// Days since 1970-01-01.
    var daysSinceEpoch: Int64 { Self.days(year, month, day) }

    static func days(_ year: Int64, _ month: Int, _ day: Int) -> Int64 {
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

extension WallTime {
    /// Reads a time from a server: RFC 3339, section 5.6, with or without a fraction, with `Z` or an offset. Accepts a
    /// space between date and time, lower case, and a missing zone (UTC); drops digits after the milliseconds.
    package init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        let marks: [(place: Int, signs: String)] = [(4, "-"), (7, "-"), (10, "Tt "), (13, ":"), (16, ":")]
        guard bytes.count >= 19, marks.allSatisfy({ $0.signs.utf8.contains(bytes[$0.place]) }),
            let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]),
            let day = Self.number(bytes[8..<10]), let date = CalendarDate(year: year, month: Int(month), day: Int(day)),
            let hour = Self.number(bytes[11..<13]), let minute = Self.number(bytes[14..<16]),
            // 60 is a leap second.
            let second = Self.number(bytes[17..<19]), hour < 24, minute < 60, second <= 60
        else { return nil }
        var rest = bytes[19...]
        var milliseconds: Int64 = 0
        if rest.first == UInt8(ascii: ".") || rest.first == UInt8(ascii: ",") {
            let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { return nil }
            milliseconds = Self.number((digits + "00".utf8).prefix(3)) ?? 0
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let offset = Self.offset(rest) else { return nil }
        let clock = hour * 3600 + minute * 60 + second
        self.init(milliseconds: (date.daysSinceEpoch * 86_400 + clock - offset) * 1000 + milliseconds)
    }

    /// RFC 3339 in UTC without a fraction, `2026-11-21T07:20:00Z`, for strict parsers.
    package var rfc3339Seconds: String { String(rfc3339.dropLast(5)) + "Z" }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
        bytes.allSatisfy { (0x30...0x39).contains($0) } ? Int64(String(decoding: bytes, as: UTF8.self)) : nil
    }

    /// Seconds east of UTC.
    private static func offset(_ bytes: ArraySlice<UInt8>) -> Int64? {
        let text = Array(bytes)
        if text.isEmpty || text == [UInt8(ascii: "Z")] || text == [UInt8(ascii: "z")] { return 0 }
        guard text.count >= 5, "+-".utf8.contains(text[0]) else { return nil }
        let minutes = text.count == 6 && text[3] == UInt8(ascii: ":") ? text[4...5] : text[3...]
        guard minutes.count == 2, let hour = number(text[1...2]), let minute = number(minutes), hour < 24, minute < 60
        else { return nil }
        return (text[0] == UInt8(ascii: "-") ? -1 : 1) * (hour * 3600 + minute * 60)
    }
}

extension WallTime {
    /// RFC 3339 in the local time of `zone`, with its offset, to the second: `2026-11-22T18:00:00+01:00`. For people,
    /// who write timetables in local time.
    ///
    /// - Parameter zone: an IANA name; nil for the system's.
    package func rfc3339(in zone: String?) -> String {
        let offset = LocalTime.local(self, zone: zone).offset
        let wall = WallTime(milliseconds: milliseconds + offset * 1000).rfc3339.dropLast(5)
        func pad(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let minutes = abs(offset) / 60
        return "\(wall)\(offset < 0 ? "-" : "+")\(pad(minutes / 60)):\(pad(minutes % 60))"
    }
}
