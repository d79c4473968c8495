/// `window:` of a route: when deliveries of its big files may start. Running deliveries continue.
package struct DeliveryWindow: Sendable, Hashable, Codable {
    package static let standardSize: Int64 = 1 << 30

    package var span: DaySpan
    /// Files of at least this size wait for the window; smaller ones go at any time.
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
        // A window that never opens, on days that a zone skipped, is checked again tomorrow.
        return nextChange(after: time) ?? time + .seconds(86_400)
    }

    /// When it next opens or closes.
    package func nextChange(after time: WallTime) -> WallTime? {
        LocalTime.nextChange(after: time, zone: zone, boundaries: [span.from, span.to]) { isOpen($0) }
    }

    /// How long it has been closed; 0 while it is open. For windows that open at least once a week.
    package func closedTime(until time: WallTime) -> Duration {
        if opening(at: time) == nil { return .zero }
        // Most open every day, so search one day back first.
        for days in [1, 8] {
            let start = time + .seconds(-86_400 * days)
            var (last, next): (WallTime?, WallTime?) = (nil, nextChange(after: start))
            while let change = next, change <= time { (last, next) = (change, nextChange(after: change)) }
            if let last { return time - last }
        }
        return .seconds(8 * 86_400)
    }

    /// How much time to live a delivery keeps when its closed window puts it back; 0 or less if its time is over. In
    /// milliseconds.
    ///
    /// Time does not count while its window was closed and nothing noticed, because all workers were busy. The clock
    /// may have stopped during that time, so at most the whole time to live is restored.
    /// - Parameters:
    ///   - life: the time to live that its route grants.
    ///   - expiry: when its time ends, on the destination's expiry clock.
    ///   - uptime: the present time of that clock.
    ///   - uptime: that clock now.
    package static func timeLeft(of life: Int64, until expiry: Int64, at uptime: Int64, closedFor closed: Duration)
        -> Int64
    {
        min(life, expiry - uptime + closed.milliseconds)
    }

    private func isOpen(_ local: LocalTime) -> Bool { span.contains(local.day, minute: local.minute) }

    /// The reason why a delivery waits.
    package var reason: String { "waits for its window (\(span.text))" }

    /// `22:00 to 06:00, for files from 1 GiB`.
    package var text: String { "\(span.text), for files from \(ByteText.format(above))" }
}

/// Days as the configuration writes them; Monday is 1.
package enum Weekday: Int, Sendable, Hashable, Codable, CaseIterable {
    case mon = 1
    case tue, wed, thu, fri, sat, sun

    private static let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    package var name: String { Self.names[rawValue - 1] }

    package init?(name: String) {
        guard let day = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = day
    }

    var before: Weekday { Weekday(rawValue: rawValue == 1 ? 7 : rawValue - 1) ?? self }
}

/// A part of the day in local time, every day or on some days: `{ from: "22:00", to: "06:00", days: [fri] }`.
package struct DaySpan: Sendable, Hashable, Codable {
    package static let minutesOfDay = 1440

    /// Minutes since midnight, below 1440.
    package var from: Int
    /// The first minute outside, up to 1440. If it is not after `from`, the span ends on the next day.
    package var to: Int
    /// In order; empty for every day. For a span over midnight, the days on which it starts.
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

// Changes that follow the local time of a zone.
extension LocalTime {
    /// Slightly more than two weeks: contains a weekly event even if a clock change skips its hour once.
    private static let horizon = Duration.seconds(16 * 86_400)

    /// The first moment after `start` at which `value` differs from its value at `start`; nil if it never does.
    ///
    /// - Parameter boundaries: the minutes of the day at which `value` may change; otherwise it changes only with the
    ///   clock.
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

    /// The time until the next boundary or midnight, if the clock is not changed.
    private static func step(from time: LocalTime, _ boundaries: Set<Int>) -> Duration {
        let day: Int64 = 86_400_000
        let waits = boundaries.union([0]).map { minute -> Int64 in
            let wait = (Int64(minute) * 60_000 - time.millisecondOfDay) % day
            return wait > 0 ? wait : wait + day
        }
        return .milliseconds(waits.min() ?? day)
    }

    /// The first moment with a different offset; there must be one in between.
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
