internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// `existing: adopt` — what was there before its folder was watched is known as delivered without being sent. Such files are
/// only looked at: nothing is moved, deleted or quarantined, and nobody is notified.
struct Adopter: Sendable {
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
    }

    let root: FilePath
    /// The file system of the root.
    let volume: Volume?
    /// Files not touched since then.
    let before: WallTime
    /// Whether a destination that can be asked must have it (`adopt_check`).
    let isChecked: Bool
    let admitter: Admitter
    let hashing: Hashing
    private let routes: RouteTable

    /// Questions to destinations at once.
    private static let questions = 16
    /// Bytes hashed in one turn of the loop, for keys with a checksum; the last file may exceed it.
    private static let hashBudget: Int64 = 16 << 20

    init(
        root: FilePath, volume: Volume? = nil, before: WallTime, isChecked: Bool, admitter: Admitter, hashing: Hashing
    ) {
        self.root = root
        self.volume = volume
        self.before = before
        self.isChecked = isChecked
        self.admitter = admitter
        self.hashing = hashing
        routes = admitter.routes.adopting
    }

    func isOld(_ identity: FileIdentity) -> Bool {
        WallTime(nanoseconds: max(identity.modified, identity.changed)) < before
    }

    /// What becomes of old files that are new to the journal. Asks destinations, blocks on the disk.
    func adopt(_ arrivals: [Arrival]) async -> [FilePath: Ending] {
        do {
            var companions: [(Arrival, Belonging)] = []
            var mains: [Arrival] = []
            for arrival in arrivals {
                if let belonging = try belonging(of: arrival) {
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
            admitter.health.fails(error)
        } catch {
            if !Task.isCancelled { admitter.log.emit(.fileTrouble(path: root, reason: "\(error)")) }
        }
        return Dictionary(uniqueKeysWithValues: arrivals.map { ($0.path, .later) })
    }

    // MARK: - Files that stand for themselves

    private func adoptMains(_ arrivals: [Arrival]) async throws -> [FilePath: Ending] {
        var endings: [FilePath: Ending] = [:]
        var planned: [(arrival: Arrival, plan: Plan)] = []
        var hashed: Int64 = 0
        for arrival in arrivals {
            guard hashed <= Self.hashBudget else {
                endings[arrival.path] = .later
                continue
            }
            let (plan, ending) = await plan(arrival)
            endings[arrival.path] = ending
            guard let plan else { continue }
            if !plan.digests.isEmpty { hashed += arrival.identity.size }
            planned.append((arrival, plan))
        }
        for start in stride(from: 0, to: planned.count, by: Self.questions) {
            let group = Array(planned[start..<min(start + Self.questions, planned.count)])
            let found = await withTaskGroup(of: (Arrival, Plan, Ending).self) { tasks in
                for (arrival, plan) in group {
                    tasks.addTask { (arrival, plan, await check(arrival, plan)) }
                }
                return await tasks.reduce(into: []) { $0.append($1) }
            }
            hashing.progress()
            for (arrival, _, ending) in found { endings[arrival.path] = ending }
            let wanted = found.filter { $0.2 == .adopted }
            let outcomes = try await admitter.journal.adopt(
                wanted.map { Adoption($0.0, plan: $0.1, needsKey: isChecked) }, at: .now)
            for ((arrival, _, _), outcome) in zip(wanted, outcomes) {
                endings[arrival.path] = ending(of: outcome, arrival)
            }
        }
        return endings
    }

    private func ending(of outcome: Adoption.Outcome, _ arrival: Arrival) -> Ending {
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
            let facts = try await admitter.firstFacts(of: arrival, at: path, hashing)
            let decision = try await admitter.decide(arrival, by: routes, at: path, facts: facts, hashing: hashing)
            guard case .plan(let plan) = decision else { return (nil, .unmatched) }
            return (plan, .adopted)
        } catch let error as DeliveryError where error.verdict == .sourceGone {
            return (nil, .known)
        } catch let error as SystemError where error.isMissing {
            return (nil, .known)
        } catch {
            if !Task.isCancelled { admitter.log.emit(.fileTrouble(path: path, reason: "\(error)")) }
            return (nil, .later)
        }
    }

    /// Whether every destination that can be asked has it. One that cannot be asked at all is believed to.
    private func check(_ arrival: Arrival, _ plan: Plan) async -> Ending {
        guard isChecked else { return .adopted }
        let proof = Proof(key: plan.key, size: arrival.identity.size, method: .adopted)
        for name in plan.destinations {
            guard let verifier = admitter.board[name]?.pipeline as? any DeliveryVerifying else { continue }
            do throws(DeliveryError) {
                switch try await verifier.verify(VerifyOrder(proof: proof, digests: plan.digests)) {
                case .same, .cannotTell: continue
                case .differs(let reason), .missing(let reason):
                    tell(arrival, "\(name): \(reason)")
                    return .send
                }
            } catch {
                // It cannot be asked now: nothing is believed, and nothing sent.
                if !Task.isCancelled {
                    admitter.log.emit(
                        .fileTrouble(path: root.pushing(arrival.path), reason: "'\(name)' cannot be asked: \(error)"))
                }
                return .later
            }
        }
        return .adopted
    }

    private func tell(_ arrival: Arrival, _ reason: String) {
        admitter.log.emit(.fileNotAdopted(path: root.pushing(arrival.path), reason: "\(reason); it is sent"))
    }

    // MARK: - Companions

    /// The file on the disk that it goes with; nil for nearly every file.
    private func belonging(of arrival: Arrival) throws(SystemError) -> Belonging? {
        for belonging in routes.belongings(of: arrival.path) {
            guard let identity = try FileLook.look(at: root.pushing(belonging.main)).identity,
                routes.route(for: belonging.main, size: identity.size)?.name == belonging.route.name
            else { continue }
            return belonging
        }
        return nil
    }

    /// A companion shares its file's fate: what goes with a file that is sent goes with it.
    ///
    /// - Parameter main: what has just become of that, where it was among them.
    private func adopt(_ arrival: Arrival, _ belonging: Belonging, _ main: Ending?) async throws -> Ending {
        var fate = main
        if fate == nil || fate == .known {
            if let row = try await admitter.journal.newest(root, [belonging.main], volume: volume?.key).first ?? nil {
                fate = try await admitter.journal.isAdopted(row.id) ? .adopted : .send
            } else if let identity = try FileLook.look(at: root.pushing(belonging.main)).identity, isOld(identity) {
                let file = Arrival(root: root, path: belonging.main, identity: identity, volume: volume)
                fate = try await adoptMains([file])[belonging.main]
            } else {
                fate = .send
            }
        }
        guard fate == .adopted else { return fate ?? .send }
        let adoption = Adoption(arrival, plan: nil, role: belonging.companion.kind)
        let outcome = try await admitter.journal.adopt([adoption], at: .now).first
        return outcome.map { ending(of: $0, arrival) } ?? .later
    }
}
