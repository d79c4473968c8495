import InletCore
import Synchronization

extension SourceFile {
    /// Runs `work`, which reads the whole file in order, and gives behind it back to the page cache what only it has brought
    /// there: a night of uploads does not push out what others work with. What was in memory before stays: somebody has just
    /// written it, or reads it. Small files push nothing out and are left alone.
    ///
    /// - Parameter readings: how often each byte is read, one after another or side by side; the last one to leave a place
    ///   clears it.
    package func clearingBehind<Value, Failure: Error>(
        readings: Int, _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        guard opened.size > CacheTrail.smallest else { return try await work() }
        let trail = CacheTrail(self, readings: readings)
        follow(trail)
        defer {
            follow(nil)
            trail.end(self)
        }
        return try await work()
    }
}

/// Acts on what `CacheWindows` decides.
final class CacheTrail: Sendable {
    /// Smaller files push nothing out.
    static let smallest: Int64 = 64 << 20

    private let windows: Mutex<CacheWindows>

    init(_ source: SourceFile, readings: Int) {
        var windows = CacheWindows(fileSize: source.opened.size, readings: readings)
        // What the first read-ahead may bring is looked at before.
        for step in windows.begin() { Self.look(source, step) { windows.found($0, isCold: $1) } }
        self.windows = Mutex(windows)
    }

    /// `count` bytes from `offset` were read.
    func read(_ source: SourceFile, at offset: Int64, count: Int) {
        let steps = windows.withLock { $0.read(at: offset, count: Int64(count)) }
        for step in steps {
            switch step {
            case .look:
                Self.look(source, step) { window, isCold in windows.withLock { $0.found(window, isCold: isCold) } }
            case .drop(let range): Self.drop(source, range)
            }
        }
    }

    func end(_ source: SourceFile) {
        for range in windows.withLock({ $0.end() }) { Self.drop(source, range) }
    }

    private static func look(_ source: SourceFile, _ step: CacheWindows.Step, _ found: (Int, Bool) -> Void) {
        guard case .look(let window, let range) = step else { return }
        found(window, source.isUncached(offset: range.lowerBound, length: range.upperBound - range.lowerBound))
    }

    private static func drop(_ source: SourceFile, _ range: Range<Int64>) {
        source.dropCache(offset: range.lowerBound, length: range.upperBound - range.lowerBound)
    }
}

/// Which places of a file are looked at before they are read, and which are cleared behind the readers. Decides only.
struct CacheWindows: Sendable {
    enum Step: Sendable, Equatable {
        /// Answered with `found`.
        case look(Int, Range<Int64>)
        case drop(Range<Int64>)
    }

    /// More than any read-ahead of the kernel's: the next window is looked at when somebody enters this one.
    static let size: Int64 = 16 << 20

    private struct Window {
        /// Bytes that are still to be read before it is cleared.
        var left: Int64
        var isRead = false
    }

    private let fileSize: Int64
    private let readings: Int64
    /// Windows that have been looked at.
    private var looked = 0
    /// Of these, those that had nothing in memory.
    private var cold: [Int: Window] = [:]

    init(fileSize: Int64, readings: Int) {
        self.fileSize = fileSize
        self.readings = Int64(readings)
    }

    /// What is to be done before anything is read.
    mutating func begin() -> [Step] { looks(to: 1) }

    mutating func found(_ window: Int, isCold: Bool) {
        guard isCold else { return }
        let range = range(window)
        cold[window] = Window(left: readings * (range.upperBound - range.lowerBound))
    }

    mutating func read(at offset: Int64, count: Int64) -> [Step] {
        guard count > 0 else { return [] }
        let first = Int(offset / Self.size)
        let last = Int((offset + count - 1) / Self.size)
        var steps = looks(to: last + 1)
        for window in first...last {
            let range = range(window).clamped(to: offset..<offset + count)
            if use(window, range.upperBound - range.lowerBound) { steps.append(.drop(self.range(window))) }
        }
        return steps
    }

    /// What is left to be cleared.
    mutating func end() -> [Range<Int64>] {
        defer { cold = [:] }
        return cold.filter(\.value.isRead).keys.sorted().map { range($0) }
    }

    /// Whether all have read the window. Who reads it once more, because something was lost, does so alone.
    private mutating func use(_ window: Int, _ count: Int64) -> Bool {
        guard var state = cold[window] else { return false }
        state.left -= count
        state.isRead = state.left > 0
        if !state.isRead {
            let range = range(window)
            state.left = range.upperBound - range.lowerBound
        }
        cold[window] = state
        return !state.isRead
    }

    private mutating func looks(to last: Int) -> [Step] {
        var steps: [Step] = []
        while looked <= last, Int64(looked) * Self.size < fileSize {
            steps.append(.look(looked, range(looked)))
            looked += 1
        }
        return steps
    }

    private func range(_ window: Int) -> Range<Int64> {
        let start = Int64(window) * Self.size
        return start..<max(start, min(start + Self.size, fileSize))
    }
}
