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

    private static let interval = Duration.milliseconds(150)

    func send(_ paths: [FilePath]) async throws -> Outcome {
        var jobs: [Int64] = []
        var isRefused = false
        for answer in try await handIn(paths) {
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

    private func follow(_ jobs: [Int64]) async throws -> Outcome {
        var worst = Outcome.delivered
        for id in jobs {
            let outcome = try await follow(id)
            if outcome != .delivered { worst = outcome }
        }
        return worst
    }

    private func follow(_ id: Int64) async throws -> Outcome {
        let line = ProgressLine()
        while true {
            guard let job = try await control.job(id) else { return .failed }
            if job.state != FileState.pending.rawValue {
                line.end(Self.ending(job))
                return Self.isThere(job) ? .delivered : .failed
            }
            let status = try await control.status()
            if let down = Self.unavailable(job, status) {
                line.end("\(job.path): waiting, \(down). It is sent when the destination is back")
                return .unavailable
            }
            let moving = status.in_flight.filter { $0.job == id }
            if let slowest = moving.min(by: { $0.share < $1.share }) {
                line.show(job.path, slowest)
            } else {
                line.show(job.path, sent: 0, size: job.size)
            }
            try await Task.sleep(for: Self.interval)
        }
    }

    private static func unavailable(_ job: JobReport, _ status: StatusReport) -> String? {
        let waiting = Set(job.deliveries.filter { $0.state == "ready" }.map(\.destination))
        // Those that are about to be asked, or asked for time themselves, are there.
        let fine = ["up", "not asked yet", "asks for time"]
        for destination in status.destinations
        where waiting.contains(destination.name) && !fine.contains(destination.state) {
            return "\(destination.name) is \(destination.state)" + (destination.last_error.map { ": \($0)" } ?? "")
        }
        return nil
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

    func show(_ path: String, _ transfer: StatusReport.Transfer) {
        draw(path, Console.bar(Int64(transfer.share * 1000), of: 1000), transfer.doing.shortened(24))
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
