import Glibc

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
        while let ready = try? Poll.wait(STDIN_FILENO, signals.number, until: nil) {
            if ready.second, let number = signals.take() { return .signal(number) }
            guard ready.first else { continue }
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            guard count > 0 else { break }
            line += buffer.prefix(count)
            if line.last == UInt8(ascii: "\n") { return .line(String(decoding: line.dropLast(), as: UTF8.self)) }
        }
        return line.isEmpty ? .end : .line(String(decoding: line, as: UTF8.self))
    }
}
