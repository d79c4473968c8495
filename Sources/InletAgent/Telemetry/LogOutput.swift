internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// How a write went.
struct LogWrite: Sendable, Equatable {
    /// Lines that are nowhere now.
    var lost = 0
    /// What is wrong, while it is.
    var trouble: String?
}

/// Where lines go: whole lines, in the order they came. It may block: a `LogWriter` stands before it.
protocol LogOutput: Sendable {
    /// What is to be said when it takes nothing for long.
    var silence: String { get }
    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogWrite
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
        case "stderr": StreamOutput(.errors)
        case "stdout": StreamOutput(.output)
        case "journald": JournalOutput(JournalSocket.usual)
        default:
            try FileOutput(
                FilePath(settings.output), LogRotation(maxSize: settings.maxSize, keep: settings.keep))
        }
    }
}

/// The process's own output. Where it leads to systemd's journal, each line says its priority.
final class StreamOutput: LogOutput {
    private let stream: StandardStream
    private let isJournal: Bool
    /// Whether the last line was cut off.
    private let isTorn = Mutex(false)

    init(_ stream: StandardStream, environment: (String) -> String? = ProcessSetup.environment) {
        self.stream = stream
        isJournal = ProcessSetup.isJournal(stream.rawValue, environment: environment)
    }

    var silence: String {
        "\(stream) takes no lines: who reads it stands still (a pipe, a container's log driver, a terminal after Ctrl-S)"
    }

    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogWrite {
        let text = lines.flatMap { line in
            (isJournal ? Array("<\(line.level.priority)>".utf8) : []) + line.text(format, at: time)
        }
        return isTorn.withLock { isTorn in
            let bytes = isTorn ? [LogFile.newline] + text : text
            let (written, error) = stream.write(bytes)
            let kept = error == nil ? written : LogFile.kept(bytes, written, stream.takeBack)
            if kept > 0 { isTorn = bytes[kept - 1] != LogFile.newline }
            return LogWrite(
                lost: bytes[kept...].count { $0 == LogFile.newline }, trouble: error.map { "\(stream): \($0)" })
        }
    }
}

/// A file of our own.
final class FileOutput: LogOutput {
    private struct State: ~Copyable {
        var file: LogFile
        var isFailing = false
    }

    private let path: FilePath
    private let state: Mutex<State>
    private let clock = ContinuousClock()

    init(_ path: FilePath, _ rotation: LogRotation) throws(SystemError) {
        self.path = path
        state = Mutex(State(file: try LogFile(path, rotation, now: clock.now)))
    }

    var silence: String { "\(path.display): the disk does not take lines, or has not answered for long" }

    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogWrite {
        let text = lines.flatMap { $0.text(format, at: time) }
        let now = clock.now
        let (lost, error, isNew) = state.withLock { state in
            let (lost, error) = state.file.write(text, at: now)
            defer { state.isFailing = error != nil }
            return (lost, error, error != nil && !state.isFailing)
        }
        // Nobody would find it in the file.
        if let error, isNew {
            StandardStream.errors.offer(Array("inlet: lines of the log are lost: \(error)\n".utf8))
        }
        return LogWrite(lost: lost, trouble: error.map { "\($0)" })
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
