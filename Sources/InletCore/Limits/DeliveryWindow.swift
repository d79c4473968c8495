/// `window:` of a route — when deliveries of its big files may begin. One that is under way goes on.
package struct DeliveryWindow: Sendable, Hashable, Codable {
    package static let standardSize: Int64 = 1 << 30

    package var span: DaySpan
    /// Files of at least this size wait for it; smaller ones go at any time.
    package var above: Int64
    /// An IANA name; nil = the system's.
    package var zone: String?

    package init(_ span: DaySpan, above: Int64 = standardSize, zone: String? = nil) {
        self.span = span
        self.above = above
        self.zone = zone
    }

    package func concerns(size: Int64) -> Bool { size >= above }

    /// When it opens next; nil while it is open.
    package func opening(at time: WallTime) -> WallTime? {
        if isOpen(LocalTime.local(time, zone: zone)) { return nil }
        // One that never opens, of days that a zone has left out, is asked again tomorrow.
        return nextChange(after: time) ?? time + .seconds(86_400)
    }

    /// When it opens or closes next.
    package func nextChange(after time: WallTime) -> WallTime? {
        LocalTime.nextChange(after: time, zone: zone, boundaries: [span.from, span.to]) { isOpen($0) }
    }

    /// For how long it has been closed; 0 while it is open. Of a window that opens once a week or more often.
    package func closedTime(until time: WallTime) -> Duration {
        if opening(at: time) == nil { return .zero }
        // Most open every day, and the past is searched from its beginning.
        for days in [1, 8] {
            let start = time + .seconds(-86_400 * days)
            var (last, next): (WallTime?, WallTime?) = (nil, nextChange(after: start))
            while let change = next, change <= time { (last, next) = (change, nextChange(after: change)) }
            if let last { return time - last }
        }
        return .seconds(8 * 86_400)
    }

    /// How much of its time to live a delivery has left when it is put back because its window is closed; 0 or less when it is
    /// over. All in milliseconds.
    ///
    /// The time does not count in which its window was closed and nobody had looked: all workers were busy. The clock may have
    /// stood in that time itself, so that no more than the whole life is given back.
    /// - Parameters:
    ///   - life: all that its route gives it.
    ///   - expiry: when its time ends, on the destination's expiry clock.
    ///   - uptime: that clock now.
    package static func timeLeft(of life: Int64, until expiry: Int64, at uptime: Int64, closedFor closed: Duration)
        -> Int64
    {
        min(life, expiry - uptime + closed.milliseconds)
    }

    private func isOpen(_ local: LocalTime) -> Bool { span.contains(local.day, minute: local.minute) }

    /// Why a delivery waits.
    package var reason: String { "waits for its window (\(span.text))" }

    /// `22:00 to 06:00, for files from 1 GiB`.
    package var text: String { "\(span.text), for files from \(ByteText.format(above))" }
}

/// Days as the configuration names them; Monday is 1.
package enum Weekday: Int, Sendable, Hashable, Codable, CaseIterable {
    case mon = 1
    case tue, wed, thu, fri, sat, sun

    package var name: String { "\(self)" }

    package init?(name: String) {
        guard let day = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = day
    }

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
        self.days = Weekday.allCases.filter(days.contains)
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

// When something changes that follows the clock on the wall of a zone.
extension LocalTime {
    /// Two weeks and a bit: what happens once a week is in it, even where the clocks skip its hour once.
    private static let horizon = Duration.seconds(16 * 86_400)

    /// The first moment after `start` at which `value` is another than at `start`; nil when it stays.
    ///
    /// - Parameter boundaries: the minutes of the day at which `value` may change; it does not change at others, other than
    ///   by a change of the clock itself.
    static func nextChange<Value: Equatable>(
        after start: WallTime, zone: String?, boundaries: Set<Int>, _ value: (LocalTime) -> Value
    ) -> WallTime? {
        let first = value(local(start, zone: zone))
        var time = start
        while time < start + horizon {
            let here = local(time, zone: zone)
            var next = time + step(from: here, boundaries)
            if local(next, zone: zone).offset != here.offset {
                next = shift(after: time, before: next, from: here.offset, zone)
            }
            if value(local(next, zone: zone)) != first { return next }
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
            let isBefore = local(WallTime(milliseconds: middle), zone: zone).offset == offset
            if isBefore { low = middle } else { high = middle }
        }
        return WallTime(milliseconds: high)
    }
}
