internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// What an output has to say of itself after a write.
struct LogNews: Sendable, Equatable {
    /// Lines that were lost until now, and are not any more.
    var lost = 0
    /// What is wrong, said once until it is over.
    var trouble: String?
}

/// Where lines go: whole lines, in the order they came, whatever thread writes them. It never stops the agent.
protocol LogOutput: Sendable {
    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogNews
    /// The file may have been moved away just now.
    func reopen()
}

extension LogOutput {
    func reopen() {}
}

/// The output that settings ask for.
enum LogOutputs {
    static func make(_ settings: LogSettings) throws(SystemError) -> any LogOutput {
        switch settings.output {
        case "stderr": StreamOutput(descriptor: 2)
        case "stdout": StreamOutput(descriptor: 1)
        case "journald": JournalOutput(JournalSocket.usual)
        default:
            try FileOutput(
                FilePath(settings.output), LogRotation(maxSize: settings.maxSize, keep: settings.keep))
        }
    }
}

/// The process's own output. Where it leads to systemd's journal, each line says its priority.
final class StreamOutput: LogOutput {
    private let descriptor: Int32
    private let isJournal: Bool
    private let order = Mutex(())

    init(descriptor: Int32, environment: (String) -> String? = ProcessSetup.environment) {
        self.descriptor = descriptor
        isJournal = ProcessSetup.isJournal(descriptor, environment: environment)
    }

    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogNews {
        let text = lines.flatMap { line in
            (isJournal ? Array("<\(line.level.priority)>".utf8) : []) + line.text(format, at: time)
        }
        order.withLock { _ in
            _ = descriptor == 1 ? ProcessSetup.writeStandardOutput(text) : ProcessSetup.writeStandardError(text)
        }
        return LogNews()
    }
}

/// A file of our own.
final class FileOutput: LogOutput {
    private struct State: ~Copyable {
        var file: LogFile
        var lost = 0
    }

    private let state: Mutex<State>
    private let clock = ContinuousClock()

    init(_ path: FilePath, _ rotation: LogRotation) throws(SystemError) {
        state = Mutex(State(file: try LogFile(path, rotation, now: clock.now)))
    }

    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogNews {
        let text = lines.flatMap { $0.text(format, at: time) }
        let now = clock.now
        return state.withLock { state in
            let (lost, error) = state.file.write(text, at: now)
            defer { state.lost = error == nil ? 0 : state.lost + lost }
            guard let error else { return LogNews(lost: state.lost) }
            // Nobody would find it in the file.
            if state.lost == 0 {
                ProcessSetup.writeStandardError(Array("inlet: lines of the log are lost: \(error)\n".utf8))
            }
            return LogNews(trouble: state.lost == 0 ? "\(error)" : nil)
        }
    }

    func reopen() {
        let now = clock.now
        state.withLock { $0.file.lookSoon(now) }
    }
}

extension LogSettings.Level {
    /// The priority of syslog(3).
    var priority: Int {
        switch self {
        case .debug: 7
        case .info: 6
        case .warning: 4
        case .error: 3
        }
    }
}
