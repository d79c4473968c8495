import InletCore
import InletDashboard
import InletPipelines

/// Counts what was found, and says it: for programs a line each as it comes, for people what is wrong first.
struct VerifyTally {
    /// One delivery, or a job without any, and what is said of it.
    struct Finding: Sendable {
        var job: Int64
        var path: String
        var destination = ""
        var key: String?
        var said: String
    }

    private enum Verdict: String, CaseIterable {
        case missing
        case different
        /// It was named, and has not arrived.
        case undelivered
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

    /// The jobs of which something was asked about.
    private(set) var seen: Set<Int64> = []

    init(isJSON: Bool) { self.isJSON = isJSON }

    mutating func add(_ result: Verifying.Result) {
        let (report, (verdict, said)) = (result.report, Self.verdict(result.finding))
        seen.insert(report.job)
        add(
            Finding(
                job: report.job, path: report.path, destination: report.destination, key: report.proof?.key, said: said),
            verdict)
    }

    /// What was named, and has not arrived.
    mutating func add(undelivered finding: Finding) { add(finding, .undelivered) }

    private mutating func add(_ finding: Finding, _ verdict: Verdict) {
        counts[verdict, default: 0] += 1
        if isJSON { return Console.print(Self.line(finding, verdict)) }
        if rows[verdict, default: []].count < Self.mostRows {
            rows[verdict, default: []].append(Self.row(finding, verdict))
        }
        let all = counts.values.reduce(0, +)
        line.draw(finding.path, "", "\(all) asked about")
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

    private static func line(_ finding: Finding, _ verdict: Verdict) -> String {
        var object = JSONLine()
        object.add("job", finding.job)
        object.add("path", finding.path)
        object.add("destination", finding.destination)
        object.add("key", finding.key ?? "")
        object.add("verdict", verdict.rawValue)
        object.add("said", finding.said)
        return String(decoding: object.finished, as: UTF8.self)
    }

    private static func row(_ finding: Finding, _ verdict: Verdict) -> [String] {
        [
            Console.tint(verdict.rawValue, verdict == .same ? .plain : .strong),
            Console.tint(String(finding.job), .plain), Console.tint(finding.destination, .plain),
            Console.tint(DisplayText.escape(finding.key ?? finding.path), .plain), DisplayText.escape(finding.said),
        ]
    }

    /// Says the rest, and exits with what it was.
    ///
    /// - Parameter isNamed: whether jobs or a batch were named: then finding nothing is wrong too.
    func finish(isNamed: Bool) throws {
        if !isJSON { show() }
        let wrong: [Verdict] = [.missing, .different, .undelivered]
        if wrong.contains(where: { counts[$0, default: 0] > 0 }) || isNamed && counts.isEmpty {
            throw ExitStatus.failed
        }
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
