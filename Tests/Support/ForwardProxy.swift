import Foundation
import Glibc
import Synchronization

/// A forward proxy on loopback: it makes tunnels (RFC 9110, section 9.3.6) and passes plain requests on (section 3.2.2).
/// Whatever host it is asked for, it goes to one server of the test's.
package final class ForwardProxy: Sendable {
    private let server: ScriptedServer
    private let book: Book

    private final class Book: Sendable {
        private let requests = Mutex<[ReceivedRequest]>([])

        func add(_ request: ReceivedRequest) { requests.withLock { $0.append(request) } }

        var all: [ReceivedRequest] { requests.withLock { $0 } }
    }

    /// - Parameters:
    ///   - target: the port on 127.0.0.1 that everything leads to.
    ///   - login: what `Proxy-Authorization` must be; 407 without it.
    ///   - refusal: the status and reason by which everything is refused.
    package init(to target: UInt16, login: String? = nil, refusal: String? = nil) throws {
        let book = Book()
        self.book = book
        server = try ScriptedServer { connection in
            let request = try connection.readRequest()
            book.add(request)
            if let refusal { return try connection.answer(refusal, headers: "Connection: close\r\n") }
            if let login, request.headers["proxy-authorization"] != login {
                return try connection.answer(
                    "407 Proxy Authentication Required",
                    headers: "Proxy-Authenticate: Basic realm=\"test\"\r\nConnection: close\r\n")
            }
            if request.line.hasPrefix("CONNECT ") {
                try connection.relay(to: target) { _ in
                    try connection.write("HTTP/1.1 200 Connection established\r\n\r\n")
                }
            } else {
                try connection.relay(to: target) { try $0.write(Self.passedOn(request)) }
            }
        }
    }

    package var port: UInt16 { server.port }

    /// As in a configuration.
    package var address: String { "http://127.0.0.1:\(port)" }

    /// What it was asked, in order.
    package var asked: [ReceivedRequest] { book.all }

    /// The request as the origin sees it: its path alone, and nothing that is the proxy's.
    private static func passedOn(_ request: ReceivedRequest) -> String {
        let words = request.line.split(separator: " ").map(String.init)
        let path = words.count == 3 ? URL(string: words[1])?.path ?? "/" : "/"
        var head = "\(words.first ?? "GET") \(path.isEmpty ? "/" : path) HTTP/1.1\r\n"
        for (name, value) in request.headers where !name.hasPrefix("proxy-") && name != "connection" {
            head += "\(name): \(value)\r\n"
        }
        return head + "Connection: close\r\n\r\n" + String(decoding: request.body, as: UTF8.self)
    }
}

extension ServerConnection {
    /// Makes a connection to a port of this machine, lets `begin` use it, and then passes on bytes both ways until one side
    /// ends.
    func relay(to port: UInt16, _ begin: (ServerConnection) throws -> Void) throws {
        let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(other) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(other, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { return try answer("502 Bad Gateway", headers: "Connection: close\r\n") }
        try begin(ServerConnection(other))
        var ends = [
            pollfd(fd: number, events: Int16(POLLIN), revents: 0), pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while poll(&ends, 2, 300_000) > 0 {
            for (index, end) in ends.enumerated() where end.revents != 0 {
                let count = recv(end.fd, &buffer, buffer.count, 0)
                if count <= 0 { return }
                var sent = 0
                while sent < count {
                    let target = ends[1 - index].fd
                    let done = buffer[sent..<count].withUnsafeBytes {
                        send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                    }
                    if done <= 0 { return }
                    sent += done
                }
            }
        }
    }
}
