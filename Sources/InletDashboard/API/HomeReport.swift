internal import InletAgent
internal import InletCore

/// The whole agent in a few words, for a widget on a home page (`GET home`). Every key is always there: what is not
/// known is null.
struct HomeReport: Encodable, Sendable, NamedSchema {
    enum Verdict: String, Encodable, Sendable, CaseIterable {
        /// Every file is where it belongs, and nothing needs a person.
        case safe
        /// Files are on their way, and nothing needs a person.
        case working
        case needsYou = "needs_you"
        /// No agent runs.
        case unknown
    }

    struct Last: Encodable, Sendable, Equatable {
        var file: String
        var at: String
    }

    struct Next: Encodable, Sendable, Equatable {
        var what: String
        var until: String
    }

    struct Cards: Encodable, Sendable, Equatable {
        var safe: Int
        var not_yet: Int
    }

    var verdict: Verdict
    var sentence: String
    var needs_you: Int
    /// The file that was admitted last.
    var last: Last?
    /// The earliest end of a wait.
    var next: Next?
    /// Of the folder that has been quiet for the longest time.
    var quiet_since: String?
    var failed_30d: Int
    var ok_30d: Int
    var cards: Cards

    init(_ status: StatusReport, _ agent: AgentControl, at now: WallTime) {
        let health = status.health ?? Health(status, now: now)
        (sentence, needs_you) = (health.sentence, health.needing ?? 0)
        verdict = Self.verdict(status, health)
        last = status.last_file.map { Last(file: $0.path, at: $0.at) }
        next = Self.next(status, at: now)
        quiet_since = Self.earliest(status.roots.compactMap(\.quiet_since))
        let ends = agent.live?.recent ?? (ok: 0, failed: 0)
        (ok_30d, failed_30d) = (ends.ok, ends.failed)
        let inReaders = agent.cards.filter { $0.verdict != .out }
        let safe = inReaders.count { $0.verdict.isSafe }
        cards = Cards(safe: safe, not_yet: inReaders.count - safe)
    }

    static func verdict(_ status: StatusReport, _ health: Health) -> Verdict {
        if !status.running { return .unknown }
        if health.state != .ok { return .needsYou }
        return health.sentence == Health.allIsWell ? .safe : .working
    }

    /// The earliest time at which something that waits may go on; nil where nothing waits for a time.
    static func next(_ status: StatusReport, at now: WallTime) -> Next? {
        var waits = status.destinations.filter { $0.waiting > 0 }.compactMap { destination in
            destination.next_probe.map { Next(what: "\(destination.name) (\(destination.state))", until: $0) }
        }
        waits += (status.limits ?? []).filter { $0.bytes_per_second == 0 }.compactMap { limit in
            limit.until.map { Next(what: "the limit of \(limit.destination ?? "all destinations")", until: $0) }
        }
        if status.queue.waiting > 0 {
            waits += (status.windows ?? []).filter { !$0.open }.compactMap { window in
                window.next_change.map { Next(what: "the window of route \(window.route)", until: $0) }
            }
        }
        waits += status.in_flight.compactMap { transfer in
            transfer.next_look.map { Next(what: "\(transfer.destination) works on \(transfer.path)", until: $0) }
        }
        let times = waits.compactMap { wait in WallTime(rfc3339: wait.until).map { (wait, max($0, now)) } }
        return times.min { $0.1 < $1.1 }?.0
    }

    private static func earliest(_ times: [String]) -> String? {
        times.compactMap { text in WallTime(rfc3339: text).map { (text, $0) } }.min { $0.1 < $1.1 }?.0
    }

    private enum CodingKeys: CodingKey {
        case verdict, sentence, needs_you, last, next, quiet_since, failed_30d, ok_30d, cards
    }

    /// The usual one would leave out what is nil.
    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: CodingKeys.self)
        try object.encode(verdict, forKey: .verdict)
        try object.encode(sentence, forKey: .sentence)
        try object.encode(needs_you, forKey: .needs_you)
        try object.encode(last, forKey: .last)
        try object.encode(next, forKey: .next)
        try object.encode(quiet_since, forKey: .quiet_since)
        try object.encode(failed_30d, forKey: .failed_30d)
        try object.encode(ok_30d, forKey: .ok_30d)
        try object.encode(cards, forKey: .cards)
    }

    static var schema: Schema {
        .object([
            .must("verdict", .word(Verdict.allCases.map(\.rawValue)), "safe: every file is where it belongs."),
            .must("sentence", .text, "The sentence that a person should read first."),
            .must("needs_you", .integer, "The number of problems that need a person."),
            .must(
                "last", .orNull(.object([.must("file", .text), .must("at", .time)])),
                "The file that was admitted last."),
            .must(
                "next", .orNull(.object([.must("what", .text), .must("until", .time)])),
                "The wait that ends first, and when."),
            .must("quiet_since", .orNull(.time), "Of the folder that has been quiet for the longest time."),
            .must("failed_30d", .integer, "Files of the last 30 days that failed, expired, were rejected or gone."),
            .must("ok_30d", .integer, "Files of the last 30 days that are where they belong."),
            .must(
                "cards", .object([.must("safe", .integer), .must("not_yet", .integer)]), "The cards in the readers."),
        ])
    }
}
