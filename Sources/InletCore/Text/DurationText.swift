/// Spans of time as people write and read them.
package enum DurationText {
    private static let units: [(name: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]
    /// A hundred years, so that no sum of times overflows.
    private static let longest: Int64 = 36_525 * 86_400_000

    /// `250ms`, `5s`, `1.5s`, `2m`, `24h`, `7d`, `1h30m`, or a bare `0`; nil for everything else: a number without unit,
    /// units out of order, anything negative, below a millisecond or above a hundred years.
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

    /// `250ms`, `5s`, `1m30s`, `24h`, `7d`: whole units, days from two on, parts of a millisecond dropped.
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
