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
    package static func writeStandardOutput(_ bytes: [UInt8]) -> Bool { write(bytes, to: STDOUT_FILENO) }

    /// Writes all bytes to standard error. False when nobody reads any more. Blocks while the reader is slow.
    @discardableResult
    package static func writeStandardError(_ bytes: [UInt8]) -> Bool { write(bytes, to: STDERR_FILENO) }

    static func write(_ bytes: [UInt8], to descriptor: CInt) -> Bool {
        bytes.withUnsafeBytes { all in
            var rest = all[...]
            while !rest.isEmpty {
                let piece = UnsafeRawBufferPointer(rebasing: rest)
                let written = Glibc.write(descriptor, piece.baseAddress, piece.count)
                if written >= 0 {
                    rest = rest.dropFirst(written)
                } else if errno == EAGAIN {
                    // The descriptor may have come to us non-blocking, from a shell or a supervisor.
                    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&request, 1, -1)
                } else if errno != EINTR {
                    return false
                }
            }
            return true
        }
    }
}
