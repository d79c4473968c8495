/// One request that sends a body; smaller numbers came first.
package struct BandwidthFlow: Sendable, Hashable, Comparable {
    package let number: UInt64

    package init(_ number: UInt64) { self.number = number }

    package static func < (left: BandwidthFlow, right: BandwidthFlow) -> Bool { left.number < right.number }
}

/// Shares out the bytes that may be sent: by all destinations together, and by each.
///
/// A byte needs room under both limits. Whoever wants to send asks, and gets a piece or waits; who has sent its piece asks
/// again. The pieces go in fair order (`FairOrder`) on three levels, and what one does not use the others get:
/// * destinations with bytes waiting get the same share of the limit for all;
/// * in a destination small bodies together get the same as large ones together, so half while both wait;
/// * in each of the two, requests get the same.
///
/// So with requests that ask again within 10 ms, with a piece of q bytes (10 ms of the rate), a small body of b bytes that waits beside n - 1 other small ones of at
/// most b bytes, and any number of large ones, has gone out before its destination has sent `2 n (b + q) + 4 q` bytes: for
/// a lone file of 256 KiB at 5 MiB/s a seventh of a second. A large one gets at least half of an even share.
package struct BandwidthShare: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// Bodies up to this size are small ones: one packet's worth up to what s5cmd-like loads of "small files" have, and less
    /// than any multipart piece (5 MiB, of the last one less), so that the end of a big file is the only exception.
    package static let smallBody: Int64 = 256 << 10

    /// What all destinations share; nil = no limit.
    private var all: TokenBucket?
    private var lanes: [String: BandwidthLane] = [:]
    private var places: [BandwidthFlow: String] = [:]
    private var order = FairOrder<String>()
    /// Whether there is nothing to give to those who wait, until then; nil = ever.
    private var isQuiet = false
    private var quietEnd: Instant?

    package init() {}

    /// nil = no limit; 0 = nothing until it is raised. What was given stays given.
    package mutating func limit(_ rate: Int64?, at time: Instant) {
        Self.set(&all, rate, time)
        isQuiet = false
    }

    package mutating func limit(_ rate: Int64?, of destination: String, at time: Instant) {
        Self.set(&lanes[destination, default: BandwidthLane()].bucket, rate, time)
        isQuiet = false
    }

    private static func set(_ bucket: inout TokenBucket?, _ rate: Int64?, _ time: Instant) {
        guard let rate else { return bucket = nil }
        if bucket == nil { bucket = TokenBucket(rate: rate, at: time) } else { bucket?.set(rate: rate, at: time) }
    }

    /// Whether nothing may be sent to `destination` until a limit is raised.
    package func isClosed(_ destination: String) -> Bool { all?.rate == 0 || lanes[destination]?.bucket?.rate == 0 }

    /// Whether a request to `destination` waits for bytes.
    package func isWaiting(_ destination: String) -> Bool { lanes[destination]?.isWaiting ?? false }

    /// How many bytes `flow` may send now, at most `wanted`, which is what is left of its body; 0 = it waits, and asks again
    /// at `next`. Bytes that were given count as sent.
    package mutating func ask(
        _ flow: BandwidthFlow, of destination: String, wanted: Int64, isSmall: Bool, at time: Instant
    ) -> Int64 {
        if let given = lanes[destination]?.collect(flow) { return given }
        if lanes[destination, default: BandwidthLane()].wait(flow, wanted: max(1, wanted), isSmall: isSmall) {
            order.enter(destination)
            places[flow] = destination
            isQuiet = false
        }
        share(at: time)
        return lanes[destination]?.collect(flow) ?? 0
    }

    /// `flow` has ended, with `unused` of the bytes that it got.
    package mutating func leave(_ flow: BandwidthFlow, unused: Int64 = 0) {
        guard let destination = places.removeValue(forKey: flow) else { return }
        let left = unused + (lanes[destination]?.remove(flow) ?? 0)
        lanes[destination]?.bucket?.giveBack(left)
        all?.giveBack(left)
        isQuiet = false
    }

    /// Gives out what is there. Who was given something is told when it asks.
    private mutating func share(at time: Instant) {
        if isQuiet, quietEnd.map({ time < $0 }) ?? true { return }
        all?.fill(at: time)
        var open = waiting
        for name in open { lanes[name]?.bucket?.fill(at: time) }
        while true {
            // Whom its own limit holds back misses its turn; those missed are forgotten when it asks for its second piece.
            open.removeAll { lanes[$0]?.isReady(under: all) != true }
            guard let name = order.first(of: open), let piece = lanes[name]?.piece(under: all), all?.has(piece) ?? true
            else { break }
            all?.take(piece)
            lanes[name]?.give(piece)
            order.serve(name, piece)
        }
        isQuiet = true
        quietEnd = nextTurn(open)
    }

    /// When those who wait should ask again; nil when nobody waits, or only for a limit to be raised.
    package mutating func next(at time: Instant) -> Instant? {
        share(at: time)
        return quietEnd
    }

    /// - Parameter ready: those whom their own limit lets through.
    private func nextTurn(_ ready: [String]) -> Instant? {
        // Who is first keeps its turn until its piece is there: smaller pieces do not pass it.
        let first = order.first(of: ready).flatMap { lanes[$0]?.piece(under: all) }.flatMap { all?.time(of: $0) }
        let others = waiting.filter { !ready.contains($0) }.compactMap { lanes[$0]?.readyTime(under: all) }
        return (others + [first].compactMap { $0 }).min()
    }

    private var waiting: [String] { lanes.filter { $0.value.isWaiting }.map(\.key) }
}
