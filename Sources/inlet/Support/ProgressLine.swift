import InletCore
import InletDashboard
import InletLinux

/// One line of a terminal that is drawn again; nothing until the end elsewhere.
final class ProgressLine {
    private var isDrawn = false

    func show(_ path: String, sent: Int64, size: Int64) {
        draw(path, Console.bar(sent, of: size), "\(ByteText.format(sent)) of \(ByteText.format(size))")
    }

    /// A job and where its slowest transfer is; its number where there are several.
    func show(_ job: FollowReport.File, _ moving: [StatusReport.Transfer], number: Int, of count: Int) {
        let name = count > 1 ? "\(number) of \(count)  \(job.path)" : job.path
        guard let slowest = moving.min(by: { $0.share < $1.share }) else { return show(name, sent: 0, size: job.size) }
        draw(name, Console.bar(Int64(slowest.share * 1000), of: 1000), slowest.doing.shortened(24))
    }

    func draw(_ path: String, _ bar: String, _ text: String) {
        guard Console.isTerminal else { return }
        let width = max(20, (ProcessSetup.terminalWidth ?? 80) - 52)
        Console.draw("\r\u{1B}[K  \(path.shortened(width)) \(bar) \(text)")
        isDrawn = true
    }

    func end(_ text: String) {
        erase()
        Console.print(text)
    }

    func erase() {
        if isDrawn { Console.draw("\r\u{1B}[K") }
        isDrawn = false
    }
}

extension StatusReport.Transfer {
    /// How far it is, from 0 to 1.
    var share: Double { percent.map { $0 / 100 } ?? (size > 0 ? Double(sent) / Double(size) : 1) }

    /// What is being done, in words: its step, or how many bytes have left.
    var doing: String { step ?? "\(ByteText.format(sent)) of \(ByteText.format(size))" }
}
