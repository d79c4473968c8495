/// The slowest second of reading a file, which shows a card that is wearing out.
package struct ReadPace: Sendable, Equatable {
    private var bytes: Int64 = 0
    private var time = Duration.zero
    /// In bytes per second; nil while the reads took less than a second in all.
    package private(set) var slowest: Int64?

    package init() {}

    /// - Parameter elapsed: the time of the read alone.
    package mutating func add(_ count: Int, in elapsed: Duration) {
        bytes += Int64(count)
        time += elapsed
        guard time >= .seconds(1) else { return }
        let rate = Int64(Double(bytes) / (time / .seconds(1)))
        slowest = min(slowest ?? rate, rate)
        (bytes, time) = (0, .zero)
    }
}
