import CLinux
import Glibc
import SystemPackage

/// Tells systemd how the service is (sd_notify(3)): one datagram per message to the socket in `NOTIFY_SOCKET`.
package struct ServiceNotify: Sendable {
    /// How often systemd expects `WATCHDOG=1`, from `WATCHDOG_USEC`; nil when it does not, or not from this process
    /// (`WATCHDOG_PID`). Send at half of it.
    package let watchdogInterval: Duration?
    private let address: [UInt8]

    /// nil when no service manager listens. The address is a path, or a name in the abstract name space after `@`.
    package init?(environment: (String) -> String? = ProcessSetup.environment) {
        guard let socket = environment("NOTIFY_SOCKET"), socket.hasPrefix("/") || socket.hasPrefix("@"),
            (2..<108).contains(socket.utf8.count)
        else { return nil }
        address = socket.hasPrefix("@") ? [0] + socket.utf8.dropFirst() : Array(socket.utf8) + [0]
        let isForUs = environment("WATCHDOG_PID").map { $0 == String(getpid()) } ?? true
        watchdogInterval = environment("WATCHDOG_USEC").flatMap { Int64($0) }
            .flatMap { $0 > 0 && isForUs ? .microseconds($0) : nil }
    }

    /// Says that the configuration is read again, with the time that systemd asks for (sd_notify(3), `Type=notify-reload`);
    /// `READY=1` ends it.
    package func reloading() {
        var time = timespec()
        guard clock_gettime(CLOCK_MONOTONIC, &time) == 0 else { return }
        _ = send("RELOADING=1\nMONOTONIC_USEC=\(Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)")
    }

    /// Sends e.g. `READY=1` or `STATUS=…`, several separated by newlines. A manager that does not listen is no error of
    /// ours: false is for tests and logs. Does not block.
    @discardableResult
    package func send(_ state: String) -> Bool {
        let number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { return false }
        let descriptor = Descriptor(owning: number)
        var target = sockaddr_un()
        target.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: address) }
        let length = MemoryLayout<sa_family_t>.size + address.count
        let bytes = Array(state.utf8)
        return withUnsafePointer(to: &target) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor.number, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, socklen_t(length))
            }
        } == bytes.count
    }
}
