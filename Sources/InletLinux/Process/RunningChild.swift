import CLinux
import Glibc
import SystemPackage

/// A child process from its start to its end, on one thread that waits for whatever comes first.
final class RunningChild {
    private typealias Instant = ContinuousClock.Instant

    /// What is being done to end it.
    private enum Phase {
        case running(until: Instant)
        case asked(ChildProcess.End, killAt: Instant)
        case killed(ChildProcess.End, leaveAt: Instant)
    }

    private let child: ChildProcess
    private let process: pid_t
    private let kill: (pid_t, CInt) -> CInt
    /// Can be read once the process has ended; -1 where the kernel has none (before 5.3): then it is asked now and then.
    private let ending: CInt
    /// Our ends of its pipes; -1 when closed.
    private var input: CInt
    private var errors: CInt
    private var rest: ArraySlice<UInt8>
    private var tail: [UInt8] = []

    private static let pace = Duration.milliseconds(20)

    /// Runs `child` to its end, or ends it when its time is over or `waker` is woken. Blocks.
    ///
    /// - Parameter kill: kill(2).
    static func run(
        _ child: ChildProcess, _ waker: Waker, kill: @escaping (pid_t, CInt) -> CInt = Glibc.kill
    ) throws(SystemError) -> ChildProcess.Outcome {
        let running = try RunningChild(starting: child, kill: kill)
        defer { LeftChildren.collect() }
        return PipeSignal.withheld {
            let end = running.wait(waker.number)
            running.readErrors()
            return ChildProcess.Outcome(end: end, errors: running.tail)
        }
    }

    private init(starting child: ChildProcess, kill: @escaping (pid_t, CInt) -> CInt) throws(SystemError) {
        let input = try Pipe()
        let errors = try Pipe()
        process = try Spawn.start(child, input: input.readEnd, errors: errors.writeEnd)
        self.child = child
        self.kill = kill
        ending = inlet_pidfd_open(process)
        rest = child.input[...]
        self.input = input.keepWriteEnd()
        self.errors = errors.keepReadEnd()
        for number in [self.input, self.errors] { _ = inlet_set_nonblocking(number) }
    }

    deinit {
        for number in [ending, input, errors] where number >= 0 { close(number) }
    }

    private func wait(_ waker: CInt) -> ChildProcess.End {
        var phase = Phase.running(until: ContinuousClock.now.advanced(by: child.timeout))
        while inlet_has_ended(process) == 0 {
            if case .killed(let end, let time) = phase, ContinuousClock.now >= time {
                LeftChildren.add(process)
                return end == .timedOut ? .stuck : end
            }
            let isWoken = poll(phase, waker)
            write()
            readErrors()
            phase = next(phase, isWoken: isWoken, at: .now)
        }
        var status: CInt = 0
        switch phase {
        case .running:
            // The group's number is not given away before we have waited.
            if child.leavesNobody { _ = kill(-process, SIGKILL) }
            return waitpid(process, &status, 0) == process ? Self.end(status) : .exited(255)
        case .asked(let end, _), .killed(let end, _):
            // Its own children may have stayed.
            _ = kill(-process, SIGKILL)
            _ = waitpid(process, &status, 0)
            return end
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

    /// To its group; and to itself, which may be in another one by now.
    private func signal(_ number: CInt) {
        let isTold = kill(-process, number) == 0
        if !isTold || number == SIGKILL { _ = kill(process, number) }
    }

    /// Waits until something can be done. - Returns: whether the waker rang.
    private func poll(_ phase: Phase, _ waker: CInt) -> Bool {
        var deadline: Instant?
        var listener = waker
        switch phase {
        case .running(let until): deadline = until
        case .asked(_, let time): (deadline, listener) = (time, -1)
        case .killed(_, let time): (deadline, listener) = (time, -1)
        }
        if ending < 0 { deadline = min(deadline ?? .now.advanced(by: Self.pace), .now.advanced(by: Self.pace)) }
        // A negative number is left out.
        var requests = [
            pollfd(fd: ending, events: Int16(POLLIN), revents: 0),
            pollfd(fd: input, events: Int16(POLLOUT), revents: 0),
            pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
            pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        ]
        _ = Glibc.poll(&requests, nfds_t(requests.count), Poll.timeout(until: deadline))
        return requests[3].revents != 0
    }

    /// Hands over what the pipe takes. Who does not want it all has closed it, which is no fault.
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

    /// Takes what is there, and keeps the end of it. A program that never stops writing is not waited for.
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

    /// `wait(2)`: the low seven bits are the signal, the next eight above them the exit code.
    private static func end(_ status: CInt) -> ChildProcess.End {
        status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signalled(status & 0x7F)
    }
}

/// Both ends of a pipe (pipe(2)), closed with the value unless somebody has taken them over.
private final class Pipe {
    private(set) var readEnd: CInt
    private(set) var writeEnd: CInt

    init() throws(SystemError) {
        var ends: [CInt] = [-1, -1]
        _ = try SystemCall.result("pipe") { inlet_pipe(&ends) }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }

    func keepReadEnd() -> CInt {
        defer { readEnd = -1 }
        return readEnd
    }

    func keepWriteEnd() -> CInt {
        defer { writeEnd = -1 }
        return writeEnd
    }

    deinit {
        for number in [readEnd, writeEnd] where number >= 0 { close(number) }
    }
}

/// Writing to a pipe that nobody reads raises a signal on the thread that writes, besides its error.
private enum PipeSignal {
    static func withheld<Value>(_ body: () -> Value) -> Value {
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
        return body()
    }
}
