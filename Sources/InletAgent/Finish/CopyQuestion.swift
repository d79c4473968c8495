internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization

/// Asks the destinations of a file that was not sent whether they have its content now, before the file is removed.
/// Without a proof the file stays.
///
/// They are asked twice. The proof is sought while the file has its own name, since it may take long. Under its private
/// name they are only asked whether the object is there still: a file must not be the proof of itself.
struct CopyQuestion: Sendable {
    let shared: Shared
    let line: QuestionLine

    /// How long a destination may take for an answer about small files, and about any file.
    private static let (patience, longest) = (Duration.seconds(300), Duration.seconds(3600))
    /// The same while the file is hidden.
    private static let patienceOfHidden = Duration.seconds(120)
    /// A destination that reads its objects more slowly than this, in bytes per second, gives no proof.
    private static let slowest: Int64 = 4 << 20

    /// - Parameters:
    ///   - isHidden: whether the file has its private name.
    ///   - known: the proof that was found while it had its own name.
    func ask(of job: Job, isHidden: Bool, known: String? = nil) async -> CopyProof {
        let here: Set<Int64>
        do {
            here = try await shared.journal.standing(of: job)
        } catch {
            return Task.isCancelled ? .stopped : .unproved("the journal does not answer: \(error)")
        }
        var found: [String] = []
        for row in job.deliveries {
            guard row.state == .delivered, let proof = row.proof else {
                return .unproved("it is not delivered to \(row.destination)")
            }
            // A destination that only registers files has no bytes.
            if proof.method == .registered { continue }
            guard here.contains(row.id) else {
                return .unproved("\(row.destination) is at another address now, or the object was deleted there")
            }
            let answer = await answer(row.destination, proof, job.file, isHidden, isKnown: known != nil)
            // A question that a stop interrupts has no answer.
            if Task.isCancelled { return .stopped }
            switch answer {
            case .proved(let how): found.append("\(row.destination) has it (\(how))")
            case .unproved(let why): return .unproved("\(row.destination): \(why)")
            case .postponed: return answer
            }
        }
        if found.isEmpty { return .unproved("no destination has its bytes") }
        return .proved(known ?? "\(found.joined(separator: ", ")), asked \(WallTime.now.rfc3339Seconds)")
    }

    private func answer(
        _ name: String, _ proof: Proof, _ file: FileRow, _ isHidden: Bool, isKnown: Bool
    ) async -> CopyProof {
        guard let state = shared.destinations.state(of: name) else {
            return .unproved("it is not in the configuration")
        }
        guard let verifier = state.destination.pipeline as? any DeliveryVerifying else {
            return .unproved("destinations of type \(state.type) cannot be asked")
        }
        guard proof.isLink, proof.content != nil, proof.size == file.identity.size else {
            return .unproved("there is no checksum to compare with")
        }
        // Right after a start nobody knows yet.
        if state.state == .unproved { return .postponed("\(name) is being checked") }
        guard state.isOpen else { return .unproved("it is down or paused now") }
        let whole = min(Self.patience + .seconds(proof.size / Self.slowest), Self.longest)
        return await line.answer(of: name, within: isHidden ? Self.patienceOfHidden : whole) {
            await Self.answer(verifier, proof, file.digests, isKnown: isKnown)
        }
    }

    /// A length alone is no proof; then every byte is read.
    ///
    /// - Parameter isKnown: whether its content was proved a moment ago, so that only its presence matters.
    private static func answer(
        _ verifier: any DeliveryVerifying, _ proof: Proof, _ digests: [Digest], isKnown: Bool
    ) async -> CopyProof {
        do throws(DeliveryError) {
            for readsBytes in [false, true] {
                let order = VerifyOrder(proof: proof, digests: digests, readsBytes: readsBytes, isForRemoval: true)
                switch try await verifier.verify(order) {
                case .same(let how, let isOfContent) where isKnown || isOfContent: return .proved(how)
                case .same, .cannotTell: continue
                case .differs(let why), .missing(let why): return .unproved(why)
                }
            }
            return .unproved("it cannot tell what the content is")
        } catch {
            return .unproved("it does not answer: \(error)")
        }
    }
}

/// Questions to destinations, each with a time limit that also holds where a disk hangs: the asker goes on without the
/// answer. A destination has one question at a time; while one hangs, the next are refused at once.
final class QuestionLine: Sendable {
    private let state = Mutex<(asked: [@Sendable () async -> Void], busy: Set<String>)>(([], []))
    private let signal = WakeSignal()

    /// Gives each question to `begin`, until the task is cancelled.
    func serve(_ begin: (@escaping @Sendable () async -> Void) -> Void) async {
        await signal.loop {
            let asked = state.withLock { state in
                defer { state.asked = [] }
                return state.asked
            }
            for question in asked { begin(question) }
            return nil
        }
    }

    /// The result of `body`, or why there is none.
    func answer(
        of name: String, within patience: Duration, _ body: @escaping @Sendable () async -> CopyProof
    ) async -> CopyProof {
        let (waiter, end) = (Waiter<CopyProof>(), StopFlag())
        let alarm = TimerThread.shared.set(.now.advanced(by: patience)) {
            end.set()
            waiter.resume(with: .unproved("it gave no answer within \(patience)"))
        }
        guard let alarm else { return .postponed("this machine has no threads left") }
        defer { TimerThread.shared.remove(alarm) }
        let isFree = state.withLock { state in
            guard state.busy.insert(name).inserted else { return false }
            state.asked.append { [self] in await take(name, body, waiter, until: end) }
            return true
        }
        guard isFree else { return .unproved("it has not answered an earlier question yet") }
        signal.raise()
        return await waiter.wait() ?? .stopped
    }

    /// Returns when `body` has, be it after its asker has gone on.
    private func take(
        _ name: String, _ body: @escaping @Sendable () async -> CopyProof, _ waiter: Waiter<CopyProof>,
        until end: StopFlag
    ) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in
                let answer = await body()
                state.withLock { _ = $0.busy.remove(name) }
                waiter.resume(with: answer)
            }
            group.addTask { await end.wait() }
            await group.next()
            group.cancelAll()
        }
    }
}
