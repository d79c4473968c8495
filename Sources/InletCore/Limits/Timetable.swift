/// How fast may be sent when: a rate, and others for parts of the day.
///
/// It goes by what the clock on the wall shows at the moment that is asked about: an hour that the clocks skip does not
/// happen, one that comes twice counts twice.
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

    /// Holds outside of all entries.
    package var base: Int64?
    /// The first that matches holds.
    package var entries: [Entry]
    /// An IANA name; nil = the system's.
    package var zone: String?

    package init(_ base: Int64? = nil, _ entries: [Entry] = [], zone: String? = nil) {
        self.base = base
        self.entries = entries
        self.zone = zone
    }

    /// Whether there ever is a limit.
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

    /// The entry that holds; nil outside of all.
    package func entry(at time: WallTime) -> Entry? {
        // Nobody needs to know the zone then: looking it up takes as long as much of the start.
        if entries.isEmpty { return nil }
        let local = LocalTime.local(time, zone: zone)
        return entries.first { $0.span.contains(local.day, minute: local.minute) }
    }

    /// The first moment after `time` at which another rate holds; nil when that never happens.
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

    /// When another rate may begin to hold, midnight among them.
    private var minutes: Set<Int> {
        Set(entries.flatMap { [$0.span.from, $0.span.to] } + [0]).filter { $0 < DaySpan.minutesOfDay }
    }

    /// Entries that never hold, because one before them does whenever they would.
    package var hidden: [Entry] {
        let holding = Weekday.allCases.flatMap { day in
            minutes.compactMap { minute in entries.firstIndex { $0.span.contains(day, minute: minute) } }
        }
        return entries.indices.filter { !holding.contains($0) }.map { entries[$0] }
    }

    /// From when on which rate holds, from midnight on.
    private func slices(_ day: Weekday) -> [(from: Int, rate: Int64?)] {
        minutes.sorted().reduce(into: []) { slices, minute in
            let rate = rate(day, minute: minute)
            if slices.isEmpty || slices.last?.rate != rate { slices.append((minute, rate)) }
        }
    }

    /// The whole week in words, a line for each kind of day: `mon to fri: 5 MiB/s, from 18:00 unlimited`.
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

/// What `limits:` and the destinations say of the speed at which may be sent.
package struct BandwidthLimits: Sendable, Equatable {
    /// For all destinations together.
    package var all: Timetable
    /// Beside that, for those that have one of their own.
    package var destinations: [String: Timetable]

    package init(all: Timetable = Timetable(), destinations: [String: Timetable] = [:]) {
        self.all = all
        self.destinations = destinations
    }
}

/// Applies a rate (nil = no limit, 0 = nothing is sent) to a destination, or with nil to all together. Must not block.
package typealias BandwidthValve = @Sendable (_ rate: Int64?, _ destination: String?) -> Void
