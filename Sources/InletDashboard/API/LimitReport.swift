internal import InletAgent
package import InletCore

/// How fast may be sent to one destination, or to all together, and why.
package struct LimitReport: Codable, Sendable {
    /// nil = all destinations together.
    package var destination: String?
    /// Bytes per second; 0 sends nothing, nil is no limit.
    package var bytes_per_second: Int64?
    /// `configuration`, `schedule` or `command`.
    package var why: String
    /// When the schedule changes it, by the clock of the limits, with its offset.
    package var until: String?

    package init(_ standing: BandwidthPolicy.Status) {
        destination = standing.destination
        bytes_per_second = standing.rate
        why = standing.cause.rawValue
        until = standing.until?.rfc3339(in: standing.zone)
    }

    /// Whether there is anything to say of it: a destination without a limit of its own is as all are.
    package var isNotable: Bool { bytes_per_second != nil || until != nil || why != "configuration" }

    /// `all destinations: 5 MiB/s by the schedule, until 2026-11-22T18:00:00+01:00`.
    package var text: String {
        let option = destination.map { " --to \($0)" } ?? ""
        let reason =
            switch BandwidthPolicy.Cause(rawValue: why) {
            case .command: " by 'inlet limit', until 'inlet limit auto\(option)' or the next start"
            case .schedule: " by the schedule"
            default: ""
            }
        return "\(destination ?? "all destinations"): \(RateText.format(bytes_per_second))\(reason)"
            + (until.map { ", until \($0)" } ?? "")
    }
}

/// When deliveries of a route's big files may begin.
package struct WindowReport: Codable, Sendable {
    package var route: String
    /// In words.
    package var window: String
    package var open: Bool
    /// When it opens or closes, by its own clock, with its offset.
    package var next_change: String?

    package init(route: String, _ window: DeliveryWindow, at now: WallTime) {
        self.route = route
        self.window = window.text
        open = window.opening(at: now) == nil
        next_change = window.nextChange(after: now)?.rfc3339(in: window.zone)
    }

    package var text: String {
        let change = next_change.map { " until \($0)" } ?? ""
        return "route \(route): \(window); \(open ? "open" : "closed")\(change)"
    }
}

/// What `inlet limit` posts.
package struct LimitWish: Codable, Sendable {
    /// As `RateText` reads it, or `auto`.
    package var limit: String
    /// nil = all destinations together.
    package var destination: String?

    package init(limit: String, destination: String?) {
        self.limit = limit
        self.destination = destination
    }

    /// nil with the end of a sentence when the limit is none.
    package static func order(_ text: String) -> (order: BandwidthPolicy.Order?, fault: String) {
        if text == "auto" { return (.auto, "") }
        switch RateText.read(text) {
        case .rate(let rate): return (.rate(rate), "")
        case .fault(let why): return (nil, why)
        }
    }
}

extension LocalControl {
    package func limits() async throws -> [LimitReport] { agent.live?.limits.map { LimitReport($0) } ?? [] }

    package func limit(_ wish: LimitWish) async throws -> CommandReport {
        let (order, fault) = LimitWish.order(wish.limit)
        guard let order else { return CommandReport(done: false, message: "'\(wish.limit)' \(fault)") }
        guard agent.live != nil else {
            return CommandReport(done: false, message: "no agent is running; what it may send is in its configuration")
        }
        guard let standing = agent.limit(order, for: wish.destination) else {
            return unknownDestination(wish.destination ?? "")
        }
        return CommandReport(done: true, message: LimitReport(standing).text)
    }
}
