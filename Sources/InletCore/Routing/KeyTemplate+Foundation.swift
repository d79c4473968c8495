import Foundation

// The one file of this module that needs Foundation: its zone rules and its normal form are ICU's, and both move with
// the Unicode and IANA tables that ship with the toolchain.

extension KeyTemplate {
    /// Unicode normal form C.
    static func composed(_ text: String) -> String {
        text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
    }

    /// The IANA name of the zone that templates use when they name none.
    package static var systemZone: String { TimeZone.autoupdatingCurrent.identifier }
}

extension FileName {
    /// The name in Unicode's normal forms C and D, where that is another sequence of bytes: names that look the same.
    package var otherSpellings: [[UInt8]] {
        guard bytes.contains(where: { $0 >= 0x80 }), let text = String(validating: bytes, as: UTF8.self) else {
            return []
        }
        let forms = [text.precomposedStringWithCanonicalMapping, text.decomposedStringWithCanonicalMapping]
        return forms.map { Array($0.utf8) }.filter { $0 != bytes }
    }
}

/// Civil time in a zone.
enum ZoneClock {
    static func exists(_ name: String) -> Bool { TimeZone(identifier: name) != nil }

    /// `time` on the wall clock of `zone`; nil or an unknown name is the system's.
    static func local(_ time: WallTime, zone: String?) -> LocalTime {
        let zone = zone.flatMap { TimeZone(identifier: $0) } ?? .autoupdatingCurrent
        let date = Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        return LocalTime(time, offset: Int64(zone.secondsFromGMT(for: date)))
    }
}
