import CLinux
import Glibc
package import SystemPackage

/// The socket on which systemd's journal takes entries.
package final class JournalSocket: Sendable {
    /// Where the journal listens (systemd-journald.service(8)).
    package static let usual: FilePath = "/run/systemd/journal/socket"
    /// How long an entry waits for a journal that is busy.
    private static let patience = timeval(tv_sec: 1, tv_usec: 0)

    private let path: FilePath
    private let descriptor: Descriptor

    /// Nobody needs to listen yet. - Throws: for a path that is too long for a socket, and when there are no descriptors left.
    package init(_ path: FilePath = usual) throws(SystemError) {
        guard path.length < 108 else { throw SystemError(call: "connect", path: path, code: .fileNameTooLong) }
        self.path = path
        let number = try SystemCall.result("socket", path) {
            socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        descriptor = Descriptor(owning: number)
        var patience = Self.patience
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Hands an entry over, whole: one that is too large for a datagram goes as a sealed file in memory (memfd_create(2)), of
    /// which the journal is given the descriptor. Blocks for a second at most.
    package func send(_ message: JournalMessage) throws(SystemError) {
        let bytes = message.bytes
        do throws(SystemError) {
            _ = try SystemCall.result("sendto", path) {
                withAddress { sendto(descriptor.number, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, $1) }
            }
        } catch {
            guard error.code == .messageTooLong || error.code == .noBufferSpace else { throw error }
            _ = try SystemCall.result("sendmsg", path) {
                withAddress { inlet_send_sealed(descriptor.number, $0, $1, bytes, bytes.count) }
            }
        }
    }

    private func withAddress<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        path.withPlatformString { text in
            withUnsafeMutableBytes(of: &target.sun_path) {
                $0.copyBytes(from: UnsafeRawBufferPointer(start: text, count: path.length))
            }
        }
        return withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

extension ProcessSetup {
    /// Whether `descriptor` (1 is standard output, 2 standard error) leads to systemd's journal, as `JOURNAL_STREAM` says
    /// (systemd.exec(5)): a line that begins with `<N>` has that priority there (sd-daemon(3)).
    package static func isJournal(
        _ descriptor: Int32, environment: (String) -> String? = ProcessSetup.environment
    ) -> Bool {
        var status = stat()
        guard let stream = environment("JOURNAL_STREAM"), fstat(descriptor, &status) == 0 else { return false }
        return stream == "\(status.st_dev):\(status.st_ino)"
    }
}
