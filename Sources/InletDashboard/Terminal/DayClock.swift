package import InletCore

/// Times as people read them on the wall.
package enum DayClock {
    /// `18:00:07`, by the clock of `zone`; nil = the system's.
    package static func time(_ time: WallTime, zone: String? = nil) -> String {
        String(time.rfc3339(in: zone).dropFirst(11).prefix(8))
    }

    /// `2026-11-22` there.
    package static func day(_ time: WallTime, zone: String? = nil) -> String {
        String(time.rfc3339(in: zone).prefix(10))
    }

    /// The same of a text in RFC 3339; the text itself where it is none.
    package static func time(_ text: String, zone: String? = nil) -> String {
        WallTime(rfc3339: text).map { time($0, zone: zone) } ?? text
    }
}
