/// How many large bodies to send to a destination at once, judged by recent throughput.
///
/// The number moves on a ladder. It climbs while each rung clearly brings more bytes per second, confirmed twice in
/// turns with the rung below. So a line that limits each connection gets many, and a merely uneven line none. A rung
/// that was climbed is compared with the one below again and again, and left when it no longer pays. If a connection is
/// slow, the number goes down as long as that costs almost nothing. On a full uplink, more connections only slow each
/// body down, and a kill then repeats more bytes. A server that asks for less (503 SlowDown, 429) gets half. Each
/// change is tried for a round of bodies and undone if it did not pay. A judged line is left in peace for longer and
/// longer, unless its rate changes.
///
/// A pure value: the caller reports what starts and ends, and when.
package struct UploadPace: Sendable {
    /// Where an unknown destination starts.
    package static let start = 4
    /// The lowest number: with one connection the line is idle between two bodies.
    static let floor = 2
    /// Below this rate, a connection takes more than 2 s for the smallest usual part.
    static let slow = Double(4 << 20)

    private static let ladder = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    /// The gain a higher rung must bring to rule out chance: at least this much, and this share of what the added
    /// connections could bring.
    private static let gain = 0.1
    private static let share = 0.25
    /// The throughput that a lower rung must keep.
    private static let loss = 0.97
    /// A gain of this share of the added connections calls for a longer step.
    private static let nearlyAll = 0.7
    /// How many seconds a judgement lasts, and at least how many rounds.
    private static let hold = 30.0...600.0
    private static let rounds = 10.0

    /// A body on its way.
    package struct Body: Sendable {
        fileprivate var began: Double
    }

    private enum Phase {
        /// The first round, or the first after the line changed.
        case measuring
        case climbing(from: Int, base: Double)
        /// Back at the rung below, then again at the higher one, to rule out a momentary gain.
        case doubting(from: Int, to: Int, base: Double, first: Double)
        case confirming(from: Int, base: Double, first: Double)
        /// At the rung below one that was climbed earlier.
        case looking(from: Int, base: Double)
        /// `isFirst`: nothing has been given up yet, so the line may also want more.
        case sinking(from: Int, base: Double, isFirst: Bool)
        case resting(since: Double, until: Double, goodput: Double?)
    }

    private var rung: Int
    private var phase = Phase.measuring
    private var round = PaceRound(warming: 1, quota: Self.start)
    /// Where this search started, and how long its result lasts.
    private var searchedFrom: Int
    private var holding = Self.hold.lowerBound
    private var cutAt = -Double.infinity
    /// Bodies under way, and the integral of their number over time.
    private var running = 0
    private var crowding = 0.0
    private var last = 0.0
    /// Bytes per second of one connection; nil before the first round ends.
    package private(set) var rate: Double?

    package init() {
        rung = Self.ladder.firstIndex(of: Self.start) ?? 0
        searchedFrom = rung
    }

    /// How many bodies may be under way now.
    package var limit: Int { Self.ladder[rung] }

    package mutating func begin(at now: Duration) -> Body {
        let now = advance(now)
        running += 1
        return Body(began: now)
    }

    /// - Parameters:
    ///   - bytes: the bytes that arrived; nil for a failed body, whose duration says nothing about the line.
    ///   - wanted: bodies under way, including this one, and bodies that wait for permission.
    package mutating func end(_ body: Body, bytes: Int64?, wanted: Int, at now: Duration) {
        let now = advance(now)
        running = max(0, running - 1)
        guard let bytes else { return giveUpRound(now) }
        round.end(Double(bytes), from: body.began, at: now, crowding: crowding, running: running, wanted: wanted)
        if round.isOver { judge(now) }
    }

    /// The server asked for less. Bodies sent before the last such request say nothing new.
    ///
    /// - Parameter began: when the refused request was made.
    package mutating func refused(since began: Duration, at now: Duration) {
        let now = advance(now)
        guard began / .seconds(1) >= cutAt else { return }
        cutAt = now
        searchedFrom = max(0, rung - 2)
        rest(at: searchedFrom, since: now, goodput: nil)
    }

    private mutating func advance(_ now: Duration) -> Double {
        let now = now / .seconds(1)
        crowding += Double(running) * max(0, now - last)
        last = max(last, now)
        return last
    }
}

extension UploadPace {
    private mutating func judge(_ now: Double) {
        let ended = round
        rate = ended.rate
        guard ended.crowd >= 0.8 * Double(limit) else { return giveUpRound(now) }
        switch phase {
        case .measuring: search(ended)
        case .climbing(let from, let base): climbed(from, base, ended, now)
        case .doubting(let from, let to, let base, let first): doubted(from, to, max(base, ended.goodput), first, now)
        case .confirming(let from, let base, let first): confirmed(from, base, min(first, ended.goodput), ended, now)
        case .looking(let from, let base): looked(from, base, ended, now)
        case .sinking(let from, let base, let isFirst): sank(from, base, isFirst, ended, now)
        case .resting(let since, let until, let goodput):
            let ratio = goodput.map { ended.goodput / $0 } ?? 1
            let hasChanged = !(0.7...1.4).contains(ratio) && now - since > Self.hold.lowerBound / 3
            if now >= until || hasChanged { return search(ended) }
            phase = .resting(since: since, until: until, goodput: goodput ?? ended.goodput)
            next(to: rung)
        }
    }

    /// Learns nothing about the rung: too few bodies to fill it, or one failed. A rung on trial may be the cause of
    /// failures, and then no round would ever end there.
    private mutating func giveUpRound(_ now: Double) {
        switch phase {
        case .climbing(let from, let base), .confirming(let from, let base, _):
            rest(at: from, since: now, goodput: base)
        default: next(to: rung)
        }
    }

    /// Tries a neighbour of the rung that `ended` measured.
    private mutating func search(_ ended: PaceRound) {
        searchedFrom = rung
        if ended.rate < Self.slow, limit > Self.floor {
            phase = .sinking(from: rung, base: ended.goodput, isFirst: true)
            next(to: rung - 1)
        } else if limit > Self.start {
            phase = .looking(from: rung, base: ended.goodput)
            next(to: rung - 1)
        } else {
            climb(from: rung, by: ended.rate < Self.slow ? 1 : 2, base: ended.goodput, wanted: ended.meanWanted)
        }
    }

    /// Compares a rung with the one below it, which was just measured.
    private mutating func looked(_ from: Int, _ base: Double, _ ended: PaceRound, _ now: Double) {
        guard base >= ended.goodput * Self.gain(from: rung, to: from) else {
            return rest(at: rung, since: now, goodput: ended.goodput)
        }
        climb(from: from, by: 1, base: base, wanted: ended.meanWanted)
    }

    /// - Parameter wanted: the available bodies; a rung that they cannot fill is not tried.
    private mutating func climb(from rung: Int, by step: Int, base: Double, wanted: Double) {
        var target = min(rung + step, Self.ladder.count - 1)
        while target > rung, Double(Self.ladder[target]) > wanted { target -= 1 }
        guard target > rung else { return rest(at: rung, since: last, goodput: base) }
        phase = .climbing(from: rung, base: base)
        next(to: target)
    }

    private mutating func climbed(_ from: Int, _ base: Double, _ ended: PaceRound, _ now: Double) {
        if ended.goodput >= base * Self.gain(from: from, to: rung) {
            phase = .doubting(from: from, to: rung, base: base, first: ended.goodput)
            next(to: from)
        } else if rung - from > 1 {
            climb(from: from, by: 1, base: base, wanted: ended.meanWanted)
        } else {
            rest(at: from, since: now, goodput: base)
        }
    }

    private static func gain(from low: Int, to high: Int) -> Double {
        1 + max(gain, share * (Double(ladder[high]) / Double(ladder[low]) - 1))
    }

    private mutating func doubted(_ from: Int, _ to: Int, _ base: Double, _ first: Double, _ now: Double) {
        guard first >= base * Self.gain(from: from, to: to) else { return rest(at: from, since: now, goodput: base) }
        phase = .confirming(from: from, base: base, first: first)
        next(to: to)
    }

    /// - Parameter least: the lower of the two results of the higher rung.
    private mutating func confirmed(_ from: Int, _ base: Double, _ least: Double, _ ended: PaceRound, _ now: Double) {
        guard least >= base * Self.gain(from: from, to: rung) else { return rest(at: from, since: now, goodput: base) }
        let added = Double(limit) / Double(Self.ladder[from])
        let share = (least / base - 1) / (added - 1)
        // More than a full share is chance, and would hide the gain of the next rung.
        climb(
            from: rung, by: share >= Self.nearlyAll ? 2 : 1, base: min(least, base * added), wanted: ended.meanWanted)
    }

    private mutating func sank(_ from: Int, _ base: Double, _ isFirst: Bool, _ ended: PaceRound, _ now: Double) {
        let base = max(base, ended.goodput)
        if ended.goodput < base * Self.loss {
            if !isFirst { return rest(at: from, since: now, goodput: base) }
            climb(from: from, by: 2, base: base, wanted: ended.meanWanted)
        } else if ended.rate < Self.slow, limit > Self.floor {
            phase = .sinking(from: rung, base: base, isFirst: false)
            next(to: rung - 1)
        } else {
            rest(at: rung, since: now, goodput: ended.goodput)
        }
    }

    /// Ends a search; a result that confirms the earlier one lasts longer.
    private mutating func rest(at rung: Int, since now: Double, goodput: Double?) {
        holding = rung == searchedFrom ? min(holding * 2, Self.hold.upperBound) : Self.hold.lowerBound
        phase = .resting(since: now, until: now + max(holding, Self.rounds * round.seconds), goodput: goodput)
        next(to: rung)
    }

    private mutating func next(to rung: Int) {
        let other = Self.ladder[rung]
        round = PaceRound(warming: abs(other - limit), quota: max(other / 2, Self.start))
        self.rung = rung
    }
}

extension UploadPace {
    /// The size of the next file's parts: what a connection sends in 2 s. A kill then costs at most that much per
    /// connection, and slow lines get no parts smaller than `smallest`. A file keeps four parts for each connection:
    /// with fewer, most connections would be idle at its end.
    ///
    /// - Parameters:
    ///   - smallest: also the size for an unknown destination.
    ///   - parallel: the number of a file's parts sent at once.
    package func partSize(fileSize: Int64, smallest: Int64, largest: Int64, parallel: Int) -> Int64 {
        let wanted = Int64(min((rate ?? 0) * 2, Double(largest)))
        let most = min(wanted, fileSize / Int64(4 * max(1, parallel)), largest)
        var size = smallest
        while size * 2 <= most { size *= 2 }
        return size
    }
}

/// A period at one rung, and the bytes that arrived in it; a body that overlaps its ends counts in proportion. It is
/// judged when the last body that started in it has ended, so slow and fast bodies count alike.
struct PaceRound: Sendable {
    /// In seconds; shorter periods are noise.
    private static let shortest = 1.0

    /// Bodies that must end before it starts: surplus ones, or the first on new connections.
    private var warming: Int
    private let quota: Int
    private var begins: (time: Double, crowding: Double)?
    private var closes: (time: Double, crowding: Double)?
    private var ended = 0
    private var wanted = 0
    private var bytes = 0.0
    /// Bodies under way when it closed, and still are.
    private var left = 0

    init(warming: Int, quota: Int) {
        self.warming = warming
        self.quota = quota
    }

    mutating func end(
        _ bytes: Double, from began: Double, at now: Double, crowding: Double, running: Int, wanted: Int
    ) {
        guard let begins else {
            warming -= 1
            if warming <= 0 { self.begins = (now, crowding) }
            return
        }
        guard let closes else {
            self.bytes += bytes * Self.share(from: max(began, begins.time), to: now, of: now - began)
            ended += 1
            self.wanted += wanted
            guard ended >= quota, now - begins.time >= Self.shortest else { return }
            self.closes = (now, crowding)
            left = running
            return
        }
        guard began < closes.time else { return }
        self.bytes += bytes * Self.share(from: max(began, begins.time), to: closes.time, of: now - began)
        left -= 1
    }

    private static func share(from start: Double, to end: Double, of whole: Double) -> Double {
        whole > 0 ? (end - start) / whole : 1
    }

    var isOver: Bool { closes != nil && left <= 0 }

    /// Its duration; 0 before its end.
    var seconds: Double { max(0, (closes?.time ?? 0) - (begins?.time ?? 0)) }
    /// Bytes per second of all connections.
    var goodput: Double { bytes / seconds }
    /// The average number of connections.
    var crowd: Double { ((closes?.crowding ?? 0) - (begins?.crowding ?? 0)) / seconds }
    /// Bytes per second of one connection.
    var rate: Double { goodput / crowd }
    var meanWanted: Double { Double(wanted) / Double(ended) }
}
