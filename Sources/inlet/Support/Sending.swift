import InletCore
import InletDashboard
import InletLinux
import Synchronization
import SystemPackage

/// Queues files and follows them to their ends, with a bar each on a terminal and plain lines elsewhere.
struct Sending: Sendable {
    enum Outcome: Sendable {
        case delivered
        case failed
        /// A destination is down or refuses our credentials; the files stay queued.
        case unavailable
    }

    let control: any ControlAPI
    let to: String?
    /// No agent stays that sends what could not be sent.
    var isAlone = false

    /// How soon is asked again: the first files end soon, and after that nobody reads faster.
    private static let pauses = (first: Duration.milliseconds(10), last: Duration.milliseconds(100))

    /// Queues `paths`, one that is named twice once, and tells of them in their order.
    func send(_ paths: [FilePath]) async throws -> Outcome {
        var seen: Set<FilePath> = []
        var jobs: [Int64] = []
        var isRefused = false
        for answer in try await control.send(paths.filter { seen.insert($0).inserted }, to: to) {
            if let job = answer.job {
                jobs.append(job)
            } else {
                isRefused = true
                Console.printError("inlet: \(answer.message)")
            }
        }
        let outcome = try await follow(jobs)
        return isRefused && outcome == .delivered ? .failed : outcome
    }

    /// Asks one question about all that is left, until nothing is.
    private func follow(_ jobs: [Int64]) async throws -> Outcome {
        let line = ProgressLine()
        var worst = Outcome.delivered
        var left = jobs[...]
        var pause = Self.pauses.first
        while !left.isEmpty {
            let report = try await control.follow(Array(left.prefix(FollowReport.most)))
            left = left.dropFirst(report.ends.count)
            worst = report.ends.map(Self.outcome).last { $0 != .delivered } ?? worst
            tell(report.ends, line)
            guard let next = report.next else {
                // All that was asked about has ended.
                if report.ends.isEmpty { return .failed }
                continue
            }
            if pause == Self.pauses.last {
                line.show(next, report.moving, number: jobs.count - left.count + 1, of: jobs.count)
            }
            try await Task.sleep(for: pause)
            pause = min(pause * 2, Self.pauses.last)
        }
        return worst
    }

    private func tell(_ ends: [FollowReport.End], _ line: ProgressLine) {
        let advice = isAlone ? "Repeat the command when that has changed" : "It is sent when that has changed"
        let lines = ends.compactMap { end in
            end.report.map { report in
                end.waits_for.map { "\(report.path): waiting, \($0). \(advice)" } ?? Self.ending(report)
            }
        }
        if !lines.isEmpty { line.end(lines.joined(separator: "\n")) }
        for end in ends where end.report == nil {
            Console.printError("inlet: job \(end.job) is no longer in the journal: somebody had it forgotten")
        }
    }

    private static func outcome(_ end: FollowReport.End) -> Outcome {
        guard let report = end.report else { return .failed }
        if end.waits_for != nil { return .unavailable }
        return isThere(report) ? .delivered : .failed
    }

    private static func isThere(_ job: JobReport) -> Bool {
        [FileState.delivered, .duplicate].map(\.rawValue).contains(job.state)
    }

    private static func ending(_ job: JobReport) -> String {
        let places = job.deliveries.map { delivery in
            "\(delivery.destination): \(delivery.url ?? delivery.key ?? delivery.state)"
        }.joined(separator: ", ")
        guard isThere(job) else {
            return "\(Console.tint("✗", .bad)) \(job.path): \(job.state): \(job.reason ?? "no reason given")"
        }
        return "\(Console.tint("✓", .good)) \(job.path) → \(places)"
    }
}

/// One line of a terminal that is drawn again; nothing until the end elsewhere.
final class ProgressLine {
    private var isDrawn = false

    func show(_ path: String, sent: Int64, size: Int64) {
        draw(path, Console.bar(sent, of: size), "\(ByteText.format(sent)) of \(ByteText.format(size))")
    }

    /// A job and where its slowest transfer is; its number where there are several.
    func show(_ job: JobReport, _ moving: [StatusReport.Transfer], number: Int, of count: Int) {
        let name = count > 1 ? "\(number) of \(count)  \(job.path)" : job.path
        guard let slowest = moving.min(by: { $0.share < $1.share }) else { return show(name, sent: 0, size: job.size) }
        draw(name, Console.bar(Int64(slowest.share * 1000), of: 1000), slowest.doing.shortened(24))
    }

    func draw(_ path: String, _ bar: String, _ text: String) {
        guard Console.isTerminal else { return }
        let width = max(20, (ProcessSetup.terminalWidth ?? 80) - 52)
        Console.draw("\r\u{1B}[K  \(path.shortened(width)) \(bar) \(text)")
        isDrawn = true
    }

    func end(_ text: String) {
        erase()
        Console.print(text)
    }

    func erase() {
        if isDrawn { Console.draw("\r\u{1B}[K") }
        isDrawn = false
    }
}

/// Carries the outcome out of the session's body.
final class SendResult: Sendable {
    private let value = Mutex(Sending.Outcome.failed)

    var outcome: Sending.Outcome { value.withLock { $0 } }
    func set(_ outcome: Sending.Outcome) { value.withLock { $0 = outcome } }
}

extension StatusReport.Transfer {
    /// How far it is, from 0 to 1.
    var share: Double { percent.map { $0 / 100 } ?? (size > 0 ? Double(sent) / Double(size) : 1) }

    /// What is being done, in words: its step, or how many bytes have left.
    var doing: String { step ?? "\(ByteText.format(sent)) of \(ByteText.format(size))" }
}
