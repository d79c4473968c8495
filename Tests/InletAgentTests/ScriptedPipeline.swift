import InletAgent
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage

/// A destination in memory that does what the test says, and remembers what was asked of it.
final class ScriptedPipeline: Pipeline {
    indirect enum Step: Sendable {
        case deliver
        /// The same, proved by the checksum of the whole content.
        case prove
        case fail(DeliveryError)
        /// Hangs until it is cancelled, with a note in the checkpoint.
        case stall
        /// Waits for its limit until it is cancelled, with a note in the checkpoint.
        case waitForLimit
        /// The destination works on it for so long.
        case wait(Duration)
        /// The same, and it says how far it is.
        case work(StepProgress, saying: String? = nil, for: Duration)
        /// Goes on with the next step when the gate opens.
        case hold(Gate, Step)
        /// Takes the step, and returns what came of it when the gate opens.
        case after(Step, Gate)
        /// Goes on with the next step, with a note in the checkpoint.
        case note(Step)
        /// Goes on with the next step, with the note that it may be visible from now on.
        case complete(Step)
        /// Goes on with the next step when the agent is stopping.
        case untilStopping(Step)
    }

    struct Record: Sendable {
        /// What is visible, by key.
        var stored: [String: [UInt8]] = [:]
        /// Every attempt, in order.
        var orders: [DeliveryOrder] = []
        /// The checkpoint that each attempt began with.
        var notes: [[String: [UInt8]]] = []
        /// How many steps of `complete` went on.
        var completed = 0
        var running = 0
        var mostRunning = 0
        var abandoned: [DeliveryOrder] = []
        /// Orders that were to go on without their source.
        var concluded: [DeliveryOrder] = []
        /// The keys of attempts and `probe`, in order.
        var calls: [String] = []
    }

    private struct State {
        var record = Record()
        var steps: [String: [Step]] = [:]
        var otherwise = Step.deliver
        var probeErrors: [DeliveryError] = []
        var abandonErrors: [DeliveryError] = []
        var probeGate: Gate?
        var verifyGate: Gate?
        var kept: Set<String> = []
        var hasAll = false
    }

    private let state = Mutex(State())
    private static let pool = BlockingPool(name: "scripted", threads: 1)

    var record: Record { state.withLock(\.record) }
    func attempts(at key: String) -> Int { record.orders.count { $0.key == key } }

    /// The steps of the next attempts at `key`; afterwards `otherwise`.
    func script(_ key: String, _ steps: Step...) { state.withLock { $0.steps[key, default: []] += steps } }
    func always(_ step: Step) { state.withLock { $0.otherwise = step } }
    /// From now on all bytes of every order have left.
    func haveAll() { state.withLock { $0.hasAll = true } }
    /// The next calls of `abandon` throw these, one each.
    func failAbandons(_ errors: DeliveryError...) { state.withLock { $0.abandonErrors += errors } }
    /// Notes of these names are good for a retry.
    func keep(_ names: String...) { state.withLock { $0.kept.formUnion(names) } }
    /// Probes wait until the gate opens.
    func holdProbes(_ gate: Gate) { state.withLock { $0.probeGate = gate } }
    /// Questions about what is stored wait until the gate opens, also when nobody waits for their answers any more.
    func holdQuestions(_ gate: Gate) { state.withLock { $0.verifyGate = gate } }
    func failProbes(_ errors: DeliveryError...) { state.withLock { $0.probeErrors += errors } }

    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        let step = state.withLock { state -> Step in
            state.record.orders.append(order)
            state.record.calls.append(order.key)
            state.record.notes.append(attempt.checkpoint.entries)
            state.record.running += 1
            state.record.mostRunning = max(state.record.mostRunning, state.record.running)
            guard var steps = state.steps[order.key], !steps.isEmpty else { return state.otherwise }
            defer { state.steps[order.key] = steps }
            return steps.removeFirst()
        }
        Happening.ring()
        defer {
            state.withLock { $0.record.running -= 1 }
            Happening.ring()
        }
        return try await take(step, source, order, attempt)
    }

    private func take(
        _ step: Step, _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        switch step {
        case .deliver:
            let content = try read(source)
            state.withLock { $0.record.stored[order.key] = content }
            return .delivered(Proof(key: order.key, size: Int64(content.count), method: .size))
        case .prove:
            return .delivered(try await prove(source, order))
        case .fail(let error): throw error
        case .stall: return try await hang(attempt)
        case .waitForLimit: return try await hang(attempt, ThrottleWaits.current)
        case .wait(let time): return .waiting(until: .now + time)
        case .work(let progress, let saying, let time):
            attempt.report(progress)
            return .waiting(until: .now + time, saying: saying)
        case .hold(let gate, let next):
            await gate.pass()
            if Task.isCancelled { throw DeliveryError(.cancelled, .cancelled, "cancelled") }
            return try await take(next, source, order, attempt)
        case .after(let step, let gate):
            let outcome = try await take(step, source, order, attempt)
            await gate.pass()
            return outcome
        case .note(let next):
            try await attempt.checkpoint.put(["upload": [1]])
            return try await take(next, source, order, attempt)
        case .complete(let next):
            try await attempt.checkpoint.put([CheckpointName.mayBeVisible: []])
            state.withLock { $0.record.completed += 1 }
            return try await take(next, source, order, attempt)
        case .untilStopping(let next):
            try? await eventually("it stops") { attempt.isStopping() || Task.isCancelled }
            return try await take(next, source, order, attempt)
        }
    }

    private func prove(_ source: SourceFile, _ order: DeliveryOrder) async throws(DeliveryError) -> Proof {
        let content = try Self.admitted(try read(source), source, order)
        state.withLock { $0.record.stored[order.key] = content }
        let digest = try await SourceDigests.sha256(of: source, on: Self.pool)
        return Proof(
            key: order.key, size: Int64(content.count), method: .sha256,
            content: ContentHash(digest: digest, partSize: nil))
    }

    /// Until it is cancelled.
    private func hang(_ attempt: Attempt, _ note: ThrottleWaits? = nil) async throws(DeliveryError) -> DeliveryOutcome {
        try await attempt.checkpoint.put(["upload": [1]])
        note?.begin()
        try? await Task.sleep(for: .seconds(3600))
        note?.end()
        throw DeliveryError(.cancelled, .cancelled, "cancelled")
    }

    /// As the contract has it: what was opened may be another file than was admitted.
    private static func admitted(
        _ content: [UInt8], _ source: SourceFile, _ order: DeliveryOrder
    ) throws(DeliveryError) -> [UInt8] {
        let now: FileIdentity
        do throws(SystemError) { now = try source.identity() } catch { throw DeliveryError(reading: error) }
        guard now.isUntouched(since: order.source) else { throw .changed }
        return content
    }

    private func read(_ source: SourceFile) throws(DeliveryError) -> [UInt8] {
        var content = [UInt8](repeating: 0, count: 1 << 16)
        do {
            let count = try content.withUnsafeMutableBytes { (room) throws(SystemError) in
                try source.read(into: room, at: 0)
            }
            return Array(content.prefix(count))
        } catch {
            throw DeliveryError(.retry(after: nil), .sourceUnreadable, "\(error)")
        }
    }

    func conclude(
        _ path: FilePath, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome? {
        state.withLock { state in
            state.record.concluded.append(order)
            return state.hasAll ? .delivered(Proof(key: order.key, size: order.source.size, method: .size)) : nil
        }
    }

    func forgetProbeErrors() { state.withLock { $0.probeErrors = [] } }

    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        let error = state.withLock { state in
            state.record.abandoned.append(order)
            return state.abandonErrors.isEmpty ? nil : state.abandonErrors.removeFirst()
        }
        if let error { throw error }
    }

    func reusable(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] {
        state.withLock { state in checkpoint.filter { state.kept.contains($0.key) } }
    }

    func handedOver(_ checkpoint: [String: [UInt8]]) -> [String: [UInt8]] { checkpoint.filter { $0.key == "upload" } }

    func probe() async throws(DeliveryError) -> String {
        if let gate = state.withLock(\.probeGate) { await gate.pass() }
        let error = state.withLock { state in
            state.record.calls.append("probe")
            return state.probeErrors.isEmpty ? nil : state.probeErrors.removeFirst()
        }
        if let error { throw error }
        return "here"
    }
}

/// Holds tasks back until it is opened, once and for good.
final class Gate: Sendable {
    private let isOpen = Atomic<Bool>(false)
    private let signal = WakeSignal(loops: 1000)

    func open() {
        isOpen.store(true, ordering: .releasing)
        signal.raiseAll()
    }

    func pass() async {
        while !isOpen.load(ordering: .acquiring), !Task.isCancelled { await signal.wait(until: nil) }
    }
}

extension DeliveryError {
    static let passing = DeliveryError(.retry(after: nil), .timedOut, "the test's server is slow")
    static let serverFault = DeliveryError(.retry(after: nil), .serverError, "the test's server says 500")
    static let outage = DeliveryError(.outage(after: nil), .connectFailed, "the test's server is away")
    static let refused = DeliveryError(.credentials, .unauthorized, "the test's server wants another key")
    static let unpaid = DeliveryError(.outage(after: .seconds(3600)), .outOfCredits, "the test's account is empty")
    static let hopeless = DeliveryError(.giveUp, .badRequest, "the test's server never takes this")
    static let changed = DeliveryError(.sourceChanged, .sourceChanged, "the file changed")
}

extension ScriptedPipeline: DeliveryVerifying {
    func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification {
        state.withLock { $0.record.calls.append("verify") }
        Happening.ring()
        if let gate = state.withLock(\.verifyGate) { await gate.pass() }
        guard let content = record.stored[order.proof.key] else { return .missing("it is not stored") }
        return Int64(content.count) == order.proof.size ? .same("length") : .differs("it has another length")
    }
}
