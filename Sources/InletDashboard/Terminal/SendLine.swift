internal import InletCore

/// The progress line of `inlet send`: the next file, its progress, and the sum of all.
package struct SendLine: Sendable {
    /// The sums over all files of one command.
    package struct Sum: Sendable, Equatable {
        /// Files that were handed in, and those that have ended.
        package var files = 0
        package var ended = 0
        /// Bytes of the files that were handed in, and of those that have ended.
        package var bytes: Int64 = 0
        package var endedBytes: Int64 = 0

        package init() {}
    }

    private var rates = TransferRates()

    package init() {}

    /// - Parameters:
    ///   - time: seconds of a monotonic clock.
    ///   - columns: the terminal's width.
    package mutating func text(
        _ next: FollowReport.File, _ moving: [StatusReport.Transfer], _ sum: Sum, at time: Double, columns: Int
    ) -> StyledText {
        rates.look(
            moving.filter { $0.next_look == nil }, delivered: sum.endedBytes, files: sum.ended, at: time)
        let slowest = moving.min { $0.share < $1.share }
        let share = slowest?.share ?? 0
        let pace = pace(next, slowest, sum)
        let total = sum.files > 1 ? "  \(sum.ended + 1) of \(sum.files)" : ""
        let bar = columns < 60 ? 8 : 20
        let taken = 2 + 2 + bar + 6 + 2 + DisplayWidth.of(pace) + DisplayWidth.of(total)
        let path = DisplayWidth.shorten(next.path, max(8, columns - taken - 1))
        // One column stays free: after a full line some terminals start another.
        return
            (StyledText("  \(path)  ") + StyledText.bar(share, width: bar) + StyledText("  \(pace)")
            + StyledText(total, .faint)).cut(max(1, columns - 1))
    }

    /// `12 MiB/s, 1m20s left`, for all files together.
    private func pace(_ next: FollowReport.File, _ slowest: StatusReport.Transfer?, _ sum: Sum) -> String {
        guard let slowest else { return "waits" }
        if let step = slowest.step { return DisplayWidth.cut(step, 24) }
        guard let rate = rates.total, rate >= 1 else {
            return "\(ByteText.format(slowest.sent)) of \(ByteText.format(slowest.size))"
        }
        let isSum = sum.files > 1 && sum.bytes > 0
        let left = isSum ? sum.bytes - sum.endedBytes - slowest.sent : slowest.size - slowest.sent
        let time = TransferRates.time(for: left, at: rate).map { ", \(DurationText.format($0)) left" } ?? ""
        return "\(ByteText.format(Int64(rate)))/s\(time)"
    }

    /// `12 files, 3.4 GiB in 1m30s (38 MiB/s)`: the last line for several files.
    package static func end(_ sum: Sum, after time: Duration) -> String {
        let seconds = max(0.001, Double(time.milliseconds) / 1000)
        let rate = ByteText.format(Int64(Double(sum.endedBytes) / seconds))
        let shown = time < .seconds(10) ? time : .seconds(time.milliseconds / 1000)
        return "\(sum.ended) files, \(ByteText.format(sum.endedBytes)) in \(DurationText.format(shown)) (\(rate)/s)"
    }
}
