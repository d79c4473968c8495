internal import InletCore

/// What moves, a line each: bar, rate and time left, with the path in what room is left.
struct TransferTable {
    let rows: [TintedText]

    private static let least = (path: 8, bar: 4)
    private static let mostBar = 16

    private struct Cells {
        var job: String
        var path: String
        var destination: String
        var share: Double
        var rate: String
        var left: String
    }

    /// - Parameter columns: of the terminal.
    init(_ transfers: [StatusReport.Transfer], _ rates: TransferRates, columns: Int) {
        let cells = transfers.map { Self.cells($0, rates) }
        let job = cells.map { $0.job.count }.max() ?? 0
        let rate = cells.map { DisplayWidth.of($0.rate) }.max() ?? 0
        let left = cells.map { DisplayWidth.of($0.left) }.max() ?? 0
        let destination = min(cells.map { DisplayWidth.of($0.destination) }.max() ?? 0, max(6, columns / 6))
        // Spaces and signs between the columns, and the percent.
        let fixed = 2 + job + 2 + 3 + destination + 2 + 1 + 5 + 2 + rate + 2 + left
        let free = max(0, columns - fixed)
        let bar = min(Self.mostBar, max(Self.least.bar, free / 3))
        let widest = cells.map { DisplayWidth.of($0.path) }.max() ?? 0
        let path = min(widest, max(Self.least.path, free - bar))
        rows = cells.map { cell in
            TintedText("  \(DisplayWidth.padLeft(cell.job, job))  ", .faint)
                + TintedText(DisplayWidth.pad(DisplayWidth.shorten(cell.path, path), path))
                + TintedText(" → \(DisplayWidth.pad(DisplayWidth.cut(cell.destination, destination), destination))  ")
                + ShareBar.text(cell.share, width: bar)
                + TintedText("  \(DisplayWidth.padLeft(cell.rate, rate))  \(cell.left)")
        }
    }

    private static func cells(_ transfer: StatusReport.Transfer, _ rates: TransferRates) -> Cells {
        let isAhead = transfer.next_look != nil
        let rate = isAhead ? nil : rates.rate(of: transfer)
        var left = ""
        if let step = transfer.step {
            left = step
        } else if isAhead {
            left = "working"
        } else if let time = TransferRates.time(for: transfer.size - transfer.sent, at: rate) {
            left = DurationText.format(time)
        }
        return Cells(
            job: "\(transfer.job)", path: transfer.path, destination: transfer.destination,
            share: transfer.percent.map { $0 / 100 }
                ?? (transfer.size > 0 ? Double(transfer.sent) / Double(transfer.size) : 1),
            rate: rate.map { ByteText.format(Int64($0)) + "/s" } ?? "", left: left)
    }
}

/// `████████····  62 %`
package enum ShareBar {
    /// - Parameter share: from 0 to 1; what is outside is taken as the nearest.
    package static func text(_ share: Double, width: Int) -> TintedText {
        let share = share.isFinite ? min(1, max(0, share)) : 1
        let filled = Int(share * Double(width))
        let percent = DisplayWidth.padLeft("\(Int(share * 100))", 3)
        return TintedText(String(repeating: "█", count: filled), .good)
            + TintedText(String(repeating: "·", count: width - filled), .faint) + TintedText(" \(percent) %")
    }
}
