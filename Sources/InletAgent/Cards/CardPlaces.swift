internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import Synchronization
internal import SystemPackage

/// Where the files of a card are: the journal says where they should be, and the destinations whether they are there.
extension CardEvaluation {
    mutating func classify(_ files: [FilePath: [Found]], _ progress: (CardFacts, String) -> Void) async throws {
        var unrouted = InventorySum()
        for (root, found) in files {
            guard let entry = roots[root] else { continue }
            let tolerance = try FileSystemKind.of(root).modifiedTolerance
            try await listStores(entry.volume)
            for group in found.groups(of: Self.group) {
                beat()
                progress(facts, inventory)
                let jobs = try await shared.journal.cardFiles(of: entry.volume, group.map(\.path))
                var asked: [Asked] = []
                for (one, job) in zip(group, jobs) {
                    guard let job, let now = one.file.identity, now.isKnown(as: job.file.identity, tolerance: tolerance)
                    else {
                        secondRead.passes(one.file.path)
                        unrouted.add(one.file.path, one.file.identity, tolerance: tolerance)
                        unknown[root, default: InventorySum()].add(
                            one.file.path, one.file.identity, tolerance: tolerance)
                        add(one.file, .unrouted)
                        continue
                    }
                    let place = below(root.resolved).pushing(one.path)
                    asked.append((job, place != one.file.path, [:]))
                    secondRead.add(job, listedAs: place, at: RootedPath(card.mount, one.file.path), tolerance)
                }
                try await ask(&asked, entry.settings)
                for one in asked { count(one, entry.settings) }
            }
        }
        othersDigest += unrouted.text
        facts.others = OtherFiles.Reason.allCases.compactMap { others[$0] }
        facts.othersMayStay = insertion.othersLeft == othersDigest
        facts.places = places.values.sorted { $0.name < $1.name }
        facts.shared = CopyCount.count(facts.places.map { ($0.name, disks[$0.name] ?? []) }).shared.map(\.text)
    }

    /// Whether the watchers have looked at the files that the journal does not know: then no route takes them. Before, a
    /// file may just have come, where no event tells; its watcher lists its folder, and reports.
    func areLookedAt() -> Bool {
        let unasked = card.state.withLock { state in
            unknown.filter { root, sum in
                if state.roots[root]?.asked?.files == sum.text { return false }
                state.roots[root]?.asked = (sum.text, .now)
                return true
            }
        }
        for root in unasked.keys { shared.roots.list(root) }
        return card.state.withLock { state in
            unknown.keys.allSatisfy { root in
                guard let entry = state.roots[root], let asked = entry.asked, let listed = entry.state?.listedAt else {
                    return false
                }
                return listed > asked.at
            }
        }
    }

    /// The state of one file at one destination.
    private enum Answer: Sendable {
        case proved
        case sized
        case missing(String)
        /// Nobody can be asked about it. Where that lasts, only a person changes it.
        case unconfirmed(String, lasts: Bool)
        /// The destination does not answer.
        case away(String)
    }

    /// A file, whether it lies in an archive now, and what its destinations say.
    private typealias Asked = (job: Job, isArchived: Bool, answers: [String: Answer])

    private mutating func ask(_ files: inout [Asked], _ settings: WatchSettings) async throws {
        typealias Question = (index: Int, delivery: DeliveryRow, proof: Proof)
        var questions: [Question] = []
        for (index, file) in files.enumerated() {
            for delivery in Self.copies(file.job) where delivery.state == .delivered {
                guard let proof = delivery.proof else { continue }
                if let answer = answer(delivery, proof) {
                    files[index].answers[delivery.destination] = answer
                } else {
                    questions.append((index, delivery, proof))
                }
            }
        }
        for group in questions.groups(of: Self.questions) {
            let (digests, registry, silent) = (
                group.map { files[$0.index].job.file.digests }, shared.destinations, silent
            )
            let answers = await withTaskGroup(of: (Int, Answer).self) { [insertedAt = insertion.insertedAt] tasks in
                for (place, question) in group.enumerated() {
                    let (delivery, order) = (
                        question.delivery, VerifyOrder(proof: question.proof, digests: digests[place])
                    )
                    tasks.addTask {
                        if let reason = silent[delivery.destination] { return (place, .away(reason)) }
                        return (place, await Self.ask(registry, delivery, order, since: insertedAt))
                    }
                }
                return await tasks.reduce(into: [:]) { $0[$1.0] = $1.1 }
            }
            for (place, question) in group.enumerated() {
                guard let answer = answers[place] else { continue }
                files[question.index].answers[question.delivery.destination] = answer
                // One that does not answer now is not asked about each of its files.
                if case .away(let reason) = answer { self.silent[question.delivery.destination] = reason }
            }
        }
    }

    /// The deliveries that bring the file's bytes somewhere.
    private static func copies(_ job: Job) -> [DeliveryRow] {
        job.deliveries.filter {
            $0.afterID == nil && $0.closes == nil && $0.proof?.method != .carried && $0.proof?.method != .registered
        }
    }

    /// The answer that needs no question of its own; nil where the destination has to be asked.
    private func answer(_ delivery: DeliveryRow, _ proof: Proof) -> Answer? {
        if proof.isDeleted { return .missing("it was deleted there") }
        guard let destination = shared.destinations[delivery.destination] else {
            return .unconfirmed("it is not in the configuration", lasts: true)
        }
        if let then = proof.address, let now = destination.address, then != now {
            return .missing("it was delivered to another address")
        }
        guard let list = listed[delivery.destination] else { return nil }
        return Self.answer(list.verification(of: proof), proof)
    }

    private static func answer(_ verification: Verification, _ proof: Proof) -> Answer {
        switch verification {
        case .same: proof.method == .size || proof.method == .adopted ? .sized : .proved
        case .differs(let reason), .missing(let reason): .missing(reason)
        case .cannotTell(let reason): .unconfirmed(reason, lasts: false)
        }
    }

    private static func ask(
        _ registry: DestinationRegistry, _ delivery: DeliveryRow, _ order: VerifyOrder, since insertedAt: WallTime
    ) async -> Answer {
        guard let verifier = registry[delivery.destination]?.pipeline as? any DeliveryVerifying,
            order.proof.method != .adopted || verifier.findsByKey
        else {
            // A proof of this stay counts; an older one could be out of date.
            let isFresh =
                (delivery.endedAt ?? WallTime(milliseconds: 0)) >= insertedAt && order.proof.method != .adopted
            return isFresh ? answer(.same(""), order.proof) : .unconfirmed("it cannot be asked", lasts: true)
        }
        do throws(DeliveryError) {
            return answer(try await verifier.verify(order), order.proof)
        } catch {
            return .away("\(error)")
        }
    }

    /// Counts a file by the answers of its destinations.
    private mutating func count(_ file: Asked, _ settings: WatchSettings) {
        let job = file.job
        let rows = Self.copies(job)
        // A companion or marker without a place of its own ends as its file did.
        if rows.isEmpty {
            // A registration brings no bytes anywhere.
            let isFine =
                (job.file.state == .delivered || job.file.state == .duplicate)
                && !job.deliveries.contains { $0.proof?.method == .registered && $0.afterID == nil }
            if isFine { account(job) } else { facts.failed += 1 }
            return
        }
        let standings = rows.map { ($0.destination, standing(of: $0, file)) }
        let here = Set(standings.filter { $0.1 == .here }.map(\.0))
        if isEnough(here, of: rows, settings) {
            account(job)
        } else if standings.contains(where: { $0.1 == .open }) {
            facts.open += 1
            facts.openBytes += job.file.identity.size
        } else if standings.contains(where: { $0.1 == .lacking }) {
            // Its destinations say how many.
        } else if here.count == rows.count {
            facts.short += 1
        } else {
            facts.failed += 1
        }
    }

    private enum Standing {
        case here, open, lacking, failed
    }

    /// Counts one delivery at its destination.
    private mutating func standing(of row: DeliveryRow, _ file: Asked) -> Standing {
        var place = places[row.destination] ?? makePlace(row.destination)
        defer { places[row.destination] = place }
        place.files += 1
        if row.state == .delivered { place.askedAt = .now }
        switch (row.state, file.answers[row.destination]) {
        case (.delivered, .proved?):
            place.proved += 1
            return .here
        case (.delivered, .sized?):
            place.sized += 1
            return .here
        case (.delivered, .missing(let reason)?):
            place.missing += 1
            place.reason = place.reason ?? reason
            // It is sent from its own place.
            if !file.isArchived { note(row, of: file.job) }
            return .lacking
        case (.delivered, .unconfirmed(let reason, let lasts)?):
            place.unconfirmed += 1
            if !lasts { asksAgain = true }
            place.reason = place.reason ?? reason
            return .lacking
        case (.delivered, .away(let reason)?):
            place.silent += 1
            asksAgain = true
            place.reason = place.reason ?? reason
            return .lacking
        case (.ready, _), (.claimed, _), (.parked, _):
            place.open += 1
            return .open
        default:
            place.failed += 1
            place.reason = place.reason ?? row.reason
            return .failed
        }
    }

    private mutating func account(_ job: Job) {
        facts.accounted += 1
        facts.accountedBytes += job.file.identity.size
    }

    private mutating func note(_ row: DeliveryRow, of job: Job) {
        if missing.count < Self.mostMissing || missing[job.file.id] != nil {
            missing[job.file.id, default: []].insert(row.id)
        }
    }

    private mutating func makePlace(_ name: String) -> CardPlace {
        let destination = shared.destinations[name]
        disks[name] = destination?.disks(physical) ?? []
        return CardPlace(name: name, isRequired: destination?.isRequired ?? false)
    }

    /// Whether these destinations are as many copies as the watched folder wants.
    private mutating func isEnough(_ here: Set<String>, of rows: [DeliveryRow], _ settings: WatchSettings) -> Bool {
        let names = Set(rows.map(\.destination))
        if names.contains(where: { places[$0]?.isRequired == true && !here.contains($0) }) { return false }
        if let wanted = rules.copies { return copyCount(here) >= wanted }
        return here.count >= min(settings.volumeDoneAfter ?? names.count, names.count)
    }

    private mutating func copyCount(_ names: Set<String>) -> Int {
        if let known = copyCounts[names] { return known }
        let count = CopyCount.count(names.map { ($0, disks[$0] ?? []) }).copies
        copyCounts[names] = count
        return count
    }

    /// Has stores list the card's objects, where that is cheaper than to ask for each.
    private mutating func listStores(_ volume: String) async throws {
        for (name, keys) in try await shared.journal.cardKeys(of: volume) {
            guard keys.count > Self.questions, let destination = shared.destinations[name],
                let storage = destination.pipeline as? any ObjectListing
            else { continue }
            do {
                if let list = try await ListedKeys(of: storage, from: keys.first, to: keys.last, expected: keys.count) {
                    listed[name] = list
                }
            } catch {
                silent[name] = "\(error)"
            }
        }
    }
}
