import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import UnixSignals

/// Asks an agent for its status again and again, also across its restarts.
///
/// Asks only the socket: without an agent the journal would be opened under a lock, and a starting agent would wait for
/// it.
struct StatusWatch: Sendable {
    private let client: ControlClient
    private let interval: Duration

    /// After this silence, a listening agent is shown as one that does not answer.
    private static let patience = Duration.seconds(5)
    private static let start = ContinuousClock.now

    init(_ config: LoadedConfig, interval: Duration) {
        client = ControlClient(socket: config.controlSocket)
        self.interval = interval
    }

    func end() { client.shutdown() }

    /// Prints the `text` of each look until the reader is gone.
    func follow(_ first: StatusReport, _ text: (WatchedStatus) throws -> String) async throws {
        var status = WatchedStatus(first, at: Self.seconds)
        while Console.offer(try text(status)) {
            try await Task.sleep(for: interval)
            Self.note(await look(), in: &status)
        }
    }

    // MARK: - A picture

    private enum Event: Sendable {
        case look(Look)
        case key
        /// Ctrl-Z.
        case stop
        case signal(UnixSignal)
    }

    /// Draws on the terminal until a signal or `q` ends it.
    func draw(_ first: StatusReport) async throws {
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup, .sigwinch, .sigcont)
        let (events, source) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(16))
        // If the terminal blocks, events pile up and the oldest are dropped; the wish to quit must not be.
        let leaving = StopFlag()
        let keys = try TerminalKeys { source.yield(Self.event($0, leaving)) }
        Self.beginScreen()
        defer {
            Self.endScreen()
            keys.stop()
        }
        var status = WatchedStatus(first, at: Self.seconds)
        Self.show(status)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await signal in signals { source.yield(.signal(signal)) } }
            group.addTask {
                while await Task.rest(for: interval) { source.yield(.look(await look())) }
            }
            for await event in events {
                if leaving.isSet { return group.cancelAll() }
                switch event {
                case .look(let look): Self.note(look, in: &status)
                case .key: continue
                case .stop:
                    Self.endScreen()
                    keys.suspend()
                    Self.beginScreen()
                case .signal(.sigwinch): break
                // After any stop, also SIGSTOP, which sends no event before.
                case .signal(.sigcont):
                    keys.resume()
                    Self.beginScreen()
                case .signal: return group.cancelAll()
                }
                Self.show(status)
            }
        }
    }

    private static func event(_ event: TerminalKeys.Event, _ leaving: StopFlag) -> Event {
        guard case .typed(let typed) = event else { return .stop }
        if typed.contains(where: { "qQ".utf8.contains($0) }) { leaving.set() }
        return .key
    }

    // MARK: - Looks

    /// An agent's status; without one, whether the agent has stopped or is silent.
    private typealias Look = (report: StatusReport?, hasStopped: Bool)

    private func look() async -> Look {
        do {
            return (try await client.status(within: Self.patience), false)
        } catch {
            // The screen says that its numbers are old.
            return (nil, (error as? ControlClient.Failure)?.isAbsence ?? false)
        }
    }

    private static func note(_ look: Look, in status: inout WatchedStatus) {
        let clock = WallTime.now.clock()
        if let report = look.report {
            status.take(report, at: seconds, clock: clock)
        } else {
            status.lose(hasStopped: look.hasStopped, clock: clock)
        }
    }

    private static var seconds: Double {
        let (seconds, attoseconds) = start.duration(to: .now).components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    // MARK: - The other screen

    // One write for each drawing prevents flicker. The first screen's content returns at the end (xterm's private modes
    // 1049, 25 and 7).
    private static func beginScreen() { Console.draw("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[2J") }
    private static func endScreen() { Console.draw("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l") }

    private static func show(_ status: WatchedStatus) {
        let (columns, rows) = (ProcessSetup.terminalWidth ?? 80, ProcessSetup.terminalHeight ?? 24)
        let lines = StatusView(status, columns: columns, rows: rows).lines(clock: WallTime.now.clock())
        // After a full line the cursor stands on its last character, and the sequence would erase that.
        let text = lines.map { line in
            line.text(hasColour: Console.hasColour) + (line.width < columns ? "\u{1B}[K" : "")
        }.joined(separator: "\r\n")
        Console.draw("\u{1B}[H" + text + (lines.count < rows ? "\r\n\u{1B}[J" : ""))
    }
}
