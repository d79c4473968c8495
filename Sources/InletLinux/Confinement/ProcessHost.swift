import CHost
import CLinux
import Glibc
package import InletCore
import Synchronization
import SystemPackage

/// The helper process (`CHost`). It starts programs, looks at the files that other processes have open, and starts the
/// confined reader of contents. A confined agent can do none of that itself: its helper starts before confinement, and
/// only the programs of the configuration. Any other process gets a helper when it first asks for something. A helper
/// holds none of this process's secrets, and ends with it.
package final class ProcessHost: Sendable {
    private struct State {
        var waiting: [UInt64: Call] = [:]
        var last: UInt64 = 0
        var isEnded = false
        var hasBegun = false
        var whenEnded: (@Sendable () -> Void)?
    }

    /// This process's helper, and whether it was started before confinement: nothing can replace it then.
    private static let own = Mutex<(host: ProcessHost?, isKept: Bool)>((nil, false))

    /// The helper of a confined process.
    package static var kept: ProcessHost? { own.withLock { $0.isKept ? $0.host : nil } }

    /// This process's helper, started where there is none yet.
    static func shared() throws(SystemError) -> ProcessHost {
        try own.withLock { own throws(SystemError) in
            if let host = own.host, own.isKept || !host.state.withLock({ $0.isEnded }) { return host }
            let host = try ProcessHost(commands: nil)
            try host.begin()
            own.host = host
            return host
        }
    }

    private let descriptor: Descriptor
    private let process: pid_t
    private let sending = Mutex(())
    private let state = Mutex(State())

    /// How long to wait for a scan of all processes.
    private static let patience = Duration.seconds(30)

    /// - Parameter commands: the programs that may be started, now and later; nil for any.
    package init(commands: [CommandPattern]?) throws(SystemError) {
        let started = try HostProgram.start(HostProgram.candidates(), HostProgram.environment)
        descriptor = Descriptor(owning: started.socket)
        process = started.process
        try send(commands.map { .commands($0) } ?? .everything)
    }

    /// Its process number.
    package var processID: Int32 { process }

    /// From here on this process, about to be confined, asks no other helper.
    package func keep() throws(SystemError) {
        try begin()
        Self.own.withLock { $0 = (self, true) }
    }

    func begin() throws(SystemError) {
        _ = try LoopThread(name: "host") { [self] in receive() }
        state.withLock { $0.hasBegun = true }
    }

    /// A helper without requests ends, and is awaited.
    deinit {
        if state.withLock({ $0.hasBegun }) { return }
        HostProgram.end(descriptor.number, process)
    }

    /// Calls `body` when the helper ends before this process: programs can no longer be started.
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
            state.withLock { $0.waiting[number] }?.add(answer)
        }
        let (left, whenEnded) = state.withLock { state in
            state.isEnded = true
            defer { state.waiting = [:] }
            return (state.waiting.values, state.whenEnded)
        }
        for call in left { call.add(.failed(Self.gone)) }
        whenEnded?()
        // An unreadable message ends the conversation for both.
        HostProgram.end(descriptor.number, process)
    }

    /// The call by which remedies are chosen.
    static let call = INLET_HOST_ROLE
    private static let gone = SystemError(call: call, code: .connectionReset)

    // MARK: - Requests

    /// A request and its answers, in their order.
    final class Call: Sendable {
        let number: UInt64
        /// Woken by every answer.
        let waker: Waker
        private let answers = Mutex<[HostResponse]>([])

        fileprivate init(_ number: UInt64) throws(SystemError) { (self.number, waker) = (number, try Waker()) }

        fileprivate func add(_ answer: HostResponse) {
            answers.withLock { $0.append(answer) }
            waker.wake()
        }

        /// The next answer that has come; nil without one.
        func next() -> HostResponse? {
            waker.drain()
            return answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        }

        /// Blocks until an answer has come; nil when none comes in time.
        fileprivate func wait(until deadline: ContinuousClock.Instant? = nil) throws(SystemError) -> HostResponse? {
            while true {
                if let answer = next() { return answer }
                if try !waker.wait(until: deadline) { return nil }
            }
        }
    }

    /// Sends a request with copies of `files`. Give the call to `forget` once nobody waits for its answers.
    private func ask(_ files: [CInt] = [], _ request: (UInt64) -> HostRequest) throws(SystemError) -> Call {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        let call = try Call(number)
        let isEnded = state.withLock { state in
            if !state.isEnded { state.waiting[number] = call }
            return state.isEnded
        }
        if isEnded { throw Self.gone }
        do throws(SystemError) {
            try send(request(number), files)
        } catch {
            forget(call)
            throw error
        }
        return call
    }

    func forget(_ call: Call) { state.withLock { $0.waiting[call.number] = nil } }

    /// Starts a program with the given standard input and error; its standard output is discarded. Blocks.
    ///
    /// - Returns: a call whose next answer is the program's end.
    func start(_ child: ChildProcess, input: CInt, errors: CInt) throws(SystemError) -> Call {
        try started([input, errors]) { .run(number: $0, child) }
    }

    /// Starts a confined reader of contents (`ContentReader`), which speaks through `conversation`. Blocks.
    func startReader(_ conversation: CInt) throws(SystemError) {
        forget(try started([conversation]) { .reader(number: $0) })
    }

    private func started(_ files: [CInt], _ request: (UInt64) -> HostRequest) throws(SystemError) -> Call {
        let call = try ask(files, request)
        var failure = Self.gone
        switch try call.wait() {
        case .started: return call
        case .failed(let error): failure = error
        default: break
        }
        forget(call)
        throw failure
    }

    /// Sends a signal to a program and its group. A helper that has gone took its programs along.
    func signal(_ number: CInt, to call: Call) { tell(.signal(number: call.number, number)) }

    /// Waits no more for a program: the helper collects it, at once or when it ends after all.
    func end(_ call: Call, endsGroup: Bool) {
        forget(call)
        tell(.end(number: call.number, endsGroup: endsGroup))
    }

    private func tell(_ request: HostRequest) {
        // The receiving thread notices that the helper has gone.
        do throws(SystemError) { try send(request) } catch {}
    }

    /// The processes that may write to each of the files; nil where the helper does not say. Blocks.
    func holders(of files: [ProbedFile], isFresh: Bool) -> [OpenWriters.WriterProcess?]? {
        let holders = processes { .holders(number: $0, files, isFresh: isFresh) }
        return holders?.count == files.count ? holders : nil
    }

    /// The processes that keep a file system mounted; nil where the helper does not say. Blocks.
    func users(of device: UInt64) -> [OpenWriters.WriterProcess]? {
        processes { .users(number: $0, device: device) }?.compactMap(\.self)
    }

    private func processes(_ request: (UInt64) -> HostRequest) -> [OpenWriters.WriterProcess?]? {
        do throws(SystemError) {
            let call = try ask([], request)
            defer { forget(call) }
            guard case .holders(let holders) = try call.wait(until: .now.advanced(by: Self.patience)) else {
                return nil
            }
            return holders
        } catch {
            // Nobody is known.
            return nil
        }
    }

    private func send(_ request: HostRequest, _ files: [CInt] = []) throws(SystemError) {
        let message = request.message
        try sending.withLock { _ throws(SystemError) in
            do throws(SystemError) {
                try message.send(to: descriptor.number, files: files)
            } catch {
                // Part of the message may have been sent: the next one would be unreadable.
                if error.code != .fileTooLarge { _ = shutdown(descriptor.number, CInt(SHUT_RDWR)) }
                throw error
            }
        }
    }
}

/// The program of the helper.
enum HostProgram {
    /// `inlet-host` beside this program or in its package's folder. Where only `inlet` was copied, this program itself,
    /// which costs more memory.
    static func candidates(for own: FilePath = "/proc/self/exe") -> [FilePath] {
        let folder = own.realPath?.removingLastComponent()
        return [folder?.appending("inlet-host"), folder?.removingLastComponent().appending("libexec/inlet/inlet-host")]
            .compactMap(\.self).filter { ChildProcess.isExecutable($0) && isTrusted($0, beside: own) } + [own]
    }

    /// Whether it is root's, ours, or of the program's owner: in a folder such as `/tmp` anybody may have put it there.
    private static func isTrusted(_ helper: FilePath, beside program: FilePath) -> Bool {
        // One that cannot be looked at is not used.
        guard let helper = try? SystemCall.status(of: helper).st_uid,
            let owner = try? SystemCall.status(of: program, following: true).st_uid
        else { return false }
        return [0, geteuid(), owner].contains(helper)
    }

    /// The part of our environment that it gets: the search path, the home, the language, and where libmagic's database
    /// is. The rest may hold credentials.
    static var environment: [(name: String, value: [UInt8])] {
        ["PATH", "HOME", "LANG", "MAGIC"].compactMap { name in
            ProcessSetup.environment(name).map { (name, Array($0.utf8)) }
        }
    }

    /// Starts the first of `programs` that is a helper of this version. Blocks.
    ///
    /// - Returns: our end of the conversation, and the helper's process number.
    static func start(
        _ programs: [FilePath], _ environment: [(name: String, value: [UInt8])]
    ) throws(SystemError) -> (socket: CInt, process: pid_t) {
        var failure = SystemError(call: ProcessHost.call, path: programs.first, code: .execFormatError)
        for program in programs {
            let (ours, theirs) = try conversation()
            let other = Descriptor(owning: theirs)
            do throws(SystemError) {
                let process = try spawn(program, environment, other.number)
                close(other.release())
                if speaks(ours), isHelper(HostMessage.receive(from: ours)) { return (ours, process) }
                kill(process, SIGKILL)
                end(ours, process)
            } catch {
                failure = error
            }
            close(ours)
        }
        throw failure
    }

    /// Whether the program begins to speak in time: its disk may not answer.
    private static func speaks(_ socket: CInt) -> Bool {
        var event = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&event, 1, 10_000) == 1
    }

    private static func isHelper(_ greeting: HostMessage?) -> Bool {
        var fields = greeting ?? HostMessage()
        return fields.text() == INLET_HOST_ROLE && fields.number() == inlet_host_version
    }

    /// Both ends of a conversation.
    static func conversation() throws(SystemError) -> (ours: CInt, theirs: CInt) {
        var ends: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        _ = try SystemCall.result("socketpair") { socketpair(AF_UNIX, kind, 0, &ends) }
        return (ends[0], ends[1])
    }

    /// Ends the conversation, and awaits the helper, which ends with it. Blocks.
    static func end(_ socket: CInt, _ process: pid_t) {
        _ = shutdown(socket, CInt(SHUT_RDWR))
        var status: CInt = 0
        _ = waitpid(process, &status, 0)
    }

    /// With `posix_spawn(3)` it begins as a new program: at no moment is it a copy of us.
    private static func spawn(
        _ program: FilePath, _ environment: [(name: String, value: [UInt8])], _ socket: CInt
    ) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        // Ours are all O_CLOEXEC; what a library has opened may not be.
        _ = inlet_spawn_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A terminal's signals are not for it.
        posix_spawnattr_setflags(&attributes, Int16(inlet_spawn_setsid))
        var words = strings([program.bytes, Array(INLET_HOST_ROLE.utf8)])
        var variables = strings(environment.map { Array($0.name.utf8) + [UInt8(ascii: "=")] + $0.value })
        defer { for string in words + variables { string?.deallocate() } }
        var process: pid_t = 0
        let code = posix_spawn(&process, program.string, &actions, &attributes, &words, &variables)
        if code != 0 { throw SystemError(call: "posix_spawn", path: program, code: Errno(rawValue: code)) }
        return process
    }

    /// A list of C strings ending in a null pointer, for the caller to deallocate.
    private static func strings(_ texts: [[UInt8]]) -> [UnsafeMutablePointer<CChar>?] {
        texts.map { text in
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: text.count + 1)
            for (offset, byte) in text.enumerated() { copy[offset] = CChar(bitPattern: byte) }
            copy[text.count] = 0
            return copy
        } + [nil]
    }
}
