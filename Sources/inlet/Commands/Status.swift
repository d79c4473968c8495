import ArgumentParser
import InletAgent
import InletCore
import InletDashboard
import InletLinux

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show transfers, the queue and problems.",
        discussion: """
            Asks the running agent, or reads the journal when none runs. --watch refreshes continuously. On a terminal
            it redraws the screen ('q' or Ctrl-C quits); elsewhere it prints a block each interval, with --json one
            object a line.

            Examples:
              inlet status
              inlet status --watch
              inlet status --json | jq .pending
              inlet status --watch --json --interval 10s
            """)

    @OptionGroup var options: ConfigOption

    @Flag(help: "Print one JSON object.")
    var json = false

    @Flag(help: "Keep refreshing until you quit.")
    var watch = false

    @Option(help: ArgumentHelp("With --watch, the time between two refreshes.", valueName: "TIME"))
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

    /// Paths are not cut where no terminal has a width.
    private static let plainWidth = 4096
}

/// A duration as in other options, of 0.1 s or more.
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
        var blocks = [Self.health(health ?? Health(self)), head, balance]
        blocks += [
            noticesText, fleetText, transfersText, destinationsText, limitsText, rootsText, unsettledText,
        ].compactMap(\.self)
        return blocks.joined(separator: "\n\n")
    }

    /// For a person who looks for five seconds.
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

    private var head: String {
        let state = running ? Console.tint("running", .good) : Console.tint("not running", .warning)
        let name = (["inlet"] + [version].compactMap(\.self)).joined(separator: " ")
        var lines = ["\(name) is \(state)\(started_at.map { " since \(Console.time($0))" } ?? "")"]
        if journal_failing {
            lines.append(Console.tint("The journal cannot be written; check whether the disk is full.", .bad))
        }
        if let dashboard { lines.append(Self.dashboard(dashboard)) }
        if let resuming { lines.append("Since the start: \(resuming.text)") }
        return lines.joined(separator: "\n")
    }

    private static func dashboard(_ report: DashboardReport) -> String {
        switch report.state {
        case .listening: "Dashboard  \(report.url)"
        case .starting: "Dashboard  \(report.url) (starting)"
        case .failing: Console.tint("Dashboard  cannot listen: \(DisplayText.escape(report.error ?? ""))", .bad)
        }
    }

    private var balance: String {
        var rows: [[StyledText]] = [["seen", "\(seen)", ""]]
        for state in FileState.allCases {
            let files = files[state.rawValue] ?? 0
            let isMain = [.pending, .delivered, .failed].contains(state)
            guard files > 0 || isMain else { continue }
            let needsYou = files > 0 && [.failed, .expired, .rejected].contains(state)
            rows.append([
                StyledText(state.rawValue, needsYou ? .bad : nil), "\(files)",
                StyledText(ByteText.format(bytes[state.rawValue] ?? 0)),
            ])
        }
        if ignored > 0 { rows.append(["ignored", "\(ignored)", ""]) }
        var text = Self.section("Files", [.text("STATE"), .number("FILES"), .number("SIZE")], rows)
        if queue.total > 0 {
            let parts = [
                ("in flight", queue.in_flight), ("waiting", queue.waiting), ("of these tried before", queue.retrying),
                ("held back", queue.held), ("not configured", queue.parked),
            ].filter { $0.1 > 0 }
            text += "\nDeliveries: " + parts.map { "\($0.1) \($0.0)" }.joined(separator: ", ")
        }
        if let oldest = queue.oldest_waiting, let age = queue.oldest_waiting_ms {
            let time = DurationText.format(.milliseconds(age / 1000 * 1000))
            text += "\nOldest waiting since \(Console.time(oldest)), for \(time)"
        }
        if files["failed"] ?? 0 > 0 { text += "\nList them with: inlet queue list --state failed" }
        return text
    }

    private var noticesText: String? {
        let parts = [
            notices_waiting.map { "\($0) waiting" }, notices_failed.map { "\($0) failed" },
        ].compactMap(\.self)
        return parts.isEmpty ? nil : "Notifications  " + parts.joined(separator: ", ")
    }

    /// `Fleet  station-3 in studio, live; 12 files wait for a key`
    private var fleetText: String? {
        guard let fleet else { return nil }
        let place = DisplayText.escape(fleet.name) + (fleet.fleet.map { " in \(DisplayText.escape($0))" } ?? "")
        let parts = [
            fleet.isDraining ? "draining: new files stay in their folders until 'inlet fleet undrain'" : nil,
            fleet.waitingKeys > 0 ? "\(fleet.waitingKeys.counted("file waits", "files wait")) for a key" : nil,
            fleet.receiptsBehind > 0 ? "\(fleet.receiptsBehind.counted("receipt")) not published yet" : nil,
            fleet.waitingFor.isEmpty
                ? nil : "waits for \(DisplayText.escape(fleet.waitingFor.joined(separator: ", ")))",
        ].compactMap(\.self)
        return "Fleet  " + (["\(place), \(fleet.state.rawValue)"] + parts).joined(separator: "; ")
    }

    private static func section(_ title: String, _ columns: [Table.Column], _ rows: [[StyledText]]) -> String {
        Console.tint(title, .strong) + "\n" + Console.table(columns, rows, indent: 2)
    }

    private var transfersText: String? {
        guard !in_flight.isEmpty else { return nil }
        let rows: [[StyledText]] = in_flight.map { transfer in
            [
                "\(transfer.job)", StyledText(transfer.path), StyledText(transfer.destination),
                StyledText.bar(transfer.share, width: Console.isTerminal ? 10 : 0), StyledText(transfer.doing),
            ]
        }
        return Self.section(
            "In flight", [.number("JOB"), .name("FILE"), .text("TO"), .number("DONE"), .text("STEP")], rows)
    }

    private var destinationsText: String? {
        guard !destinations.isEmpty else { return nil }
        let rows: [[StyledText]] = destinations.map { destination in
            let isGood = ["up", "not running", "not asked yet"].contains(destination.state)
            return [
                StyledText(destination.name), StyledText(destination.type),
                StyledText(destination.state, isGood ? .good : .bad), "\(destination.waiting)",
                StyledText(destination.last_error ?? ""),
            ]
        }
        return Self.section(
            "Destinations",
            [.text("NAME"), .text("TYPE"), .text("STATE"), .number("WAITING"), .note("LAST ERROR")], rows)
    }

    private var rootsText: String? {
        guard !roots.isEmpty else { return nil }
        let rows: [[StyledText]] = roots.map { root in
            let polled = root.polled > 0 ? " (\(root.polled) polled)" : ""
            return [
                StyledText(root.path), Self.state(of: root),
                "\(root.directories)\(polled)", "\(root.settling)",
                StyledText(root.last_event.map(Console.time) ?? "-"),
            ]
        }
        return Self.section(
            "Watched",
            [.name("FOLDER"), .text("STATE"), .number("FOLDERS"), .number("SETTLING"), .text("LAST EVENT")], rows)
    }

    /// Standing by for a share is no problem: another agent lists it.
    private static func state(of root: StatusReport.Root) -> StyledText {
        guard let place = root.place else { return StyledText(root.state, root.state == "watching" ? .good : .warning) }
        if root.state == "watching" { return StyledText("watching: lists the share \(place)", .good) }
        return StyledText(root.state, root.state.hasPrefix("standby") ? .good : .warning)
    }

    /// The files that are not complete yet, and why.
    private var unsettledText: String? {
        let rows = roots.flatMap(\.unsettled).map { [StyledText($0.path), StyledText(Self.reason($0))] }
        return rows.isEmpty ? nil : Self.section("Not complete yet", [.name("FILE"), .note("REASON")], rows)
    }

    /// The reason that a file waits, with its duration where that helps.
    private static func reason(_ file: StatusReport.SettlingFile) -> String {
        var text = file.waits_for ?? "not quiet yet"
        if file.writer { text = "open for writing" + (file.held_by.map { " by \($0)" } ?? "") }
        guard let waiting = file.waiting_ms, waiting >= 60_000 else { return text }
        return text + ", for \(DurationText.format(.milliseconds(waiting / 1000 * 1000)))"
    }

    /// Limits and windows; nil where none applies.
    private var limitsText: String? {
        let lines = (limits ?? []).filter(\.isNotable).map(\.text) + (windows ?? []).map(\.text)
        return lines.isEmpty
            ? nil : Console.tint("Limits", .strong) + "\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }
}
