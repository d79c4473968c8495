import Dispatch
import InletAgent
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage

@testable import InletPipelines

/// A destination in memory that takes small files together, as the test says, and remembers them. Attempts go on to a
/// `ScriptedPipeline`.
final class ScriptedBursts: BurstPipeline {
    enum End: Sendable {
        case deliver
        /// The answer from which its attempt continues.
        case go(Result<HTTPResponse, DeliveryError>, mayHaveArrived: Bool)
        /// Only its cancellation ends it.
        case never
    }

    struct Record: Sendable {
        /// The files of each burst that were sent, in order.
        var bursts: [[BurstFile]] = []
        var running = 0
        /// The keys of attempts that continued from an answer.
        var continued: [String] = []

        var sent: [BurstFile] { bursts.flatMap(\.self) }
        func count(_ key: String) -> Int { sent.count { $0.order.key == key } }
    }

    private struct Open {
        let files: [BurstFile]
        let tell: @Sendable ([(index: Int, end: BurstEnd)]) -> Void
        var left: Set<Int>
        var hasStarted = false
    }

    private struct State {
        var record = Record()
        var ends: [String: End] = [:]
        var otherwise = End.deliver
        var isHolding = false
        var open: [Open] = []
        var refusal: DeliveryError?
    }

    private let state = Mutex(State())
    private let attempts: ScriptedPipeline
    private let thread = DispatchQueue(label: "scripted-bursts")

    let burstLimit: Int?
    let burstConnections: Int
    private static let address = "memory"

    init(_ attempts: ScriptedPipeline, limit: Int? = 1000, connections: Int = 8) {
        (self.attempts, burstLimit, burstConnections) = (attempts, limit, connections)
    }

    var record: Record { state.withLock(\.record) }

    func script(_ key: String, _ end: End) { state.withLock { $0.ends[key] = end } }
    func always(_ end: End) { state.withLock { $0.otherwise = end } }
    /// No burst can be made from now on.
    func refuse(_ error: DeliveryError) { state.withLock { $0.refusal = error } }
    /// Nothing that is sent from now on gets an answer before `release`.
    func hold() { state.withLock { $0.isHolding = true } }

    func release() {
        let count = state.withLock { state in
            state.isHolding = false
            return state.open.count
        }
        for number in 0..<count { answer(number) }
    }

    func burst(
        _ files: [BurstFile], ended: @escaping @Sendable ([(index: Int, end: BurstEnd)]) -> Void
    ) throws(DeliveryError) -> Burst {
        if let refusal = state.withLock(\.refusal) { throw refusal }
        let number = state.withLock { state in
            state.open.append(Open(files: files, tell: ended, left: Set(files.indices)))
            return state.open.count - 1
        }
        return Burst(start: { self.start(number) }, cancel: { self.cancel(number, $0) })
    }

    private func start(_ number: Int) {
        state.withLock { state in
            let open = state.open[number]
            state.open[number].hasStarted = true
            state.record.bursts.append(open.left.sorted().map { open.files[$0] })
            state.record.running += open.left.count
        }
        answer(number)
    }

    /// Answers the file of this key, though others are held.
    func release(_ key: String) {
        for number in 0..<state.withLock({ $0.open.count }) { answer(number, key) }
    }

    /// Ends what has an answer now.
    private func answer(_ number: Int, _ key: String? = nil) {
        end(number) { state, file in
            if key == nil ? state.isHolding : key != file.order.key { return nil }
            switch state.ends[file.order.key] ?? state.otherwise {
            case .deliver:
                let size = Int64(file.content.count)
                return .delivered(Proof(key: file.order.key, size: size, method: .size))
            case .go(let answer, let mayHaveArrived):
                return .continues(FirstAnswer(answer, from: Self.address, mayHaveArrived: mayHaveArrived))
            case .never: return nil
            }
        }
    }

    private func cancel(_ number: Int, _ index: Int) {
        end(number, only: index) { _, _ in
            let cancelled = DeliveryError(.cancelled, .cancelled, "cancelled")
            return .continues(FirstAnswer(.failure(cancelled), from: Self.address, mayHaveArrived: true))
        }
    }

    private func end(_ number: Int, only: Int? = nil, _ end: @Sendable (State, BurstFile) -> BurstEnd?) {
        let (ends, tell) = state.withLock { state in
            let open = state.open[number]
            let ends = open.left.sorted().compactMap { index -> (index: Int, end: BurstEnd)? in
                guard only == nil || only == index else { return nil }
                return end(state, open.files[index]).map { (index, $0) }
            }
            state.open[number].left.subtract(ends.map(\.index))
            if open.hasStarted { state.record.running -= ends.count }
            return (ends, open.tell)
        }
        if !ends.isEmpty { thread.async { tell(ends) } }
        Happening.ring()
    }

    // MARK: - Attempts

    func deliver(
        _ source: SourceFile, _ order: DeliveryOrder, _ attempt: Attempt
    ) async throws(DeliveryError) -> DeliveryOutcome {
        if let first = attempt.first {
            state.withLock { $0.record.continued.append(order.key) }
            if case .failure(let error)? = first.take(of: Self.address) { throw error }
        }
        // Nothing begins anew at the end.
        if Task.isCancelled || attempt.isStopping() { throw .stopping }
        return try await attempts.deliver(source, order, attempt)
    }

    func abandon(_ order: DeliveryOrder, checkpoint: [String: [UInt8]]) async throws(DeliveryError) {
        try await attempts.abandon(order, checkpoint: checkpoint)
    }

    func probe() async throws(DeliveryError) -> String { try await attempts.probe() }
}
