import Glibc

/// What a person types on the terminal that standard input is.
package enum TerminalInput {
    /// One line without its end; nil when there is no more. Blocks.
    ///
    /// - Parameters:
    ///   - isHidden: the terminal does not show what is typed, as for passwords (termios(3)).
    ///   - ask: shows the question; called once the terminal is ready for the answer.
    package static func line(isHidden: Bool = false, _ ask: () -> Void) -> String? {
        var before = termios()
        guard isHidden, tcgetattr(STDIN_FILENO, &before) == 0 else {
            ask()
            return readLine()
        }
        var hidden = before
        hidden.c_lflag &= ~tcflag_t(ECHO)
        // Flushing: what was typed before the question is no secret's beginning.
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
        defer { tcsetattr(STDIN_FILENO, TCSADRAIN, &before) }
        ask()
        return readLine()
    }
}
