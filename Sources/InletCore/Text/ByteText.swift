/// Counts of bytes as people write and read them.
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

    /// `512`, `8MiB`, `6GB`, `1.5 GiB`, `64k`; nil for everything else, negative and too large numbers included.
    /// Parts of a byte are dropped.
    package static func parse(_ text: String) -> Int64? {
        guard let (number, unitText) = DecimalText.split(text), let unit = units[unitText.lowercased()] else {
            return nil
        }
        if unit == 1, number.hasFraction { return nil }
        return number.scaled(by: unit)
    }

    /// `6 GiB`, `4.1 GiB`, `512 bytes`: binary units, one decimal, which is left out when it is zero.
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

    /// Splits `1.5GiB` into the number and what follows it, spaces between them dropped.
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

    /// The number times `unit`, rounded down; nil when that does not fit.
    func scaled(by unit: Int64) -> Int64? {
        let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
        let part = fractionScale.dividingFullWidth(fraction.multipliedFullWidth(by: unit)).quotient
        let (sum, carry) = product.addingReportingOverflow(part)
        return overflow || carry ? nil : sum
    }
}
