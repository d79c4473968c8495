import CLinux
import Glibc
import InletCore
import SystemPackage

/// A program from its start by the helper to its end, on one thread that waits for whichever event comes first.
final class RunningChild {
    private typealias Instant = ContinuousClock.Instant

    /// The current step of ending it.
    private enum Phase {
        case running(until: Instant)
        case asked(ChildProcess.End, killAt: Instant)
        case killed(ChildProcess.End, leaveAt: Instant)
    }

    private let child: ChildProcess
    private let host: ProcessHost
    /// Its next answer is the program's end.
    private let call: ProcessHost.Call
    private let signal: (CInt) -> Void
    /// Our ends of its pipes; -1 when closed.
    private var input: CInt
    private var errors: CInt
    private var rest: ArraySlice<UInt8>
    private var tail: [UInt8] = []

    /// Runs `child` to its end, or ends it when its time is over or `waker` is woken. Blocks.
    ///
    /// - Parameter signal: instead of the helper's, for tests.
    static func run(
        _ child: ChildProcess, _ waker: Waker, on host: ProcessHost, signal: ((CInt) -> Void)? = nil
    ) throws(SystemError) -> ChildProcess.Outcome {
        let running = try RunningChild(starting: child, on: host, signal: signal)
        return try withoutPipeSignal { () throws(SystemError) in
            let end = try running.wait(waker.number)
            running.readErrors()
            return ChildProcess.Outcome(end: end, errors: running.tail)
        }
    }

    private init(
        starting child: ChildProcess, on host: ProcessHost, signal: ((CInt) -> Void)?
    ) throws(SystemError) {
        let input = try Pipe()
        let errors = try Pipe()
        let call = try host.start(child, input: input.readEnd.number, errors: errors.writeEnd.number)
        (self.child, self.host, self.call) = (child, host, call)
        self.signal = signal ?? { number in host.signal(number, to: call) }
        rest = child.input[...]
        self.input = input.writeEnd.release()
        self.errors = errors.readEnd.release()
        for number in [self.input, self.errors] { _ = inlet_set_nonblocking(number) }
    }

    deinit {
        for number in [input, errors] where number >= 0 { close(number) }
    }

    private func wait(_ waker: CInt) throws(SystemError) -> ChildProcess.End {
        var phase = Phase.running(until: ContinuousClock.now.advanced(by: child.timeout))
        while true {
            if let answer = call.next() { return try collect(answer, phase) }
            if case .killed(let end, let time) = phase, ContinuousClock.now >= time {
                host.end(call, endsGroup: true)
                return end == .timedOut ? .stuck : end
            }
            let isWoken = poll(phase, waker)
            write()
            readErrors()
            phase = next(phase, isWoken: isWoken, at: .now)
        }
    }

    /// The rest of its group may have stayed. If the program had to be ended, the rest is ended too.
    private func collect(_ answer: HostResponse, _ phase: Phase) throws(SystemError) -> ChildProcess.End {
        switch (answer, phase) {
        case (.ended(let end), .running):
            host.end(call, endsGroup: child.leavesNobody)
            return end
        case (.ended, .asked(let end, _)), (.ended, .killed(let end, _)):
            host.end(call, endsGroup: true)
            return end
        // It never became the program, and the helper has forgotten it.
        case (.failed(let error), _):
            host.forget(call)
            throw error
        default: throw SystemError(call: ProcessHost.call, code: .badMessage)
        }
    }

    private func next(_ phase: Phase, isWoken: Bool, at now: Instant) -> Phase {
        switch phase {
        case .running(let until):
            guard isWoken || now >= until else { return phase }
            signal(SIGTERM)
            return .asked(isWoken ? .cancelled : .timedOut, killAt: now.advanced(by: child.grace))
        case .asked(let end, let time):
            guard now >= time else { return phase }
            signal(SIGKILL)
            return .killed(end, leaveAt: now.advanced(by: child.patience))
        case .killed: return phase
        }
    }

    /// Waits until there is something to do. - Returns: whether the waker was woken.
    private func poll(_ phase: Phase, _ waker: CInt) -> Bool {
        var deadline: Instant?
        var listener = waker
        switch phase {
        case .running(let until): deadline = until
        case .asked(_, let time): (deadline, listener) = (time, -1)
        case .killed(_, let time): (deadline, listener) = (time, -1)
        }
        // A negative number is left out.
        var requests = [
            pollfd(fd: call.waker.number, events: Int16(POLLIN), revents: 0),
            pollfd(fd: input, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
            pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        ]
        _ = Glibc.poll(&requests, nfds_t(requests.count), Poll.timeout(until: deadline))
        return requests[3].revents != 0
    }

    /// Writes as much as the pipe accepts. A child that wants no more has closed it, which is fine.
    private func write() {
        while input >= 0 {
            let count = rest.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0, errno == EAGAIN || errno == EINTR {
                return
            }
            if rest.isEmpty || count <= 0 {
                close(input)
                input = -1
            }
        }
    }

    /// Reads the available output and keeps its end. Does not wait for a program that never stops writing.
    private func readErrors() {
        var buffer = [UInt8](repeating: 0, count: ChildProcess.mostErrors)
        for _ in 0..<16 where errors >= 0 {
            let count = read(errors, &buffer, buffer.count)
            if count > 0 {
                tail = (tail + buffer.prefix(count)).suffix(ChildProcess.mostErrors)
            } else if count == 0 {
                close(errors)
                errors = -1
            } else {
                return
            }
        }
    }
}

/// Both ends of a pipe (pipe(2)).
private struct Pipe: ~Copyable {
    let readEnd: Descriptor
    let writeEnd: Descriptor

    init() throws(SystemError) {
        var ends: [CInt] = [-1, -1]
        _ = try SystemCall.result("pipe") { inlet_pipe(&ends) }
        readEnd = Descriptor(owning: ends[0])
        writeEnd = Descriptor(owning: ends[1])
    }
}

/// Writing to a pipe without readers raises a signal on the writing thread, besides its error: not within `body`.
private func withoutPipeSignal<Value>(_ body: () throws(SystemError) -> Value) throws(SystemError) -> Value {
    var (signals, former) = (sigset_t(), sigset_t())
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, &former)
    defer {
        var noTime = timespec()
        if sigismember(&former, SIGPIPE) == 0 {
            while sigtimedwait(&signals, nil, &noTime) == SIGPIPE {}
        }
        pthread_sigmask(SIG_SETMASK, &former, nil)
    }
    return try body()
}
