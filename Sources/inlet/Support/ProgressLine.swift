import InletCore
import InletDashboard
import InletLinux

/// One line of a terminal that is redrawn; elsewhere nothing until the end.
final class ProgressLine {
    private var isDrawn = false

    func show(_ path: String, sent: Int64, size: Int64) {
        draw(path, Console.bar(sent, of: size), "\(ByteText.format(sent)) of \(ByteText.format(size))")
    }

    func draw(_ text: StyledText) {
        guard Console.isCanvas else { return }
        Console.draw("\r\u{1B}[K" + text.text(hasColour: Console.hasColour))
        isDrawn = true
    }

    func draw(_ path: String, _ bar: String, _ text: String) {
        guard Console.isCanvas else { return }
        let width = max(8, Self.columns - 52)
        Console.draw("\r\u{1B}[K  \(DisplayText.escape(path).shortened(width)) \(bar) \(DisplayText.escape(text))")
        isDrawn = true
    }

    /// The terminal's width.
    static var columns: Int { ProcessSetup.terminalWidth ?? 80 }

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
    /// The present step in words, or the bytes sent so far.
    var doing: String { step ?? "\(ByteText.format(sent)) of \(ByteText.format(size))" }
}

/// The interval between looks at work that somebody watches.
private let watchInterval = Duration.milliseconds(150)

/// Runs `work`, and calls `show` repeatedly until it ends.
func watched<Value: Sendable>(
    _ work: @escaping @Sendable () async throws -> Value, show: () -> Void
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value?.self) { group in
        func tick() {
            group.addTask {
                try await Task.sleep(for: watchInterval)
                return nil
            }
        }
        group.addTask { try await work() }
        tick()
        while let ended = try await group.next() {
            if let value = ended {
                group.cancelAll()
                return value
            }
            show()
            tick()
        }
        throw CancellationError()
    }
}
