import InletAgent
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import Synchronization
import SystemPackage

/// Shows files arriving: a bar for what is moving on a terminal, a plain line for each end everywhere.
struct DemoProgress: Sendable {
    private let place: DemoFolders
    private let control: LocalControl
    private let ended = WakeSignal()
    private let lines = DemoOutput()

    private static let interval = Duration.milliseconds(150)

    init(place: DemoFolders, log: EventLog, control: LocalControl) {
        self.place = place
        self.control = control
        let (lines, ended) = (lines, ended)
        log.listen { event in
            if case .jobStarted(let ref, _, _, _, _, _) = event { lines.begin(ref.delivery) }
            if let line = Self.line(event, place, lines) {
                lines.put(line)
            } else if case .jobWaiting(let ref, _, let saying?, _) = event {
                // Each look at a job tells; what is new of it is shown.
                lines.putOnce(
                    "\(Console.tint("…", .faint)) \(place.name(of: ref.path)) → \(ref.destination): "
                        + DisplayText.escape(saying))
            } else {
                return
            }
            ended.raise()
        }
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
            Drop files of your own into \(Console.tint(place.drop.display, .strong)); Ctrl-C ends the demo.

            """)
    }

    /// The newest job so far: samples of an earlier demo in the same place are no part of this one.
    func lastJob() async throws -> Int64 {
        try await control.jobs(FileFilter(limit: 1)).first?.job ?? 0
    }

    /// Shows until every sample has ended.
    func play(until samples: [DemoSamples.Sample], after lastJob: Int64) async throws {
        let wanted = Set(samples.map { place.drop.pushing($0.path).display })
        while true {
            // A cancelled task waits for nothing: without this, the loop would turn for ever.
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
        for line in lines.take() { Console.print(line) }
        guard Console.isTerminal, !moving.isEmpty else { return }
        let width = max(16, (ProcessSetup.terminalWidth ?? 80) - 48)
        let bars = moving.prefix(8).map { transfer in
            let name = FilePath(transfer.path).lastComponent?.string ?? transfer.path
            return
                "  \(name.shortened(width).padded(min(width, 28))) \(Console.bar(Int64(transfer.share * 1000), of: 1000)) → \(transfer.destination)"
        }
        // Back to the first bar, so that the next drawing covers them all.
        let up = bars.count > 1 ? "\u{1B}[\(bars.count - 1)F" : "\r"
        Console.draw(bars.joined(separator: "\n") + up)
    }

    private static func line(_ event: AgentEvent, _ place: DemoFolders, _ lines: DemoOutput) -> String? {
        func line(_ sign: String, _ tint: TextStyle, _ path: FilePath, _ rest: String) -> String {
            "\(Console.tint(sign, tint)) \(place.name(of: path)) \(rest)"
        }
        switch event {
        case .jobDelivered(let ref, let proof, let last):
            // The last attempt alone may be a look at a job that ran for long.
            let duration = lines.end(ref.delivery) ?? last
            let facts = Console.tint("(\(ByteText.format(proof.size)), \(duration.milliseconds) ms)", .faint)
            return line("✓", .good, ref.path, "\(facts) → \(ref.destination): \(proof.key)")
        case .jobFailed(let ref, let state, let error):
            return line("✗", .bad, ref.path, "\(state.rawValue): \(DisplayText.escape(error.reason))")
        case .fileRejected(_, let path, _, let reason):
            return line("!", .warning, path, "refused: \(DisplayText.escape(reason))")
        case .fileIgnored(let path, let reason): return line("-", .faint, path, "ignored: \(reason)")
        case .jobRetry(let ref, let error, _, _):
            return line("…", .warning, ref.path, "will be tried again: \(DisplayText.escape(error.reason))")
        default: return nil
        }
    }
}

/// Lines that wait to be printed.
private final class DemoOutput: Sendable {
    private let state = Mutex(
        (waiting: [String](), shownOnce: Set<String>(), begun: [Int64: ContinuousClock.Instant]()))

    func put(_ line: String) { state.withLock { $0.waiting.append(line) } }

    /// Puts the line unless it was there before.
    func putOnce(_ line: String) {
        state.withLock { state in
            if state.shownOnce.insert(line).inserted { state.waiting.append(line) }
        }
    }

    /// A delivery is tried; its first attempt counts.
    func begin(_ delivery: Int64) {
        state.withLock { $0.begun[delivery] = $0.begun[delivery] ?? .now }
    }

    /// How long a delivery took in all, with its waits; nil when its beginning was not seen.
    func end(_ delivery: Int64) -> Duration? {
        state.withLock { $0.begun.removeValue(forKey: delivery) }.map { $0.duration(to: .now) }
    }

    func take() -> [String] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }
}
