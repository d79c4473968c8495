import Foundation
import Glibc
import Synchronization
package import SystemPackage

/// What a client sent: read whole, by its Content-Length.
package struct ReceivedRequest: Sendable {
    package var line: String
    /// By lower-case name; of several the last.
    package var headers: [String: String]
    package var body: [UInt8]
}

/// A loopback server that does to each connection what a test's script says; for misbehaving, so it knows little HTTP.
package final class ScriptedServer: Sendable {
    package typealias Script = @Sendable (ServerConnection) throws -> Void

    package let port: UInt16
    private let books: Books

    /// Serves on a free loopback port, or on a Unix socket at `path`.
    package init(unixSocket path: FilePath? = nil, _ script: @escaping Script) throws {
        let listener = path == nil ? socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) : try Self.unixListener(path)
        var address = sockaddr_in()
        if path == nil {
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            try withUnsafeAddress(of: &address) { try check(bind(listener, $0, $1)) }
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            try withUnsafeAddress(of: &address) { pointer, _ in try check(getsockname(listener, pointer, &size)) }
        }
        try check(listen(listener, 64))
        port = UInt16(bigEndian: address.sin_port)
        books = Books(listener)
        let books = books
        Thread.detachNewThread {
            while true {
                let accepted = accept(listener, nil, nil)
                guard accepted >= 0 else { break }
                guard books.open(accepted) else {
                    Glibc.close(accepted)
                    break
                }
                Thread.detachNewThread {
                    try? script(ServerConnection(accepted))
                    books.close(accepted)
                    Happening.ring()
                }
            }
            // Here and nowhere else: once it is closed its number may be another server's, whose connections this thread would
            // take and leave without an answer.
            Glibc.close(listener)
        }
    }

    deinit { books.closeAll() }

    /// Connections accepted so far.
    package var connections: Int { books.count }

    private static func unixListener(_ path: FilePath?) throws -> Int32 {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array((path ?? "").string.utf8)) }
        try withUnsafeAddress(of: &address) { try check(bind(listener, $0, $1)) }
        return listener
    }

    private final class Books: Sendable {
        private struct State {
            var listener: Int32?
            var open: Set<Int32> = []
            var count = 0
        }

        private let state: Mutex<State>

        init(_ listener: Int32) { state = Mutex(State(listener: listener)) }

        var count: Int { state.withLock { $0.count } }

        func open(_ connection: Int32) -> Bool {
            state.withLock { state in
                state.count += 1
                state.open.insert(connection)
                return state.listener != nil
            }
        }

        func close(_ connection: Int32) {
            let isOpen = state.withLock { $0.open.remove(connection) != nil }
            if isOpen { Glibc.close(connection) }
        }

        /// Ends every script that waits for bytes.
        func closeAll() {
            state.withLock { state in
                // Ends the wait for the next connection (accept(2): EINVAL).
                if let listener = state.listener { shutdown(listener, Int32(SHUT_RDWR)) }
                state.listener = nil
                for connection in state.open { shutdown(connection, Int32(SHUT_RDWR)) }
            }
        }
    }
}

/// One accepted connection, used by its script's thread.
package final class ServerConnection {
    struct Ended: Error {}

    let number: Int32
    /// `POLLRDHUP`, which is declared for _GNU_SOURCE only.
    private static let peerHungUp: Int16 = 0x2000
    private var pending: [UInt8] = []

    init(_ number: Int32) { self.number = number }

    /// Reads one request whole; throws at the end of the connection.
    package func readRequest() throws -> ReceivedRequest {
        var request = try readHead()
        request.body = try read(request.headers["content-length"].flatMap { Int($0) } ?? 0)
        Happening.ring()
        return request
    }

    /// Reads `count` bytes of a body.
    package func read(_ count: Int) throws -> [UInt8] {
        while pending.count < count { try more() }
        defer { pending.removeFirst(count) }
        return Array(pending.prefix(count))
    }

    /// Reads a line, without its CR LF.
    package func readLine() throws -> String {
        let mark = Array("\r\n".utf8)
        while pending.firstRange(of: mark) == nil { try more() }
        guard let end = pending.firstRange(of: mark) else { throw Ended() }
        defer { pending.removeFirst(end.upperBound) }
        return String(decoding: pending[..<end.lowerBound], as: UTF8.self)
    }

    /// Reads a request up to its empty line.
    package func readHead() throws -> ReceivedRequest {
        let mark = Array("\r\n\r\n".utf8)
        while pending.firstRange(of: mark) == nil { try more() }
        guard let end = pending.firstRange(of: mark) else { throw Ended() }
        let lines = String(decoding: pending[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        pending.removeFirst(end.upperBound)
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                in: .whitespaces)
        }
        return ReceivedRequest(line: lines[0], headers: headers, body: [])
    }

    package func write(_ text: String) throws {
        let bytes = Array(text.utf8)
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes { send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Ended() }
            offset += count
        }
    }

    package func answer(_ status: String = "200 OK", headers: String = "", _ body: String = "") throws {
        try write("HTTP/1.1 \(status)\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    /// Blocks until the client, or the test's end, closes the connection; reads nothing before that.
    package func waitForEnd() {
        var poller = pollfd(fd: number, events: Self.peerHungUp, revents: 0)
        poll(&poller, 1, 300_000)
    }

    /// Waits for `duration` or the end of the connection; true while it stands.
    package func linger(milliseconds: Int32) -> Bool {
        var poller = pollfd(fd: number, events: Self.peerHungUp, revents: 0)
        return poll(&poller, 1, milliseconds) == 0
    }

    /// Makes the coming close send RST.
    package func reset() {
        var option = linger_(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger_>.size))
    }

    private func more() throws {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(number, &buffer, buffer.count, 0)
        guard count > 0 else { throw Ended() }
        pending += buffer[..<count]
    }
}

/// `struct linger`, whose name Swift gives to nothing else here.
private typealias linger_ = Glibc.linger

private func withUnsafeAddress<Address>(
    of address: inout Address, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) throws -> Void
) throws {
    try withUnsafeMutablePointer(to: &address) { pointer in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            try body($0, socklen_t(MemoryLayout<Address>.size))
        }
    }
}

private func check(_ result: Int32) throws {
    if result < 0 { throw Errno(rawValue: errno) }
}
