/// How a text is coloured on a terminal, by the numbers of ECMA-48 (SGR).
package enum TextStyle: String, Sendable {
    case good = "32"
    case bad = "31"
    case warning = "33"
    case faint = "2"
    case strong = "1"

    /// `text` in this colour, with the colour reset behind it.
    package func paint(_ text: String) -> String { "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }
}

extension WallTime {
    /// `18:00:07`, by the clock of `zone`; nil is the system's zone.
    package func clock(in zone: String? = nil) -> String { String(rfc3339(in: zone).dropFirst(11).prefix(8)) }

    /// `2026-11-22`, by the calendar of `zone`.
    package func day(in zone: String? = nil) -> String { String(rfc3339(in: zone).prefix(10)) }

    /// The clock's time of an RFC 3339 text; any other text stays unchanged.
    package static func clock(of text: String, in zone: String? = nil) -> String {
        WallTime(rfc3339: text)?.clock(in: zone) ?? text
    }
}
