import InletCore
import InletDashboard
import InletPipelines
import Synchronization

/// Asks destinations about what was delivered to them, several questions at once.
struct Verifying: Sendable {
    /// What came of one question.
    struct Result: Sendable {
        enum Finding: Sendable {
            case answered(Verification)
            case unreachable(String)
        }

        let report: ProofReport
        let finding: Finding
    }

    private let types: [String: String]
    private let verifiers: [String: any DeliveryVerifying]
    private let readsBytes: Bool
    private let away = Away()

    private static let parallel = 8
    private static let tries = 3
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(2))

    init(_ destinations: [Destination], readsBytes: Bool) {
        types = Dictionary(uniqueKeysWithValues: destinations.map { ($0.name, $0.type) })
        verifiers = destinations.reduce(into: [:]) { $0[$1.name] = $1.pipeline as? any DeliveryVerifying }
        self.readsBytes = readsBytes
    }

    /// Asks about each; `take` gets the results as they come.
    func run(_ reports: [ProofReport], _ take: (Result) -> Void) async {
        var rest = reports[...]
        await withTaskGroup(of: Result.self) { group in
            func begin() {
                guard let report = rest.popFirst() else { return }
                group.addTask { Result(report: report, finding: await self.ask(report)) }
            }
            for _ in 0..<Self.parallel { begin() }
            for await result in group {
                take(result)
                begin()
            }
        }
    }

    private func ask(_ report: ProofReport) async -> Result.Finding {
        if report.proof.method == .carried {
            return .answered(.cannotTell("it went with its file and has no place of its own there"))
        }
        if let time = report.proof.details?["deleted"] {
            return .answered(.cannotTell("it was deleted there by a person, \(time)"))
        }
        guard let type = types[report.destination] else {
            return .answered(.cannotTell("no destination is called '\(report.destination)' any more"))
        }
        guard let verifier = verifiers[report.destination] else {
            return .answered(.cannotTell("destinations of type \(type) cannot be asked"))
        }
        let order = VerifyOrder(proof: report.proof, digests: report.digests, readsBytes: readsBytes)
        var tried = 0
        while true {
            // One that does not answer keeps nobody waiting for each of its files.
            if let why = away.reason(report.destination) { return .unreachable(why) }
            let answer = await Self.answer(verifier, order)
            guard case .failure(let error) = answer else { return .answered((try? answer.get()) ?? .cannotTell("")) }
            tried += 1
            guard error.mayPass, tried < Self.tries else {
                if error.isAboutDestination { away.note(report.destination, "\(error)") }
                return .unreachable("\(error)")
            }
            var random = SystemRandomNumberGenerator()
            try? await Task.sleep(for: Self.waits.delay(afterAttempt: tried, asked: nil, using: &random))
        }
    }

    private static func answer(
        _ verifier: any DeliveryVerifying, _ order: VerifyOrder
    ) async -> Swift.Result<Verification, DeliveryError> {
        do throws(DeliveryError) {
            return .success(try await verifier.verify(order))
        } catch {
            return .failure(error)
        }
    }

    /// Destinations that did not answer, and why.
    private final class Away: Sendable {
        private let reasons = Mutex<[String: String]>([:])

        func reason(_ name: String) -> String? { reasons.withLock { $0[name] } }
        func note(_ name: String, _ why: String) { reasons.withLock { $0[name] = why } }
    }
}

extension DeliveryError {
    fileprivate var mayPass: Bool {
        switch verdict {
        case .retry, .outage: true
        default: false
        }
    }

    /// Nothing that another object would change.
    fileprivate var isAboutDestination: Bool {
        switch verdict {
        case .outage, .credentials: true
        default: false
        }
    }
}

/// Counts what was found, and says it: for programs a line each as it comes, for people what is wrong first.
struct VerifyTally {
    private enum Verdict: String, CaseIterable {
        case missing
        case different
        case unreachable
        case unknown
        case same
    }

    private let isJSON: Bool
    private let line = ProgressLine()
    private var counts: [Verdict: Int] = [:]
    /// What people are shown; no more than they can read.
    private var rows: [Verdict: [[String]]] = [:]
    private static let mostRows = 1000
    private static let mostFine = 20

    init(isJSON: Bool) { self.isJSON = isJSON }

    mutating func add(_ result: Verifying.Result) {
        let (verdict, said) = Self.verdict(result.finding)
        counts[verdict, default: 0] += 1
        if isJSON { return Console.print(Self.line(result.report, verdict, said)) }
        if rows[verdict, default: []].count < Self.mostRows {
            rows[verdict, default: []].append(Self.row(result.report, verdict, said))
        }
        let all = counts.values.reduce(0, +)
        line.draw(result.report.path, "", "\(all) asked about")
    }

    private static func verdict(_ finding: Verifying.Result.Finding) -> (Verdict, String) {
        switch finding {
        case .answered(.same(let how)): (.same, how)
        case .answered(.differs(let reason)): (.different, reason)
        case .answered(.missing(let what)): (.missing, what)
        case .answered(.cannotTell(let reason)): (.unknown, reason)
        case .unreachable(let reason): (.unreachable, reason)
        }
    }

    private static func line(_ report: ProofReport, _ verdict: Verdict, _ said: String) -> String {
        var object = JSONLine()
        object.add("job", report.job)
        object.add("path", report.path)
        object.add("destination", report.destination)
        object.add("key", report.proof.key)
        object.add("verdict", verdict.rawValue)
        object.add("said", said)
        return String(decoding: object.finished, as: UTF8.self)
    }

    private static func row(_ report: ProofReport, _ verdict: Verdict, _ said: String) -> [String] {
        [
            Console.tint(verdict.rawValue, verdict == .same ? .plain : .strong),
            Console.tint(String(report.job), .plain), Console.tint(report.destination, .plain),
            Console.tint(DisplayText.escape(report.proof.key), .plain), DisplayText.escape(said),
        ]
    }

    /// Says the rest, and exits with what it was.
    func finish() throws {
        if !isJSON { show() }
        if counts[.missing, default: 0] + counts[.different, default: 0] > 0 { throw ExitStatus.failed }
        if counts[.unreachable, default: 0] > 0 { throw ExitStatus.unavailable }
    }

    private func show() {
        line.erase()
        let all = counts.values.reduce(0, +)
        guard all > 0 else { return Console.print("Nothing that was delivered is meant by that.") }
        // Of what is fine the number is enough, unless there is little of it.
        let shown = Verdict.allCases.flatMap { verdict in
            verdict == .same && counts[.same, default: 0] > Self.mostFine ? [] : rows[verdict] ?? []
        }
        if !shown.isEmpty {
            let head = ["VERDICT", "JOB", "DESTINATION", "KEY", "SAID"]
            Console.print(Console.table([head.map { Console.tint($0, .faint) }] + shown))
        }
        let words = Verdict.allCases.compactMap { verdict in counts[verdict].map { "\($0) \(verdict.rawValue)" } }
        Console.print("\(all) \(all == 1 ? "delivery" : "deliveries"): \(words.joined(separator: ", "))")
    }
}
