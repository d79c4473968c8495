internal import InletAgent
internal import InletCore

/// The work of a destination, and the reason for which its files wait, in one sentence.
struct DestinationStanding: Sendable {
    /// `StatusReport.Destination.state`
    var state: String
    var nextProbe: WallTime?
    /// Deliveries that wait for their turn, and about how many bytes they have.
    var waiting: Int
    var waitingBytes: Int64
    /// The running deliveries, and the bytes that they have left.
    var running: Int
    var leftBytes: Int64
    /// Bytes a second of all running deliveries together, since they began.
    var speed: Double
    /// Whether one of them waits for bytes under a limit now.
    var isHeld: Bool
    /// The destination's own limit, and that of all destinations together.
    var own: LimitReport?
    var common: LimitReport?

    /// A transfer that comes this near to a limit is at it.
    private static let near = 0.8

    /// nil where nothing waits and nothing runs.
    var text: String? {
        guard waiting + running > 0 else { return nil }
        return [reason, waiting == 0 ? nil : wait].compactMap(\.self).joined(separator: "; ")
    }

    private var wait: String {
        "\(waiting.counted("file waits", "files wait"))\(timeLeft.map { ", \($0)" } ?? "")"
    }

    private var reason: String? {
        if let closed { return "its limit is 0\(closed.until.map { " until \(WallTime.clock(of: $0))" } ?? "")" }
        switch state {
        case "paused": return "paused by a person"
        case "down": return "it is down\(nextProbe.map { ", asked again at \($0.shortClock)" } ?? "")"
        case "credentials refused": return "it refuses its credentials"
        case "asks for time": return "it asks for time\(nextProbe.map { " until \($0.shortClock)" } ?? "")"
        case "not running": return nil
        default: break
        }
        if let (limit, rate) = reached {
            return limit.destination == nil
                ? "at the limit of all destinations, \(RateText.format(rate))"
                : "at its limit of \(RateText.format(rate))"
        }
        if running > 0 { return "sending \(running.counted("file"))" }
        return "not sending now"
    }

    private var closed: LimitReport? { [own, common].compactMap(\.self).first { $0.bytes_per_second == 0 } }

    /// The limit at which the transfers are, the lower one first.
    private var reached: (limit: LimitReport, rate: Int64)? {
        guard running > 0, closed == nil else { return nil }
        let limits = [own, common].compactMap { limit in
            limit.flatMap { limit in limit.bytes_per_second.map { (limit, $0) } }
        }
        return limits.min { $0.1 < $1.1 }.flatMap { limit, rate in
            isHeld || speed >= Double(rate) * Self.near ? (limit, rate) : nil
        }
    }

    /// Only a limit tells how fast the rest will be sent.
    private var timeLeft: String? {
        reached.map { Self.about(.seconds(Double(waitingBytes + leftBytes) / Double($0.rate))) }
    }

    /// `about 4 min`: nobody plans by more than that.
    static func about(_ time: Duration) -> String {
        let seconds = max(0, Int(clamping: time.components.seconds))
        switch seconds {
        case ..<10: return "a few seconds"
        case ..<90: return "about \((seconds + 5) / 10 * 10) s"
        case ..<(90 * 60): return "about \((seconds + 30) / 60) min"
        case ..<(36 * 3600): return "about \((seconds + 1800) / 3600) h"
        default: return "about \((seconds + 43_200) / 86_400) days"
        }
    }
}

extension DestinationStanding {
    /// - Parameters:
    ///   - running: the running deliveries to all destinations.
    ///   - limits: all limits.
    init(
        _ report: StatusReport.Destination, bytes: Int64, _ running: [Transfers.RunningTransfer],
        _ limits: [LimitReport],
        at now: WallTime
    ) {
        let own = running.filter { $0.ref.destination == report.name }
        let paces = own.map { Double($0.sent) / max(0.1, Double((now - $0.since).milliseconds) / 1000) }
        self.init(
            state: report.state, nextProbe: report.next_probe.flatMap { WallTime(rfc3339: $0) },
            waiting: report.waiting, waitingBytes: bytes, running: own.count,
            leftBytes: own.reduce(0) { $0 + max(0, $1.size - $1.sent) }, speed: paces.reduce(0, +),
            isHeld: own.contains(where: \.isHeld), own: limits.first { $0.destination == report.name },
            common: limits.first { $0.destination == nil })
    }
}
