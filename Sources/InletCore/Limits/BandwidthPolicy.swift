/// The limits in effect, and their causes: timetables, and a person's orders over them. Decides only; the caller sets
/// the rates.
package struct BandwidthPolicy: Sendable {
    /// The cause of a limit.
    package enum Cause: String, Sendable, Codable {
        /// The rate of the configuration, outside its schedule.
        case configuration
        case schedule
        /// `inlet limit`; until `auto` or the next start.
        case command
        /// This agent's part of a limit of its fleet.
        case fleet
    }

    /// An order from a person.
    package enum Order: Sendable, Equatable {
        /// Bytes per second; 0 sends nothing, nil is no limit.
        case rate(Int64?)
        /// Follow the configuration.
        case auto
    }

    /// The limit in effect for one destination, or for all together.
    package struct Status: Sendable, Equatable {
        /// nil for all together.
        package var destination: String?
        package var rate: Int64?
        package var cause: Cause
        /// When the schedule changes it; nil if it never does, and while a person's order applies.
        package var until: WallTime?
        /// The schedule's time zone; nil for the system's.
        package var zone: String?
    }

    private var tables: [String?: Timetable]
    private var orders: [String?: Int64?] = [:]
    private var told: [String?: Int64?] = [:]
    /// The fleet's bounds: a higher limit has no effect.
    private var bounds: [String: Int64] = [:]

    /// - Parameter destinations: all names, with or without a limit.
    package init(_ limits: BandwidthLimits, destinations: [String]) {
        tables = [nil: limits.all]
        for name in destinations { tables[name] = limits.destinations[name] ?? Timetable() }
    }

    /// Replaces the limits. A person's order for a remaining destination stays in effect.
    ///
    /// - Returns: removed destinations that had a rate: nothing limits what still runs there.
    package mutating func replace(_ limits: BandwidthLimits, destinations: [String]) -> [String] {
        let names = Set(destinations)
        let gone = told.compactMap { name, rate in rate == nil ? nil : name }.filter { !names.contains($0) }
        self.tables = Self(limits, destinations: destinations).tables
        orders = orders.filter { $0.key.map(names.contains) ?? true }
        bounds = bounds.filter { names.contains($0.key) }
        // A destination that returns later starts over.
        told = told.filter { $0.key.map(names.contains) ?? true }
        return gone
    }

    /// Whether time alone can change a limit.
    package var hasSchedule: Bool { tables.values.contains { !$0.entries.isEmpty } }

    package func knows(_ destination: String?) -> Bool { tables[destination] != nil }

    /// Applies a person's order. False for an unknown destination.
    package mutating func take(_ order: Order, for destination: String?) -> Bool {
        guard knows(destination) else { return false }
        switch order {
        case .rate(let rate): orders[destination] = .some(rate)
        case .auto: orders[destination] = nil
        }
        return true
    }

    /// Bounds a destination's rate by the fleet's; nil lifts that.
    /// - Returns: nil where it changes nothing.
    package mutating func bound(_ destination: String, to rate: Int64?) -> Bool? {
        guard knows(destination), bounds[destination] != rate else { return nil }
        bounds[destination] = rate
        return true
    }

    /// The limits whose rate changed since the last call; at the first call, those with a rate. All together first.
    package mutating func changes(at now: WallTime) -> [Status] {
        statuses(at: now).filter { status in
            let old: Int64? = told[status.destination] ?? nil
            told[status.destination] = .some(status.rate)
            return old != status.rate
        }
    }

    /// All limits: all together first, then the destinations by name.
    package func statuses(at now: WallTime) -> [Status] {
        tables.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { name, table in
            let own = status(name, table, at: now)
            guard let bound = name.flatMap({ bounds[$0] }), own.rate ?? .max > bound else { return own }
            return Status(destination: name, rate: bound, cause: .fleet, until: own.until, zone: own.zone)
        }
    }

    /// Without the fleet.
    private func status(_ name: String?, _ table: Timetable, at now: WallTime) -> Status {
        if let order = orders[name] { return Status(destination: name, rate: order, cause: .command) }
        return Status(
            destination: name, rate: table.rate(at: now),
            cause: table.entry(at: now) == nil ? .configuration : .schedule, until: table.nextChange(after: now),
            zone: table.zone)
    }

    /// When the schedule next changes a limit; nil if it never does.
    package func nextChange(after now: WallTime) -> WallTime? {
        tables.values.compactMap { $0.nextChange(after: now) }.min()
    }
}
