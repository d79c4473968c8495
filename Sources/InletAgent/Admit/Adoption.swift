internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// The result for a file that existed before its folder was watched (`existing: adopt`).
enum Adoption: Sendable, Equatable {
    /// In the journal, now or before.
    case adopted
    case known
    /// Admitted like a new file.
    case send
    /// It matches no route, or its route rejects it: it stays alone.
    case unmatched
    /// Not decided yet.
    case later
    /// A destination does not answer now whether it has the file.
    case unanswered(wait: Duration, why: String)

    /// nil for a file that is admitted as new.
    var considered: AdmissionStage.EvaluationResult? {
        switch self {
        case .unanswered(let wait, let why): .look(.waiting(for: wait, why: why))
        case .later: .look(.later("waiting for the journal's answer"))
        case .adopted, .known, .unmatched: .known
        case .send: nil
        }
    }
}

/// `existing: adopt`: files that existed before their folder was watched count as delivered without being sent. Inlet
/// only looks at such files: it moves, deletes and quarantines none, and sends no notification.
extension AdmissionStage {
    /// Questions to destinations at once.
    private static let questions = 16

    /// An mtime in the future proves nothing: a camera's clock was wrong.
    private func isOld(_ identity: FileIdentity) -> Bool {
        let modified = WallTime(nanoseconds: identity.modified)
        return WallTime(nanoseconds: identity.changed) < firstSeen && (modified < firstSeen || modified > .now)
    }

    /// The results for those of `arrivals` that are old enough; others have none. Asks destinations, blocks on the
    /// disk.
    ///
    /// - Parameter arrivals: new to the journal.
    mutating func adopt(_ arrivals: [FoundFile]) async -> [FilePath: Adoption] {
        guard adopter != nil else { return [:] }
        let old = arrivals.filter { isOld($0.identity) }
        if old.isEmpty { return [:] }
        let endings = await decide(old, by: admission.routes.adopting)
        for arrival in old {
            switch endings[arrival.path] {
            case .adopted: adopted = (adopted.files + 1, adopted.bytes + arrival.identity.size)
            case .unmatched:
                checker.leaveAlone(
                    arrival.path,
                    "it existed before this folder was watched, and no route accepts it (existing: adopt)")
            default: break
            }
        }
        return endings
    }

    /// Adopted files since the last call, for one log line.
    mutating func takeAdopted() -> (files: Int, bytes: Int64)? {
        defer { adopted = (0, 0) }
        return adopted.files > 0 ? adopted : nil
    }

    private mutating func decide(_ arrivals: [FoundFile], by routes: RouteTable) async -> [FilePath: Adoption] {
        do {
            var companions: [(FoundFile, CompanionMatch)] = []
            var mains: [FoundFile] = []
            for arrival in arrivals {
                if let belonging = try routes.belonging(of: arrival) {
                    companions.append((arrival, belonging))
                } else {
                    mains.append(arrival)
                }
            }
            var endings = try await adoptMains(mains, by: routes)
            for (arrival, belonging) in companions {
                endings[arrival.path] = try await adopt(arrival, belonging, endings[belonging.main], routes)
            }
            return endings
        } catch let error as JournalError {
            // Checked again once it can be read.
            admission.health.fails(error)
        } catch {
            if !Task.isCancelled { admission.log.emit(.fileError(path: root, reason: "\(error)")) }
        }
        return Dictionary(arrivals.map { ($0.path, .later) }) { first, _ in first }
    }

    // MARK: - Files on their own

    private mutating func adoptMains(
        _ arrivals: [FoundFile], by routes: RouteTable
    ) async throws -> [FilePath: Adoption] {
        var endings: [FilePath: Adoption] = [:]
        var planned: [(arrival: FoundFile, plan: Plan)] = []
        var hashed: Int64 = 0
        for arrival in arrivals {
            if let unanswered = unanswered(arrival, routes) {
                endings[arrival.path] = unanswered
                continue
            }
            guard hashed <= Hashing.budget else {
                endings[arrival.path] = .later
                continue
            }
            let (plan, ending) = await plan(arrival, by: routes)
            endings[arrival.path] = ending
            guard let plan else { continue }
            if !plan.digests.isEmpty { hashed += arrival.identity.size }
            planned.append((arrival, plan))
        }
        let size = settings.adoptCheck ? Self.questions : max(planned.count, 1)
        for group in planned.groups(of: size) {
            var wanted = group
            if settings.adoptCheck { wanted = await ask(group, &endings) }
            hashing.progress()
            let outcomes = try await admission.journal.adopt(
                wanted.map { FileAdoption($0.arrival, plan: $0.plan, needsKey: settings.adoptCheck) }, at: .now)
            for (file, outcome) in zip(wanted, outcomes) {
                endings[file.arrival.path] = ending(of: outcome, file.arrival)
            }
        }
        return endings
    }

    /// Before a file is read for which no destination would be asked now.
    private func unanswered(_ arrival: FoundFile, _ routes: RouteTable) -> Adoption? {
        guard settings.adoptCheck else { return nil }
        let candidates = routes.candidates(for: arrival.path, size: arrival.identity.size)
        let silent = candidates.map { adopter?.silent($0.to, at: .now) }
        guard let first = silent.first ?? nil, silent.allSatisfy({ $0 != nil }) else { return nil }
        return Self.unanswered(first.name, first.wait)
    }

    private static func unanswered(_ name: String, _ wait: Duration) -> Adoption {
        .unanswered(wait: wait, why: "'\(name)' did not answer whether it has the file (adopt_check)")
    }

    /// - Returns: those that the destinations have.
    private mutating func ask(
        _ files: [(arrival: FoundFile, plan: Plan)], _ endings: inout [FilePath: Adoption]
    ) async -> [(arrival: FoundFile, plan: Plan)] {
        var asked: [(arrival: FoundFile, plan: Plan)] = []
        for file in files {
            if let (name, wait) = adopter?.silent(file.plan.destinations, at: .now) {
                endings[file.arrival.path] = Self.unanswered(name, wait)
            } else {
                asked.append(file)
            }
        }
        let answers = await withTaskGroup(of: (Int, AdoptionCheck.Answer?).self) { [adopter] tasks in
            for (index, file) in asked.enumerated() {
                tasks.addTask { (index, await adopter?.ask(file.arrival, file.plan)) }
            }
            return await tasks.reduce(into: [Int: AdoptionCheck.Answer]()) { $0[$1.0] = $1.1 }
        }
        var there: [(arrival: FoundFile, plan: Plan)] = []
        for (index, (arrival, plan)) in asked.enumerated() {
            switch answers[index] {
            case .there:
                adopter?.answered(plan.destinations)
                there.append((arrival, plan))
            case .missing(let reason):
                adopter?.answered(plan.destinations)
                tell(arrival, reason)
                endings[arrival.path] = .send
            case .silence(let name, let reason): endings[arrival.path] = gaveNoAnswer(name, reason)
            case .cannotTell, nil: endings[arrival.path] = .later
            }
        }
        return there
    }

    /// Logged once, until it answers again.
    private mutating func gaveNoAnswer(_ name: String, _ reason: String) -> Adoption {
        let isFirst = adopter?.gaveNoAnswer(name, at: .now) ?? false
        if isFirst, !Task.isCancelled {
            let trouble = "'\(name)' did not answer whether it has the existing files (adopt_check): \(reason)"
            admission.log.emit(.fileError(path: root, reason: trouble))
        }
        return Self.unanswered(name, adopter?.silent([name], at: .now)?.wait ?? .zero)
    }

    private func ending(of outcome: FileAdoption.Outcome, _ arrival: FoundFile) -> Adoption {
        switch outcome {
        case .adopted: return .adopted
        case .known: return .known
        case .keyTaken:
            tell(arrival, "another file has the same key")
            return .send
        }
    }

    private func plan(_ arrival: FoundFile, by routes: RouteTable) async -> (Plan?, Adoption) {
        let path = root.pushing(arrival.path)
        do {
            var facts = facts(of: arrival)
            try await hashing.learnFirst(of: arrival, by: admission.routes, at: arrival.place, &facts)
            switch try await admission.decide(arrival, by: routes, at: arrival.place, &facts, hashing) {
            case .plan(let plan): return (plan, .adopted)
            // The admission finds that it waits for labels of its card.
            case .needs: return (nil, .send)
            case .unmatched, .rejected: return (nil, .unmatched)
            }
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            return (nil, .known)
        } catch let error as SystemError where error.isMissing {
            return (nil, .known)
        } catch {
            if !Task.isCancelled { admission.log.emit(.fileError(path: path, reason: "\(error)")) }
            return (nil, .later)
        }
    }

    private func tell(_ arrival: FoundFile, _ reason: String) {
        admission.log.emit(.fileNotAdopted(path: root.pushing(arrival.path), reason: "\(reason); sending it"))
    }

    // MARK: - Companions

    /// A companion shares its file's fate, and is sent with a file that is sent.
    ///
    /// - Parameter main: the result for that file, where it was among them.
    private mutating func adopt(
        _ arrival: FoundFile, _ belonging: CompanionMatch, _ main: Adoption?, _ routes: RouteTable
    ) async throws -> Adoption {
        var fate = main
        if fate == nil || fate == .known {
            if let row = try await admission.journal.newest(root, [belonging.main], volume: volume?.key).first ?? nil {
                fate = try await admission.journal.isAdopted(row.id) ? .adopted : .send
            } else if let identity = try FileLook.look(at: RootedPath(root, belonging.main)).identity, isOld(identity) {
                let file = FoundFile(root: root, path: belonging.main, identity: identity, volume: volume)
                fate = try await adoptMains([file], by: routes)[belonging.main]
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

/// Asks destinations whether they have the file (`adopt_check`), and spares those that do not answer.
struct AdoptionCheck: Sendable {
    enum Answer: Sendable {
        /// Every destination that can be asked has it.
        case there
        /// One does not have it, or has something else; with the reason.
        case missing(String)
        /// One does not answer; `ask` of a whole plan treats that as silence.
        case cannotTell(String)
        /// Nothing is known, so nothing is adopted or sent.
        case silence(destination: String, reason: String)
    }

    let registry: DestinationRegistry
    /// How long to spare a silent destination, and until when: a second, then twice as long each time, up to a minute.
    private var pauses: [String: (length: Duration, end: ContinuousClock.Instant)] = [:]

    init(_ registry: DestinationRegistry) { self.registry = registry }

    /// Whether all of them have it. A service whose records have no key is not asked, and counts as having it.
    func ask(_ arrival: FoundFile, _ plan: Plan) async -> Answer {
        for name in plan.destinations {
            guard let verifier = verifier(name) else { continue }
            let proof = Proof(key: plan.key(at: name), size: arrival.identity.size, method: .adopted)
            switch await Self.ask(verifier, of: VerifyOrder(proof: proof, digests: plan.digests), name) {
            case .there: continue
            case .cannotTell(let reason): return .silence(destination: name, reason: reason)
            case let answer: return answer
            }
        }
        return .there
    }

    /// The answer of one destination.
    static func ask(_ verifier: any DeliveryVerifying, of order: VerifyOrder, _ name: String) async -> Answer {
        do throws(DeliveryError) {
            switch try await verifier.verify(order) {
            case .same: return .there
            case .differs(let reason), .missing(let reason): return .missing("\(name): \(reason)")
            case .cannotTell(let reason): return .cannotTell(reason)
            }
        } catch {
            return .silence(destination: name, reason: "\(error)")
        }
    }

    private func verifier(_ name: String) -> (any DeliveryVerifying)? {
        guard let verifier = registry[name]?.pipeline as? any DeliveryVerifying, verifier.findsByKey else { return nil }
        return verifier
    }

    /// One of `destinations` that is spared now, and for how long.
    func silent(_ destinations: [String], at now: ContinuousClock.Instant) -> (name: String, wait: Duration)? {
        for name in destinations {
            if let end = pauses[name]?.end, now < end { return (name, now.duration(to: end)) }
        }
        return nil
    }

    /// - Returns: whether it had answered before, or was not asked.
    mutating func gaveNoAnswer(_ name: String, at now: ContinuousClock.Instant) -> Bool {
        let last = pauses[name]
        // Files that were asked about together count as one try.
        if let last, now < last.end { return false }
        let length = min(max((last?.length ?? .zero) * 2, .seconds(1)), .seconds(60))
        pauses[name] = (length, now.advanced(by: length))
        return last == nil
    }

    mutating func answered(_ destinations: [String]) {
        for name in destinations { pauses[name] = nil }
    }
}
