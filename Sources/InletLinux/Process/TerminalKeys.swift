import Glibc

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
