internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// Asks destinations whether they have what is to be adopted (`adopt_check`), and leaves those alone that do not answer.
struct AdoptionCheck: Sendable {
    enum Answer: Sendable, Equatable {
        /// Every destination that can be asked has it.
        case there
        /// One has not, or has something else; why.
        case notThere(String)
        /// Nothing is known, so nothing is believed and nothing sent.
        case silence(destination: String, reason: String)
    }

    let board: DestinationRegistry
    private var pauses: [String: AskingPause] = [:]

    init(_ board: DestinationRegistry) { self.board = board }

    /// Whether all of them have it. A service whose records are found by numbers of its own is believed to.
    func ask(_ arrival: Arrival, _ plan: Plan) async -> Answer {
        let proof = Proof(key: plan.key, size: arrival.identity.size, method: .adopted)
        for name in plan.destinations {
            guard let verifier = verifier(name) else { continue }
            do throws(DeliveryError) {
                switch try await verifier.verify(VerifyOrder(proof: proof, digests: plan.digests)) {
                case .same: continue
                case .differs(let reason), .missing(let reason): return .notThere("\(name): \(reason)")
                case .cannotTell(let reason): return .silence(destination: name, reason: reason)
                }
            } catch {
                return .silence(destination: name, reason: "\(error)")
            }
        }
        return .there
    }

    private func verifier(_ name: String) -> (any DeliveryVerifying)? {
        guard let verifier = board[name]?.pipeline as? any DeliveryVerifying, verifier.findsByKey else { return nil }
        return verifier
    }

    /// Of `destinations` one that is not asked now, and how long not.
    func silent(_ destinations: [String], at now: ContinuousClock.Instant) -> (name: String, wait: Duration)? {
        for name in destinations {
            if let wait = pauses[name]?.remaining(at: now) { return (name, wait) }
        }
        return nil
    }

    /// - Returns: whether it had answered before, or was not asked.
    mutating func gaveNoAnswer(_ name: String, at now: ContinuousClock.Instant) -> Bool {
        let isFirst = pauses[name] == nil
        pauses[name, default: AskingPause()].begin(at: now)
        return isFirst
    }

    mutating func answered(_ destinations: [String]) {
        for name in destinations { pauses[name] = nil }
    }
}

/// How long a destination is left alone that gives no answer: a second, and twice as long each time, up to a minute.
struct AskingPause: Sendable, Equatable {
    private static let shortest = Duration.seconds(1)
    private static let longest = Duration.seconds(60)

    private var length = Duration.zero
    private var until: ContinuousClock.Instant?

    /// Files that were asked about together are one try.
    mutating func begin(at now: ContinuousClock.Instant) {
        if remaining(at: now) != nil { return }
        length = min(max(length * 2, Self.shortest), Self.longest)
        until = now.advanced(by: length)
    }

    /// nil when it is over.
    func remaining(at now: ContinuousClock.Instant) -> Duration? {
        guard let until, now < until else { return nil }
        return now.duration(to: until)
    }
}

/// Asks destinations whether they still have what a removable volume brought them before it came this time: what the journal
/// says of that may be long past. A few files at a time, because events wait meanwhile; each of them once.
struct EarlierFiles: Sendable {
    private enum Answer: Sendable {
        case there, missing, cannotTell
        case silence(destination: String, reason: String)
    }

    /// What was delivered since then need not be asked for.
    private let before: WallTime
    private var check: AdoptionCheck
    private var last = FilePath()
    private(set) var isOver = false
    private(set) var due = ContinuousClock.now
    private(set) var askedFiles = 0
    /// Those that a destination does not have any more, or not as they were.
    private var missing: Set<FilePath> = []
    /// Files of which no destination can tell.
    private(set) var unanswerable = 0

    /// Questions to destinations at once.
    private static let questions = 16

    init(before: WallTime, _ board: DestinationRegistry) {
        self.before = before
        check = AdoptionCheck(board)
    }

    /// Whether a destination said that it does not have the file, which was not sent again since.
    func isMissing(_ file: VolumeFile) -> Bool { file.deliveredAt < before && missing.contains(file.path) }

    /// Asks no more before a moment is over.
    mutating func putOff() { due = max(due, .now.advanced(by: VolumeQuestion.pause)) }

    /// Asks for the next files. - Returns: what is to be said of a destination that gives no answer: it is asked again.
    mutating func ask(
        of volume: String, at root: FilePath, _ tolerance: Int64, proofs: Int?, _ journal: Journal
    ) async throws(JournalError) -> String? {
        let files = try await journal.files(of: volume, proofs: proofs, after: last, limit: Self.questions)
        guard let end = files.last else {
            isOver = true
            return nil
        }
        var turn = FolderTurn(root)
        let there = files.filter { file in
            guard file.isDelivered, file.deliveredAt < before else { return false }
            // Silence is right: what is not there, or cannot be looked at, is not said to be delivered.
            return (try? turn.look(file.path))?.identity?.isKnown(as: file.identity, tolerance: tolerance) == true
        }
        turn.close()
        let jobs = try await journal.jobs(there.map(\.id)) { _ in true }.compactMap(\.self)
        let answers = await withTaskGroup(of: (FilePath, Answer).self) { [check] tasks in
            for job in jobs { tasks.addTask { (job.file.path, await Self.ask(job, proofs, check.board)) } }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        for case (_, .silence(let name, let reason)) in answers {
            let isFirst = check.gaveNoAnswer(name, at: .now)
            due = .now.advanced(by: check.silent([name], at: .now)?.wait ?? .zero)
            let why = "'\(name)' does not say whether it still has what this volume brought before: \(reason)"
            return isFirst && !Task.isCancelled ? why : nil
        }
        check.answered(Array(Set(jobs.flatMap { $0.deliveries.map(\.destination) })))
        for (path, answer) in answers {
            askedFiles += 1
            switch answer {
            case .missing: missing.insert(path)
            case .cannotTell: unanswerable += 1
            case .there, .silence: break
            }
        }
        (last, due) = (end.path, .now)
        return nil
    }

    /// Whether as many destinations have the file as were asked for, of those that it was delivered to.
    private static func ask(_ job: Job, _ proofs: Int?, _ board: DestinationRegistry) async -> Answer {
        let brought = job.deliveries.filter { $0.state == .delivered && $0.afterID == nil && $0.closes == nil }
        let wanted = min(proofs ?? brought.count, brought.count)
        var (there, unknown) = (0, 0)
        var silence: Answer?
        for delivery in brought where there < wanted {
            switch await ask(delivery, job.file.digests, board[delivery.destination]) {
            case .there: there += 1
            case .cannotTell: unknown += 1
            case .missing: break
            case .silence(let name, let reason): silence = .silence(destination: name, reason: reason)
            }
        }
        if there >= wanted { return .there }
        if there + unknown >= wanted { return .cannotTell }
        return silence ?? .missing
    }

    private static func ask(_ delivery: DeliveryRow, _ digests: [Digest], _ destination: Destination?) async -> Answer {
        guard let proof = delivery.proof, proof.method != .carried,
            let verifier = destination?.pipeline as? any DeliveryVerifying,
            proof.method != .adopted || verifier.findsByKey
        else { return .cannotTell }
        // Somebody had it deleted there.
        if proof.details?["deleted"] != nil { return .missing }
        do throws(DeliveryError) {
            switch try await verifier.verify(VerifyOrder(proof: proof, digests: digests)) {
            case .same: return .there
            case .differs, .missing: return .missing
            case .cannotTell: return .cannotTell
            }
        } catch {
            return .silence(destination: delivery.destination, reason: "\(error)")
        }
    }
}
