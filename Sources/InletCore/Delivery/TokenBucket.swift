/// Bytes that may go out at a rate: they gather while nobody takes them, up to `burst`, and begin with none.
///
/// In any span of t seconds at one rate at most `rate * t + burst` bytes are taken, and exactly `rate * t` where takers
/// are never late by more than a tenth of a second. Time is a parameter; an earlier moment than the last one is taken as
/// the last one.
package struct TokenBucket: Sendable, Equatable {
    package typealias Instant = ContinuousClock.Instant

    /// Bytes a second; 0 = none ever.
    package private(set) var rate: Int64
    private var bytes = 0.0
    private var filledAt: Instant

    package init(rate: Int64, at time: Instant) {
        self.rate = max(0, rate)
        filledAt = time
    }

    /// What gathers at most: 100 ms of the rate, so that a busy machine's delays cost no bytes; of a low rate 16 KiB, which
    /// over ten seconds of the lowest sensible one (100 KiB/s) are 1.6 %.
    package var burst: Int64 { max(rate / 10, 16 << 10) }

    /// What is given at a time: 10 ms of the rate, in pieces that are neither too small for a packet or two nor so large that
    /// others would notice.
    package var quantum: Int64 { min(max(rate / 100, 4 << 10), 256 << 10) }

    /// What had gathered stays, as far as the new rate allows; a rate of 0 forgets it.
    package mutating func set(rate: Int64, at time: Instant) {
        fill(at: time)
        self.rate = max(0, rate)
        bytes = rate > 0 ? min(bytes, Double(burst)) : 0
    }

    package mutating func fill(at time: Instant) {
        guard time > filledAt else { return }
        bytes = min(bytes + Double(rate) * ((time - filledAt) / .seconds(1)), Double(burst))
        filledAt = time
    }

    /// Whether `count` bytes are there, as of the last filling; less than a byte is not counted.
    package func has(_ count: Int64) -> Bool { rate > 0 && bytes > Double(count) - 1 }

    package mutating func take(_ count: Int64) { bytes -= Double(count) }

    /// Bytes that were taken and not sent.
    package mutating func giveBack(_ count: Int64) { if rate > 0 { bytes = min(bytes + Double(count), Double(burst)) } }

    /// When `count` bytes will be there; nil = never at this rate.
    package func time(of count: Int64) -> Instant? {
        guard rate > 0 else { return nil }
        let missing = max(0, Double(count) - bytes) / Double(rate)
        return filledAt.advanced(by: .nanoseconds(Int64(min(missing, 1e6) * 1e9) + 1))
    }
}
