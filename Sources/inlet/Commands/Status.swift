import ArgumentParser
import Foundation
import InletAgent
import InletCore
import InletDashboard
import InletLinux

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what is moving, what waits, and what needs you.",
        discussion: """
            Asks the running agent, or reads the journal when none runs. With --watch it goes on: on a terminal as a picture
            that is drawn again ('q' or Ctrl-C leaves it), elsewhere as a block every interval; with --json one object a line.

            Examples:
              inlet status
              inlet status --watch
              inlet status --json | jq .pending
              inlet status --watch --json --interval 10s
            """)

    @OptionGroup var options: ConfigOption

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Go on, until it is left.")
    var watch = false

    @Option(help: ArgumentHelp("With --watch, how often the agent is asked.", valueName: "TIME"))
    var interval: PositiveTime = PositiveTime(.seconds(1))

    func run() async throws {
        let config = try options.load()
        let report = try await ControlAccess.use(config) { try await $0.ask(Endpoints.status) }
        guard watch else {
            return Console.print(json ? try Console.json(report, isPretty: true) : report.text)
        }
        let watch = StatusWatch(config, interval: interval.duration)
        defer { watch.end() }
        if json {
            try await watch.follow(report) { try Console.json($0.report) }
        } else if Console.isCanvas {
            try await watch.draw(report)
        } else {
            let columns = ProcessSetup.terminalWidth ?? Self.plainWidth
            try await watch.follow(report) { status in
                let lines = StatusView(status, columns: columns).lines(clock: WallTime.now.clock())
                return lines.map { $0.text(hasColour: Console.hasColour) }.joined(separator: "\n") + "\n"
            }
        }
    }

    /// Where no terminal says how wide it is: no path is cut.
    private static let plainWidth = 4096
}

/// A time as options take it, of a tenth of a second or more.
struct PositiveTime: ExpressibleByArgument, CustomStringConvertible {
    let duration: Duration

    init(_ duration: Duration) { self.duration = duration }

    init?(argument: String) {
        guard let duration = DurationText.parse(argument), duration >= .milliseconds(100) else { return nil }
        self.duration = duration
    }

    var description: String { DurationText.format(duration) }
    var defaultValueDescription: String { description }
}

// The status for people.
extension StatusReport {
    fileprivate var text: String {
        var blocks = [Self.health(health ?? Health(self))]
        let state = running ? Console.tint("running", .good) : Console.tint("not running", .warning)
        var head = "inlet \(version ?? "") is \(state)".replacingOccurrences(of: "  ", with: " ")
        if let since = started_at { head += " since \(since)" }
        if journal_failing {
            head += "\n" + Console.tint("The journal cannot be written: is the disk full?", .bad)
        }
        if let dashboard { head += "\n" + Self.dashboard(dashboard) }
        if let resuming { head += "\nSince the start: \(resuming.text)" }
        blocks.append(head)
        blocks.append(balance)
        if let notices = noticesText { blocks.append(notices) }
        blocks.append(
            contentsOf: [
                transfersText, destinationsText, limitsText, rootsText,
            ].compactMap(\.self))
        return blocks.joined(separator: "\n\n")
    }

    /// What one looks for in five seconds: is it healthy, what is moving, what needs me.
    private static func health(_ health: Health) -> String {
        let mark =
            switch health.state {
            case .ok: Console.tint("✓", .good)
            case .attention: Console.tint("!", .warning)
            case .trouble: Console.tint("✗", .bad)
            }
        return
            (["\(mark) \(Console.tint(health.sentence, .strong))"] + health.needs.map { "  \(DisplayText.escape($0))" })
            .joined(separator: "\n")
    }

    private static func dashboard(_ report: DashboardReport) -> String {
        switch report.state {
        case .listening: "Dashboard  \(report.url)"
        case .starting: "Dashboard  \(report.url) (starting)"
        case .failing: Console.tint("Dashboard  cannot listen: \(DisplayText.escape(report.error ?? ""))", .bad)
        }
    }

    private var balance: String {
        var rows = [["Seen", "\(seen)".leftPadded(8), ""]]
        for state in FileState.allCases {
            let files = files[state.rawValue] ?? 0
            let isMain = [.pending, .delivered, .failed].contains(state)
            guard files > 0 || isMain else { continue }
            let needsYou = files > 0 && [.failed, .expired, .rejected].contains(state)
            let name = "  \(state.rawValue)"
            rows.append([
                needsYou ? Console.tint(name, .bad) : name, "\(files)".leftPadded(8),
                ByteText.format(bytes[state.rawValue] ?? 0),
            ])
        }
        if ignored > 0 { rows.append(["  ignored", "\(ignored)".leftPadded(8), ""]) }
        var text = Console.table(rows)
        let queue = queue
        if queue.total > 0 {
            let parts = [
                ("in flight", queue.in_flight), ("waiting", queue.waiting), ("of these tried before", queue.retrying),
                ("held for others", queue.held), ("not configured", queue.parked),
            ].filter { $0.1 > 0 }
            text += "\nDeliveries: " + parts.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
        }
        if let oldest = queue.oldest_waiting, let age = queue.oldest_waiting_ms {
            text += "\nOldest waiting since \(oldest), for \(DurationText.format(.milliseconds(age / 1000 * 1000)))"
        }
        if files["failed"] ?? 0 > 0 { text += "\nSee them with: inlet queue list --state failed" }
        return text
    }

    private var noticesText: String? {
        let parts = [
            notices_waiting.map { "\($0) waiting" }, notices_failed.map { "\($0) given up" },
        ].compactMap(\.self)
        return parts.isEmpty ? nil : "Notices  " + parts.joined(separator: ", ")
    }

    private var transfersText: String? {
        guard !in_flight.isEmpty else { return nil }
        let rows = in_flight.map { transfer in
            [
                "  \(transfer.job)", DisplayText.escape(transfer.path).shortened(40), "→ \(transfer.destination)",
                transfer.percent.map { Console.bar(Int64($0), of: 100, width: 16) }
                    ?? Console.bar(transfer.sent, of: transfer.size, width: 16),
                DisplayText.escape(transfer.doing),
            ]
        }
        return "In flight\n" + Console.table(rows)
    }

    private var destinationsText: String? {
        guard !destinations.isEmpty else { return nil }
        let rows = destinations.map { destination in
            let isGood = ["up", "not running", "not asked yet"].contains(destination.state)
            return [
                "  \(destination.name)", destination.type,
                Console.tint(destination.state, isGood ? .good : .bad), "\(destination.waiting) waiting",
                destination.last_error.map { DisplayText.escape($0).shortened(80) } ?? "",
            ]
        }
        return "Destinations\n" + Console.table(rows)
    }

    /// What keeps a file, and for how long if that is worth saying.
    private static func reason(_ file: StatusReport.SettlingFile) -> String {
        var text = file.waits_for ?? "not quiet yet"
        if file.writer { text = "open for writing" + (file.held_by.map { " by \($0)" } ?? "") }
        guard let waiting = file.waiting_ms, waiting >= 60_000 else { return text }
        return text + ", for \(DurationText.format(.milliseconds(waiting / 1000 * 1000)))"
    }

    private var rootsText: String? {
        guard !roots.isEmpty else { return nil }
        var lines: [String] = []
        for root in roots {
            let folders = root.directories == 1 ? "1 folder" : "\(root.directories) folders"
            let polled = root.polled > 0 ? " (\(root.polled) polled)" : ""
            let last = root.last_event.map { ", last event \($0)" } ?? ""
            lines.append(
                "  \(DisplayText.escape(root.path))  \(DisplayText.escape(root.state)), \(folders)\(polled), \(root.settling) settling\(last)"
            )
            for file in root.unsettled {
                lines.append("    \(DisplayText.escape(file.path)): \(DisplayText.escape(Self.reason(file)))")
            }
        }
        return "Watched\n" + lines.joined(separator: "\n")
    }

    /// Limits and windows; nil where there is nothing to say of them.
    private var limitsText: String? {
        let lines = (limits ?? []).filter(\.isNotable).map(\.text) + (windows ?? []).map(\.text)
        return lines.isEmpty ? nil : "Limits\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }
}
