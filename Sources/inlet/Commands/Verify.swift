import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import Synchronization

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Check that the destinations still have the delivered files.",
        discussion: """
            Compares length and tag with the proof in the journal; --read reads every byte, where the destination allows
            it, and compares the checksum. Changes nothing, here or there.

            Exits with 0 when nothing is missing or different, 1 when something is, and 69 when a destination did not
            answer and nothing else was found. Copies that a destination cannot compare are listed as unknown. If you
            name jobs or a batch, undelivered files are listed too, and the exit code is 1 if there are any.

            Examples:
              inlet verify 17 18
              inlet verify --since 7d
              inlet verify --all --destination archive --read
              inlet verify --all --json | jq -r 'select(.verdict != "same") | .path'
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: ArgumentHelp("Job numbers.", valueName: "JOB")) var jobs: [Int64] = []
    @Flag(help: "All delivered files.") var all = false
    @Option(help: ArgumentHelp("Only files delivered within this time, such as 12h or 7d.", valueName: "AGE"))
    var since: String?
    @Option(
        help: ArgumentHelp("Only deliveries to this destination.", valueName: "DEST"), completion: .destinations)
    var destination: String?
    @Option(help: ArgumentHelp("The files of one batch, as 'inlet queue show' names it.", valueName: "ID"))
    var batch: Int64?
    @Flag(help: "Read every byte instead of trusting the destination's answer.") var read = false
    @Flag(help: "One JSON object a line: job, path, destination, key, verdict, said.") var json = false

    func validate() throws {
        if jobs.isEmpty, !all, since == nil, destination == nil, batch == nil {
            throw ValidationError("name job numbers, --all, --since AGE, --destination DEST or --batch ID")
        }
        if all, !jobs.isEmpty { throw ValidationError("leave out --all or the job numbers") }
        if let since, DurationText.parse(since) == nil {
            throw ValidationError("'\(since)' is not a duration; write 12h, 7d or 90m")
        }
    }

    func run() async throws {
        let config = try options.load()
        if let destination, !config.settings.destinations.contains(where: { $0.name == destination }) {
            throw config.noDestination(destination)
        }
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let verifier = Verifier(try config.makeDestinations(factory), readsBytes: read)
        var request = ProofRequest(
            jobs: jobs, since: since.flatMap { DurationText.parse($0) }.map { WallTime.now + (.zero - $0) },
            destination: destination, batch: batch)
        var report = VerifySummary(isJSON: json)
        while true {
            // Reads page by page: without a running agent the journal is open only that long, so that one can start.
            let asked = request
            let page = try await ControlAccess.use(config) { try await $0.ask(Endpoints.proofs, body: asked) }
            try await verifier.run(page.proofs) { try report.add($0) }
            guard let next = page.next else { break }
            request.after = next
        }
        let isNamed = !jobs.isEmpty || batch != nil
        if isNamed {
            let (request, seen) = (request, report.seen)
            let undelivered = try await ControlAccess.use(config) { try await request.undelivered($0, seen: seen) }
            for finding in undelivered { try report.add(finding) }
        }
        try report.finish(isNamed: isNamed)
    }
}

/// Counts and prints findings: for programs one line each as it is found, for people the failures first.
private struct VerifySummary {
    typealias Verdict = VerifyReport.Verdict

    private let isJSON: Bool
    private let line = ProgressLine()
    private var counts: [Verdict: Int] = [:]
    /// The findings printed for people, limited to a readable number.
    private var rows: [Verdict: [[StyledText]]] = [:]
    private static let mostRows = 1000
    private static let mostFine = 20

    /// The jobs with at least one finding.
    private(set) var seen: Set<Int64> = []

    init(isJSON: Bool) { self.isJSON = isJSON }

    mutating func add(_ finding: VerifyReport) throws {
        seen.insert(finding.job)
        let verdict = finding.verdict
        counts[verdict, default: 0] += 1
        if isJSON { return Console.print(try Console.json(finding)) }
        if rows[verdict, default: []].count < Self.mostRows {
            rows[verdict, default: []].append([
                StyledText(verdict.rawValue, verdict == .same ? nil : .strong), "\(finding.job)",
                StyledText(finding.destination), StyledText(finding.key.isEmpty ? finding.path : finding.key),
                StyledText(finding.said),
            ])
        }
        line.draw(finding.path, "", "\(counts.values.reduce(0, +)) asked about")
    }

    /// Prints the rest, and exits with the code that follows from the findings.
    ///
    /// - Parameter isNamed: whether jobs or a batch were named: then finding nothing is a failure too.
    func finish(isNamed: Bool) throws {
        if !isJSON { show() }
        let wrong: [Verdict] = [.missing, .different, .undelivered]
        if wrong.contains(where: { counts[$0, default: 0] > 0 }) || isNamed && counts.isEmpty {
            throw ExitStatus.failed.code
        }
        if counts[.unreachable, default: 0] > 0 { throw ExitStatus.unavailable.code }
    }

    private func show() {
        line.erase()
        let all = counts.values.reduce(0, +)
        guard all > 0 else { return Console.print("No matching deliveries") }
        // Prints only the number of intact files, unless there are few.
        let shown = Verdict.allCases.flatMap { verdict in
            verdict == .same && counts[.same, default: 0] > Self.mostFine ? [] : rows[verdict] ?? []
        }
        if !shown.isEmpty {
            Console.print(
                Console.table(
                    [.text("VERDICT"), .number("JOB"), .text("DESTINATION"), .name("KEY"), .note("FOUND")], shown))
        }
        let words = Verdict.allCases.compactMap { verdict in counts[verdict].map { "\($0) \(verdict.rawValue)" } }
        Console.print("\(all) \(all == 1 ? "delivery" : "deliveries"): \(words.joined(separator: ", "))")
    }
}

/// Asks destinations about delivered files, several at once.
private final class Verifier: Sendable {
    private let types: [String: String]
    private let verifiers: [String: any DeliveryVerifying]
    private let readsBytes: Bool
    /// Destinations that did not answer, with the reason.
    private let silent = Mutex<[String: String]>([:])

    private static let parallel = 8
    private static let tries = 3
    private static let waits = RetryPolicy(backoff: .milliseconds(200), maxBackoff: .seconds(2))

    init(_ destinations: [Destination], readsBytes: Bool) {
        types = Dictionary(uniqueKeysWithValues: destinations.map { ($0.name, $0.type) })
        verifiers = destinations.reduce(into: [:]) { $0[$1.name] = $1.pipeline as? any DeliveryVerifying }
        self.readsBytes = readsBytes
    }

    /// Asks about each delivery; `take` gets the findings as they are found.
    func run(_ reports: [ProofReport], _ take: (VerifyReport) throws -> Void) async throws {
        var rest = reports[...]
        try await withThrowingTaskGroup(of: VerifyReport.self) { group in
            func begin() {
                guard let report = rest.popFirst() else { return }
                group.addTask {
                    let (verdict, said) = await self.ask(report)
                    return VerifyReport(
                        verdict, job: report.job, path: report.path, destination: report.destination,
                        key: report.proof?.key, said: said)
                }
            }
            for _ in 0..<Self.parallel { begin() }
            for try await finding in group {
                try take(finding)
                begin()
            }
        }
    }

    private func ask(_ report: ProofReport) async -> (VerifyReport.Verdict, String) {
        guard let proof = report.proof else { return (.unknown, "the journal's proof cannot be read") }
        if proof.method == .carried {
            return (.unknown, "it was sent with its file and has no object of its own")
        }
        if let time = proof.details?["deleted"] { return (.unknown, "somebody deleted it there, \(time)") }
        guard let type = types[report.destination] else {
            return (.unknown, "there is no destination '\(report.destination)' any more")
        }
        guard let verifier = verifiers[report.destination] else {
            return (.unknown, "destinations of type \(type) cannot be asked")
        }
        let order = VerifyOrder(proof: proof, digests: report.digests, readsBytes: readsBytes)
        var tried = 0
        while true {
            // After one failure to answer, a destination's other files are not waited for.
            if let why = silent.withLock({ $0[report.destination] }) { return (.unreachable, why) }
            do throws(DeliveryError) {
                switch try await verifier.verify(order) {
                case .same(let how, _): return (.same, how)
                case .differs(let reason): return (.different, reason)
                case .missing(let what): return (.missing, what)
                case .cannotTell(let reason): return (.unknown, reason)
                }
            } catch {
                tried += 1
                guard error.mayPass, tried < Self.tries else {
                    if error.isAboutDestination { silent.withLock { $0[report.destination] = "\(error)" } }
                    return (.unreachable, "\(error)")
                }
            }
            var random = SystemRandomNumberGenerator()
            // When the command is cancelled, the next attempt ends at once.
            await Task.rest(for: Self.waits.delay(afterAttempt: tried, asked: nil, using: &random))
        }
    }
}

extension DeliveryError {
    fileprivate var mayPass: Bool {
        switch verdict {
        case .retry, .outage: true
        default: false
        }
    }

    /// Leaves out fields that vary between objects.
    fileprivate var isAboutDestination: Bool {
        switch verdict {
        case .outage, .credentials: true
        default: false
        }
    }
}

extension ProofRequest {
    /// Named deliveries that have not arrived: no destination can be asked about them, and they must not pass as
    /// checked.
    ///
    /// - Parameter seen: the jobs with at least one delivery that arrived.
    fileprivate func undelivered(_ control: any ControlAPI, seen: Set<Int64>) async throws -> [VerifyReport] {
        if jobs.isEmpty { return try await undeliveredOfBatch(control) }
        var known: Set<Int64> = []
        var found: [VerifyReport] = []
        for id in jobs where known.insert(id).inserted {
            guard let job = try await control.find(Endpoints.job, [.id: "\(id)"]) else {
                found.append(VerifyReport(.undelivered, job: id, path: "", said: "there is no job \(id)"))
                continue
            }
            let open = job.deliveries.compactMap {
                finding(job.job, job.path, $0.destination, $0.key, $0.state, $0.reason)
            }
            found += open
            guard open.isEmpty, !seen.contains(job.job) else { continue }
            let why =
                job.deliveries.isEmpty
                ? Self.said(job.state, job.reason) : "the other options select none of its deliveries"
            found.append(VerifyReport(.undelivered, job: job.job, path: job.path, said: why))
        }
        return found
    }

    private func undeliveredOfBatch(_ control: any ControlAPI) async throws -> [VerifyReport] {
        guard let batch, let report = try await control.find(Endpoints.offload, [.id: "\(batch)"]) else { return [] }
        // The next version replaces a superseded one, with a job of its own.
        return report.files.filter { $0.state != FileState.superseded.rawValue }.flatMap { file in
            let isDone = [FileState.delivered, .duplicate].map(\.rawValue).contains(file.state)
            if file.deliveries.isEmpty, !isDone {
                let said = Self.said(file.state, file.reason)
                return [VerifyReport(.undelivered, job: file.job, path: file.path, said: said)]
            }
            return file.deliveries.compactMap {
                finding(file.job, file.path, $0.destination, $0.key, $0.state, $0.reason)
            }
        }
    }

    /// nil for a delivery that arrived, and for a destination that was not asked about.
    private func finding(
        _ job: Int64, _ path: String, _ destination: String, _ key: String?, _ state: String, _ reason: String?
    ) -> VerifyReport? {
        guard state != DeliveryState.delivered.rawValue, self.destination.map({ $0 == destination }) ?? true else {
            return nil
        }
        return VerifyReport(
            .undelivered, job: job, path: path, destination: destination, key: key,
            said: Self.said(state, reason))
    }

    private static func said(_ state: String, _ reason: String?) -> String {
        state + (reason.map { ": \($0)" } ?? "")
    }
}
