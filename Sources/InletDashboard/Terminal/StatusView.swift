internal import InletCore

/// The lines of `inlet status --watch`, fitted to a terminal: problems first, then transfers.
package struct StatusView: Sendable {
    private let status: WatchedStatus
    private let columns: Int
    private let rows: Int?
    private var report: StatusReport { status.report }

    /// Lines that are always reserved for transfers.
    private static let leastMoving = 3
    private static let mostNeeds = 4

    /// - Parameters:
    ///   - columns: the terminal's width, in characters.
    ///   - rows: nil = any number of lines.
    package init(_ status: WatchedStatus, columns: Int, rows: Int? = nil) {
        (self.status, self.columns, self.rows) = (status, max(columns, 1), rows.map { max($0, 1) })
    }

    /// - Parameter clock: the time of day, for people.
    package func lines(clock: String) -> [StyledText] {
        let head = head(clock)
        let rest = section("Destinations", destinations) + section("Watched folders with problems", roots)
        // Two for the heading of transfers.
        let room = rows.map { max(Self.leastMoving, $0 - head.count - rest.count - 2) }
        let all = (head + section("In flight", Self.first(transfers, room)) + rest).map { $0.cut(columns) }
        return rows.map { Array(all.prefix($0)) } ?? all
    }

    /// The first lines; if there are more, the last line counts the rest.
    private static func first(_ rows: [StyledText], _ room: Int?) -> [StyledText] {
        guard let room, rows.count > room else { return rows }
        return rows.prefix(room - 1) + [StyledText("  … and \(rows.count - room + 1) more", .faint)]
    }

    private func section(_ title: String, _ rows: [StyledText]) -> [StyledText] {
        rows.isEmpty ? [] : [StyledText(), StyledText(title, .strong)] + rows
    }

    // MARK: - The head

    private func head(_ clock: String) -> [StyledText] {
        let health = report.health ?? Health(report)
        let mark: StyledText =
            switch health.state {
            case .ok: StyledText("✓ ", .good)
            case .attention: StyledText("! ", .warning)
            case .trouble: StyledText("✗ ", .bad)
            }
        let name = "inlet" + (report.version.map { " \($0)" } ?? "")
        let state = report.running ? StyledText(" running", .good) : StyledText(" not running", .warning)
        var lines = [StyledText(name, .strong) + state + StyledText("  \(clock)", .faint)]
        if let notice = status.notice { lines.append(StyledText(notice, .warning)) }
        lines.append(mark + StyledText(health.sentence, .strong))
        lines += health.needs.prefix(Self.mostNeeds).map { StyledText("  \($0)") }
        return lines + [StyledText(), StyledText(pace)]
    }

    /// `38 MiB/s · 12 files/s · 14 waiting · 3.1 GiB to go, about 1m20s`
    private var pace: String {
        var parts: [String] = []
        if let total = status.rates.total { parts.append("\(ByteText.format(Int64(total)))/s") }
        if let files = status.rates.files, files >= 1 { parts.append("\(Int(files.rounded())) files/s") }
        let queue = report.queue
        parts.append("\(queue.in_flight) in flight")
        parts.append("\(queue.waiting) waiting")
        if queue.retrying > 0 { parts.append("\(queue.retrying) of these tried before") }
        if queue.held > 0 { parts.append("\(queue.held) held back") }
        if let left = toGo {
            let time = TransferRates.time(for: left, at: status.rates.total).map {
                ", about \(DurationText.format($0))"
            }
            parts.append("\(ByteText.format(left)) to go\(time ?? "")")
        }
        return parts.joined(separator: " · ")
    }

    /// The unsent bytes of pending files; nil where there are none.
    private var toGo: Int64? {
        let sent = report.in_flight.reduce(Int64(0)) { $0 + min($1.sent, $1.size) }
        let left = max(0, (report.bytes["pending"] ?? 0) - sent)
        return left > 0 ? left : nil
    }

    // MARK: - What moves

    private static let least = (path: 8, bar: 4)
    private static let mostBar = 16

    /// A line each: bar, rate and time left, and the path in the remaining room.
    private var transfers: [StyledText] {
        let moving = report.in_flight
        let rates = moving.map { transfer in
            transfer.next_look == nil ? status.rates.rate(of: transfer) : nil
        }
        let shown = rates.map { rate in rate.map { ByteText.format(Int64($0)) + "/s" } ?? "" }
        let left = zip(moving, rates).map(Self.left)
        let job = Self.widest(moving.map { "\($0.job)" })
        let rate = Self.widest(shown)
        let destination = min(Self.widest(moving.map(\.destination)), max(6, columns / 6))
        // Spaces and signs between the columns, and the percentage.
        let fixed = 2 + job + 2 + 3 + destination + 2 + 1 + 5 + 2 + rate + 2 + Self.widest(left)
        let free = max(0, columns - fixed)
        let bar = min(Self.mostBar, max(Self.least.bar, free / 3))
        let path = min(Self.widest(moving.map(\.path)), max(Self.least.path, free - bar))
        return moving.indices.map { index in
            let transfer = moving[index]
            let target = DisplayWidth.pad(DisplayWidth.cut(transfer.destination, destination), destination)
            return StyledText("  \(DisplayWidth.padLeft("\(transfer.job)", job))  ", .faint)
                + StyledText(DisplayWidth.pad(DisplayWidth.shorten(transfer.path, path), path) + " → \(target)  ")
                + StyledText.bar(transfer.share, width: bar)
                + StyledText("  \(DisplayWidth.padLeft(shown[index], rate))  \(left[index])")
        }
    }

    private static func left(_ transfer: StatusReport.Transfer, _ rate: Double?) -> String {
        if let step = transfer.step { return step }
        if transfer.next_look != nil { return "working" }
        return TransferRates.time(for: transfer.size - transfer.sent, at: rate).map { DurationText.format($0) } ?? ""
    }

    private static func widest(_ texts: [String]) -> Int { texts.map { DisplayWidth.of($0) }.max() ?? 0 }

    // MARK: - Places

    private var destinations: [StyledText] {
        let name = Self.widest(report.destinations.map(\.name))
        let state = Self.widest(report.destinations.map(\.state))
        return report.destinations.map { destination in
            let isGood = ["up", "not asked yet"].contains(destination.state)
            let tint: TextStyle = isGood ? .good : destination.state == "not running" ? .faint : .bad
            return StyledText("  \(DisplayWidth.pad(destination.name, name))  ")
                + StyledText(DisplayWidth.pad(destination.state, state), tint)
                + StyledText("  \(destination.standing ?? "\(destination.waiting) waiting")")
                + StyledText(destination.last_error.map { "  \(DisplayText.escape($0))" } ?? "", .faint)
        }
    }

    private var roots: [StyledText] {
        report.roots.filter { $0.state != "watching" }.map { root in
            StyledText("  \(root.path)  ") + StyledText(DisplayText.escape(root.state), .warning)
        }
    }
}

extension StatusReport.Transfer {
    /// The progress, from 0 to 1.
    package var share: Double { percent.map { $0 / 100 } ?? (size > 0 ? Double(sent) / Double(size) : 1) }
}
