import CLinux
import Glibc
import InletCore
package import SystemPackage

/// Reports the service's state to systemd (sd_notify(3)): one datagram per message to the socket in `NOTIFY_SOCKET`.
package struct SystemdSocket: Sendable {
    /// The interval at which systemd expects `WATCHDOG=1`, from `WATCHDOG_USEC`; nil when it does not, or not from this
    /// process (`WATCHDOG_PID`). Send it twice as often.
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

    /// Reports that the configuration is being reloaded, with the time that systemd requires (sd_notify(3),
    /// `Type=notify-reload`); `READY=1` ends it.
    package func reloading() {
        var time = timespec()
        guard clock_gettime(CLOCK_MONOTONIC, &time) == 0 else { return }
        _ = send("RELOADING=1\nMONOTONIC_USEC=\(Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)")
    }

    /// Sends messages such as `READY=1` or `STATUS=…`, several separated by newlines. A manager that does not listen is
    /// not our fault: false is for tests and logs. Does not block.
    @discardableResult
    package func send(_ state: String) -> Bool {
        let number = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard number >= 0 else { return false }
        let descriptor = Descriptor(owning: number)
        let bytes = Array(state.utf8)
        return withSocketAddress(address) {
            sendto(descriptor.number, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, $1)
        } == bytes.count
    }
}

/// Calls `body` with the address of a Unix socket (unix(7)): a path with its NUL, or a NUL and an abstract name;
/// shorter than 109 bytes.
private func withSocketAddress<Value>(_ name: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
    var target = sockaddr_un()
    target.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &target.sun_path) { $0.copyBytes(from: name) }
    return withUnsafePointer(to: &target) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sa_family_t>.size + name.count))
        }
    }
}

/// The socket on which systemd's journal accepts entries.
package final class JournalSocket: Sendable {
    /// Where the journal listens (systemd-journald.service(8)).
    package static let usual: FilePath = "/run/systemd/journal/socket"
    /// How long an entry waits for a busy journal.
    private static let patience = timeval(tv_sec: 1, tv_usec: 0)

    private let path: FilePath
    private let address: [UInt8]
    private let descriptor: Descriptor

    /// Nobody needs to listen yet. - Throws: for a path that is too long for a socket, and when there are no descriptors left.
    package init(_ path: FilePath = usual) throws(SystemError) {
        guard path.length < 108 else { throw SystemError(call: "connect", path: path, code: .fileNameTooLong) }
        self.path = path
        address = path.bytes + [0]
        let number = try SystemCall.result("socket", path) {
            socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        }
        descriptor = Descriptor(owning: number)
        var patience = Self.patience
        setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends a complete entry. One that is too large for a datagram goes as a sealed file in memory (memfd_create(2)),
    /// whose descriptor is passed to the journal. Blocks for a second at most.
    package func send(_ message: JournalMessage) throws(SystemError) {
        let bytes = message.bytes
        do throws(SystemError) {
            _ = try SystemCall.result("sendto", path) {
                withSocketAddress(address) {
                    sendto(descriptor.number, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, $1)
                }
            }
        } catch {
            guard error.code == .messageTooLong || error.code == .noBufferSpace else { throw error }
            let file = Descriptor(
                owning: try SystemCall.result("memfd_create", path) { inlet_sealed_file(bytes, bytes.count) })
            _ = try SystemCall.result("sendmsg", path) {
                withSocketAddress(address) { Self.hand(file.number, to: descriptor.number, $0, $1) }
            }
        }
    }

    /// Sends a descriptor without any bytes (SCM_RIGHTS, unix(7)).
    private static func hand(
        _ file: CInt, to socket: CInt, _ address: UnsafePointer<sockaddr>, _ length: socklen_t
    ) -> Int {
        // One cmsghdr and its padded int; Swift does not import the macros that lay it out (cmsg(3)).
        let head = MemoryLayout<cmsghdr>.size
        var control = [UInt64](repeating: 0, count: (head + MemoryLayout<CInt>.size + 7) / 8)
        return control.withUnsafeMutableBytes { room in
            let size = head + MemoryLayout<CInt>.size
            var header = cmsghdr()
            (header.cmsg_len, header.cmsg_level, header.cmsg_type) = (size, SOL_SOCKET, CInt(SCM_RIGHTS))
            room.storeBytes(of: header, as: cmsghdr.self)
            room.storeBytes(of: file, toByteOffset: head, as: CInt.self)
            var message = msghdr()
            message.msg_name = UnsafeMutableRawPointer(mutating: address)
            message.msg_namelen = length
            message.msg_control = room.baseAddress
            message.msg_controllen = room.count
            return sendmsg(socket, &message, CInt(MSG_NOSIGNAL))
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

/// One entry for systemd's journal in its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL).
package struct JournalMessage: Sendable {
    /// The bytes for the socket.
    package private(set) var bytes: [UInt8] = []

    package init() { bytes.reserveCapacity(512) }

    /// Adds a field. `name` consists of upper-case letters, digits and `_`, and begins with a letter: the journal drops
    /// other fields. A value may hold any bytes; one with a line break is preceded by its length.
    package mutating func add(_ name: String, _ value: some Collection<UInt8>) {
        bytes += name.utf8
        if value.contains(UInt8(ascii: "\n")) {
            bytes.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.count).littleEndian) { bytes += $0 }
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value
        bytes.append(UInt8(ascii: "\n"))
    }

    package mutating func add(_ name: String, _ value: String) { add(name, value.utf8) }

    /// `job` becomes the field name `INLET_JOB`; characters that the journal refuses are dropped.
    package static func fieldName(_ prefix: String, _ name: String) -> String {
        let letters = name.uppercased().utf8.map { byte in
            (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) ? byte : UInt8(ascii: "_")
        }
        return String((prefix + String(decoding: letters, as: UTF8.self)).prefix(64))
    }
}
