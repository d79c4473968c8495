extension WallTime {
    /// A time as servers write it: RFC 3339, section 5.6, with or without a fraction, with `Z` or an offset. A space between
    /// date and time, small letters and a missing zone (taken as UTC) are let through; digits behind the milliseconds are
    /// dropped.
    package init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count >= 19, let date = Self.date(bytes), let clock = Self.clock(bytes),
            "Tt ".utf8.contains(bytes[10])
        else { return nil }
        var rest = bytes[19...]
        var milliseconds: Int64 = 0
        if rest.first == UInt8(ascii: ".") || rest.first == UInt8(ascii: ",") {
            let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { return nil }
            for place in 0..<3 {
                let digit = place < digits.count ? Int64(digits[digits.startIndex + place] - 0x30) : 0
                milliseconds = milliseconds * 10 + digit
            }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let offset = Self.offset(rest) else { return nil }
        self.init(milliseconds: (date * 86_400 + clock - offset) * 1000 + milliseconds)
    }

    /// RFC 3339 in UTC without a fraction, `2026-11-21T07:20:00Z`: what strict readers of dates take.
    package var rfc3339Seconds: String { String(rfc3339.dropLast(5)) + "Z" }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64? {
        bytes.allSatisfy { (0x30...0x39).contains($0) } ? Int64(String(decoding: bytes, as: UTF8.self)) : nil
    }

    /// Days since the epoch.
    private static func date(_ bytes: [UInt8]) -> Int64? {
        let dash = UInt8(ascii: "-")
        guard bytes[4] == dash, bytes[7] == dash, let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10])
        else { return nil }
        return CivilDate(year: year, month: Int(month), day: Int(day))?.daysSinceEpoch
    }

    /// Seconds since midnight; 60 seconds are a leap second.
    private static func clock(_ bytes: [UInt8]) -> Int64? {
        let colon = UInt8(ascii: ":")
        guard bytes[13] == colon, bytes[16] == colon, let hour = number(bytes[11..<13]),
            let minute = number(bytes[14..<16]), let second = number(bytes[17..<19]), hour < 24, minute < 60,
            second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
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
