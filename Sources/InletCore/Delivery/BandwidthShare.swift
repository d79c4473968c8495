/// A request that sends a body; earlier requests have smaller numbers.
package typealias BandwidthFlow = UInt64

/// Shares the bytes that may be sent: by all destinations together, and by each.
///
/// A byte must fit both limits. A request asks, then gets a piece or waits; after sending its piece it asks again. The
/// pieces go in fair order (`FairQueue`) on three levels, and each level redistributes unused shares:
/// - Destinations with waiting bytes get equal shares of the limit for all.
/// - Within a destination, small bodies together get the same as large ones together: half while both wait.
/// - Within each of the two kinds, requests get equal shares.
///
/// This bounds the wait of a small body of b bytes. Requests ask again within 10 ms, and a piece has q bytes (10 ms of
/// the rate). Beside it wait n - 1 other small bodies of at most b bytes, and any number of large ones. The body is
/// sent before its destination has sent `2 n (b + q) + 4 q` bytes. For a single file of 256 KiB at 5 MiB/s this is a
/// seventh of a second. A large body gets at least half of an even share.
package struct BandwidthShare: Sendable {
    package typealias Instant = ContinuousClock.Instant

    /// The largest small body: above most "small files" (as in s5cmd's benchmarks), and below any multipart part (5
    /// MiB). Only the last part of a big file may be smaller.
    package static let smallBody: Int64 = 256 << 10

    /// The limit for all destinations together; nil for none.
    private var all: TokenBucket?
    private var lanes: [String: BandwidthLane] = [:]
    private var places: [BandwidthFlow: String] = [:]
    private var order = FairQueue<String>()
    /// Whether there is nothing to give until `quietEnd`, or ever if that is nil.
    private var isQuiet = false
    private var quietEnd: Instant?

    package init() {}

    /// nil removes the limit; 0 stops everything until it is raised. Bytes already granted stay granted.
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

    /// The bytes that `flow` may send now, at most `wanted`, the rest of its body. 0 means wait, and ask again at
    /// `next`. Granted bytes count as sent.
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

    /// `flow` has ended, with `unused` of its granted bytes.
    package mutating func leave(_ flow: BandwidthFlow, unused: Int64 = 0) {
        guard let destination = places.removeValue(forKey: flow) else { return }
        let left = unused + (lanes[destination]?.remove(flow) ?? 0)
        lanes[destination]?.bucket?.giveBack(left)
        all?.giveBack(left)
        isQuiet = false
    }

    /// Grants the available bytes. A request collects its grant when it asks.
    private mutating func share(at time: Instant) {
        if isQuiet, quietEnd.map({ time < $0 }) ?? true { return }
        all?.fill(at: time)
        var open = waiting
        for name in open { lanes[name]?.bucket?.fill(at: time) }
        while true {
            // A destination at its own limit misses turns, which are forgotten when it asks for its second piece.
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

    /// When waiting requests should ask again; nil if none waits, or if only a higher limit helps.
    package mutating func next(at time: Instant) -> Instant? {
        share(at: time)
        return quietEnd
    }

    /// - Parameter ready: destinations below their own limits.
    private func nextTurn(_ ready: [String]) -> Instant? {
        // The first keeps its turn until its piece is available: smaller pieces do not overtake it.
        let first = order.first(of: ready).flatMap { lanes[$0]?.piece(under: all) }.flatMap { all?.time(of: $0) }
        let others = waiting.filter { !ready.contains($0) }.compactMap { lanes[$0]?.readyTime(under: all) }
        return (others + [first].compactMap { $0 }).min()
    }

    private var waiting: [String] { lanes.filter { $0.value.isWaiting }.map(\.key) }
}

/// The sending requests of one destination, and its own limit; part of `BandwidthShare`.
struct BandwidthLane: Sendable {
    private enum Kind: Int, Comparable, Sendable {
        case small
        case large

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
    }

    /// nil for no own limit.
    var bucket: TokenBucket?
    private var order = FairQueue<Kind>()
    /// The requests of each kind, and the remaining bytes of those that wait.
    private var lines: [Kind: (order: FairQueue<BandwidthFlow>, waiting: [BandwidthFlow: Int64])] = [
        .small: (FairQueue(), [:]), .large: (FairQueue(), [:]),
    ]
    private var kinds: [BandwidthFlow: Kind] = [:]
    /// Granted, and not collected yet.
    private var given: [BandwidthFlow: Int64] = [:]

    var isWaiting: Bool { lines.values.contains { !$0.waiting.isEmpty } }

    /// False if it already waits for the same.
    mutating func wait(_ flow: BandwidthFlow, wanted: Int64, isSmall: Bool) -> Bool {
        let kind = kinds[flow] ?? (isSmall ? .small : .large)
        if lines[kind]?.waiting[flow] == wanted { return false }
        kinds[flow] = kind
        order.enter(kind)
        lines[kind]?.order.enter(flow)
        lines[kind]?.waiting[flow] = wanted
        return true
    }

    /// The bytes granted to `flow` since it asked; nil for none yet.
    mutating func collect(_ flow: BandwidthFlow) -> Int64? { given.removeValue(forKey: flow) }

    /// Returns the uncollected grant of `flow`.
    mutating func remove(_ flow: BandwidthFlow) -> Int64 {
        if let kind = kinds.removeValue(forKey: flow) {
            lines[kind]?.order.remove(flow)
            lines[kind]?.waiting[flow] = nil
        }
        return given.removeValue(forKey: flow) ?? 0
    }

    /// The size of the next piece under both limits; nil if no request waits.
    func piece(under all: TokenBucket?) -> Int64? {
        guard let (kind, flow) = first, let wanted = lines[kind]?.waiting[flow] else { return nil }
        return min(wanted, bucket?.quantum ?? .max, all?.quantum ?? .max)
    }

    /// Whether a request waits that the destination's own limit allows.
    func isReady(under all: TokenBucket?) -> Bool {
        guard let piece = piece(under: all) else { return false }
        return bucket?.has(piece) ?? true
    }

    /// When the destination's own limit allows the next piece; nil for never, and without a limit.
    func readyTime(under all: TokenBucket?) -> TokenBucket.Instant? {
        piece(under: all).flatMap { bucket?.time(of: $0) }
    }

    /// Grants a piece to the next request.
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

/// Bytes that may be sent at a rate: unused ones accumulate up to `burst`, starting at none.
///
/// In any t seconds at one rate, at most `rate * t + burst` bytes are taken, and exactly `rate * t` if takers are never
/// late by more than 0.1 s. Time is a parameter; it never runs backwards: an earlier moment counts as the last one.
package struct TokenBucket: Sendable, Equatable {
    package typealias Instant = ContinuousClock.Instant

    /// Bytes per second; 0 for none ever.
    package private(set) var rate: Int64
    private var bytes = 0.0
    private var filledAt: Instant

    package init(rate: Int64, at time: Instant) {
        self.rate = max(0, rate)
        filledAt = time
    }

    /// The most that accumulates: 100 ms of the rate, so that a busy machine's delays cost no bytes. At low rates 16
    /// KiB: over ten seconds at the lowest sensible rate (100 KiB/s) this is 1.6 %.
    package var burst: Int64 { max(rate / 10, 16 << 10) }

    /// The bytes granted at a time: 10 ms of the rate, in pieces large enough for a packet or two, and too small for
    /// others to notice.
    package var quantum: Int64 { min(max(rate / 100, 4 << 10), 256 << 10) }

    /// Keeps the accumulated bytes as far as the new rate allows; a rate of 0 drops them.
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

    /// Whether `count` bytes were available at the last fill; ignores fractions of a byte.
    package func has(_ count: Int64) -> Bool { rate > 0 && bytes > Double(count) - 1 }

    package mutating func take(_ count: Int64) { bytes -= Double(count) }

    /// Returns bytes that were taken but not sent.
    package mutating func giveBack(_ count: Int64) { if rate > 0 { bytes = min(bytes + Double(count), Double(burst)) } }

    /// When `count` bytes will be available; nil for never at this rate.
    package func time(of count: Int64) -> Instant? {
        guard rate > 0 else { return nil }
        let missing = max(0, Double(count) - bytes) / Double(rate)
        return filledAt.advanced(by: .nanoseconds(Int64(min(missing, 1e6) * 1e9) + 1))
    }
}

/// Chooses the next so that all waiting keys get the same number of bytes: start-time fair queueing (Goyal, Vin and
/// Cheng 1996).
///
/// Each key has a tag, the bytes it got; the lowest tag is next. A key that starts to wait gets the tag served last, so
/// it cannot save up turns while away. For any two keys that always wait, the bytes they got differ by at most their
/// two largest pieces.
struct FairQueue<Key: Hashable & Comparable & Sendable>: Sendable {
    private var tags: [Key: Int64] = [:]
    /// The tag served last.
    private var served: Int64 = 0

    /// `key` starts to wait. Nothing changes for a key that already waits, unless it was skipped: its missed turns are
    /// forgotten.
    mutating func enter(_ key: Key) { tags[key] = max(tags[key] ?? served, served) }

    /// The next of `keys`, which have all entered; of equals the smallest key.
    func first(of keys: some Sequence<Key>) -> Key? {
        var first: (key: Key, tag: Int64)?
        for key in keys {
            let tag = tags[key] ?? served
            if let best = first, (best.tag, best.key) < (tag, key) { continue }
            first = (key, tag)
        }
        return first?.key
    }

    /// `key` got a piece of `bytes`.
    mutating func serve(_ key: Key, _ bytes: Int64) {
        let tag = tags[key] ?? served
        served = max(served, tag)
        tags[key] = tag + bytes
    }

    mutating func remove(_ key: Key) { tags[key] = nil }
}
