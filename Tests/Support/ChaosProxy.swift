import Foundation
import Glibc
import Synchronization
import SystemPackage

/// A port of 127.0.0.1 that leads to a server, over a line that misbehaves: by a seeded plan, or as a test says.
///
/// It knows bytes and connections, and nothing of what they mean. The servers of `InletSandbox` make addresses from the
/// host that a client calls, so that what they presign leads through the proxy too. It ends with its last reference.
package final class ChaosProxy: Sendable {
    package let port: UInt16
    private let books: Books

    /// - Parameter server: The port on 127.0.0.1 that it leads to.
    /// - Throws: `Errno` when no port can be had.
    package init(to server: Int, plan: LinePlan = .none) throws {
        // Bound and never listening: it keeps the port while the proxy is closed.
        let holder = try Loopback.bound(to: 0)
        port = try Loopback.port(of: holder)
        books = Books(holder, server: UInt16(truncatingIfNeeded: server), plan: plan)
        try open()
    }

    deinit { books.end() }

    /// Connections that have met a fault.
    package var injected: Int { books.injected.count }

    /// What they met, in order.
    package var faults: [LineFault] { books.injected }

    /// Connections so far; those that the kernel refused are none.
    package var connections: Int { books.connections }

    /// The coming connections meet these, one each, before the plan is asked.
    package func add(_ faults: LineFault...) { books.add(faults) }

    /// Nothing more goes wrong from here on; what is held ends.
    package func calm() { books.calm() }

    /// Ends every connection, as a server that restarts does.
    package func hangUp() { books.hangUp() }

    /// From here on connections are refused; the port stays ours.
    package func close() { books.stopListening() }

    /// Takes connections again.
    package func open() throws {
        let listener = try Loopback.bound(to: port)
        try Loopback.check(listen(listener, 128))
        books.listens(listener)
        let books = books
        Thread.detachNewThread {
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { break }
                guard let line = books.begin(client) else { continue }
                Thread.detachNewThread {
                    var line = line
                    line.run()
                    books.end(line)
                }
            }
            Glibc.close(listener)
        }
    }

    /// What the threads of a proxy share.
    final class Books: Sendable {
        private struct State {
            var plan: LinePlan
            var asked: [LineFault] = []
            var injected: [LineFault] = []
            var connections = 0
            var listener: Int32?
            /// Both sockets of each open connection, by the client's.
            var lines: [Int32: Int32] = [:]
        }

        private let holder: Int32
        private let server: UInt16
        private let state: Mutex<State>

        init(_ holder: Int32, server: UInt16, plan: LinePlan) {
            self.holder = holder
            self.server = server
            state = Mutex(State(plan: plan))
        }

        deinit { Glibc.close(holder) }

        var injected: [LineFault] { state.withLock { $0.injected } }
        var connections: Int { state.withLock { $0.connections } }

        func add(_ faults: [LineFault]) { state.withLock { $0.asked += faults } }

        func note(_ fault: LineFault) {
            state.withLock { $0.injected.append(fault) }
            Happening.ring()
        }

        func calm() {
            state.withLock { state in
                state.asked = []
                state.plan = .none
            }
            hangUp()
        }

        func listens(_ listener: Int32) { state.withLock { $0.listener = listener } }

        /// Its thread closes it: a number that is closed here could be another's when the thread uses it.
        func stopListening() {
            state.withLock { state in
                if let listener = state.listener { shutdown(listener, Int32(SHUT_RDWR)) }
                state.listener = nil
            }
        }

        func hangUp() {
            state.withLock { state in
                for (client, server) in state.lines {
                    shutdown(client, Int32(SHUT_RDWR))
                    shutdown(server, Int32(SHUT_RDWR))
                }
            }
        }

        func end() {
            stopListening()
            hangUp()
        }

        /// A line for the connection; nil when it is none.
        func begin(_ client: Int32) -> ProxyLine? {
            let fault = state.withLock { state in
                state.connections += 1
                return state.asked.isEmpty ? state.plan.next() : state.asked.removeFirst()
            }
            let peer = fault == .refuse ? nil : try? Loopback.connected(to: server)
            guard let peer else {
                if let fault { note(fault) }
                Loopback.reset(client)
                Glibc.close(client)
                return nil
            }
            state.withLock { $0.lines[client] = peer }
            return ProxyLine(client, peer, fault) { [self] in note($0) }
        }

        func end(_ line: ProxyLine) {
            _ = state.withLock { $0.lines.removeValue(forKey: line.client) }
            Glibc.close(line.client)
            Glibc.close(line.server)
        }
    }
}

/// TCP sockets of 127.0.0.1.
enum Loopback {
    /// Several of one port may be bound at a time; only one of them listens.
    static func bound(to port: UInt16) throws -> Int32 {
        let number = try opened()
        do {
            var option: Int32 = 1
            try check(setsockopt(number, SOL_SOCKET, SO_REUSEPORT, &option, socklen_t(MemoryLayout<Int32>.size)))
            try withAddress(port) { try check(bind(number, $0, $1)) }
            return number
        } catch {
            Glibc.close(number)
            throw error
        }
    }

    static func connected(to port: UInt16) throws -> Int32 {
        let number = try opened()
        do {
            try withAddress(port) { try check(connect(number, $0, $1)) }
            return number
        } catch {
            Glibc.close(number)
            throw error
        }
    }

    static func port(of number: Int32) throws -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        try withUnsafeMutablePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try check(getsockname(number, $0, &size))
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Makes the coming close send RST.
    static func reset(_ number: Int32) {
        var option = Lingering(l_onoff: 1, l_linger: 0)
        setsockopt(number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<Lingering>.size))
    }

    static func check(_ result: Int32) throws {
        if result < 0 { throw Errno(rawValue: errno) }
    }

    private static func opened() throws -> Int32 {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try check(number)
        return number
    }

    private static func withAddress(
        _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) throws -> Void
    ) throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        try withUnsafePointer(to: &address) { pointer in
            try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                try body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// `struct linger`, which shares its name with nothing else here.
private typealias Lingering = Glibc.linger
