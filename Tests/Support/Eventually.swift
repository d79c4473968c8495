internal import Synchronization

/// Thrown when what a test waited for did not come about in time.
package struct NotInTime: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Waits until `condition` holds, and fails after `bound`.
///
/// It looks again when something has happened (`Happening`), and in between for what has no event: a thread that ends, a
/// lease that is given back; soon at first, then seldom.
package func eventually(
    _ what: String, within bound: Duration = .seconds(120), _ condition: () async throws -> Bool
) async throws {
    let clock = ContinuousClock()
    let start = clock.now
    let (end, last) = (start.advanced(by: bound), start.advanced(by: bound * 3))
    let (soonest, latest) = (Duration.milliseconds(5), Duration.milliseconds(20))
    var (looks, pause) = (0, soonest)
    // On a machine that is starved a minute may hold a look or two, and what is waited for had no chance either.
    while clock.now < end || looks < 100 && clock.now < last {
        let (seen, begin) = (Happening.count, clock.now)
        if try await condition() { return }
        looks += 1
        // What happens all the time does not have a costly look made all the time: it would take from what is waited for.
        let cost = clock.now - begin
        try await clock.sleep(for: min(cost * 4, max(latest, min(cost, .milliseconds(250)))))
        pause = await Happening.next(after: seen, within: pause) ? soonest : min(pause * 2, latest)
    }
    throw NotInTime("not within \(bound): \(what)")
}

/// That something changed which a test may wait for: what tests look at rings here, from any thread.
package enum Happening {
    private struct State {
        var count = 0
        var waiting: [Int: CheckedContinuation<Bool, Never>] = [:]
        var last = 0
    }

    private static let state = Mutex(State())

    /// How often it has rung.
    package static var count: Int { state.withLock(\.count) }

    package static func ring() {
        let waiting = state.withLock { state in
            state.count += 1
            defer { state.waiting = [:] }
            return state.waiting.values
        }
        for one in waiting { one.resume(returning: true) }
    }

    /// Waits for it to ring; at once where it has since it had rung `seen` times. - Returns: false when the time was up.
    package static func next(after seen: Int, within bound: Duration) async -> Bool {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        var timer: Task<Void, Never>?
        defer { timer?.cancel() }
        return await withCheckedContinuation { continuation in
            let hasRung = state.withLock { state in
                if state.count == seen { state.waiting[number] = continuation }
                return state.count != seen
            }
            guard !hasRung else { return continuation.resume(returning: true) }
            // Not before it waits: a time that was up earlier would end nothing.
            timer = Task {
                try? await Task.sleep(for: bound)
                state.withLock { $0.waiting.removeValue(forKey: number) }?.resume(returning: false)
            }
        }
    }
}

/// Something that one side of a test sets once and the other reads.
package final class Switch: Sendable {
    private let value = Atomic<Bool>(false)

    package init() {}

    package var isOn: Bool { value.load(ordering: .acquiring) }
    package func turnOn() { value.store(true, ordering: .releasing) }
}
