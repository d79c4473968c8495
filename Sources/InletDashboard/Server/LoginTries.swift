/// Keeps people from guessing: after some wrong tries an address has to wait, each time longer, and after many from anywhere
/// everybody has. Pure: time is a parameter.
struct LoginTries: Sendable {
    typealias Instant = ContinuousClock.Instant

    private struct Record {
        var failures: Int
        var last: Instant
        var until: Instant
    }

    /// Wrong tries of one address that cost nothing.
    static let free = 5
    static let firstWait = Duration.seconds(30)
    static let longestWait = Duration.seconds(15 * 60)
    /// An address of which no wrong one came for so long is forgotten.
    static let memory = Duration.seconds(3600)
    /// Wrong tries of all together within `span`.
    static let freeTogether = 60
    static let span = Duration.seconds(60)
    /// Addresses that are remembered; the one that tried longest ago gives way.
    static let most = 1000

    private var records: [[UInt8]: Record] = [:]
    private var together = 0
    private var spanBegan: Instant?

    /// Whether the next try of `network` has to wait; nil = it has not.
    mutating func wait(_ network: [UInt8], at now: Instant) -> Duration? {
        if let until = records[network]?.until, until > now { return now.duration(to: until) }
        guard let began = spanBegan else { return nil }
        let end = began.advanced(by: Self.span)
        if now >= end { (together, spanBegan) = (0, nil) }
        return together >= Self.freeTogether ? now.duration(to: end) : nil
    }

    /// What a wrong try brings.
    enum Consequence: Equatable {
        case none
        /// Its address has to wait from now on.
        case wait(Duration)
        /// Everybody has.
        case waitTogether(Duration)
    }

    mutating func failed(_ network: [UInt8], at now: Instant) -> Consequence {
        if let began = spanBegan, now >= began.advanced(by: Self.span) { (together, spanBegan) = (0, nil) }
        spanBegan = spanBegan ?? now
        together += 1
        var record = records[network] ?? Record(failures: 0, last: now, until: now)
        if record.last.advanced(by: Self.memory) <= now { record.failures = 0 }
        record.failures += 1
        record.last = now
        let over = record.failures - Self.free
        let wait = over < 0 ? nil : min(Self.longestWait, Self.firstWait * (1 << min(over, 10)))
        if let wait { record.until = now.advanced(by: wait) }
        if records[network] == nil, records.count >= Self.most,
            let oldest = records.min(by: { $0.value.last < $1.value.last })?.key
        {
            records[oldest] = nil
        }
        records[network] = record
        if let wait { return .wait(wait) }
        if together == Self.freeTogether, let began = spanBegan {
            return .waitTogether(now.duration(to: began.advanced(by: Self.span)))
        }
        return .none
    }

    mutating func succeeded(_ network: [UInt8]) { records[network] = nil }
}
