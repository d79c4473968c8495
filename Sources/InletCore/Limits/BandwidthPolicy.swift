/// Which limits hold, and why: the timetables, and over them what a person has said. Decides; whoever asks sets the rates.
package struct BandwidthPolicy: Sendable {
    /// Why a limit holds.
    package enum Cause: String, Sendable, Codable {
        /// The rate of the configuration, outside of its schedule.
        case configuration
        case schedule
        /// `inlet limit`; until `auto` or the next start.
        case command
    }

    /// What a person says.
    package enum Order: Sendable, Equatable {
        /// Bytes per second; 0 sends nothing, nil is no limit.
        case rate(Int64?)
        /// As the configuration has it.
        case auto
    }

    /// What holds for one destination, or for all together.
    package struct Status: Sendable, Equatable {
        /// nil = all together.
        package var destination: String?
        package var rate: Int64?
        package var cause: Cause
        /// When the schedule changes it; nil when it does not, and while a person's word holds.
        package var until: WallTime?
        /// By whose clock the schedule goes; nil = the system's.
        package var zone: String?
    }

    private var tables: [String?: Timetable]
    private var orders: [String?: Int64?] = [:]
    private var told: [String?: Int64?] = [:]

    /// - Parameter destinations: all names, with a limit or without.
    package init(_ limits: BandwidthLimits, destinations: [String]) {
        tables = [nil: limits.all]
        for name in destinations { tables[name] = limits.destinations[name] ?? Timetable() }
    }

    /// Takes other limits in their place. What a person has said of a destination that stays goes on holding.
    ///
    /// - Returns: destinations that are not among these any more, and had a rate: nothing limits what still runs there.
    package mutating func replace(_ limits: BandwidthLimits, destinations: [String]) -> [String] {
        let names = Set(destinations)
        let gone = told.compactMap { name, rate in rate == nil ? nil : name }.filter { !names.contains($0) }
        self.tables = Self(limits, destinations: destinations).tables
        orders = orders.filter { $0.key.map(names.contains) ?? true }
        // One that comes back later begins anew.
        told = told.filter { $0.key.map(names.contains) ?? true }
        return gone
    }

    /// Whether time alone can change anything.
    package var hasSchedule: Bool { tables.values.contains { !$0.entries.isEmpty } }

    package func knows(_ destination: String?) -> Bool { tables[destination] != nil }

    /// Takes a person's word. False for a destination that there is none of.
    package mutating func take(_ order: Order, for destination: String?) -> Bool {
        guard knows(destination) else { return false }
        switch order {
        case .rate(let rate): orders[destination] = .some(rate)
        case .auto: orders[destination] = nil
        }
        return true
    }

    /// Those whose rate is another than at the last call: at the first, those that have a limit. All together first.
    package mutating func changes(at now: WallTime) -> [Status] {
        statuses(at: now).filter { status in
            let old: Int64? = told[status.destination] ?? nil
            told[status.destination] = .some(status.rate)
            return old != status.rate
        }
    }

    /// What holds, all together first, then the destinations by name.
    package func statuses(at now: WallTime) -> [Status] {
        tables.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { name, table in
            if let order = orders[name] { return Status(destination: name, rate: order, cause: .command) }
            return Status(
                destination: name, rate: table.rate(at: now),
                cause: table.entry(at: now) == nil ? .configuration : .schedule, until: table.nextChange(after: now),
                zone: table.zone)
        }
    }

    /// When the schedule changes anything next; nil when it never does.
    package func nextChange(after now: WallTime) -> WallTime? {
        tables.values.compactMap { $0.nextChange(after: now) }.min()
    }
}
