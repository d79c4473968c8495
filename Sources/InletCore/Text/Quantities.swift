/// Numbers of bytes, as people write and read them.
package enum ByteText {
    /// Powers of 1024 with an `i`, of 1000 without.
    private static let units: [String: Int64] = {
        var result: [String: Int64] = ["": 1, "b": 1, "byte": 1, "bytes": 1]
        var (binary, decimal): (Int64, Int64) = (1, 1)
        for letter in ["k", "m", "g", "t", "p"] {
            binary *= 1024
            decimal *= 1000
            for suffix in ["", "b"] {
                result[letter + "i" + suffix] = binary
                result[letter + suffix] = decimal
            }
        }
        return result
    }()

    /// `512`, `8MiB`, `6GB`, `1.5 GiB`, `64k`; nil for other texts, including negative and too large numbers. Drops
    /// fractions of a byte.
    package static func parse(_ text: String) -> Int64? {
        guard let (number, unitText) = DecimalText.split(text), let unit = units[unitText.lowercased()] else {
            return nil
        }
        if unit == 1, number.hasFraction { return nil }
        return number.scaled(by: unit)
    }

    /// `6 GiB`, `4.1 GiB`, `512 bytes`: binary units with at most one decimal.
    package static func format(_ count: Int64) -> String {
        guard count.magnitude >= 1024 else { return count == 1 ? "1 byte" : "\(count) bytes" }
        let sign = count < 0 ? "-" : ""
        var unit: UInt64 = 1024
        var names = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][...]
        while names.count > 1, tenths(count.magnitude, unit) >= 10_240 {
            unit *= 1024
            names.removeFirst()
        }
        let value = tenths(count.magnitude, unit)
        let fraction = value % 10 == 0 ? "" : ".\(value % 10)"
        return "\(sign)\(value / 10)\(fraction) \(names.first ?? "")"
    }

    /// `count / unit` in tenths, rounded to the nearest.
    private static func tenths(_ count: UInt64, _ unit: UInt64) -> UInt64 {
        count / unit * 10 + (count % unit * 10 + unit / 2) / unit
    }
}

/// A non-negative decimal number as written: no exponent, at most nine decimals.
struct DecimalText {
    private var whole: Int64
    private var fraction: Int64
    private var fractionScale: Int64

    var hasFraction: Bool { fractionScale > 1 }

    /// Splits `1.5GiB` into the number and its unit, without spaces between them.
    static func split(_ text: String) -> (DecimalText, unit: String)? {
        let end = text.firstIndex { !("0"..."9").contains($0) && $0 != "." } ?? text.endIndex
        let parts = text[..<end].split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }), let whole = Int64(parts[0]) else {
            return nil
        }
        var number = DecimalText(whole: whole, fraction: 0, fractionScale: 1)
        if parts.count == 2 {
            guard parts[1].count <= 9, let fraction = Int64(parts[1]) else { return nil }
            number.fraction = fraction
            for _ in parts[1] { number.fractionScale *= 10 }
        }
        return (number, String(text[end...].drop { $0 == " " }))
    }

    /// The number times `unit`, rounded down; nil on overflow.
    func scaled(by unit: Int64) -> Int64? {
        let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
        let part = fractionScale.dividingFullWidth(fraction.multipliedFullWidth(by: unit)).quotient
        let (sum, carry) = product.addingReportingOverflow(part)
        return overflow || carry ? nil : sum
    }
}

/// Durations, as people write and read them.
package enum DurationText {
    private static let units: [(name: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]
    /// A hundred years, so that no sum of times overflows.
    private static let longest: Int64 = 36_525 * 86_400_000

    /// `250ms`, `5s`, `1.5s`, `2m`, `24h`, `7d`, `1h30m`, or a bare `0`. Otherwise nil: a number without unit,
    /// units out of order, negative numbers, anything below a millisecond or above a hundred years.
    package static func parse(_ text: String) -> Duration? {
        if text == "0" { return .zero }
        var rest = text
        var total: Int64 = 0
        var allowed = units[...]
        while !rest.isEmpty {
            guard let (number, tail) = DecimalText.split(rest) else { return nil }
            let name = tail.prefix { $0.isLetter }.lowercased()
            guard let position = allowed.firstIndex(where: { $0.name == name }),
                let part = number.scaled(by: units[position].milliseconds), part <= longest
            else { return nil }
            if number.hasFraction, units[position].milliseconds == 1 { return nil }
            allowed = units[(position + 1)...]
            total += part
            rest = String(tail.dropFirst(name.count).drop { $0 == " " })
        }
        return text.isEmpty || total > longest ? nil : .milliseconds(total)
    }

    /// `250ms`, `5s`, `1m30s`, `24h`, `7d`: whole units, days from two on, without fractions of a millisecond.
    package static func format(_ duration: Duration) -> String {
        let milliseconds = duration.milliseconds
        if milliseconds == 0 { return "0s" }
        var text = milliseconds < 0 ? "-" : ""
        var rest = milliseconds.magnitude
        for (name, signed) in units {
            let length = signed.magnitude
            guard rest >= (name == "d" ? 2 * length : length) else { continue }
            text += "\(rest / length)\(name)"
            rest %= length
        }
        return text
    }
}

/// Rates in bytes per second, as people write and read them.
package enum RateText {
    /// The lowest rate: below it, nothing would arrive in reasonable time.
    package static let least: Int64 = 1024
    private static let unlimited: Set<String> = ["off", "unlimited"]
    private static let bits: [String: Int64] = [
        "kbit": 1000, "mbit": 1_000_000, "gbit": 1_000_000_000, "kibit": 1 << 10, "mibit": 1 << 20, "gibit": 1 << 30,
    ]

    /// Bytes per second; 0 sends nothing, nil is no limit: `5MiB/s`, `800kB/s`, `20Mbit/s` (bits, as providers sell
    /// them), `0`, `off` or `unlimited`. An error's message ends a sentence with the correct form.
    package static func read(_ text: String) throws(PatternError) -> Int64? {
        if unlimited.contains(text) { return nil }
        if text == "0" { return 0 }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let amount = parts.first.map { String($0.reversed().drop { $0 == " " }.reversed()) } ?? ""
        guard parts.count == 2, parts[1].drop(while: { $0 == " " }) == "s" else {
            throw PatternError(message: hint(text))
        }
        if isAmbiguous(amount) {
            throw PatternError(message: "is ambiguous, bits or bytes; write for example 5MB/s or 40Mbit/s")
        }
        guard let bytes = bytes(amount) else { throw PatternError(message: forms) }
        if bytes > 0, bytes < least { throw PatternError(message: "is slower than 1KiB/s; write 0 to send nothing") }
        return bytes
    }

    /// The rate; nil for an invalid text.
    package static func parse(_ text: String) -> Int64?? {
        do { return .some(try read(text)) } catch { return .none }
    }

    /// The error in an invalid text, as the end of a sentence.
    package static func fault(of text: String) -> String {
        do {
            _ = try read(text)
            return forms
        } catch {
            return error.message
        }
    }

    /// `5 MiB/s`, `unlimited`, or `0 (nothing is sent)`.
    package static func format(_ rate: Int64?) -> String {
        guard let rate else { return "unlimited" }
        return rate == 0 ? "0 (nothing is sent)" : ByteText.format(rate) + "/s"
    }

    private static let forms = "is not a rate; write for example 5MiB/s, 20Mbit/s, 0, or off"

    private static func hint(_ text: String) -> String {
        let isRate = bytes(text) != nil && !isAmbiguous(text)
        return isRate ? "is not a rate; did you mean '\(text)/s'?" : forms
    }

    private static func bytes(_ amount: String) -> Int64? {
        guard let (number, unit) = DecimalText.split(amount) else { return nil }
        if let bits = bits[unit.lowercased()] { return number.scaled(by: bits).map { $0 / 8 } }
        return ByteText.parse(amount)
    }

    /// `Mb` differs by a factor of eight, depending on the reader.
    private static func isAmbiguous(_ amount: String) -> Bool {
        guard let (_, unit) = DecimalText.split(amount) else { return false }
        return unit.count == 2 && unit.hasSuffix("b")
    }
}

extension Int {
    /// `1 file`, `2 files`.
    ///
    /// - Parameter many: the plural; nil to append an `s`.
    package func counted(_ one: String, _ many: String? = nil) -> String {
        "\(self) \(self == 1 ? one : many ?? one + "s")"
    }
}
