internal import InletCore

/// Dates as cameras write them: `2026:11:21 07:08:09` (CIPA DC-008) and `2026-11-21T07:08:09.250+0100` (ISO 8601), and
/// what lies between the two.
struct DateText {
    /// The time in `text`; nil if it is blank or no date.
    ///
    /// - Parameters:
    ///   - subSeconds: The digits behind the seconds' point, from their own field.
    ///   - offset: `+01:00`, from its own field; an offset in `text` itself comes first.
    static func time(
        _ text: some Collection<UInt8>, subSeconds: [UInt8]? = nil, offset: [UInt8]? = nil
    ) -> CaptureTime? {
        var cursor = DateText(text)
        guard let year = cursor.number(4), cursor.skip(":-/."), let month = cursor.number(2), cursor.skip(":-/."),
            let day = cursor.number(2), cursor.skip(" T"), let hour = cursor.number(2), cursor.skip(":"),
            let minute = cursor.number(2), cursor.skip(":"), let second = cursor.number(2)
        else { return nil }
        var millisecond = subSeconds.map { DateText($0).milliseconds() } ?? 0
        if cursor.skip(".,") { millisecond = cursor.takeMilliseconds() }
        var separate = DateText(offset ?? [])
        return CaptureTime(
            year: year, month: month, day: day, hour: hour, minute: minute, second: second, millisecond: millisecond,
            offset: cursor.offset() ?? separate.offset())
    }

    // MARK: - Reading from left to right

    private var rest: ArraySlice<UInt8>

    private init(_ text: some Collection<UInt8>) { rest = Array(text.drop { $0 == 0x20 })[...] }

    /// Exactly `count` digits.
    private mutating func number(_ count: Int) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy(Self.isDigit) else { return nil }
        rest = rest.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Steps over one byte of `choices`.
    private mutating func skip(_ choices: String) -> Bool {
        guard let first = rest.first, choices.utf8.contains(first) else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// The digits of a fraction, as thousandths, rounded down.
    private mutating func takeMilliseconds() -> Int {
        let result = milliseconds()
        rest = rest.drop(while: Self.isDigit)
        return result
    }

    private func milliseconds() -> Int {
        let digits = rest.prefix(3).prefix(while: Self.isDigit) + [0x30, 0x30, 0x30]
        return digits.prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// `Z`, `+01:00`, `+0100` or `+01`, in seconds; nil for anything else. RFC 3339 calls -00:00 a zone that is not known.
    private mutating func offset() -> Int64? {
        if skip("Zz") { return 0 }
        let isNegative = rest.first == UInt8(ascii: "-")
        guard skip("+-"), let hours = number(2), hours <= 23 else { return nil }
        _ = skip(":")
        let minutes = rest.isEmpty ? 0 : number(2) ?? 60
        guard minutes <= 59 else { return nil }
        let seconds = Int64(hours * 3600 + minutes * 60)
        if isNegative { return seconds == 0 ? nil : -seconds }
        return seconds
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
