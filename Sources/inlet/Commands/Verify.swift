import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import Synchronization

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Asks the destinations whether they still have what was delivered to them.",
        discussion: """
            Compares length and tag with the proof in the journal; with --read every byte is read, where the destination
            lets us, and its checksum compared. Changes nothing, here or there.

            Exits with 0 when nothing is missing or different, 1 when something is, 69 when a destination could not be
            asked, and nothing else was found. What a destination has no way to tell counts as neither, and is said.
            Of jobs and batches that are named, what has not been delivered is said too, and exits with 1.

            Examples:
              inlet verify 17 18
              inlet verify --since 7d
              inlet verify --all --destination archive --read
              inlet verify --all --json | jq -r 'select(.verdict != "same") | .path'
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: ArgumentHelp("Numbers of jobs.", valueName: "JOB")) var jobs: [Int64] = []
    @Flag(help: "Everything that was delivered.") var all = false
    @Option(help: ArgumentHelp("What was delivered within this time, such as 12h or 7d.", valueName: "AGE"))
    var since: String?
    @Option(
        help: ArgumentHelp("Only what went there.", valueName: "DEST"), completion: ConfiguredNames.destinations)
    var destination: String?
    @Option(help: ArgumentHelp("The files of one batch, as 'inlet queue show' names it.", valueName: "ID"))
    var batch: Int64?
    @Flag(help: "Read every byte instead of taking the destination's word.") var read = false
    @Flag(help: "One JSON object a line: job, path, destination, key, verdict, said.") var json = false

    func validate() throws {
        if jobs.isEmpty, !all, since == nil, destination == nil, batch == nil {
            throw ValidationError("say what: numbers of jobs, --all, --since AGE, --destination DEST or --batch ID")
        }
        if all, !jobs.isEmpty { throw ValidationError("--all is for no jobs in particular; leave one of them out") }
        if let since, DurationText.parse(since) == nil {
            throw ValidationError("'\(since)' is no time; write it as 12h, 7d or 90m")
        }
    }

    func run() async throws {
        let config = try options.load()
        if let destination, !config.settings.destinations.contains(where: { $0.name == destination }) {
            throw ExitStatus.configuration.saying(
                "no destination '\(DisplayText.escape(destination))' in \(config.file.display)")
        }
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let verifying = Verifying(try config.makeDestinations(factory), readsBytes: read)
        var wish = ProofRequest(
            jobs: jobs, since: since.flatMap { DurationText.parse($0) }.map { WallTime.now + (.zero - $0) },
            destination: destination, batch: batch)
        var tally = VerifyTally(isJSON: json)
        while true {
            // A page at a time: without a running agent the journal is open only that long, and one may start.
            let asked = wish
            let page = try await ControlAccess.use(config) { try await $0.ask(Endpoints.proofs, body: asked) }
            await verifying.run(page.proofs) { tally.add($0) }
            guard let next = page.next else { break }
            wish.after = next
        }
        let isNamed = !jobs.isEmpty || batch != nil
        if isNamed {
            let undelivered = Undelivered(wish: wish, seen: tally.seen)
            for finding in try await ControlAccess.use(config, { try await undelivered.find($0) }) {
                tally.add(undelivered: finding)
            }
        }
        try tally.finish(isNamed: isNamed)
    }
}

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
        guard let proof = report.proof else {
            return .answered(.cannotTell("the journal's proof of it cannot be read"))
        }
        if proof.method == .carried {
            return .answered(.cannotTell("it went with its file and has no place of its own there"))
        }
        if let time = proof.details?["deleted"] {
            return .answered(.cannotTell("it was deleted there by a person, \(time)"))
        }
        guard let type = types[report.destination] else {
            return .answered(.cannotTell("no destination is called '\(report.destination)' any more"))
        }
        guard let verifier = verifiers[report.destination] else {
            return .answered(.cannotTell("destinations of type \(type) cannot be asked"))
        }
        let order = VerifyOrder(proof: proof, digests: report.digests, readsBytes: readsBytes)
        var tried = 0
        while true {
            // One that does not answer keeps nobody waiting for each of its files.
            if let why = away.reason(report.destination) { return .unreachable(why) }
            let error: DeliveryError
            switch await Self.answer(verifier, order) {
            case .success(let answer): return .answered(answer)
            case .failure(let failure): error = failure
            }
            tried += 1
            guard error.mayPass, tried < Self.tries else {
                if error.isAboutDestination { away.note(report.destination, "\(error)") }
                return .unreachable("\(error)")
            }
            var random = SystemRandomNumberGenerator()
            // It fails only when the command is cancelled, which ends the next try.
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

/// What was named and has not arrived: no destination can be asked about it, and it must not pass for checked.
struct Undelivered {
    /// What was asked for; one of `jobs` and `batch` is.
    let wish: ProofRequest
    /// The jobs of which something has arrived.
    let seen: Set<Int64>

    func find(_ control: any ControlAPI) async throws -> [VerifyTally.Finding] {
        if wish.jobs.isEmpty { return try await ofBatch(control) }
        var known: Set<Int64> = []
        var found: [VerifyTally.Finding] = []
        for id in wish.jobs where known.insert(id).inserted {
            guard let job = try await control.find(Endpoints.job, [.id: "\(id)"]) else {
                found.append(VerifyTally.Finding(job: id, path: "", said: "there is no job \(id)"))
                continue
            }
            found += findings(of: job)
        }
        return found
    }

    private func findings(of job: JobReport) -> [VerifyTally.Finding] {
        let open = job.deliveries.filter { isOpen($0.destination, $0.state) }.map {
            VerifyTally.Finding(
                job: job.job, path: job.path, destination: $0.destination, key: $0.key, said: said($0.state, $0.reason))
        }
        guard open.isEmpty, !seen.contains(job.job) else { return open }
        let why =
            job.deliveries.isEmpty ? said(job.state, job.reason) : "no delivery of it is meant by the other options"
        return [VerifyTally.Finding(job: job.job, path: job.path, said: why)]
    }

    private func ofBatch(_ control: any ControlAPI) async throws -> [VerifyTally.Finding] {
        guard let batch = wish.batch, let report = try await control.find(Endpoints.offload, [.id: "\(batch)"]) else {
            return []
        }
        // In the place of one that is superseded there is its next version, with a job of its own.
        return report.files.filter { $0.state != FileState.superseded.rawValue }.flatMap { file in
            if file.deliveries.isEmpty, !Self.isDone(file.state) {
                return [VerifyTally.Finding(job: file.job, path: file.path, said: said(file.state, file.reason))]
            }
            return file.deliveries.filter { isOpen($0.destination, $0.state) }.map {
                VerifyTally.Finding(
                    job: file.job, path: file.path, destination: $0.destination, key: $0.key,
                    said: said($0.state, $0.reason))
            }
        }
    }

    private static func isDone(_ state: String) -> Bool {
        [FileState.delivered, .duplicate].map(\.rawValue).contains(state)
    }

    private func isOpen(_ destination: String, _ state: String) -> Bool {
        state != DeliveryState.delivered.rawValue && wish.destination.map { $0 == destination } ?? true
    }

    private func said(_ state: String, _ reason: String?) -> String { state + (reason.map { ": \($0)" } ?? "") }
}
