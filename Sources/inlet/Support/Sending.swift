import InletAgent
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

/// Queues files and follows them to their ends, with a bar each on a terminal and plain lines elsewhere.
struct Sending: Sendable {
    enum Outcome: Sendable {
        case delivered
        case failed
        /// A destination is down or refuses our credentials; the files stay queued.
        case unavailable
        /// The agent has stopped, and has not started again.
        case agentGone
    }

    let control: any ControlAPI
    let to: String?
    /// Whether files that were delivered before are sent again.
    let again: Bool
    /// No agent remains to send the rest later.
    var isAlone = false

    /// The pause between questions: the first files end soon, and after that nobody reads faster.
    private static let pauses = (first: Duration.milliseconds(10), last: Duration.milliseconds(100))
    /// Names to hand in before each question: enough for the agent to examine some while it writes others.
    private static let group = 512
    /// How long an agent may take to restart, and the pause between tries.
    private static let absence = (longest: Duration.seconds(30), pause: Duration.milliseconds(200))

    /// Queues `files`, each once, and reports their ends in order. Reports early ones while it hands in others, so that
    /// the reports keep up with the agent.
    ///
    /// - Parameter takes: selects the files to send.
    func send(
        _ files: [NamedFiles], from folder: FilePath, where takes: @escaping (FilePath) -> Bool = { _ in true }
    ) async throws -> Outcome {
        var names = NameReader(files, from: folder, where: takes)
        var progress = SendProgress()
        let line = ProgressLine()
        let start = ContinuousClock.now
        defer { line.erase() }
        do {
            while true {
                try Task.checkCancellation()
                let some = names.next(Self.group)
                if some.isEmpty { break }
                let (answers, bytes) = try await handIn(some)
                let known = answers.filter { $0.known == true }.map { "= \(Self.nearby($0.message, folder))" }
                if !known.isEmpty { line.end(known.joined(separator: "\n")) }
                for refusal in progress.add(answers, bytes: bytes) {
                    Console.printError("inlet: \(DisplayText.escape(refusal))")
                }
                try await tellEnded(&progress, folder, line)
            }
            try await follow(&progress, folder, line)
            if Console.isCanvas, progress.sum.files > 1, progress.outcome == .delivered {
                line.end(SendLine.end(progress.sum, after: start.duration(to: .now)))
            }
        } catch {
            guard Self.isSilent(error) else { throw error }
            line.erase()
            let hasStopped = (error as? ControlClient.Failure)?.isAbsence ?? false
            Console.printError("inlet: \(hasStopped ? "the agent has stopped, and was not started again" : "\(error)")")
            if progress.sum.files > 0 {
                Console.printError("When the agent runs again, it continues with the files that it has taken.")
            }
            return .agentGone
        }
        return progress.outcome
    }

    /// All files that have ended, without waiting for the others.
    private func tellEnded(_ progress: inout SendProgress, _ folder: FilePath, _ line: ProgressLine) async throws {
        while !progress.isOver, try await ask(&progress, folder, line).next == nil {}
    }

    /// A text that begins with a path, as a person in `folder` would write it.
    private static func nearby(_ text: String, _ folder: FilePath) -> String {
        let start = folder.display + "/"
        return text.hasPrefix(start) ? String(text.dropFirst(start.count)) : text
    }

    /// Asks about the first files that are left, until none is.
    private func follow(_ progress: inout SendProgress, _ folder: FilePath, _ line: ProgressLine) async throws {
        var pause = Self.pauses.first
        var drawing = SendLine()
        let start = ContinuousClock.now
        while !progress.isOver {
            let report = try await ask(&progress, folder, line)
            // All files of the question have ended.
            guard let next = report.next else { continue }
            if pause == Self.pauses.last {
                let time = Double(start.duration(to: .now).milliseconds) / 1000
                line.draw(drawing.text(next, report.moving, progress.sum, at: time, columns: ProgressLine.columns))
            }
            try await Task.sleep(for: pause)
            pause = min(pause * 2, Self.pauses.last)
        }
    }

    private func ask(
        _ progress: inout SendProgress, _ folder: FilePath, _ line: ProgressLine
    ) async throws -> FollowReport {
        let jobs = progress.next(FollowReport.most)
        let control = control
        let report = try await patiently { try await control.ask(Endpoints.follow, body: jobs) }
        tell(report.ends, folder, line)
        progress.end(
            report.ends.map(Self.outcome), bytes: report.ends.reduce(0) { $0 + ($1.report?.size ?? 0) })
        if report.ends.isEmpty, report.next == nil { progress.giveUp() }
        return report
    }

    /// - Returns: each file's result, and the bytes of the accepted files where somebody watches the rest.
    private func handIn(_ paths: [FilePath]) async throws -> (answers: [CommandReport], bytes: Int64) {
        let (control, to, again) = (control, to, again)
        var seen: Set<FilePath> = []
        let once = paths.filter { seen.insert($0).inserted }
        let answers = try await patiently { try await control.send(once, to: to, again: again) }
        guard Console.isCanvas else { return (answers, 0) }
        let taken = zip(once, answers).filter { $0.1.job != nil && $0.1.known != true }
        return (answers, taken.reduce(0) { $0 + (FileLook.glance(at: $1.0)?.identity?.size ?? 0) })
    }

    /// The agent's answer, also after a restart: it remembers the files that it has taken, and takes none twice.
    private func patiently<Answer: Sendable>(
        _ question: @Sendable () async throws -> Answer
    ) async throws -> Answer {
        var end: ContinuousClock.Instant?
        while true {
            do {
                return try await question()
            } catch {
                // Counted from the first silence: the answer to a long question may take minutes.
                let limit = end ?? .now.advanced(by: Self.absence.longest)
                guard Self.isSilent(error), .now < limit else { throw error }
                end = limit
            }
            try await Task.sleep(for: Self.absence.pause)
        }
    }

    private static func isSilent(_ error: any Error) -> Bool {
        (error as? ControlClient.Failure)?.isSilence ?? false
    }

    private func tell(_ ends: [FollowReport.End], _ folder: FilePath, _ line: ProgressLine) {
        let advice = isAlone ? "Repeat the command when that is fixed" : "Inlet sends it when that is fixed"
        let lines = ends.compactMap { end in
            end.report.map { report in
                let path = Self.nearby(report.path, folder)
                return end.waits_for.map { "\(path): waiting, \(DisplayText.escape($0)). \(advice)" }
                    ?? Self.ending(report, path)
            }
        }
        if !lines.isEmpty { line.end(lines.joined(separator: "\n")) }
        for end in ends where end.report == nil {
            Console.printError(
                "inlet: job \(end.job) is no longer in the journal: somebody removed it with 'inlet queue forget'")
        }
    }

    private static func outcome(_ end: FollowReport.End) -> Outcome {
        guard let report = end.report else { return .failed }
        if end.waits_for != nil { return .unavailable }
        return isThere(report) ? .delivered : .failed
    }

    private static func isThere(_ job: FollowReport.File) -> Bool {
        [FileState.delivered, .duplicate].map(\.rawValue).contains(job.state)
    }

    private static func ending(_ job: FollowReport.File, _ path: String) -> String {
        let places = job.places.map { place in
            "\(place.destination): \(DisplayText.escape(place.url ?? place.key ?? place.state))"
        }.joined(separator: ", ")
        guard isThere(job) else {
            return
                "\(Console.tint("✗", .bad)) \(path): \(job.state): \(DisplayText.escape(job.reason ?? "no reason given"))"
        }
        if job.state == FileState.duplicate.rawValue { return "= \(path) → \(places) · the same content was there" }
        return "\(Console.tint("✓", .good)) \(path) → \(places) · delivered now"
    }
}

/// The jobs of one `send`, in order, and their ends.
private struct SendProgress {
    private var jobs: [Int64] = []
    private var known: Set<Int64> = []
    /// The sums of `jobs`; bytes only where somebody watches.
    private(set) var sum = SendLine.Sum()
    private(set) var outcome = Sending.Outcome.delivered

    /// Whether every file that was handed in has ended.
    var isOver: Bool { sum.ended >= sum.files }

    /// The first `most` files that have not ended.
    func next(_ most: Int) -> [Int64] { Array(jobs[sum.ended...].prefix(most)) }

    /// Adds files that were handed in. - Returns: why some are refused.
    ///
    /// - Parameter bytes: of the accepted files.
    mutating func add(_ answers: [CommandReport], bytes: Int64) -> [String] {
        sum.bytes += bytes
        var refusals: [String] = []
        for answer in answers {
            guard let job = answer.job else {
                refusals.append(answer.message)
                if outcome == .delivered { outcome = .failed }
                continue
            }
            if answer.known != true, known.insert(job).inserted { jobs.append(job) }
        }
        sum.files = jobs.count
        return refusals
    }

    /// Counts the ends of the next files.
    ///
    /// - Parameter bytes: of all these files.
    mutating func end(_ outcomes: [Sending.Outcome], bytes: Int64) {
        sum.ended += outcomes.count
        sum.endedBytes += bytes
        if let last = outcomes.last(where: { $0 != .delivered }) { outcome = last }
    }

    /// The rest counts as failed: nothing can be learned about it.
    mutating func giveUp() {
        sum.ended = sum.files
        outcome = .failed
    }
}
