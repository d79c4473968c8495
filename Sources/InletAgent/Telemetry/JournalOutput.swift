internal import InletCore
internal import InletLinux
internal import Synchronization
internal import SystemPackage

/// systemd's journal, with each field of a line as a field there. While nobody takes the entries they go to standard error.
final class JournalOutput: LogOutput {
    /// How long a journal that does not take anything is left alone.
    private static let pause = Duration.seconds(10)

    private struct State {
        /// Why lines go to standard error; nil while they do not.
        var trouble: String?
        var nextTry: ContinuousClock.Instant?
    }

    private let path: FilePath
    private let socket: JournalSocket?
    private let fallback = StreamOutput(.errors)
    private let state = Mutex(State())
    private let clock = ContinuousClock()

    init(_ path: FilePath) {
        self.path = path
        // Without it lines go to standard error, and it is tried again.
        socket = try? JournalSocket(path)
    }

    var silence: String { "systemd's journal takes no lines" }

    func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogWrite {
        let now = clock.now
        return state.withLock { state in
            if let next = state.nextTry, now < next { return elsewhere(lines[...], format, at: time, state) }
            state.nextTry = nil
            for (index, line) in lines.enumerated() {
                do throws(SystemError) {
                    guard let socket else { throw SystemError(call: "socket", path: path, code: .tooManyOpenFiles) }
                    try socket.send(line.journalMessage)
                } catch {
                    // Each entry would wait as long.
                    if error.code == .resourceTemporarilyUnavailable { state.nextTry = now.advanced(by: Self.pause) }
                    state.trouble = "the journal does not take log lines, they go to standard error: \(error)"
                    return elsewhere(lines[index...], format, at: time, state)
                }
            }
            state.trouble = nil
            return LogWrite()
        }
    }

    private func elsewhere(
        _ lines: ArraySlice<EventLine>, _ format: LogSettings.Format, at time: WallTime, _ state: State
    ) -> LogWrite {
        LogWrite(lost: fallback.write(Array(lines), format, at: time).lost, trouble: state.trouble)
    }
}

extension EventLine {
    /// The line as the journal has it: text for people, and a field for each field.
    var journalMessage: JournalMessage {
        var message = JournalMessage()
        message.add("MESSAGE", words)
        message.add("PRIORITY", String(level.priority))
        message.add("SYSLOG_IDENTIFIER", "inlet")
        message.add("INLET_EVENT", name)
        for (name, value) in fields { message.add(JournalMessage.fieldName("INLET_", name), value.plain) }
        return message
    }
}
