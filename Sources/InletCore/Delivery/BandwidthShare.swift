/// One request that sends a body; smaller numbers came first.
package typealias BandwidthFlow = UInt64

/// Shares out the bytes that may be sent: by all destinations together, and by each.
///
/// A byte needs room under both limits. Whoever wants to send asks, and gets a piece or waits; who has sent its piece asks
/// again. The pieces go in fair order (`FairQueue`) on three levels, and what one does not use the others get:
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
    private var order = FairQueue<String>()
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

/// The requests of one destination that send, and its own limit; a part of `BandwidthShare`.
struct BandwidthLane: Sendable {
    private enum Kind: Int, Comparable, Sendable {
        case small
        case large

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
    }

    /// nil = no limit of its own.
    var bucket: TokenBucket?
    private var order = FairQueue<Kind>()
    /// The requests of each kind; of those who wait, what is left of their bodies.
    private var lines: [Kind: (order: FairQueue<BandwidthFlow>, waiting: [BandwidthFlow: Int64])] = [
        .small: (FairQueue(), [:]), .large: (FairQueue(), [:]),
    ]
    private var kinds: [BandwidthFlow: Kind] = [:]
    /// Given, and not asked for yet.
    private var given: [BandwidthFlow: Int64] = [:]

    var isWaiting: Bool { lines.values.contains { !$0.waiting.isEmpty } }

    /// False when it waits for the same already.
    mutating func wait(_ flow: BandwidthFlow, wanted: Int64, isSmall: Bool) -> Bool {
        let kind = kinds[flow] ?? (isSmall ? .small : .large)
        if lines[kind]?.waiting[flow] == wanted { return false }
        kinds[flow] = kind
        order.enter(kind)
        lines[kind]?.order.enter(flow)
        lines[kind]?.waiting[flow] = wanted
        return true
    }

    /// What `flow` was given since it asked; nil = nothing yet.
    mutating func collect(_ flow: BandwidthFlow) -> Int64? { given.removeValue(forKey: flow) }

    /// Returns what `flow` was given and has not asked for.
    mutating func remove(_ flow: BandwidthFlow) -> Int64 {
        if let kind = kinds.removeValue(forKey: flow) {
            lines[kind]?.order.remove(flow)
            lines[kind]?.waiting[flow] = nil
        }
        return given.removeValue(forKey: flow) ?? 0
    }

    /// The size of the next piece under the destination's own limit and the one for all; nil when nobody waits.
    func piece(under all: TokenBucket?) -> Int64? {
        guard let (kind, flow) = first, let wanted = lines[kind]?.waiting[flow] else { return nil }
        return min(wanted, bucket?.quantum ?? .max, all?.quantum ?? .max)
    }

    /// Whether somebody waits whom the destination's own limit lets through.
    func isReady(under all: TokenBucket?) -> Bool {
        guard let piece = piece(under: all) else { return false }
        return bucket?.has(piece) ?? true
    }

    /// When its own limit lets the next piece through; nil for never, and without a limit.
    func readyTime(under all: TokenBucket?) -> TokenBucket.Instant? {
        piece(under: all).flatMap { bucket?.time(of: $0) }
    }

    /// Gives a piece to whoever is next.
    mutating func give(_ piece: Int64) {
        guard let (kind, flow) = first else { return }
        bucket?.take(piece)
        given[flow] = piece
        order.serve(kind, piece)
        lines[kind]?.waiting[flow] = nil
        lines[kind]?.order.serve(flow, piece)
    }

    private var first: (Kind, BandwidthFlow)? {
        let kinds = lines.lazy.filter { !$0.value.waiting.isEmpty }.map(\.key)
        guard let kind = order.first(of: kinds), let line = lines[kind],
            let flow = line.order.first(of: line.waiting.keys)
        else { return nil }
        return (kind, flow)
    }
}

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

/// Who is next, so that all who wait get the same number of bytes: start-time fair queueing (Goyal, Vin and Cheng 1996).
///
/// Each has a tag, the bytes it was given, and the least one is next. Who begins to wait does so at the tag of the one
/// served last, so nobody saves up turns while away. Of any two who wait all the time, what they were given differs by no
/// more than the two largest pieces.
struct FairQueue<Key: Hashable & Comparable & Sendable>: Sendable {
    private var tags: [Key: Int64] = [:]
    /// The tag of the one served last.
    private var served: Int64 = 0

    /// `key` begins to wait. For one that waits already nothing changes, unless it was passed over: its missed turns are
    /// forgotten.
    mutating func enter(_ key: Key) { tags[key] = max(tags[key] ?? served, served) }

    /// The next of `keys`, which have all entered; of equal ones the least key.
    func first(of keys: some Sequence<Key>) -> Key? {
        var first: (key: Key, tag: Int64)?
        for key in keys {
            let tag = tags[key] ?? served
            if let best = first, (best.tag, best.key) < (tag, key) { continue }
            first = (key, tag)
        }
        return first?.key
    }

    /// `key` was served with a piece of `bytes`.
    mutating func serve(_ key: Key, _ bytes: Int64) {
        let tag = tags[key] ?? served
        served = max(served, tag)
        tags[key] = tag + bytes
    }

    mutating func remove(_ key: Key) { tags[key] = nil }
}
