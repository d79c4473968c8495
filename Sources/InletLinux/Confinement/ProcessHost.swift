import CLinux
import Glibc
package import InletCore
import Synchronization
import SystemPackage

/// The process that does what a confined agent has given up. It starts the programs that the configuration names, and
/// looks at the files that other processes have open, which a confined process cannot. It starts before confinement,
/// holds none of the agent's secrets, and ends with the agent.
package final class ProcessHost: Sendable {
    private struct State {
        var waiting: [UInt64: Call] = [:]
        var last: UInt64 = 0
        var isEnded = false
        var hasBegun = false
        var whenEnded: (@Sendable () -> Void)?
    }

    /// This process's host, once it is confined.
    private static let own = Mutex<ProcessHost?>(nil)

    package static var current: ProcessHost? { own.withLock { $0 } }

    private let descriptor: Descriptor
    private let process: pid_t
    private let sending = Mutex(())
    private let state = Mutex(State())

    /// How long to wait for a scan of all processes.
    private static let patience = Duration.seconds(30)

    /// Starts this process's program again as its host: `arguments` select that role, in which it calls `serve`.
    ///
    /// - Parameter commands: the programs that may be started, now and later.
    package init(_ arguments: [String], commands: [CommandPattern]) throws(SystemError) {
        var ends: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        _ = try SystemCall.result("socketpair") { socketpair(AF_UNIX, kind, 0, &ends) }
        descriptor = Descriptor(owning: ends[0])
        let other = Descriptor(owning: ends[1])
        let program = ChildProcess(
            ["/proc/self/exe"] + arguments, environment: ChildProcess.ownEnvironment, input: [], timeout: .zero)
        process = try program.start(input: other.number, errors: STDERR_FILENO)
        try HostRequest.commands(commands).message.send(to: descriptor.number)
    }

    /// From here on this process asks the host for everything that it may not do itself.
    package func begin() throws(SystemError) {
        _ = try LoopThread(name: "host") { [self] in receive() }
        state.withLock { $0.hasBegun = true }
        Self.own.withLock { $0 = self }
    }

    /// A host without requests ends, and is awaited.
    deinit {
        if state.withLock({ $0.hasBegun }) { return }
        _ = shutdown(descriptor.number, CInt(SHUT_RDWR))
        var status: CInt = 0
        _ = waitpid(process, &status, 0)
    }

    /// Calls `body` when the host ends before this process: programs can no longer be started.
    package func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.whenEnded = body }
            return state.isEnded
        }
        if isEnded { body() }
    }

    private func receive() {
        while let message = HostMessage.receive(from: descriptor.number),
            let (number, answer) = HostResponse.parse(message)
        {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.end(answer)
        }
        // An unreadable message ends the conversation for both.
        _ = shutdown(descriptor.number, CInt(SHUT_RDWR))
        let (left, whenEnded) = state.withLock { state in
            state.isEnded = true
            defer { state.waiting = [:] }
            return (state.waiting.values, state.whenEnded)
        }
        for call in left { call.end(.failed(Self.gone)) }
        whenEnded?()
        var status: CInt = 0
        _ = waitpid(process, &status, 0)
    }

    /// The call by which remedies are chosen.
    static let call = "process-host"
    private static let gone = SystemError(call: call, code: .connectionReset)

    // MARK: - Requests

    /// Runs a program to its end, or ends it when `waker` is woken. Blocks.
    func run(_ child: ChildProcess, _ waker: Waker) throws(SystemError) -> ChildProcess.Outcome {
        let call = try Call()
        let number = try register(call)
        defer { forget(number) }
        try send(.run(number, child))
        var isCancelled = false
        while true {
            let ready = try Poll.wait([call.waker.number, isCancelled ? -1 : waker.number], until: nil)
            if let answer = call.answer.withLock({ $0 }) {
                switch answer {
                case .ended(let outcome): return outcome
                case .failed(let error): throw error
                case .holders: throw Self.gone
                }
            }
            if ready[1] {
                isCancelled = true
                try send(.cancel(number))
            }
        }
    }

    /// The processes that may write to each of the files; nil where the host does not say. Blocks.
    func holders(of files: [ProbedFile], isFresh: Bool) -> [OpenWriters.WriterProcess?]? {
        let holders = processes { .holders($0, files, isFresh: isFresh) }
        return holders?.count == files.count ? holders : nil
    }

    /// The processes that keep a file system mounted; nil where the host does not say. Blocks.
    func users(of device: UInt64) -> [OpenWriters.WriterProcess]? {
        processes { .users($0, device: device) }?.compactMap(\.self)
    }

    private func processes(_ request: (UInt64) -> HostRequest) -> [OpenWriters.WriterProcess?]? {
        do throws(SystemError) {
            let call = try Call()
            let number = try register(call)
            defer { forget(number) }
            try send(request(number))
            _ = try call.waker.wait(until: .now.advanced(by: Self.patience))
            guard case .holders(let holders)? = call.answer.withLock({ $0 }) else { return nil }
            return holders
        } catch {
            // The caller looks itself.
            return nil
        }
    }

    /// A request that waits for its answer.
    private final class Call: Sendable {
        let answer = Mutex<HostResponse?>(nil)
        let waker: Waker

        init() throws(SystemError) { waker = try Waker() }

        func end(_ answer: HostResponse) {
            self.answer.withLock { $0 = answer }
            waker.wake()
        }
    }

    private func forget(_ number: UInt64) { state.withLock { $0.waiting[number] = nil } }

    private func register(_ call: Call) throws(SystemError) -> UInt64 {
        let number: UInt64? = state.withLock { state in
            if state.isEnded { return nil }
            state.last += 1
            state.waiting[state.last] = call
            return state.last
        }
        guard let number else { throw Self.gone }
        return number
    }

    private func send(_ request: HostRequest) throws(SystemError) {
        let message = request.message
        try sending.withLock { _ throws(SystemError) in
            do throws(SystemError) {
                try message.send(to: descriptor.number)
            } catch {
                // Part of the message may have been sent: the next one would be unreadable.
                if error.code != .fileTooLarge { _ = shutdown(descriptor.number, CInt(SHUT_RDWR)) }
                throw error
            }
        }
    }
}

extension ChildProcess {
    /// The part of our environment that other programs get: the search path, the home, and the language. The rest may
    /// hold credentials.
    static var ownEnvironment: [(name: String, value: [UInt8])] {
        ["PATH", "HOME", "LANG"].compactMap { name in
            ProcessSetup.environment(name).map { (name, Array($0.utf8)) }
        }
    }
}
