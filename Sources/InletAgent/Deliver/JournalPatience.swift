/// How long the journal is left alone that did not take what has ended: longer and longer while the agent runs. One that is
/// asked to stop asks a few times more, and leaves the rest to the next start.
struct JournalPatience: Sendable {
    private var refusals = 0
    private var lastTries = 3

    /// In seconds: short enough for the watchdog, which hears of each try.
    private static let longest = 8
    private static let last = Duration.seconds(1)

    /// - Returns: nil when it has been asked often enough.
    mutating func pause(isStopping: Bool) -> Duration? {
        if isStopping {
            lastTries -= 1
            return lastTries < 0 ? nil : Self.last
        }
        refusals += 1
        return .seconds(min(Self.longest, 1 << min(refusals - 1, 3)))
    }

    /// Waits until the journal may be asked again; at once when the agent is asked to stop meanwhile.
    ///
    /// - Returns: false when it has been asked often enough, or the task is cancelled.
    mutating func wait(_ isStopping: StopFlag) async -> Bool {
        if Task.isCancelled { return false }
        let isLast = isStopping.isSet
        guard let pause = pause(isStopping: isLast) else { return false }
        if isLast {
            // Ends early only when the task is cancelled.
            try? await Task.sleep(for: pause)
        } else {
            await isStopping.wait(until: .now.advanced(by: pause))
        }
        return true
    }
}
