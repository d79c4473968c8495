/// Notices when the wall clock was put forward: files that were written just before look old by it then.
///
/// A machine without a clock of its own begins in the past, and is put right while files arrive.
struct ClockSteps: Sendable {
    /// A clock that is merely drawn nearer (adjtime(3)) is not put forward.
    private static let least = Duration.seconds(1)

    private var last: (now: ContinuousClock.Instant, wall: WallTime)?
    private var step: ContinuousClock.Instant?

    /// - Parameters:
    ///   - now: not before that of the last call.
    ///   - wall: what the wall clock says at that moment.
    mutating func note(_ now: ContinuousClock.Instant, _ wall: WallTime) {
        if let last, wall - last.wall > last.now.duration(to: now) + Self.least { step = now }
        last = (now, wall)
    }

    /// Whether a file that is `age` old by the wall clock is that old indeed: all that was written before the clock was put
    /// forward has become so by now, as it was noticed that long ago.
    func areTrue(for age: Duration, at now: ContinuousClock.Instant) -> Bool {
        step.map { $0.duration(to: now) >= age } ?? true
    }
}
