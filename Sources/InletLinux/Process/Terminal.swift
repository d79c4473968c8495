import CLinux
import Glibc
import Synchronization
import SystemPackage

/// The process's own output.
extension ProcessSetup {
    /// Whether `descriptor` (1 is standard output, 2 standard error) is a terminal.
    package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Whether terminals get colours: not under `TERM=dumb`, nor with `NO_COLOR` (no-color.org) set to anything but nothing.
    package static let allowsColour = environment("TERM") != "dumb" && (environment("NO_COLOR") ?? "").isEmpty

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
}

/// Where the process writes.
package enum StandardStream: Int32, Sendable, CustomStringConvertible {
    case output = 1
    case errors = 2

    package var description: String { self == .output ? "standard output" : "standard error" }

    /// Writes all bytes. Blocks while the reader is slow.
    ///
    /// - Returns: how many were written, and why not all of them.
    package func write(_ bytes: [UInt8]) -> (written: Int, error: SystemError?) {
        bytes.withUnsafeBytes { all in
            var written = 0
            while true {
                let rest = UnsafeRawBufferPointer(rebasing: all[written...])
                let (count, error) = Descriptor.writeAll(rest, to: rawValue, nil)
                written += count
                guard error?.code == .resourceTemporarilyUnavailable else { return (written, error) }
                // We may have inherited a non-blocking descriptor from a shell or a supervisor.
                var request = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
                poll(&request, 1, -1)
            }
        }
    }

    /// Removes the last `count` bytes written just now, where the stream is a file and nobody has appended since.
    package func takeBack(_ count: Int) -> Bool { AppendFile.takeBack(count, through: rawValue) }

    /// Writes a few bytes if a reader accepts them now: a writable pipe has room for 4 KiB (pipe(7)).
    package func offer(_ bytes: [UInt8]) {
        var request = pollfd(fd: rawValue, events: Int16(POLLOUT), revents: 0)
        if poll(&request, 1, 0) == 1 { _ = Glibc.write(rawValue, bytes, min(bytes.count, Int(PIPE_BUF))) }
    }
}

/// Input that a person types on standard input's terminal.
extension ProcessSetup {
    /// One line without its end; nil when there is no more. Blocks.
    ///
    /// - Parameters:
    ///   - isHidden: the terminal does not show what is typed, as for passwords (termios(3)). A signal that ends or stops the
    ///     process leaves a terminal that shows it again.
    ///   - ask: shows the question; called once the terminal is ready for the answer, and again after a stop.
    package static func typedLine(isHidden: Bool = false, _ ask: () -> Void) -> String? {
        var shown = termios()
        guard isHidden, tcgetattr(STDIN_FILENO, &shown) == 0 else {
            ask()
            return readLine()
        }
        // Asks only if the terminal can be restored afterwards; otherwise the question counts as unanswered.
        guard let signals = try? DeferredSignals([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]) else { return nil }
        defer { signals.release() }
        var hidden = shown
        hidden.c_lflag &= ~tcflag_t(ECHO)
        while true {
            // Flushes input typed before the question: it is not the start of a secret.
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
            ask()
            let (line, signal) = typed(unless: signals)
            tcsetattr(STDIN_FILENO, TCSADRAIN, &shown)
            guard let signal else { return line }
            signals.deliver(signal)
        }
    }

    /// Not `readLine`, which continues after a signal. - Returns: neither at the end.
    private static func typed(unless signals: DeferredSignals) -> (line: String?, signal: CInt?) {
        var (line, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
        do throws(SystemError) {
            while true {
                let ready = try Poll.wait([STDIN_FILENO, signals.number], until: nil)
                if ready[1], let number = signals.take() { return (nil, number) }
                guard ready[0] else { continue }
                let count = read(STDIN_FILENO, &buffer, buffer.count)
                if count < 0, errno == EINTR || errno == EAGAIN { continue }
                guard count > 0 else { break }
                line += buffer.prefix(count)
                if line.last == UInt8(ascii: "\n") { return (String(decoding: line.dropLast(), as: UTF8.self), nil) }
            }
        } catch {
            // poll(2) fails only for want of memory: input typed until then counts.
        }
        return (line.isEmpty ? nil : String(decoding: line, as: UTF8.self), nil)
    }
}

/// The keys of standard input's terminal, each as soon as it is pressed, without echo. Ctrl-C and Ctrl-Z stay signals;
/// the latter waits for `suspend`. Stopping this, or dropping its last reference, restores the terminal.
package final class TerminalKeys: Sendable {
    package enum Event: Sendable {
        case typed([UInt8])
        /// The process must stop (SIGTSTP): the drawing code restores the terminal, and calls `suspend`.
        case stop
    }

    /// nil where standard input is not a terminal: no keys come then.
    private let former: termios?
    private let signals: DeferredSignals
    private let waker: Waker
    private let thread: LoopThread

    private static let input = STDIN_FILENO

    /// - Parameter body: called for each event, on its own thread.
    package init(_ body: @escaping @Sendable (Event) -> Void) throws(SystemError) {
        var former = termios()
        let isTerminal = tcgetattr(Self.input, &former) == 0
        self.former = isTerminal ? former : nil
        let (waker, signals) = (try Waker(), try DeferredSignals([SIGTSTP]))
        self.waker = waker
        self.signals = signals
        thread = try LoopThread(name: "keys") { Self.read(isTerminal ? Self.input : -1, waker, signals, body) }
        resume()
    }

    /// Takes over the keys again after somebody else had the terminal, as the shell does while the process is stopped.
    package func resume() {
        guard var state = former else { return }
        state.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(Self.input, TCSANOW, &state)
    }

    /// Restores the terminal and stops the process. Returns, with the keys taken over again, when the process
    /// continues.
    package func suspend() {
        giveBack()
        signals.deliver(SIGTSTP)
        resume()
    }

    /// Restores the terminal. Blocks for as long as `body` takes.
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

    private static func read(_ input: CInt, _ waker: Waker, _ signals: DeferredSignals, _ body: (Event) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 64)
        var input = input
        do throws(SystemError) {
            while true {
                let ready = try Poll.wait([input, waker.number, signals.number], until: nil)
                if ready[1] { return }
                if ready[2], signals.take() != nil { body(.stop) }
                guard ready[0] else { continue }
                let count = Glibc.read(input, &buffer, buffer.count)
                if count > 0 { body(.typed(Array(buffer.prefix(count)))) }
                // A terminal that has gone reads as its end; stops are still handled.
                if count == 0 || count < 0 && errno != EINTR && errno != EAGAIN { input = -1 }
            }
        } catch {
            // poll(2) fails only for want of memory: keys no longer work then, and drawing continues.
        }
    }
}

/// Holds back signals that would end or stop the process until the terminal is restored: `take` returns the signal that
/// has come, `deliver` lets it act. One of these at a time in a process.
final class DeferredSignals: Sendable {
    /// State that a signal handler may touch: the signals that have come, a bit each, and the eventfd that reports
    /// them.
    private static let come = Atomic<UInt64>(0)
    private static let bell = Atomic<CInt>(-1)

    private let numbers: [CInt]
    /// The former handling of each, which this does not decide. nil once it is restored.
    private let former: Mutex<[CInt: sigaction]?>
    private let waker: Waker

    /// An ignored signal, as under `nohup`, stays ignored.
    init(_ numbers: [CInt]) throws(SystemError) {
        waker = try Waker()
        var former: [CInt: sigaction] = [:]
        for number in numbers {
            var action = sigaction()
            sigaction(number, nil, &action)
            if unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) != Self.ignored {
                former[number] = action
            }
        }
        self.numbers = numbers.filter { former[$0] != nil }
        self.former = Mutex(former)
        Self.come.store(0, ordering: .relaxed)
        Self.bell.store(waker.number, ordering: .releasing)
        for number in self.numbers { Self.hold(number) }
    }

    /// Readable, for `poll(2)`, when a signal has come.
    var number: CInt { waker.number }

    func take() -> CInt? {
        waker.drain()
        let come = Self.come.exchange(0, ordering: .acquiring)
        let found = numbers.filter { come & Self.bit($0) != 0 }
        // Others are delivered later.
        for other in found.dropFirst() { Self.note(other) }
        return found.first
    }

    /// Lets the signal act as it would without this. Returns when a stopped process continues.
    func deliver(_ number: CInt) {
        putBack(number)
        var (mask, former) = (sigset_t(), sigset_t())
        sigemptyset(&mask)
        sigaddset(&mask, number)
        pthread_sigmask(SIG_UNBLOCK, &mask, &former)
        raise(number)
        pthread_sigmask(SIG_SETMASK, &former, nil)
        Self.hold(number)
    }

    /// Restores the signals' handling, once: a handler that somebody sets later stays.
    func release() {
        if former.withLock({ $0 == nil }) { return }
        for number in numbers { putBack(number) }
        former.withLock { $0 = nil }
        Self.bell.store(-1, ordering: .releasing)
    }

    private func putBack(_ number: CInt) {
        guard var action = former.withLock({ $0?[number] }) else { return }
        sigaction(number, &action, nil)
    }

    deinit { release() }

    private static let ignored = unsafeBitCast(SIG_IGN, to: Int.self)
    private static func bit(_ number: CInt) -> UInt64 { 1 << UInt64(number) }

    private static func hold(_ number: CInt) {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { DeferredSignals.note($0) }
        // Reads and writes of other threads continue.
        action.sa_flags = SA_RESTART
        sigaction(number, &action, nil)
    }

    /// For signal handlers too: allocates nothing, and keeps errno.
    private static func note(_ number: CInt) {
        let former = errno
        come.bitwiseOr(bit(number), ordering: .releasing)
        var one: UInt64 = 1
        _ = write(bell.load(ordering: .acquiring), &one, 8)
        errno = former
    }
}
