import CLinux
import Glibc

/// The process's own output.
extension ProcessSetup {
    /// Whether `descriptor` (1 is standard output, 2 standard error) is a terminal.
    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Columns of the terminal on standard output, or else on standard error; nil without one.
    package static var terminalWidth: Int? {
        let columns = [STDOUT_FILENO, STDERR_FILENO].map { Int(inlet_terminal_columns($0)) }
        return columns.first { $0 > 0 }
    }

    /// Lines of the terminal on standard output; nil without one, and where it does not say.
    package static var terminalHeight: Int? {
        let rows = Int(inlet_terminal_rows(STDOUT_FILENO))
        return rows > 0 ? rows : nil
    }

    /// Writes all bytes to standard output. False when nobody reads any more. Blocks while the reader is slow.
    @discardableResult
    package static func writeStandardOutput(_ bytes: [UInt8]) -> Bool {
        StandardStream.output.write(bytes).error == nil
    }

    /// Writes all bytes to standard error. False when nobody reads any more. Blocks while the reader is slow.
    @discardableResult
    package static func writeStandardError(_ bytes: [UInt8]) -> Bool { StandardStream.errors.write(bytes).error == nil }
}

/// Where the process writes.
package enum StandardStream: Int32, Sendable, CustomStringConvertible {
    case output = 1
    case errors = 2

    package var description: String { self == .output ? "standard output" : "standard error" }

    /// Writes all bytes. Blocks while the reader is slow.
    ///
    /// - Returns: how many were written, and why not all of them were.
    package func write(_ bytes: [UInt8]) -> (written: Int, error: SystemError?) {
        bytes.withUnsafeBytes { all in
            var rest = all[...]
            while !rest.isEmpty {
                let piece = UnsafeRawBufferPointer(rebasing: rest)
                let written = Glibc.write(rawValue, piece.baseAddress, piece.count)
                if written >= 0 {
                    rest = rest.dropFirst(written)
                } else if errno == EAGAIN {
                    // The descriptor may have come to us non-blocking, from a shell or a supervisor.
                    var request = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
                    poll(&request, 1, -1)
                } else if errno != EINTR {
                    return (all.count - rest.count, SystemError.last("write"))
                }
            }
            return (all.count, nil)
        }
    }

    /// Takes back the last `count` bytes that were written just now, where the stream is a file and nobody has added to it since.
    package func takeBack(_ count: Int) -> Bool { AppendFile.takeBack(count, through: rawValue) }

    /// Writes a few bytes if somebody takes them now: a pipe that can be written to has room for 4 KiB (pipe(7)).
    package func offer(_ bytes: [UInt8]) {
        var request = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
        if poll(&request, 1, 0) == 1 { _ = Glibc.write(rawValue, bytes, min(bytes.count, Int(PIPE_BUF))) }
    }
}

/// What a person types on the terminal that standard input is.
package enum TerminalInput {
    /// One line without its end; nil when there is no more. Blocks.
    ///
    /// - Parameters:
    ///   - isHidden: the terminal does not show what is typed, as for passwords (termios(3)). A signal that ends or stops the
    ///     process leaves a terminal that shows it again.
    ///   - ask: shows the question; called once the terminal is ready for the answer, and again after a stop.
    package static func line(isHidden: Bool = false, _ ask: () -> Void) -> String? {
        var shown = termios()
        guard isHidden, tcgetattr(STDIN_FILENO, &shown) == 0 else {
            ask()
            return readLine()
        }
        // Nothing is asked for without what gives the terminal back: the question counts as not answered.
        guard let signals = try? HeldSignals([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]) else { return nil }
        defer { signals.release() }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        while true {
            // Flushing: what was typed before the question is no secret's beginning.
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
            ask()
            let answer = typed(unless: signals)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &shown)
            switch answer {
            case .line(let line): return line
            case .end: return nil
            case .signal(let number): signals.deliver(number)
            }
        }
    }

    private enum Answer {
        case line(String)
        case end
        case signal(CInt)
    }

    /// Not by `readLine`, which goes on after a signal.
    private static func typed(unless signals: HeldSignals) -> Answer {
        var (line, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
        // poll(2) fails for want of memory only: what was typed until then counts.
        while let ready = try? Poll.wait([STDIN_FILENO, signals.number], until: nil) {
            if ready[1], let number = signals.take() { return .signal(number) }
            guard ready[0] else { continue }
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { break }
            line += buffer.prefix(count)
            if line.last == UInt8(ascii: "\n") { return .line(String(decoding: line.dropLast(), as: UTF8.self)) }
        }
        return line.isEmpty ? .end : .line(String(decoding: line, as: UTF8.self))
    }
}

/// The keys of the terminal on standard input, each as soon as it is pressed and without being shown. Ctrl-C and Ctrl-Z stay
/// signals; the latter waits for `suspend`. The terminal is as it was once this is stopped, or the last reference goes.
package final class TerminalKeys: Sendable {
    package enum Event: Sendable {
        case typed([UInt8])
        /// The process is asked to stop (SIGTSTP): whoever draws puts the terminal right, and calls `suspend`.
        case stop
    }

    /// nil where standard input is no terminal: no keys come then.
    private let former: termios?
    private let signals: HeldSignals
    private let waker: Waker
    private let thread: LoopThread

    private static let input = STDIN_FILENO

    /// - Parameter body: called with what happens, on a thread of its own.
    package init(_ body: @escaping @Sendable (Event) -> Void) throws(SystemError) {
        var former = termios()
        let isTerminal = tcgetattr(Self.input, &former) == 0
        self.former = isTerminal ? former : nil
        let (waker, signals) = (try Waker(), try HeldSignals([SIGTSTP]))
        self.waker = waker
        self.signals = signals
        thread = try LoopThread(name: "keys") { Self.read(isTerminal ? Self.input : -1, waker, signals, body) }
        resume()
    }

    /// Takes keys again after somebody else has had the terminal, as the shell has while the process is stopped.
    package func resume() {
        guard var state = former else { return }
        state.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(Self.input, TCSANOW, &state)
    }

    /// Gives the terminal back and stops the process. Returns, with the keys taken again, when it goes on.
    package func suspend() {
        giveBack()
        signals.deliver(SIGTSTP)
        resume()
    }

    /// Gives the terminal back. Blocks for as long as `body` takes.
    package func stop() {
        waker.wake()
        thread.join()
        signals.release()
        giveBack()
    }

    deinit { stop() }

    private func giveBack() {
        guard var state = former else { return }
        tcsetattr(Self.input, TCSANOW, &state)
    }

    private static func read(_ input: CInt, _ waker: Waker, _ signals: HeldSignals, _ body: (Event) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 64)
        var input = input
        // poll(2) fails for want of memory only: the keys are dead then, and the screen goes on.
        while let ready = try? Poll.wait([input, waker.number, signals.number], until: nil), !ready[1] {
            if ready[2], signals.take() != nil { body(.stop) }
            guard ready[0] else { continue }
            let count = Glibc.read(input, &buffer, buffer.count)
            if count > 0 { body(.typed(Array(buffer.prefix(count)))) }
            // A terminal that has gone reads as its end; stops are still asked for.
            if count == 0 || count < 0 && errno != EINTR && errno != EAGAIN { input = -1 }
        }
    }
}
