internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// `existing: adopt`: what was there before its folder was watched is known as delivered without being sent. Such files are
/// only looked at: nothing is moved, deleted or quarantined, and nobody is notified.
struct Adoption: Sendable {
    enum Ending: Sendable, Equatable {
        /// In the journal now, or before.
        case adopted
        case known
        /// It goes the way of a file that has just come.
        case send
        /// No route takes it, or its route refuses it: it is left alone.
        case unmatched
        /// Not decided yet.
        case later
        /// A destination does not say now whether it has it.
        case unanswered(wait: Duration, why: String)
    }

    let root: FilePath
    /// The file system of the root.
    let volume: Volume?
    /// Files not touched since then.
    let before: WallTime
    /// Whether a destination that can be asked must have it (`adopt_check`).
    let isChecked: Bool
    let admission: Admission
    let hashing: Hashing
    let routes: RouteTable
    private var check: AdoptionCheck

    /// Questions to destinations at once.
    private static let questions = 16

    init(
        root: FilePath, volume: Volume? = nil, before: WallTime, isChecked: Bool, admission: Admission, hashing: Hashing
    ) {
        (self.root, self.volume, self.before, self.isChecked) = (root, volume, before, isChecked)
        (self.admission, self.hashing) = (admission, hashing)
        routes = AdmissionRules(for: .adopted).routes(admission.routes)
        check = AdoptionCheck(admission.board)
    }

    /// A time of modification that is yet to come says nothing: a camera's clock was wrong.
    func isOld(_ identity: FileIdentity, at now: WallTime = .now) -> Bool {
        let modified = WallTime(nanoseconds: identity.modified)
        return WallTime(nanoseconds: identity.changed) < before && (modified < before || modified > now)
    }

    /// What becomes of old files that are new to the journal. Asks destinations, blocks on the disk.
    mutating func adopt(_ arrivals: [Arrival]) async -> [FilePath: Ending] {
        do {
            var companions: [(Arrival, Belonging)] = []
            var mains: [Arrival] = []
            for arrival in arrivals {
                if let belonging = try routes.belonging(of: arrival) {
                    companions.append((arrival, belonging))
                } else {
                    mains.append(arrival)
                }
            }
            var endings = try await adoptMains(mains)
            for (arrival, belonging) in companions {
                endings[arrival.path] = try await adopt(arrival, belonging, endings[belonging.main])
            }
            return endings
        } catch let error as JournalError {
            // Asked about again once it can be read.
            admission.health.fails(error)
        } catch {
            if !Task.isCancelled { admission.log.emit(.fileError(path: root, reason: "\(error)")) }
        }
        return Dictionary(arrivals.map { ($0.path, .later) }) { first, _ in first }
    }

    // MARK: - Files that stand for themselves

    private mutating func adoptMains(_ arrivals: [Arrival]) async throws -> [FilePath: Ending] {
        var endings: [FilePath: Ending] = [:]
        var planned: [(arrival: Arrival, plan: Plan)] = []
        var hashed: Int64 = 0
        for arrival in arrivals {
            if let unanswered = unanswered(arrival) {
                endings[arrival.path] = unanswered
                continue
            }
            guard hashed <= Hashing.budget else {
                endings[arrival.path] = .later
                continue
            }
            let (plan, ending) = await plan(arrival)
            endings[arrival.path] = ending
            guard let plan else { continue }
            if !plan.digests.isEmpty { hashed += arrival.identity.size }
            planned.append((arrival, plan))
        }
        let size = isChecked ? Self.questions : max(planned.count, 1)
        for start in stride(from: 0, to: planned.count, by: size) {
            let group = Array(planned[start..<min(start + size, planned.count)])
            var wanted = group
            if isChecked { wanted = await ask(group, &endings) }
            hashing.progress()
            let outcomes = try await admission.journal.adopt(
                wanted.map { FileAdoption($0.arrival, plan: $0.plan, needsKey: isChecked) }, at: .now)
            for (file, outcome) in zip(wanted, outcomes) {
                endings[file.arrival.path] = ending(of: outcome, file.arrival)
            }
        }
        return endings
    }

    /// Before anything is read of a file of which no destination would be asked now.
    private func unanswered(_ arrival: Arrival) -> Ending? {
        guard isChecked else { return nil }
        let candidates = routes.candidates(for: arrival.path, size: arrival.identity.size)
        let silent = candidates.map { check.silent($0.to, at: .now) }
        guard let first = silent.first ?? nil, silent.allSatisfy({ $0 != nil }) else { return nil }
        return Self.unanswered(first.name, first.wait)
    }

    private static func unanswered(_ name: String, _ wait: Duration) -> Ending {
        .unanswered(wait: wait, why: "'\(name)' does not say whether it has it (adopt_check)")
    }

    /// - Returns: those that the destinations have.
    private mutating func ask(
        _ files: [(arrival: Arrival, plan: Plan)], _ endings: inout [FilePath: Ending]
    ) async -> [(arrival: Arrival, plan: Plan)] {
        var asked: [(arrival: Arrival, plan: Plan)] = []
        for file in files {
            if let (name, wait) = check.silent(file.plan.destinations, at: .now) {
                endings[file.arrival.path] = Self.unanswered(name, wait)
            } else {
                asked.append(file)
            }
        }
        let answers = await withTaskGroup(of: (Int, AdoptionCheck.Answer).self) { [check] tasks in
            for (index, file) in asked.enumerated() {
                tasks.addTask { (index, await check.ask(file.arrival, file.plan)) }
            }
            return await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        var there: [(arrival: Arrival, plan: Plan)] = []
        for (index, (arrival, plan)) in asked.enumerated() {
            switch answers[index] {
            case .there:
                check.answered(plan.destinations)
                there.append((arrival, plan))
            case .notThere(let reason):
                check.answered(plan.destinations)
                tell(arrival, reason)
                endings[arrival.path] = .send
            case .silence(let name, let reason): endings[arrival.path] = gaveNoAnswer(name, reason)
            case nil: endings[arrival.path] = .later
            }
        }
        return there
    }

    /// Said once, until it answers again.
    private mutating func gaveNoAnswer(_ name: String, _ reason: String) -> Ending {
        let isFirst = check.gaveNoAnswer(name, at: .now)
        if isFirst, !Task.isCancelled {
            let trouble = "'\(name)' does not say whether it has what is there (adopt_check): \(reason)"
            admission.log.emit(.fileError(path: root, reason: trouble))
        }
        return Self.unanswered(name, check.silent([name], at: .now)?.wait ?? .zero)
    }

    private func ending(of outcome: FileAdoption.Outcome, _ arrival: Arrival) -> Ending {
        switch outcome {
        case .adopted: return .adopted
        case .known: return .known
        case .keyTaken:
            tell(arrival, "another file has its key")
            return .send
        }
    }

    private func plan(_ arrival: Arrival) async -> (Plan?, Ending) {
        let path = root.pushing(arrival.path)
        do {
            var facts = Facts()
            try await hashing.learnFirst(of: arrival, by: admission.routes, at: arrival.place, &facts)
            let decision = try await admission.decide(arrival, by: routes, at: arrival.place, &facts, hashing)
            guard case .plan(let plan) = decision else { return (nil, .unmatched) }
            return (plan, .adopted)
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            return (nil, .known)
        } catch let error as SystemError where error.isMissing {
            return (nil, .known)
        } catch {
            if !Task.isCancelled { admission.log.emit(.fileError(path: path, reason: "\(error)")) }
            return (nil, .later)
        }
    }

    private func tell(_ arrival: Arrival, _ reason: String) {
        admission.log.emit(.fileNotAdopted(path: root.pushing(arrival.path), reason: "\(reason); it is sent"))
    }

    // MARK: - Files that go with others

    /// A companion shares its file's fate: what goes with a file that is sent goes with it.
    ///
    /// - Parameter main: what has just become of that, where it was among them.
    private mutating func adopt(_ arrival: Arrival, _ belonging: Belonging, _ main: Ending?) async throws -> Ending {
        var fate = main
        if fate == nil || fate == .known {
            if let row = try await admission.journal.newest(root, [belonging.main], volume: volume?.key).first ?? nil {
                fate = try await admission.journal.isAdopted(row.id) ? .adopted : .send
            } else if let identity = try FileLook.look(at: RootedPath(root, belonging.main)).identity, isOld(identity) {
                let file = Arrival(root: root, path: belonging.main, identity: identity, volume: volume)
                fate = try await adoptMains([file])[belonging.main]
            } else {
                fate = .send
            }
        }
        guard fate == .adopted else { return fate ?? .send }
        let adoption = FileAdoption(arrival, plan: nil, role: belonging.companion.kind)
        let outcome = try await admission.journal.adopt([adoption], at: .now).first
        return outcome.map { ending(of: $0, arrival) } ?? .later
    }
}

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
