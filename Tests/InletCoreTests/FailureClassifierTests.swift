import Foundation
import InletTestSupport
import Testing

@testable import InletCore

/// What a failed attempt means, and what is done about it.
struct FailureClassifierTests {
    // MARK: - The table

    /// In whose words it is: in none, a page that says nothing of a passing trouble, one that does, a firewall's, and the
    /// service's own.
    static let columns: [StepFailure?] = [
        nil, StepFailure(404, .foreign), StepFailure(503, .foreign), StepFailure(403, .foreign),
        StepFailure(413, .object),
        StepFailure(404, .everybody), StepFailure(401, .credentials), StepFailure(400, .refusal),
        StepFailure(500, .passing),
    ]

    /// One cell for each of `columns`: `f`ile, `r`etry, `?` refusal, `o`utage, `s`tranger, `c`redentials, `!` own.
    static let rows: [(verdict: DeliveryError.Verdict, code: ErrorCode, isLast: Bool, cells: String)] = [
        (.retry(after: nil), .badRequest, false, "rsrsrorrr"), (.retry(after: nil), .badRequest, true, "rs?s?o???"),
        (.retry(after: nil), .serverError, false, "rsrsrorrr"), (.retry(after: nil), .serverError, true, "?s?s?o???"),
        (.outage(after: nil), .badRequest, false, "ososooooo"), (.outage(after: nil), .badRequest, true, "ososooooo"),
        (.giveUp, .badRequest, false, "fs?sfoc??"), (.giveUp, .badRequest, true, "fs?sfoc??"),
        (.credentials, .unauthorized, false, "cccsccccc"), (.credentials, .unauthorized, true, "cccsccccc"),
        (.sourceChanged, .sourceChanged, true, "!!!!!!!!!"), (.sourceGone, .sourceGone, true, "!!!!!!!!!"),
        (.cancelled, .cancelled, true, "!!!!!!!!!"),
    ]

    @Test(arguments: rows) func `what was heard decides whom it is about`(
        _ verdict: DeliveryError.Verdict, _ code: ErrorCode, _ isLast: Bool, _ cells: String
    ) {
        #expect(cells.count == Self.columns.count)
        for (heard, cell) in zip(Self.columns, cells) {
            let error = DeliveryError(verdict, code, "no", heard: heard)
            let ruling = FailureClassifier.ruling(error, isLast: isLast)
            #expect(Self.letter(ruling) == cell, "\(verdict) last: \(isLast), \(String(describing: heard))")
        }
    }

    private static func letter(_ ruling: FailureClassifier.Ruling) -> Character {
        switch ruling {
        case .file: "f"
        case .retry: "r"
        case .refusal: "?"
        case .outage: "o"
        case .stranger: "s"
        case .credentials: "c"
        case .unknownDelivered: "u"
        case .own: "!"
        }
    }

    // MARK: - What is done

    private static let start = WallTime(milliseconds: 1_000_000)
    private static let again = FailureAction.End.again(after: .seconds(1), countsAttempt: false)

    struct Row: Sendable, CustomStringConvertible {
        var description: String
        var error: DeliveryError
        var number = 1
        var presence = SourcePresence.asSaid
        var isStopping = false
        /// What the breaker is told, and what it makes of it.
        var told: CircuitBreaker.Event?
        var action = CircuitBreaker.Action.none
        var end: FailureAction.End
        /// In the reason at last.
        var says = ""
    }

    private static func error(
        _ verdict: DeliveryError.Verdict, _ code: ErrorCode, _ heard: StepFailure? = nil
    ) -> DeliveryError { DeliveryError(verdict, code, "no", heard: heard) }

    static let decisions: [Row] = outages + refusals + sources + own

    private static let outages: [Row] = [
        Row(
            description: "no connection", error: error(.outage(after: nil), .connectFailed), number: 3,
            told: .outage(after: nil), action: .pause(until: start), end: again),
        Row(
            description: "an outage for an hour", error: error(.outage(after: .seconds(3600)), .serverError),
            told: .outage(after: .seconds(3600)), end: .again(after: .seconds(60), countsAttempt: false)),
        Row(
            description: "a gateway's 502", error: error(.outage(after: nil), .serverError), number: 3,
            told: .brokenOff(file: 7), end: again),
        Row(
            description: "a gateway's 502 for this file alone, for the last time",
            error: error(.outage(after: nil), .serverError), number: 3, told: .brokenOff(file: 7), action: .blameFile,
            end: .ended(.failed), says: "(again for this file only, so the attempt counts) (given up after 3"),
        Row(
            description: "a stranger", error: error(.giveUp, .badRequest, StepFailure(404, .foreign)), number: 3,
            told: .stranger(file: 7), action: .pause(until: start), end: again),
        Row(
            description: "a stranger for this file alone",
            error: error(.giveUp, .badRequest, StepFailure(404, .foreign)),
            number: 3, told: .stranger(file: 7), action: .blameFile,
            end: .again(after: .seconds(60), countsAttempt: false), says: "retries it from time to time"),
        Row(
            description: "an expired login", error: error(.credentials, .unauthorized), number: 3, told: .credentials,
            action: .pause(until: start), end: again),
        Row(
            description: "a login that is missed in words of giving up",
            error: error(.giveUp, .unauthorized, StepFailure(401, .credentials)), number: 3, told: .credentials,
            end: again),
        Row(
            description: "429 with a time", error: error(.retry(after: .seconds(7)), .throttled), number: 3,
            told: .throttled(after: .seconds(7), file: 7), action: .slow(until: start),
            end: .again(after: .seconds(7), countsAttempt: false)),
        Row(
            description: "429 with a time for this file alone, for the last time",
            error: error(.retry(after: .seconds(7)), .throttled), number: 3,
            told: .throttled(after: .seconds(7), file: 7), action: .blameFile, end: .ended(.failed)),
    ]

    private static let refusals: [Row] = [
        Row(
            description: "a refusal", error: error(.giveUp, .badRequest, StepFailure(400, .refusal)),
            told: .refused(file: 7, code: .badRequest, ends: true), action: .askFirst(until: start + .seconds(5)),
            end: .again(after: .seconds(5), countsAttempt: false)),
        Row(
            description: "the same, heard by two", error: error(.giveUp, .badRequest, StepFailure(400, .refusal)),
            told: .refused(file: 7, code: .badRequest, ends: true), action: .pause(until: start), end: again),
        Row(
            description: "the same again, while all is well",
            error: error(.giveUp, .badRequest, StepFailure(400, .refusal)),
            told: .refused(file: 7, code: .badRequest, ends: true), action: .blameFile, end: .ended(.failed),
            says: "while the destination works"),
        Row(
            description: "about the object itself", error: error(.giveUp, .tooLarge, StepFailure(413, .object)),
            end: .ended(.failed)),
        Row(description: "what no server has said", error: error(.giveUp, .badSidecar), end: .ended(.failed)),
        Row(
            description: "a server's fault, for the last time",
            error: error(.retry(after: nil), .serverError, StepFailure(500, .passing)), number: 3,
            told: .refused(file: 7, code: .serverError, ends: true), action: .askFirst(until: start + .seconds(2)),
            end: .again(after: .seconds(2), countsAttempt: false)),
        Row(
            description: "something passing, for the last time", error: error(.retry(after: nil), .timedOut), number: 3,
            end: .ended(.failed), says: "(given up after 3 attempts)"),
    ]

    private static let gone = error(.sourceGone, .sourceGone)
    private static let changed = error(.sourceChanged, .sourceChanged)

    private static let sources: [Row] = [
        Row(description: "gone", error: gone, end: .ended(.gone)),
        Row(description: "changed", error: changed, end: .ended(.superseded)),
        Row(
            description: "gone, and another there", error: gone, presence: .replaced(name: "a"),
            end: .ended(.superseded)),
        Row(
            description: "gone, and there", error: gone, number: 3, presence: .untouched(name: "a"), end: again,
            says: "the file is unchanged"),
        Row(
            description: "changed, and as it was", error: changed, number: 3, presence: .untouched(name: "a"),
            end: again),
        Row(
            description: "gone with its folder", error: gone, number: 3,
            presence: .away(root: "/in", isVolume: false, isSoon: false),
            end: .again(after: .seconds(30), countsAttempt: false), says: "not mounted"),
        Row(
            description: "gone with its card", error: gone, number: 3,
            presence: .away(root: "/in", isVolume: true, isSoon: false),
            end: .again(after: .seconds(3600), countsAttempt: false)),
        Row(
            description: "changed, of a card that is elsewhere", error: changed, number: 3,
            presence: .away(root: "/in", isVolume: true, isSoon: true), end: again),
        Row(
            description: "gone, and not to be looked at", error: gone, number: 3,
            presence: .refused(error(.outage(after: nil), .sourceForbidden)), end: again),
        Row(
            description: "a server's word is not about the source",
            error: error(.giveUp, .tooLarge, StepFailure(413, .object)),
            presence: .away(root: "/in", isVolume: true, isSoon: false), end: .ended(.failed)),
    ]

    private static let own: [Row] = [
        Row(description: "cancelled", error: error(.cancelled, .cancelled), end: .ended(.cancelled)),
        Row(
            description: "cancelled by a stop", error: error(.cancelled, .cancelled), number: 3, isStopping: true,
            end: .again(after: .zero, countsAttempt: false)),
        Row(description: "no descriptors", error: error(.outage(after: nil), .outOfResources), number: 3, end: again),
        Row(description: "a bad disk", error: error(.outage(after: nil), .sourceUnreadable), number: 3, end: again),
        Row(
            description: "a journal that fails", error: error(.outage(after: nil), .internalFault), number: 3,
            end: again),
        Row(
            description: "no such destination", error: error(.outage(after: nil), .notConfigured), number: 3, end: again
        ),
    ]

    @Test(arguments: decisions) func `what is done about each failure is decided in one place`(_ row: Row) {
        var random = SeededGenerator(seed: 1)
        var told: [CircuitBreaker.Event] = []
        let attempt = FailedAttempt(
            file: 7, number: row.number, policy: RetryPolicy(), isStopping: row.isStopping, time: Self.start)
        let decision = FailureClassifier.classify(row.error, attempt, row.presence, using: &random) { event, _ in
            told.append(event)
            return row.action
        }
        #expect(decision.end == row.end)
        #expect(told == (row.told.map { [$0] } ?? []))
        #expect(row.says.isEmpty || decision.error.reason.contains(row.says), "\(decision.error)")
        #expect(decision.looksAgain == (row.end == .ended(.gone) || row.end == .ended(.superseded)))
    }

    @Test func `an attempt that counts waits as the route's policy says`() {
        let policy = RetryPolicy(attempts: 9, backoff: .seconds(4), maxBackoff: .seconds(10))
        for number in 1...8 {
            var (random, same) = (SeededGenerator(seed: UInt64(number)), SeededGenerator(seed: UInt64(number)))
            let attempt = FailedAttempt(file: 7, number: number, policy: policy, time: Self.start)
            let asked = Duration.seconds(2)
            let decision = FailureClassifier.classify(
                Self.error(.retry(after: asked), .timedOut), attempt, using: &random
            ) { _, _ in .none }
            let wait = policy.delay(afterAttempt: number, asked: asked, using: &same)
            #expect(decision.end == .again(after: wait, countsAttempt: true))
        }
    }

    @Test func `waits for this machine grow, are news once a cause or a file, and begin anew with success`() {
        var faults = LocalFaults()
        func isNews(_ code: ErrorCode, of delivery: Int64) -> Bool { faults.note(code, of: delivery) }
        func waits(_ code: ErrorCode, _ count: Int) -> [Int64] {
            (0..<count).map { _ in
                defer { _ = isNews(code, of: 1) }
                return LocalFaults.wait(after: faults.count(of: 1), code).components.seconds
            }
        }
        #expect(isNews(.outOfResources, of: 2))
        #expect(waits(.outOfResources, 7) == [1, 2, 4, 8, 16, 30, 30])
        #expect(!isNews(.outOfResources, of: 3))
        faults.worked(1)
        #expect(waits(.sourceUnreadable, 11) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        #expect(!isNews(.sourceUnreadable, of: 1))
        #expect(isNews(.sourceUnreadable, of: 4), "a disk that fails for another file")
        #expect(!isNews(.internalFault, of: 5), "the journal's health says it")
        #expect(isNews(.outOfResources, of: 6), "after a success it is news again")
    }

    // MARK: - Whatever happens

    /// Everything that can be heard of one destination's files, and a breaker that hears of it.
    private struct History {
        var random: SeededGenerator
        var breaker = CircuitBreaker()
        var time = start

        mutating func error() -> DeliveryError {
            let asked: Duration? =
                Bool.random(using: &random) ? nil : .seconds(Int64.random(in: 0...100_000, using: &random))
            let verdicts: [DeliveryError.Verdict] = [
                .retry(after: asked), .outage(after: asked), .giveUp, .credentials, .sourceChanged, .sourceGone,
                .cancelled,
            ]
            let statuses = [0, 200, 302, 400, 401, 403, 404, 408, 413, 429, 500, 503]
            // The agent's own words, and one that no pipeline has for another answer.
            let codes = ErrorCode.allCases.filter { $0 != .sourceGone && $0 != .notConfigured }
            guard let verdict = verdicts.randomElement(using: &random), let code = codes.randomElement(using: &random),
                let status = statuses.randomElement(using: &random),
                let word = StepFailure.Word.allCases.randomElement(using: &random)
            else { return gone }
            let heard = StepFailure(code == .throttled ? 429 : status, word)
            return DeliveryError(verdict, code, "no", heard: Bool.random(using: &random) ? nil : heard)
        }

        mutating func presence() -> SourcePresence {
            let (isVolume, isSoon) = (Bool.random(using: &random), Bool.random(using: &random))
            let all: [SourcePresence] = [
                .asSaid, .untouched(name: "a"), .replaced(name: "a"),
                .refused(DeliveryError(.outage(after: nil), .sourceForbidden, "no")),
                .away(root: "/in", isVolume: isVolume, isSoon: isSoon),
            ]
            return all.randomElement(using: &random) ?? .asSaid
        }

        /// What else the breaker hears.
        mutating func others() {
            time = time + .seconds(Int64.random(in: 0...20, using: &random))
            if breaker.probeIsDue(at: time) {
                _ = breaker.event(.probeBegan, at: time)
                let isGood = Bool.random(using: &random)
                _ = breaker.event(isGood ? .probeSucceeded : .probeFailed(credentials: false), at: time)
            } else if Int.random(in: 0..<4, using: &random) == 0 {
                _ = breaker.event(.delivered(file: Int64.random(in: 0...3, using: &random)), at: time)
            }
            _ = breaker.event(.timePassed, at: time)
        }
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `no failure delivers, and none but the file's own counts or ends it, whatever happens`(_ seed: UInt64) {
        var history = History(random: SeededGenerator(seed: seed))
        for _ in 0..<2000 {
            history.others()
            let (error, presence) = (history.error(), history.presence())
            let attempt = FailedAttempt(
                file: Int64.random(in: 0...3, using: &history.random),
                number: Int.random(in: 1...4, using: &history.random), policy: RetryPolicy(),
                isStopping: Bool.random(using: &history.random),
                localFaults: Int.random(in: 0...100, using: &history.random), time: history.time)
            var told: [CircuitBreaker.Event] = []
            var action = CircuitBreaker.Action.none
            var random = history.random
            let decision = FailureClassifier.classify(error, attempt, presence, using: &random) { event, _ in
                told.append(event)
                action = history.breaker.event(event, at: history.time)
                return action
            }
            history.random = random
            check(decision, error, attempt, presence, told, action)
        }
    }

    private func check(
        _ decision: FailureAction, _ error: DeliveryError, _ attempt: FailedAttempt, _ presence: SourcePresence,
        _ told: [CircuitBreaker.Event], _ action: CircuitBreaker.Action
    ) {
        let isOfSource = error.verdict == .sourceGone || error.verdict == .sourceChanged
        let isOwn = isOfSource || error.verdict == .cancelled
        let ruling = FailureClassifier.ruling(error, isLast: attempt.isLast)
        func context() -> Comment {
            "\(error) \(String(describing: error.heard)) \(presence) \(action) -> \(decision.end)"
        }
        #expect(told.count <= 1, context())
        if isOwn || error.isLocal { #expect(told.isEmpty, context()) }
        switch decision.end {
        case .again(let wait, let counts):
            #expect(wait >= .zero && wait <= .seconds(3600), context())
            if counts {
                #expect(!isOwn && !error.isLocal && !attempt.isLast && wait >= .milliseconds(100), context())
                #expect(ruling != .stranger && ruling != .credentials && ruling != .file, context())
                if ruling == .outage { #expect(action == .blameFile, context()) }
            }
        case .ended(.failed):
            #expect(!isOwn && !error.isLocal, context())
            #expect(ruling != .stranger && ruling != .credentials, context())
            if ruling == .outage { #expect(action == .blameFile && attempt.isLast, context()) }
            if ruling == .refusal { #expect(action == .blameFile, context()) }
            if ruling == .retry { #expect(attempt.isLast, context()) }
        case .ended(.gone), .ended(.superseded):
            #expect(isOfSource && (presence == .asSaid || presence == .replaced(name: "a")), context())
        case .ended(.cancelled): #expect(error.verdict == .cancelled && !attempt.isStopping, context())
        case .ended(let state): Issue.record("\(state): \(context())")
        }
        if isOfSource, case .away = presence {
            #expect(decision.error.code == .sourceGone && !decision.looksAgain, context())
        }
    }
}

struct RetryPolicyTests {
    @Test(arguments: 1...70) func `waits stay within their bounds`(attempt: Int) {
        var generator = SeededGenerator(seed: UInt64(attempt))
        let policy = RetryPolicy()
        let ceiling = min(300.0, pow(2, Double(attempt - 1)))
        let waits = (0..<200).map { _ in policy.delay(afterAttempt: attempt, asked: nil, using: &generator) }
        #expect(waits.allSatisfy { $0 >= .milliseconds(100) && $0 <= .seconds(ceiling) })
        #expect(waits.contains { $0 > .seconds(ceiling * 0.8) } && waits.contains { $0 < .seconds(ceiling * 0.2) })
    }

    @Test func `the server's wish is a lower bound, up to an hour`() {
        var generator = SeededGenerator(seed: 1)
        let policy = RetryPolicy(backoff: .zero)
        #expect(policy.delay(afterAttempt: 1, asked: nil, using: &generator) == .milliseconds(100))
        #expect(policy.delay(afterAttempt: 1, asked: .seconds(7), using: &generator) == .seconds(7))
        #expect(policy.delay(afterAttempt: 1, asked: .seconds(-7), using: &generator) == .milliseconds(100))
        #expect(policy.delay(afterAttempt: 0, asked: .seconds(86_400), using: &generator) == .seconds(3600))
        let endless = RetryPolicy(backoff: .seconds(Int64.max / 2000), maxBackoff: .seconds(Int64.max / 2000))
        #expect(endless.delay(afterAttempt: .max, asked: nil, using: &generator) >= .milliseconds(100))
    }

    @Test func `the journal's form is milliseconds and comes back the same`() throws {
        for policy in [RetryPolicy(), RetryPolicy(attempts: 1, backoff: .milliseconds(250), expire: nil)] {
            let data = try JSONEncoder().encode(policy)
            #expect(try JSONDecoder().decode(RetryPolicy.self, from: data) == policy)
        }
        let text = String(decoding: try JSONEncoder().encode(RetryPolicy()), as: UTF8.self)
        #expect(text.contains("\"backoff_ms\":1000") && text.contains("\"expire_ms\":86400000"))
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(RetryPolicy.self, from: Data("{}".utf8)) }
    }
}

struct JobStateTests {
    @Test func `a file is as bad as its worst delivery, once all have ended`() {
        let worstFirst: [DeliveryState] = [.failed, .expired, .cancelled, .superseded, .gone, .delivered]
        for (index, worst) in worstFirst.enumerated() {
            #expect(FileState.combined(Array(worstFirst[index...].reversed())).rawValue == worst.rawValue)
        }
        for open in [DeliveryState.ready, .claimed, .parked] {
            #expect(FileState.combined([.failed, open]) == .pending)
        }
        #expect(FileState.combined([]) == .pending)
        #expect(DeliveryState.allCases.filter { !$0.isFinal } == [.ready, .claimed, .parked])
        #expect(FileState.allCases.filter { !$0.isFinal } == [.pending])
    }
}

@Suite struct DeliveryStepsTests {
    private typealias Step = DeliverySteps.Step

    @Test(
        arguments: [
            (["a", "b"], [:], [Step("a"), Step("b")]),
            (["spaces"], ["spaces": "spiral"], [Step("spiral"), Step("spaces", after: "spiral")]),
            (["spaces", "spiral"], ["spaces": "spiral"], [Step("spiral"), Step("spaces", after: "spiral")]),
            (
                ["disk", "one", "two"], ["one": "spiral", "two": "spiral"],
                [Step("disk"), Step("spiral"), Step("one", after: "spiral"), Step("two", after: "spiral")]
            ),
            // Whatever a configuration says, nothing waits for itself, or in a circle.
            (["a"], ["a": "a"], [Step("a")]),
            (["a", "b"], ["a": "b", "b": "a"], [Step("a"), Step("b")]),
            ([], ["a": "b"], []),
        ] as [([String], [String: String], [DeliverySteps.Step])])
    func `each destination comes once, and after what it waits for`(
        destinations: [String], storages: [String: String], steps: [DeliverySteps.Step]
    ) {
        let made = DeliverySteps(destinations, storages: storages)
        #expect(made.steps == steps && made.destinations == steps.map(\.destination))
        #expect(made.first == steps.filter { $0.after == nil }.map(\.destination))
    }

    @Test(arguments: [(-3.0, 0.0), (0, 0), (42.5, 42.5), (100, 100), (1e9, 100)])
    func `a percentage stays one`(given: Double, percent: Double) {
        #expect(StepProgress(percent: given, step: "s").percent == percent)
    }
}
