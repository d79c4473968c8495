import Glibc

/// One connection through a `ChaosProxy`, served by one thread: what comes in at one end goes out at the other.
struct ProxyLine {
    private enum Mode {
        case passing
        /// Nothing goes either way.
        case stalled
        /// The client is read to its end, for nobody.
        case discarding
    }

    /// Bytes on their way in one direction.
    private struct Flow {
        var pending: [UInt8] = []
        /// Bytes that were read so far.
        var passed = 0
    }

    let client: Int32
    let server: Int32
    private let fault: LineFault?
    /// Is told the fault when it happens.
    private let met: @Sendable (LineFault) -> Void
    private var request = Flow()
    private var answer = Flow()
    private var mode = Mode.passing
    private var isOver = false

    /// `POLLRDHUP`, which is declared for _GNU_SOURCE only.
    private static let peerHungUp: Int16 = 0x2000
    private static let noise = Array("SSH-2.0-none of your protocols\r\n".utf8)
    /// Milliseconds; beyond any test's time limit.
    private static let patience: Int32 = 300_000

    init(_ client: Int32, _ server: Int32, _ fault: LineFault?, met: @escaping @Sendable (LineFault) -> Void) {
        self.client = client
        self.server = server
        self.fault = fault
        self.met = met
    }

    /// Serves until one of both ends, or the fault, ends it.
    mutating func run() {
        if case .slow? = fault { note() }
        while !isOver {
            var ends = [
                pollfd(fd: client, events: events(reading: request, writing: answer), revents: 0),
                pollfd(fd: server, events: events(reading: answer, writing: request), revents: 0),
            ]
            // What is not wanted of the server must not wake us: its hang-up would do so for ever.
            if mode == .discarding { ends.removeLast() }
            guard poll(&ends, nfds_t(ends.count), Self.patience) > 0 else { return }
            for end in ends where end.revents != 0 && !isOver {
                handle(end.revents, isClient: end.fd == client)
            }
        }
    }

    private func events(reading: Flow, writing: Flow) -> Int16 {
        switch mode {
        case .stalled: Self.peerHungUp
        case .discarding: Int16(POLLIN)
        case .passing: (reading.pending.isEmpty ? Int16(POLLIN) : 0) | (writing.pending.isEmpty ? 0 : Int16(POLLOUT))
        }
    }

    private mutating func handle(_ events: Int16, isClient: Bool) {
        switch mode {
        case .stalled: isOver = true
        case .discarding: if read(client, 65_536).isEmpty { isOver = true }
        case .passing:
            let way: LineFault.Way = isClient ? .request : .answer
            if events & Int16(POLLOUT) != 0 { write(isClient ? .answer : .request) }
            if events & Int16(POLLIN) != 0 { take(way) }
            // A broken end, and nothing to read that would say so.
            if events & Int16(POLLIN | POLLOUT) == 0 { isOver = true }
        }
    }

    /// Reads what has come this way; the fault may have it first.
    private mutating func take(_ way: LineFault.Way) {
        var most = 65_536
        let passed = way == .request ? request.passed : answer.passed
        switch fault {
        case .noise? where way == .request: return answerWithNoise()
        case .reset(way, let after)?, .cut(way, let after)?, .stall(way, let after)?:
            guard passed < after else { return strike() }
            most = min(most, after - passed)
        case .slow(let piece)?:
            most = max(1, piece)
            // A pause, not a wait for anything.
            poll(nil, 0, 1)
        default: break
        }
        var bytes = read(way == .request ? client : server, most)
        if case .flip(way, let place)? = fault, bytes.indices.contains(place - passed) {
            bytes[place - passed] ^= 1
            note()
        }
        if bytes.isEmpty {
            isOver = true
        } else if way == .request {
            request.pending = bytes
            request.passed += bytes.count
            write(.request)
        } else {
            answer.pending = bytes
            answer.passed += bytes.count
            write(.answer)
        }
    }

    private mutating func strike() {
        note()
        switch fault {
        case .stall?: mode = .stalled
        case .cut?: leave()
        default:
            Loopback.reset(client)
            Loopback.reset(server)
            isOver = true
        }
    }

    private mutating func answerWithNoise() {
        note()
        _ = Self.noise.withUnsafeBytes { send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        leave()
    }

    /// Ends the conversation in good order: what the client still sends is read, so that it meets no RST.
    private mutating func leave() {
        shutdown(client, Int32(SHUT_WR))
        shutdown(server, Int32(SHUT_RDWR))
        mode = .discarding
    }

    private func note() { if let fault { met(fault) } }

    private mutating func write(_ way: LineFault.Way) {
        let bytes = way == .request ? request.pending : answer.pending
        let number = way == .request ? server : client
        let count = bytes.withUnsafeBytes {
            send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        }
        guard count >= 0 else {
            if errno != EAGAIN, errno != EINTR { isOver = true }
            return
        }
        let rest = Array(bytes.dropFirst(count))
        if way == .request { request.pending = rest } else { answer.pending = rest }
    }

    /// Empty at the end of the connection, or at a broken one.
    private func read(_ number: Int32, _ most: Int) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: most)
        let count = recv(number, &buffer, most, 0)
        return count > 0 ? Array(buffer.prefix(count)) : []
    }
}
