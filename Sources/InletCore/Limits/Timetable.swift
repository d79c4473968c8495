/// Sending rates by the time of day: a base rate, and others for parts of the day.
///
/// It follows the local time at each moment: a skipped hour does not occur, and a repeated hour occurs twice.
package struct Timetable: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        package var span: DaySpan
        /// Bytes per second; 0 sends nothing, nil is no limit.
        package var rate: Int64?

        package init(_ span: DaySpan, rate: Int64?) {
            self.span = span
            self.rate = rate
        }
    }

    /// Applies outside all entries.
    package var base: Int64?
    /// The first match applies.
    package var entries: [Entry]
    /// An IANA name; nil = the system's.
    package var zone: String?

    package init(_ base: Int64? = nil, _ entries: [Entry] = [], zone: String? = nil) {
        self.base = base
        self.entries = entries
        self.zone = zone
    }

    /// Whether there is ever a limit.
    package var isLimited: Bool { base != nil || entries.contains { $0.rate != nil } }

    /// Whether nothing may ever be sent.
    package var isClosed: Bool {
        Weekday.allCases.allSatisfy { day in slices(day).allSatisfy { $0.rate == 0 } }
    }

    package static func knows(zone: String) -> Bool { LocalTime.exists(zone) }

    package func rate(at time: WallTime) -> Int64? {
        let entry = entry(at: time)
        return entry == nil ? base : entry?.rate
    }

    /// The entry in effect; nil outside all entries.
    package func entry(at time: WallTime) -> Entry? {
        // Looking up the zone takes as long as much of the start, and is not needed here.
        if entries.isEmpty { return nil }
        let local = LocalTime.local(time, zone: zone)
        return entries.first { $0.span.contains(local.day, minute: local.minute) }
    }

    /// The first moment after `time` with a different rate; nil if there is none.
    package func nextChange(after time: WallTime) -> WallTime? {
        if entries.isEmpty { return nil }
        let boundaries = Set(entries.flatMap { [$0.span.from, $0.span.to] })
        return LocalTime.nextChange(after: time, zone: zone, boundaries: boundaries) { rate($0) }
    }

    private func rate(_ local: LocalTime) -> Int64? { rate(local.day, minute: local.minute) }

    private func rate(_ day: Weekday, minute: Int) -> Int64? {
        guard let entry = entries.first(where: { $0.span.contains(day, minute: minute) }) else { return base }
        return entry.rate
    }

    /// The minutes at which the rate may change, midnight included.
    private var minutes: Set<Int> {
        Set(entries.flatMap { [$0.span.from, $0.span.to] } + [0]).filter { $0 < DaySpan.minutesOfDay }
    }

    /// Entries that never apply, because an earlier one always does.
    package var hidden: [Entry] {
        let holding = Weekday.allCases.flatMap { day in
            minutes.compactMap { minute in entries.firstIndex { $0.span.contains(day, minute: minute) } }
        }
        return entries.indices.filter { !holding.contains($0) }.map { entries[$0] }
    }

    /// The rates of a day, each with its start, from midnight on.
    private func slices(_ day: Weekday) -> [(from: Int, rate: Int64?)] {
        minutes.sorted().reduce(into: []) { slices, minute in
            let rate = rate(day, minute: minute)
            if slices.isEmpty || slices.last?.rate != rate { slices.append((minute, rate)) }
        }
    }

    /// The week in words, a line for each kind of day: `mon to fri: 5 MiB/s, from 18:00 unlimited`.
    package var lines: [String] {
        var kinds: [(days: [Weekday], slices: [(from: Int, rate: Int64?)])] = []
        for day in Weekday.allCases {
            let slices = slices(day)
            if let index = kinds.firstIndex(where: { $0.slices.elementsEqual(slices, by: ==) }) {
                kinds[index].days.append(day)
            } else {
                kinds.append(([day], slices))
            }
        }
        return kinds.map { days, slices in
            let words = slices.map { slice in
                (slice.from == 0 ? "" : "from \(DaySpan.clock(slice.from)) ") + RateText.format(slice.rate)
            }
            return (kinds.count == 1 ? "" : DaySpan.names(days) + ": ") + words.joined(separator: ", ")
        }
    }
}

/// The bandwidth limits of `limits:` and of the destinations.
package struct BandwidthLimits: Sendable, Equatable {
    /// For all destinations together.
    package var all: Timetable
    /// In addition, for destinations with their own limit.
    package var destinations: [String: Timetable]

    package init(all: Timetable = Timetable(), destinations: [String: Timetable] = [:]) {
        self.all = all
        self.destinations = destinations
    }
}

/// Sets a rate (nil for no limit, 0 to send nothing) for a destination, or with nil for all together. Must not block.
package typealias BandwidthValve = @Sendable (_ rate: Int64?, _ destination: String?) -> Void
