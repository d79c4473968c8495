/// When it is asked how a removable volume stands. That counts all its files, on the journal's one connection: not before
/// something may have changed since the last answer, and no more often than once a second.
struct VolumeQuestion {
    static let pause = Duration.seconds(1)

    private var isOpen = true
    private var notBefore: ContinuousClock.Instant?

    /// Something of the volume was seen or admitted, or has ended.
    mutating func reopen() { isOpen = true }

    func isDue(at now: ContinuousClock.Instant) -> Bool { isOpen && notBefore.map { $0 <= now } ?? true }

    /// - Parameter isAnswered: false when the journal did not say: it is asked again.
    mutating func asked(isAnswered: Bool, at now: ContinuousClock.Instant) {
        isOpen = !isAnswered
        notBefore = now.advanced(by: Self.pause)
    }

    /// When a question that came too soon is to be asked.
    var deadline: ContinuousClock.Instant? { isOpen ? notBefore : nil }
}
