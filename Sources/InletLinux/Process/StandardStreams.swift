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
