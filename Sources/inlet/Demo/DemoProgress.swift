import InletAgent
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import Synchronization
import SystemPackage

/// Shows files arriving: bars for transfers on a terminal, and a plain line for each end everywhere.
final class DemoProgress: Sendable {
    private let place: DemoFolders
    private let control: LocalControl
    private let ended = WakeSignal()
    /// Waiting lines, lines that are printed only once, and the times of the first attempts.
    private let state = Mutex(
        (waiting: [String](), shownOnce: Set<String>(), begun: [Int64: ContinuousClock.Instant]()))

    private static let interval = Duration.milliseconds(150)

    init(place: DemoFolders, log: EventLog, control: LocalControl) {
        self.place = place
        self.control = control
        log.listen { [weak self] in self?.hear($0) }
    }

    private func hear(_ event: AgentEvent) {
        if case .jobStarted(let ref, _, _, _, _, _) = event {
            // The first attempt counts.
            state.withLock { $0.begun[ref.delivery] = $0.begun[ref.delivery] ?? .now }
        }
        if let line = line(event) {
            state.withLock { $0.waiting.append(line) }
        } else if case .jobWaiting(let ref, _, let saying?, _) = event {
            // Compares each look at a job with the one before, and shows the difference.
            let line =
                "\(Console.tint("…", .faint)) \(place.name(of: ref.path)) → \(ref.destination): "
                + DisplayText.escape(saying)
            state.withLock { if $0.shownOnce.insert(line).inserted { $0.waiting.append(line) } }
        } else {
            return
        }
        ended.raise()
    }

    func introduce() {
        Console.print(
            """
            \(Console.tint("inlet demo", .strong)): everything stays on this machine, below
              \(place.base.display)
            Samples are dropped now. Each is watched, settled, routed, sent to loopback servers and compared.

            """)
    }

    func invite() {
        Console.print(
            """

            Where everything went:
              objects        \(place.store.appending("objects").display)
              S3 archive     \(place.archive.appending("objects").display)
              GigHive        \(place.gigHive.appending("media").display)
              VOPI pictures  \(place.pictures.display)
              copied files   \(place.library.display)
              configuration  \(place.base.appending("inlet.yaml").display)
              log            \(place.base.appending("inlet.log").display)
            Drop your own files into \(Console.tint(place.drop.display, .strong)). Press Ctrl-C to end the demo.

            """)
    }

    /// The newest job so far: samples of an earlier demo in the same place do not belong to this one.
    func lastJob() async throws -> Int64 {
        try await control.jobs(FileFilter(limit: 1)).first?.job ?? 0
    }

    /// Shows until every sample has ended.
    func play(until samples: [DemoSamples.Sample], after lastJob: Int64) async throws {
        let wanted = Set(samples.map { place.drop.pushing($0.path).display })
        while true {
            // A cancelled task no longer waits: without this, the loop would spin.
            try Task.checkCancellation()
            try await draw()
            let jobs = try await control.jobs(FileFilter(limit: 1000))
            let open = wanted.subtracting(jobs.filter { $0.job > lastJob && $0.finished_at != nil }.map(\.path))
            if open.isEmpty { break }
            await ended.wait(until: .now.advanced(by: Self.interval))
        }
        try await draw()
    }

    func keepShowing() async throws {
        while !Task.isCancelled {
            try await draw()
            let isBusy = !(try await control.status().in_flight.isEmpty)
            await ended.wait(until: isBusy ? .now.advanced(by: Self.interval) : nil)
        }
    }

    private func draw() async throws {
        let moving = try await control.status().in_flight
        if Console.isTerminal { Console.draw("\r\u{1B}[J") }
        let lines = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for line in lines { Console.print(line) }
        guard Console.isTerminal, !moving.isEmpty else { return }
        let width = max(16, (ProcessSetup.terminalWidth ?? 80) - 48)
        let bars = moving.prefix(8).map { transfer in
            let name = FilePath(transfer.path).lastComponent?.string ?? transfer.path
            return
                "  \(name.shortened(width).padded(min(width, 28))) \(Console.bar(Int64(transfer.share * 1000), of: 1000)) → \(transfer.destination)"
        }
        // Back to the first bar, so that the next drawing covers all of them.
        let up = bars.count > 1 ? "\u{1B}[\(bars.count - 1)F" : "\r"
        Console.draw(bars.joined(separator: "\n") + up)
    }

    private func line(_ event: AgentEvent) -> String? {
        func line(_ sign: String, _ tint: TextStyle, _ path: FilePath, _ rest: String) -> String {
            "\(Console.tint(sign, tint)) \(place.name(of: path)) \(rest)"
        }
        switch event {
        case .jobDelivered(let ref, let proof, let last):
            // The last attempt may only be a look at a long job.
            let begun = state.withLock { $0.begun.removeValue(forKey: ref.delivery) }
            let duration = begun.map { $0.duration(to: .now) } ?? last
            let facts = Console.tint("(\(ByteText.format(proof.size)), \(duration.milliseconds) ms)", .faint)
            return line("✓", .good, ref.path, "\(facts) → \(ref.destination): \(proof.key)")
        case .jobFailed(let ref, let state, let error):
            return line("✗", .bad, ref.path, "\(state.rawValue): \(DisplayText.escape(error.reason))")
        case .fileRejected(_, let path, _, let reason):
            return line("!", .warning, path, "refused: \(DisplayText.escape(reason))")
        case .fileIgnored(let path, let reason): return line("-", .faint, path, "ignored: \(reason)")
        case .jobRetry(let ref, let error, _, _):
            return line("…", .warning, ref.path, "will be retried: \(DisplayText.escape(error.reason))")
        default: return nil
        }
    }
}
