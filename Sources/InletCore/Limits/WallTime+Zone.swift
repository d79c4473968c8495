extension WallTime {
    /// RFC 3339 by the clock on the wall of `zone`, with its offset, to the second: `2026-11-22T18:00:00+01:00`. For people, who
    /// wrote the times of a timetable by that clock.
    ///
    /// - Parameter zone: an IANA name; nil = the system's.
    package func rfc3339(in zone: String?) -> String {
        let offset = ZoneClock.local(self, zone: zone).offset
        let wall = WallTime(milliseconds: milliseconds + offset * 1000).rfc3339.dropLast(5)
        func pad(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let minutes = abs(offset) / 60
        return "\(wall)\(offset < 0 ? "-" : "+")\(pad(minutes / 60)):\(pad(minutes % 60))"
    }
}
