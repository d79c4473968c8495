/// Bytes per second as people write and read them.
package enum RateText {
    /// Below this nothing would get through before somebody's patience ends.
    package static let least: Int64 = 1024
    private static let unlimited: Set<String> = ["off", "unlimited"]
    private static let bits: [String: Int64] = [
        "kbit": 1000, "mbit": 1_000_000, "gbit": 1_000_000_000, "kibit": 1 << 10, "mibit": 1 << 20, "gibit": 1 << 30,
    ]

    /// What a text says of a rate.
    package enum Reading: Sendable, Equatable {
        /// Bytes per second; 0 sends nothing, nil is no limit.
        case rate(Int64?)
        /// Why it is none, and how it would be written.
        case fault(String)
    }

    /// `5MiB/s`, `800kB/s`, `20Mbit/s` (bits, as providers sell them), `0`, `off` or `unlimited`.
    package static func read(_ text: String) -> Reading {
        if unlimited.contains(text) { return .rate(nil) }
        if text == "0" { return .rate(0) }
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let amount = parts.first.map { String($0.reversed().drop { $0 == " " }.reversed()) } ?? ""
        guard parts.count == 2, parts[1].drop(while: { $0 == " " }) == "s" else { return .fault(hint(text)) }
        if isAmbiguous(amount) { return .fault("says bits or bytes? Write for example 5MB/s or 40Mbit/s") }
        guard let bytes = bytes(amount) else { return .fault(forms) }
        if bytes == 0 { return .rate(0) }
        return bytes < least ? .fault("is slower than 1KiB/s; 0 sends nothing at all") : .rate(bytes)
    }

    /// The rate; nil for what is none.
    package static func parse(_ text: String) -> Int64?? {
        if case .rate(let rate) = read(text) { .some(rate) } else { .none }
    }

    /// What is wrong with a text that is none, as the end of a sentence.
    package static func fault(of text: String) -> String {
        if case .fault(let why) = read(text) { why } else { forms }
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

    /// `Mb` is eight times more or less, depending on who reads it.
    private static func isAmbiguous(_ amount: String) -> Bool {
        guard let (_, unit) = DecimalText.split(amount) else { return false }
        return unit.count == 2 && unit.hasSuffix("b")
    }
}
