/// A stretch of time at one rung, and what arrived in it: of a body that overlaps its ends, its share. So it is judged
/// when the last body that began in it has ended, and neither slow bodies nor fast ones count for more.
struct PaceRound: Sendable {
    /// Seconds; shorter ones are noise.
    private static let shortest = 1.0

    /// Bodies that have to end before it begins: those that are too many, or the first ones on new connections.
    private var warming: Int
    private let quota: Int
    private var begins: (time: Double, crowding: Double)?
    private var closes: (time: Double, crowding: Double)?
    private var ended = 0
    private var wanted = 0
    private var bytes = 0.0
    /// Bodies that were under way when it closed, and still are.
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

    /// How long it has taken; 0 before its end.
    var seconds: Double { max(0, (closes?.time ?? 0) - (begins?.time ?? 0)) }
    /// Bytes a second of all connections.
    var goodput: Double { bytes / seconds }
    /// Connections on average.
    var crowd: Double { ((closes?.crowding ?? 0) - (begins?.crowding ?? 0)) / seconds }
    /// Bytes a second of one connection.
    var rate: Double { goodput / crowd }
    var meanWanted: Double { Double(wanted) / Double(ended) }
}
