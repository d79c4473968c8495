/// Days as the configuration names them; Monday is 1.
package enum Weekday: Int, Sendable, Hashable, Codable, CaseIterable, Comparable {
    case mon = 1
    case tue, wed, thu, fri, sat, sun

    package var name: String { "\(self)" }

    package init?(name: String) {
        guard let day = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = day
    }

    package static func < (one: Weekday, other: Weekday) -> Bool { one.rawValue < other.rawValue }

    var before: Weekday { Weekday(rawValue: rawValue == 1 ? 7 : rawValue - 1) ?? self }
}

/// A part of the day, by what the clock on the wall shows, every day or on some: `{ from: "22:00", to: "06:00", days: [fri] }`.
package struct DaySpan: Sendable, Hashable, Codable {
    package static let minutesOfDay = 1440

    /// Minutes since midnight, below 1440.
    package var from: Int
    /// The first minute that is outside, up to 1440. Not after `from`: the span ends on the next day.
    package var to: Int
    /// In their order; empty = every day. Of a span over midnight, the days on which it begins.
    package var days: [Weekday]

    package init(from: Int, to: Int, days: [Weekday] = []) {
        self.from = from
        self.to = to
        self.days = Set(days).sorted()
    }

    /// `08:00` as minutes since midnight, up to `24:00`; nil for everything else.
    package static func minute(_ text: String) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].count), parts[1].count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60, hour * 60 + minute <= minutesOfDay
        else { return nil }
        return hour * 60 + minute
    }

    /// `08:00`.
    package static func clock(_ minute: Int) -> String {
        func pad(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return pad(minute / 60) + ":" + pad(minute % 60)
    }

    package func contains(_ day: Weekday, minute: Int) -> Bool {
        if from < to { return isOn(day) && (from..<to).contains(minute) }
        return minute >= from && isOn(day) || minute < to && isOn(day.before)
    }

    private func isOn(_ day: Weekday) -> Bool { days.isEmpty || days.contains(day) }

    /// `22:00 to 06:00 on fri, sat`.
    package var text: String {
        let span = "\(Self.clock(from)) to \(Self.clock(to))"
        return days.isEmpty ? span : span + " on " + Self.names(days)
    }

    /// `mon to fri`, `sat, sun`.
    package static func names(_ days: [Weekday]) -> String {
        guard let first = days.first, let last = days.last, days.count > 2,
            last.rawValue - first.rawValue == days.count - 1
        else { return days.map(\.name).joined(separator: ", ") }
        return "\(first.name) to \(last.name)"
    }
}

extension LocalTime {
    var day: Weekday { Weekday(rawValue: weekday) ?? .mon }
    var minute: Int { Int(millisecondOfDay / 60_000) }
}

/// Finds out when something changes that follows the clock on the wall of a zone.
enum WallSearch {
    /// Two weeks and a bit: what happens once a week is in it, even where the clocks skip its hour once.
    private static let horizon = Duration.seconds(16 * 86_400)

    /// The first moment after `start` at which `value` is another than at `start`; nil when it stays.
    ///
    /// - Parameter boundaries: the minutes of the day at which `value` may change; it does not change at others, other than
    ///   by a change of the clock itself.
    static func nextChange<Value: Equatable>(
        after start: WallTime, zone: String?, boundaries: Set<Int>, _ value: (LocalTime) -> Value
    ) -> WallTime? {
        let first = value(ZoneClock.local(start, zone: zone))
        var time = start
        while time < start + horizon {
            let here = ZoneClock.local(time, zone: zone)
            var next = time + step(from: here, boundaries)
            if ZoneClock.local(next, zone: zone).offset != here.offset {
                next = shift(after: time, before: next, from: here.offset, zone)
            }
            if value(ZoneClock.local(next, zone: zone)) != first { return next }
            time = next
        }
        return nil
    }

    /// How long until the next boundary, midnight included, if the clock goes on as it does.
    private static func step(from time: LocalTime, _ boundaries: Set<Int>) -> Duration {
        let day: Int64 = 86_400_000
        let waits = boundaries.union([0]).map { minute -> Int64 in
            let wait = (Int64(minute) * 60_000 - time.millisecondOfDay) % day
            return wait > 0 ? wait : wait + day
        }
        return .milliseconds(waits.min() ?? day)
    }

    /// The first moment with another offset, of which there is one in between.
    private static func shift(
        after low: WallTime, before high: WallTime, from offset: Int64, _ zone: String?
    ) -> WallTime {
        var (low, high) = (low.milliseconds, high.milliseconds)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            let isBefore = ZoneClock.local(WallTime(milliseconds: middle), zone: zone).offset == offset
            if isBefore { low = middle } else { high = middle }
        }
        return WallTime(milliseconds: high)
    }
}
