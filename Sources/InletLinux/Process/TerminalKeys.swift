import Glibc
import Synchronization

/// The keys of the terminal on standard input, each as soon as it is pressed and without being shown. Ctrl-C and Ctrl-Z stay
/// signals. The terminal is as it was once this is stopped, or the last reference goes.
package final class TerminalKeys: Sendable {
    private let former: termios
    private let waker: Waker
    private let thread: LoopThread

    private static let input = STDIN_FILENO

    /// - Parameter body: called with what was typed, on a thread of its own.
    /// - Returns: nil where standard input is no terminal.
    package init?(_ body: @escaping @Sendable ([UInt8]) -> Void) throws(SystemError) {
        var former = termios()
        guard tcgetattr(Self.input, &former) == 0 else { return nil }
        self.former = former
        let waker = try Waker()
        self.waker = waker
        thread = try LoopThread(name: "keys") { Self.read(waker, body) }
        resume()
    }

    /// Takes keys again after somebody else has had the terminal, as the shell has while the process is stopped.
    package func resume() {
        var state = former
        state.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(Self.input, TCSANOW, &state)
    }

    /// Gives the terminal back. Blocks for as long as `body` takes.
    package func stop() {
        waker.wake()
        thread.join()
        var state = former
        tcsetattr(Self.input, TCSANOW, &state)
    }

    deinit { stop() }

    private static func read(_ waker: Waker, _ body: ([UInt8]) -> Void) {
        var buffer = [UInt8](repeating: 0, count: 64)
        // A terminal that has gone reads as its end.
        while let ready = try? Poll.wait(input, waker.number, until: nil), !ready.second {
            let count = Glibc.read(input, &buffer, buffer.count)
            if count > 0 { body(Array(buffer.prefix(count))) }
            if count == 0 || count < 0 && errno != EINTR && errno != EAGAIN { return }
        }
    }
}
