import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import Synchronization

/// Prints lines of a log as people read them.
final class LogPrinter: Sendable {
    let filter: LogLineText.Filter
    private let text = Mutex(LogLineText())

    init(_ filter: LogLineText.Filter) { self.filter = filter }

    /// Whether a line is one that is wanted.
    func allows(_ line: [UInt8]) -> Bool { filter.allows(LogFields(line)) }

    /// - Returns: false when nobody reads any more.
    @discardableResult
    func show(_ line: [UInt8]) -> Bool {
        let fields = LogFields(line)
        guard filter.allows(fields) else { return true }
        return print(text.withLock { text in fields.map { text.lines($0) } ?? text.lines(line) })
    }

    /// - Returns: false when nobody reads any more.
    @discardableResult
    func show(_ line: LogFields) -> Bool {
        filter.allows(line) ? print(text.withLock { $0.lines(line) }) : true
    }

    private func print(_ lines: [TintedText]) -> Bool {
        lines.allSatisfy { Console.offer($0.text(hasColour: Console.hasColour)) }
    }
}

/// The log of the running agent, over its socket; goes on with the next agent when one stops.
struct AgentLog {
    private let client: ControlClient
    private let lines: Int
    private let filter: LogLineText.Filter

    /// Lines that are asked for after a break, and how soon.
    private static let again = (lines: 500, pause: Duration.seconds(1))

    init(_ config: LoadedConfig, lines: Int, filter: LogLineText.Filter) {
        client = ControlClient(socket: StateDirectory.controlSocket(in: config.settings.stateDirectory))
        (self.lines, self.filter) = (lines, filter)
    }

    /// Until nobody reads any more, or the process is ended.
    func follow(_ printer: LogPrinter) async throws {
        defer { client.shutdown() }
        let seen = Mutex<String?>(nil)
        var (isFirst, isAway) = (true, false)
        while true {
            do {
                let wanted = isFirst ? lines : Self.again.lines
                let earlier = try await client.log(limit: max(1, wanted), level: filter.level, job: filter.job)
                let time = seen.withLock { $0 }
                for line in earlier.suffix(wanted) where time.map({ line.time > $0 }) ?? true {
                    guard printer.show(line) else { return }
                }
                if let last = earlier.last { seen.withLock { $0 = last.time } }
                (isFirst, isAway) = (false, false)
                try await client.followLog(after: earlier.last?.sequence, level: filter.level) { line in
                    seen.withLock { $0 = line.time }
                    return printer.show(line)
                }
                return
            } catch is ControlClient.NotRunning {
                guard !isFirst else {
                    Console.printError(
                        "inlet: no agent is running; name its log file, or: journalctl -o cat -u inlet -f | inlet tail -"
                    )
                    throw ExitStatus.tryLater
                }
            } catch let failure as ControlClient.Failure where failure.isSilence && !isFirst {
                // Said below, once.
            } catch let failure as ControlClient.Failure {
                Console.printError("inlet: \(failure)")
                throw ExitStatus.tryLater
            }
            if !isAway { Console.printError("inlet: the agent does not answer; waiting for it") }
            isAway = true
            try await Task.sleep(for: Self.again.pause)
        }
    }
}
