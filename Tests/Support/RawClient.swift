import Foundation
import Glibc
package import SystemPackage

/// What a server answered.
package struct RawAnswer: Sendable {
    package var status: Int
    /// By lower-case name; of several the last.
    package var headers: [String: String]
    package var body: String
}

/// A client that sends what a test wants, byte for byte, and never blocks a thread: the server runs beside it.
package final class RawClient {
    package struct Ended: Error {
        package var received: String
    }

    private let number: Int32
    private var pending: [UInt8] = []
    package private(set) var hasEnded = false

    /// Connects to a port of 127.0.0.1.
    package init(port: Int) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        try connect(&address)
    }

    /// Connects to a Unix socket.
    package init(unixSocket path: FilePath) throws {
        number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.string.utf8)) }
        try connect(&address)
    }

    private func connect<Address>(_ address: inout Address) throws {
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(number, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        guard code == 0 else { throw Errno(rawValue: errno) }
    }

    deinit { Glibc.close(number) }

    /// Small texts, which the socket's buffer takes at once; what a closed connection does not take is lost.
    package func send(_ text: String) { send(Array(text.utf8)) }

    package func send(_ bytes: [UInt8]) {
        var offset = 0
        while offset < bytes.count {
            let count = bytes[offset...].withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            guard count > 0 else { return }
            offset += count
        }
    }

    /// Says that nothing more will be sent, and still receives.
    package func finishSending() { shutdown(number, Int32(SHUT_WR)) }

    /// Everything received and not taken yet.
    package var text: String { String(decoding: pending, as: UTF8.self) }

    /// Waits until what was received meets `condition`; throws `Ended` when the connection ends before.
    package func receive(_ what: String, _ condition: (String) throws -> Bool) async throws {
        try await eventually(what) {
            takeIn()
            if try condition(text) { return true }
            if hasEnded { throw Ended(received: text) }
            return false
        }
    }

    /// Waits for the connection's end.
    package func end() async throws {
        try await eventually("the end of the connection") {
            takeIn()
            return hasEnded
        }
    }

    private func takeIn() {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while !hasEnded {
            let count = recv(number, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 {
                pending += buffer[..<count]
            } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
                hasEnded = true
            } else {
                return
            }
        }
    }

    /// The next answer, whole by its Content-Length.
    package func answer() async throws -> RawAnswer {
        let mark = Array("\r\n\r\n".utf8)
        try await receive("an answer's head") { _ in pending.firstRange(of: mark) != nil }
        let end = pending.firstRange(of: mark)?.upperBound ?? 0
        let lines = String(decoding: pending[..<end], as: UTF8.self).components(separatedBy: "\r\n")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(
                in: .whitespaces)
        }
        let length = headers["content-length"].flatMap { Int($0) } ?? 0
        pending.removeFirst(end)
        try await receive("an answer's body") { _ in pending.count >= length }
        defer { pending.removeFirst(length) }
        let words = lines[0].split(separator: " ")
        return RawAnswer(
            status: words.count > 1 ? Int(words[1]) ?? 0 : 0, headers: headers,
            body: String(decoding: pending.prefix(length), as: UTF8.self))
    }

    /// Sends a request and waits for its answer.
    package func request(
        _ method: String, _ path: String, host: String = "127.0.0.1", headers: [String: String] = [:],
        body: String? = nil
    ) async throws -> RawAnswer {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        if let body { head += "Content-Length: \(body.utf8.count)\r\n" }
        send(head + "\r\n" + (body ?? ""))
        return try await answer()
    }
}
