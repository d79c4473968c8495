internal import FoundationEssentials
package import InletCore
internal import InletLinux
internal import ServiceLifecycle
internal import Synchronization

/// This agent's line to its fleet: keeps a session, and makes the calls of its users.
///
/// Two threads with a connection each: a beat never waits behind a call. While there is no live session every call fails
/// at once with `.away`; the standing says why.
package final class FleetLink: Sendable, Service {
    private struct State {
        var session: FleetSession
        /// For display.
        var server: String
        var identity: FleetIdentity?
        var seen: Int64 = 0
        var receipts: Int64 = 0
        var agentState: String?
        var hasCommands = false
        var waitingFor: [String] = []
        var error: FleetError?
        var since = WallTime.now
        /// As `onChange` had them last.
        var news: FleetStanding.News?
        var figures = FleetFigures()
        var destinations: [[UInt8]: Int32] = [:]
        /// The session for which `destinations` holds.
        var destinationSession: Int64?
        /// Ends the rest of `run()`; nil until it runs.
        var waker: Waker?

        /// nil past the session's own deadline.
        var liveCaller: FleetCaller? {
            guard let identity, let session = session.liveSession(at: .now) else { return nil }
            return FleetCaller(identity: identity, session: session, seen: seen)
        }
    }

    private let memory: any FleetMemory
    private let version: String
    private let about: [String: String]
    private let seat: [UInt8]
    private let onChange: @Sendable (FleetStanding) -> Void
    private let instance = UUID().uuidString.lowercased()
    private let beats: FleetLine
    private let calls: FleetLine
    private let state: Mutex<State>

    /// Connects only when it runs.
    ///
    /// - Parameters:
    ///   - identity: nil for an agent that has not joined; the memory is looked at again.
    ///   - about: what the fleet shows of this machine.
    ///   - seat: the lock file that this process holds (`seat(boot:device:inode:)`).
    ///   - addressNow: the address for each connection, on the thread of that; nil is always `address`.
    ///   - onChange: called on the link's own task. It must not block.
    package init(
        _ address: PostgresAddress, _ memory: any FleetMemory, identity: FleetIdentity?, version: String,
        about: [String: String], seat: [UInt8],
        addressNow: (@Sendable () -> Result<PostgresAddress, FleetError>)? = nil,
        onChange: @escaping @Sendable (FleetStanding) -> Void = { _ in }
    ) {
        (self.memory, self.version, self.about, self.seat, self.onChange) = (memory, version, about, seat, onChange)
        let read = addressNow ?? { .success(address) }
        (beats, calls) = (FleetLine(read, name: "fleet beats"), FleetLine(read, name: "fleet calls"))
        let session = FleetSession(isMember: identity != nil, isUsedTwice: identity?.isUsedTwice ?? false, at: .now)
        state = Mutex(State(session: session, server: address.display, identity: identity))
    }

    /// Says which lock file a process holds: two processes with one seat cannot both be alive.
    package static func seat(boot: String, device: UInt64, inode: UInt64) -> [UInt8] {
        SHA256.bytes(of: "\(boot)\n\(device)\n\(inode)".utf8)
    }

    package var standing: FleetStanding { state.withLock { standing($0) } }

    /// Counts what the users of the link know, such as keys that were lost.
    package func count(_ change: @Sendable (inout FleetFigures) -> Void) { state.withLock { change(&$0.figures) } }

    /// After a join, or a remedy: reads the identity and asks at once.
    package func lookAgain() { interrupt(.lookAgain) }

    /// Ends the session here and says hello again: claims whose answer was lost come back with the next one.
    package func renew() {
        guard let session = state.withLock({ $0.session.liveSession(at: .now) }) else { return }
        interrupt(.failed(FleetFailure(.sessionOver, session: session, jitter: .random(in: 0..<1))))
    }

    // MARK: - Service

    package func run() async throws {
        let waker = try Waker()
        state.withLock { $0.waker = waker }
        await cancelWhenGracefulShutdown {
            await withTaskCancellationHandler {
                while !Task.isCancelled {
                    let action = self.state.withLock { $0.session.next(at: .now) }
                    await self.perform(action, waker)
                    self.publish()
                }
            } onCancel: {
                waker.wake()
            }
        }
        await leave()
    }

    private func perform(_ action: FleetSession.Action, _ waker: Waker) async {
        do throws(FleetError) {
            switch action {
            case .rest(let time): await beats.run { waker.rest(until: time) }
            case .identify: try await identify()
            case .connect: try await connect()
            case .count:
                let count = try await remembered { try await memory.nextHello() }
                apply(.counted(count))
            case .hello(let number): try await hello(number)
            case .beat(let session, let isDurable): try await beat(session, isDurable)
            }
        } catch {
            let wait = error.code == .isAlive ? error.detail.flatMap { Int($0) } : nil
            let failure = FleetFailure(
                error.code, wait: wait.map { .milliseconds($0) }, isDisconnected: !beats.isUsable,
                jitter: .random(in: 0..<1))
            state.withLock { $0.error = error }
            apply(.failed(failure))
            if error.code == .usedTwice { await rememberUse() }
        }
    }

    /// A copy that counted on after a restart would pass for the original, once that one is down.
    private func rememberUse() async {
        guard var identity = state.withLock(\.identity) else { return }
        identity.isUsedTwice = true
        do {
            try await memory.keepFleetIdentity(identity, isFresh: false)
            state.withLock { $0.identity = identity }
        } catch {
            // This process says the same number again in a minute, is refused again, and is here again.
        }
    }

    private func identify() async throws(FleetError) {
        let identity = try await remembered { try await memory.fleetIdentity() }
        let isNew = state.withLock { state in
            defer { state.identity = identity }
            guard state.identity != identity else { return false }
            (state.seen, state.error, state.agentState, state.hasCommands) = (0, nil, nil, false)
            state.destinationSession = nil
            return true
        }
        let isUsedTwice = identity?.isUsedTwice ?? false
        if isUsedTwice { state.withLock { $0.error = FleetError(.usedTwice, "the fleet refused this identity") } }
        apply(.identified(isMember: identity != nil, isNew: isNew, isUsedTwice: isUsedTwice))
    }

    /// A schema without a function that is called is older than this program.
    private func connect() async throws(FleetError) {
        let names = FleetFunction.all.map(\.name)
        try await beats.run { () throws(FleetError) in
            let address = try beats.connect()
            state.withLock { $0.server = address.display }
            let missing = try beats.run(FleetFunction.missing, [.texts(names)], within: Self.patience)
            guard missing.count > 0, let first = missing[0, 0] else { return }
            throw FleetError(.schema, "it has no \(first), and is older than this agent needs")
        }
        apply(.connected)
    }

    private func hello(_ number: Int64) async throws(FleetError) {
        let before = try await remembered { try await memory.fleetSeen() }
        let caller = try caller(session: 0, seen: before)
        let values: [PostgresValue] = [
            .integer(Int64(caller.identity.agent)), .bytes(caller.identity.token), .integer(number), .text(instance),
            .bytes(seat), .integer(caller.seen), .text(version), .text(Self.text(about)),
        ]
        let (answer, asked) = try await ask(.hello, values, within: Self.patience)
        let welcome = FleetWelcome(
            session: try answer.integer(0), ttl: try answer.milliseconds(1), mark: try answer.integer(2),
            epoch: try answer.number(3), ownEpoch: try answer.number(4), phase: try answer.phase(5),
            wait: try answer.milliseconds(6), receipts: try answer.integer(7))
        state.withLock { state in
            (state.error, state.receipts) = (nil, welcome.receipts)
            if welcome.phase == .open { state.waitingFor = [] }
        }
        apply(.welcomed(welcome, asked: asked))
        await heard(welcome.mark)
    }

    private func beat(_ session: Int64, _ isDurable: Bool) async throws(FleetError) {
        let caller = try caller(session: session)
        let bound = max(state.withLock { $0.session.ttl } / 3, .seconds(1))
        let values = FleetFunction.beat.values(caller, [.boolean(isDurable)])
        let (answer, asked) = try await ask(.beat, values, within: bound)
        let beat = FleetBeat(
            ttl: try answer.milliseconds(0), mark: try answer.integer(1), epoch: try answer.number(2),
            phase: try answer.phase(3))
        let agentState = try answer.text(4)
        let hasCommands = try answer.text(5) == "t"
        state.withLock { state in
            (state.error, state.agentState, state.hasCommands) = (nil, agentState, hasCommands)
            if beat.phase == .open { state.waitingFor = [] }
        }
        apply(.beaten(beat, session: session, asked: asked))
        await heard(beat.mark)
    }

    private static let patience = Duration.seconds(10)

    private func ask(
        _ function: FleetFunction, _ values: [PostgresValue], within bound: Duration
    ) async throws(FleetError) -> (FleetAnswer, asked: ContinuousClock.Instant) {
        try await beats.run { () throws(FleetError) in
            let asked = ContinuousClock.now
            let rows = try counted(function, asked) { () throws(FleetError) in
                try beats.call(function, values, within: bound)
            }
            return (FleetAnswer(rows: rows, function: function), asked)
        }
    }

    /// A clean end: others need not wait for the lease.
    private func leave() async {
        let caller = state.withLock(\.liveCaller)
        await beats.run {
            if let caller, beats.isUsable {
                // Without an answer the lease ends by itself.
                _ = try? beats.call(.bye, FleetFunction.bye.values(caller, []), within: .seconds(2))
            }
            beats.close()
        }
        if let caller { apply(.failed(FleetFailure(.sessionOver, session: caller.session, jitter: 0))) }
        publish()
    }

    // MARK: - State

    private func caller(session: Int64, seen: Int64 = 0) throws(FleetError) -> FleetCaller {
        let caller = state.withLock { state in
            state.seen = max(state.seen, seen)
            return state.identity.map { FleetCaller(identity: $0, session: session, seen: state.seen) }
        }
        guard let caller else { throw FleetError(.unknownAgent, "this agent has not joined the fleet") }
        return caller
    }

    /// Of the link's own task.
    private func apply(_ event: FleetSession.Event) { state.withLock { $0.session.apply(event, at: .now) } }

    /// Of another task: ends the rest of `run()` where that changes something.
    private func interrupt(_ event: FleetSession.Event, _ error: FleetError? = nil) {
        let waker = state.withLock { state in
            let before = state.session
            state.session.apply(event, at: .now)
            if let error, before.liveSession(at: .now) != nil, state.liveCaller == nil { state.error = error }
            return before == state.session ? nil : state.waker
        }
        waker?.wake()
    }

    private func publish() {
        let changed = state.withLock { state -> FleetStanding? in
            let standing = standing(state)
            guard standing.news != state.news else { return nil }
            if standing.kind != state.news?.kind { state.since = .now }
            state.news = standing.news
            return self.standing(state)
        }
        if let changed { onChange(changed) }
    }

    private func standing(_ state: State) -> FleetStanding {
        let now = ContinuousClock.now
        var figures = state.figures
        let session = state.session.liveSession(at: now)
        (figures.isConnected, figures.sessionLeft) = (session != nil, state.session.left(at: now))
        figures.isRecovering = session != nil && (state.session.phase == .recovering || state.session.owesReport)
        return FleetStanding(
            state: state.session.state(at: now), since: state.since, error: state.error, server: state.server,
            agent: state.identity?.agent, name: state.identity?.name, tag: state.identity?.tag, session: session,
            sessionLeft: figures.sessionLeft, ttl: state.session.ttl, phase: state.session.phase,
            epoch: state.session.epoch,
            owesReport: state.session.owesReport, reportFrom: state.session.reportFrom, seen: state.seen,
            waitingFor: state.waitingFor, agentState: state.agentState, hasCommands: state.hasCommands,
            receipts: state.receipts, figures: figures)
    }

    private func remembered<Value>(_ body: () async throws -> Value) async throws(FleetError) -> Value {
        do { return try await body() } catch {
            throw FleetError(.journal, "the journal does not keep what the fleet needs (\(error))")
        }
    }

    /// Marks are kept, so that a later process notices lost commits too.
    private func heard(_ mark: Int64) async {
        let isHigher = state.withLock { state in
            defer { state.seen = max(state.seen, mark) }
            return mark > state.seen
        }
        guard isHigher else { return }
        // A later mark is kept as well as this one, and the journal's own users meet its failure.
        try? await memory.saw(mark: mark)
    }

    private func counted<Value>(
        _ function: FleetFunction, _ asked: ContinuousClock.Instant, _ body: () throws(FleetError) -> Value
    ) throws(FleetError) -> Value {
        func count(_ code: FleetError.Code?) {
            state.withLock { $0.figures.count(function.name, code, took: .now - asked) }
        }
        do throws(FleetError) {
            let value = try body()
            count(nil)
            return value
        } catch {
            count(error.code)
            throw error
        }
    }

    static func text(_ value: some Encodable) -> String { String(decoding: JSON.note(of: value), as: UTF8.self) }
}

// MARK: - Calls of its users

extension FleetLink {
    /// The answer of the function, on the calls' thread.
    ///
    /// - Parameter session: the only one in which it may be called; nil: any.
    /// - Throws: `.away` at once while no session is live, also when it ended while the call waited for its turn.
    func call(
        _ function: FleetFunction, _ values: [PostgresValue], in session: Int64? = nil
    ) async throws(FleetError) -> (answer: FleetAnswer, asked: ContinuousClock.Instant) {
        _ = try liveCaller(function)
        return try await calls.run { () throws(FleetError) in
            _ = try liveCaller(function)
            if !calls.isUsable { try calls.connect() }
            let caller = try liveCaller(function)
            guard session == nil || session == caller.session else {
                throw FleetError(.sessionOver, "the session is over in which that began", function: function.name)
            }
            let asked = ContinuousClock.now
            do throws(FleetError) {
                let rows = try counted(function, asked) { () throws(FleetError) in
                    try calls.call(function, function.values(caller, values), within: Self.patience)
                }
                return (FleetAnswer(rows: rows, function: function), asked)
            } catch {
                let failure = FleetFailure(error.code, session: caller.session, jitter: .random(in: 0..<1))
                interrupt(.failed(failure), error)
                throw error
            }
        }
    }

    /// The same for a function that answers with its mark.
    func marked(
        _ function: FleetFunction, _ values: [PostgresValue], in session: Int64? = nil
    ) async throws(FleetError) -> (answer: FleetAnswer, mark: Int64) {
        let answer = try await call(function, values, in: session).answer
        let mark = try answer.integer(0)
        await heard(mark)
        return (answer, mark)
    }

    /// - Throws: `.away` with the reason for which there is no session.
    private func liveCaller(_ function: FleetFunction) throws(FleetError) -> FleetCaller {
        let (caller, error, server) = state.withLock { ($0.liveCaller, $0.error, $0.server) }
        if let caller { return caller }
        throw FleetError(
            .away, error?.message ?? "there is no session at \(server) now", function: function.name)
    }

    /// Numbers of destinations may differ after a restore, so that they count for one session.
    func destinationNumber(
        of address: [UInt8], asking: () async throws(FleetError) -> Int32
    ) async throws(FleetError) -> Int32 {
        let session = try liveCaller(.destination).session
        let known = state.withLock { $0.destinationSession == session ? $0.destinations[address] : nil }
        if let known { return known }
        let number = try await asking()
        state.withLock { state in
            if state.destinationSession != session { (state.destinationSession, state.destinations) = (session, [:]) }
            state.destinations[address] = number
        }
        return number
    }

    /// Orders that the next beat announces are reported, also where none was announced in between.
    func commandsWereAsked() {
        state.withLock { state in
            state.hasCommands = false
            state.news?.hasCommands = false
        }
    }

    func receiptsWereTaken(to last: Int64) { state.withLock { $0.receipts = max($0.receipts, last) } }

    func waits(for agents: [String]) { state.withLock { $0.waitingFor = agents } }

    func reported(_ phase: FleetPhase, epoch: Int32, session: Int64) {
        interrupt(.reported(phase, epoch: epoch, session: session))
    }
}
