/// The requests of one destination that send, and its own limit; a part of `BandwidthShare`.
struct BandwidthLane: Sendable {
    private enum Kind: Int, Comparable, Sendable {
        case small
        case large

        static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
    }

    /// The requests of one kind.
    private struct Line: Sendable {
        var order = FairOrder<BandwidthFlow>()
        /// Those who wait, with what is left of their bodies.
        var waiting: [BandwidthFlow: Int64] = [:]
    }

    /// nil = no limit of its own.
    var bucket: TokenBucket?
    private var order = FairOrder<Kind>()
    private var lines: [Kind: Line] = [.small: Line(), .large: Line()]
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
