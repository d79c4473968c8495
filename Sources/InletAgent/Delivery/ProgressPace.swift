/// When the progress of one delivery is worth a line: every 5 % or 5 s, whichever is later.
struct ProgressPace: Sendable, Equatable {
    private var told = 0.0
    private var toldAt: ContinuousClock.Instant?

    private static let stride = 5.0
    private static let interval = Duration.seconds(5)

    init() {}

    /// Whether `percent` is worth a line now; then it counts as told. Progress may also fall: a step was begun anew.
    mutating func isDue(_ percent: Double, at now: ContinuousClock.Instant) -> Bool {
        told = min(told, percent)
        guard percent - told >= Self.stride else { return false }
        if let toldAt, toldAt.duration(to: now) < Self.interval { return false }
        told = percent
        toldAt = now
        return true
    }
}
