/// The loop of nearly every service: do what is due; else wait for the earliest time or for a signal.
///
/// A service asks the journal what is due, does a part of it, and says when to look again. What a signal announces between the
/// look and the wait is not slept through, because a signal is kept. Pauses that nothing is to shorten, as those of a receiver
/// that wants to be left alone, are slept inside `doDue`. Things that are done every so often whatever happens are jobs of the
/// `Scheduler`.
extension WakeSignal {
    /// Goes on until the task is cancelled.
    ///
    /// - Parameter doDue: returns when something is due next: now, where there may be more; nil = not before the signal is raised.
    func loop(_ doDue: () async -> ContinuousClock.Instant?) async {
        while !Task.isCancelled {
            let next = await doDue()
            if let next, next <= .now { continue }
            await wait(until: next)
        }
    }
}

extension Signals {
    /// The same at a signal that all share.
    func loop(on signal: Signal, _ doDue: () async -> ContinuousClock.Instant?) async {
        await self[signal].loop(doDue)
    }
}
