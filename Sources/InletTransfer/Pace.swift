/// Whether bytes that do move, move fast enough to be worth a worker: one byte a minute is no standstill and never ends.
/// Decides only.
///
/// The floor is 16 KiB in each five minutes, 55 bytes a second: what 32 connections still have each on a line of 16 kbit/s,
/// so that many parts that share a bad uplink all stay above it. Time in which the bytes wait for our own throttle does not
/// count. A rest that is shorter has the five minutes as well.
struct Pace {
    typealias Instant = ContinuousClock.Instant

    static let least: Int64 = 16 << 10
    static let usualWindow = Duration.seconds(300)

    private let window: Duration
    /// Of the window that runs, without the time held; nil = nothing is measured.
    private var start: Instant?
    private var base: Int64 = 0
    /// Bytes that are to move before the window ends.
    private var needed: Int64 = 0
    private var heldSince: Instant?

    init(window: Duration) { self.window = window }

    /// `count` bytes have moved so far. A count that falls, as one does that is put together of two, is no news.
    ///
    /// - Parameter total: bytes that are to move; nil = nobody knows.
    mutating func moved(to count: Int64, of total: Int64?, at now: Instant) {
        if start != nil, count < base + needed { return }
        let rest = total.map { $0 - count } ?? Self.least
        guard rest > 0 else { return stop() }
        (start, base, needed) = (now, count, min(rest, Self.least))
        if heldSince != nil { heldSince = now }
    }

    /// Nothing is to move for now.
    mutating func stop() { start = nil }

    mutating func held(at now: Instant) { heldSince = heldSince ?? now }

    mutating func released(at now: Instant) {
        guard let since = heldSince else { return }
        heldSince = nil
        start = start?.advanced(by: since.duration(to: now))
    }

    /// When too few bytes will have moved, if none do until then; nil while there is nothing to judge.
    var next: Instant? { heldSince == nil ? start?.advanced(by: window) : nil }
}
