internal import InletCore
internal import InletLinux
internal import Synchronization

/// Keeps the lines of a file in their order: a delivery can be claimed as soon as its file is in the journal, but is not said
/// to have started before the file is said to be there.
final class AdmissionNotices: Sendable {
    private struct State {
        /// Times of admissions that are being written or told, and how many there are of each.
        var open: [WallTime: Int] = [:]
        var waiting: [WallTime: [CheckedContinuation<Void, Never>]] = [:]
    }

    private let state = Mutex(State())

    /// Admits and tells in `body`, which is given the time that the files must be admitted with.
    func during<Result>(_ body: (WallTime) async throws -> Result) async rethrows -> Result {
        let time = begin()
        defer { end(time) }
        return try await body(time)
    }

    /// The time that files must be admitted with, until `end` says that they have been told of.
    func begin() -> WallTime {
        let time = WallTime.now
        state.withLock { $0.open[time, default: 0] += 1 }
        return time
    }

    func end(_ time: WallTime) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            let left = state.open[time, default: 1] - 1
            state.open[time] = left > 0 ? left : nil
            return left > 0 ? [] : state.waiting.removeValue(forKey: time) ?? []
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when the files that were admitted with `time` have been told of.
    func told(of time: WallTime) async {
        if state.withLock({ $0.open[time] == nil }) { return }
        await withCheckedContinuation { continuation in
            let isTold = state.withLock { state -> Bool in
                if state.open[time] == nil { return true }
                state.waiting[time, default: []].append(continuation)
                return false
            }
            if isTold { continuation.resume() }
        }
    }
}
