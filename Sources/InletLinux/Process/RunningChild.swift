import CLinux
import Glibc
import Synchronization
import SystemPackage

/// A child process from its start to its end, on one thread that waits for whichever event comes first.
final class RunningChild {
    private typealias Instant = ContinuousClock.Instant

    /// The current step of ending it.
    private enum Phase {
        case running(until: Instant)
        case asked(ChildProcess.End, killAt: Instant)
        case killed(ChildProcess.End, leaveAt: Instant)
    }

    private let child: ChildProcess
    private let process: pid_t
    private let kill: (pid_t, CInt) -> CInt
    /// Readable once the process has ended; -1 where the kernel has no such descriptor (before 5.3): then it polls.
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
        defer { collectLeft() }
        return withoutPipeSignal {
            let end = running.wait(waker.number)
            running.readErrors()
            return ChildProcess.Outcome(end: end, errors: running.tail)
        }
    }

    /// Children that could not be ended.
    private static let left = Mutex<[pid_t]>([])

    /// Collects those that have ended after all, so that they do not stay as zombies. Does not wait.
    private static func collectLeft() {
        left.withLock { processes in
            processes.removeAll { process in
                guard inlet_has_ended(process) != 0 else { return false }
                // As for any other child that had to be ended: the processes that it started go too.
                Glibc.kill(-process, SIGKILL)
                var status: CInt = 0
                _ = waitpid(process, &status, WNOHANG)
                return true
            }
        }
    }

    private init(starting child: ChildProcess, kill: @escaping (pid_t, CInt) -> CInt) throws(SystemError) {
        let input = try Pipe()
        let errors = try Pipe()
        process = try child.start(input: input.readEnd.number, errors: errors.writeEnd.number)
        self.child = child
        self.kill = kill
        ending = inlet_pidfd_open(process)
        rest = child.input[...]
        self.input = input.writeEnd.release()
        self.errors = errors.readEnd.release()
        for number in [self.input, self.errors] { _ = inlet_set_nonblocking(number) }
    }

    deinit {
        for number in [ending, input, errors] where number >= 0 { close(number) }
    }

    private func wait(_ waker: CInt) -> ChildProcess.End {
        var phase = Phase.running(until: ContinuousClock.now.advanced(by: child.timeout))
        while inlet_has_ended(process) == 0 {
            if case .killed(let end, let time) = phase, ContinuousClock.now >= time {
                Self.left.withLock { $0.append(process) }
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
            // The group's number is not reused before we have waited.
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

    /// To its group, and to the child itself, which may be in another group by now.
    private func signal(_ number: CInt) {
        let isTold = kill(-process, number) == 0
        if !isTold || number == SIGKILL { _ = kill(process, number) }
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

    /// `wait(2)`: the low seven bits are the signal, the next eight above them the exit code.
    private static func end(_ status: CInt) -> ChildProcess.End {
        status & 0x7F == 0 ? .exited(status >> 8 & 0xFF) : .signalled(status & 0x7F)
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
private func withoutPipeSignal<Value>(_ body: () -> Value) -> Value {
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

extension ChildProcess {
    /// Starts it with the given standard input and error; its standard output is discarded.
    ///
    /// - Returns: its process number, which is also its group's.
    func start(input: CInt, errors: CInt) throws(SystemError) -> pid_t {
        let process: pid_t
        if let (folder, base) = writesTo {
            // A thread, and its children, never regain rights that it has given up.
            process = try LoopThread.result(name: "spawn") { () throws(SystemError) in
                try Landlock.holdWrites(to: folder, below: base)
                // Where the kernel does not allow it, only the folder restricts it, as before.
                do throws(SystemError) { try CallFilter.apply(toThread: true) } catch {}
                return try spawn(input: input, errors: errors)
            }
        } else {
            process = try spawn(input: input, errors: errors)
        }
        // Immediately: at no moment is the child a copy of us. It writes nothing sizeable before it has loaded its own
        // libraries.
        if niceness > 0 || largestFile != nil { _ = inlet_restrain(process, niceness, largestFile ?? -1) }
        if yieldsMemory { yieldMemory(of: process) }
        return process
    }

    /// With `posix_spawn(3)` the child begins as a new program: at no moment is it a copy of us.
    private func spawn(input: CInt, errors: CInt) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        // Ours are all O_CLOEXEC; what a library has opened may not be.
        _ = inlet_spawn_close_from(&actions, 3)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The new program would inherit our blocked and ignored signals.
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // Its own group, and no controlling terminal of our starter, into which it could type.
        let flags = inlet_spawn_setsid | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))

        let program = arguments.first ?? ""
        var words = Self.strings(arguments.map { Array($0.utf8) })
        var variables = Self.strings(environment.map { Array($0.name.utf8) + [UInt8(ascii: "=")] + $0.value })
        defer { for string in words + variables { string?.deallocate() } }
        var process: pid_t = 0
        let code = posix_spawn(&process, program, &actions, &attributes, &words, &variables)
        if code != 0 { throw SystemError(call: "posix_spawn", path: FilePath(program), code: Errno(rawValue: code)) }
        return process
    }

    /// A list of C strings ending in a null pointer, for the caller to deallocate. Each is cut at a NUL.
    private static func strings(_ texts: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { text in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: text.count + 1)
            for (offset, byte) in text.enumerated() { copy[offset] = CChar(bitPattern: byte) }
            copy[text.count] = 0
            return copy
        } + [nil]
    }

    /// Any process may do this to its own children; without `/proc` it is skipped.
    private func yieldMemory(of process: pid_t) {
        let file = open("/proc/\(process)/oom_score_adj", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        _ = Glibc.write(file, "1000", 4)
    }
}
