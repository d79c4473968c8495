internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// Takes the files of a watched folder from the end of their quiet time to the journal. First come the look, the
/// journal's answer, adoption, renames, companions and the writer probe; then, once the loop has judged them complete,
/// admission. A known file is never opened.
struct AdmissionStage: Sendable {
    enum EvaluationResult: Sendable {
        /// The settler judges it.
        case look(Settler.Look)
        /// No work.
        case known
    }

    let settings: WatchSettings
    /// The file system of the root.
    let volume: Volume?
    /// The tolerance of its mtimes, in nanoseconds.
    let tolerance: Int64
    let admission: Admission
    let hashing: Hashing
    /// When the root was first watched.
    let firstSeen: WallTime
    var checker: FileChecker
    let companions: CompanionRule
    var renames = Renames()
    /// With `existing: adopt`.
    var adopter: AdoptionCheck?
    /// Adopted files since the last log line about them.
    var adopted: (files: Int, bytes: Int64) = (0, 0)

    /// The files under consideration that have companions or are companions.
    private var found: [FilePath: [FoundCompanion]] = [:]
    private var late: [FilePath: (companion: Companion, main: Int64)] = [:]
    private var wakes: [(companion: FilePath, main: FilePath)] = []
    /// Facts about files that the journal has not accepted yet.
    private var learned: [FilePath: (identity: FileIdentity, facts: FileProperties)] = [:]
    private static let mostLearned = 1000
    /// Files that wait for labels of their card.
    var labelWait = LabelWait()

    /// Of a removable volume, reset with each listing.
    var awaited = AwaitedFiles()
    /// Files without their marker, to log each once.
    private var unmarked = IgnoreCounts()
    /// Units that cannot be closed because a file of them is unreadable, to log each once.
    var untold = IgnoreCounts()

    /// - Parameters:
    ///   - firstSeen: when the root was.
    ///   - adopts: whether what is older is adopted.
    init(
        _ settings: WatchSettings, _ admission: Admission, hashing: BlockingPool, tolerance: Int64 = 0,
        volume: Volume? = nil, firstSeen: WallTime = .now, adopts: Bool = false
    ) {
        (self.settings, self.volume, self.tolerance, self.admission) = (settings, volume, tolerance, admission)
        self.firstSeen = firstSeen
        let (root, heartbeat) = (settings.path, admission.shared.health.heartbeat)
        let skipBefore = settings.existing == .skip ? firstSeen : nil
        self.hashing = Hashing(
            pool: hashing, held: (heartbeat, .intake(root)), cardTop: volume?.key == nil ? nil : root)
        checker = FileChecker(settings, volume, admission, skipBefore: skipBefore)
        companions = CompanionRule(routes: admission.routes, settle: settings.settle, skipBefore: skipBefore)
        if adopts { adopter = AdoptionCheck(admission.registry) }
    }

    var root: FilePath { settings.path }
    var journal: Journal { admission.journal }
    var log: EventLog { admission.log }

    // MARK: - From paths to files

    /// Leaves known files alone, compares touched files, and looks at new files together with their companions. Opens
    /// each new file once to find writers. Blocks.
    ///
    /// - Parameter answer: the journal's answer about the arrivals. Where there is none every file is asked about again.
    mutating func consider(
        _ looks: FileChecker.Looks, _ answer: Result<[KnownFile], Refusal>
    ) async -> [(FilePath, EvaluationResult)] {
        defer { checker.endTurn() }
        (found, late) = ([:], [:])
        let arrivals = looks.arrivals
        let known: [KnownFile]
        switch answer {
        case .success(let facts): known = facts
        case .failure(let why):
            return looks.judged + arrivals.map { ($0.path, .look(.later(why.description, .seconds(1)))) }
        }
        // By the places of the arrivals; nil for a file to admit as new.
        var considered = known.map { $0.isKnown ? EvaluationResult.known : nil }
        let unknown = arrivals.indices.filter { place in
            guard known[place].isNew else { return false }
            let path = arrivals[place].path
            return renames.origins(of: path).isEmpty && (looks.refused.isEmpty || looks.refused[path] == nil)
        }
        for place in unknown { considered[place] = awaitsLabels(arrivals[place]).map { .look($0) } }
        let endings = await adopt(unknown.compactMap { considered[$0] == nil ? arrivals[$0] : nil })
        let isPlain =
            renames.isEmpty && looks.refused.isEmpty && endings.isEmpty && admission.deriver == nil
        var hashed: Int64 = 0
        for (place, arrival) in arrivals.enumerated() where considered[place] == nil {
            if isPlain, known[place].isNew { continue }
            considered[place] = await consider(arrival, known[place], looks, endings[arrival.path], &hashed)
        }
        let new = arrivals.indices.filter { considered[$0] == nil }
        if admission.routes.hasCompanions {
            for (place, status) in zip(new, await findCompanions(of: new.map { arrivals[$0] }, at: .now)) {
                considered[place] = await consider(arrivals[place], status)
            }
        } else {
            for place in new { considered[place] = .look(checker.probe(arrivals[place], mayBeFilled: true)) }
        }
        return looks.judged
            + zip(arrivals, considered).compactMap { arrival, result in result.map { (arrival.path, $0) } }
    }

    /// - Parameters:
    ///   - ending: the result of its adoption.
    ///   - hashed: the bytes read in this turn.
    /// - Returns: nil for a file to admit as new.
    private mutating func consider(
        _ arrival: FoundFile, _ known: KnownFile, _ looks: FileChecker.Looks, _ ending: Adoption?,
        _ hashed: inout Int64
    ) async -> EvaluationResult? {
        switch known {
        case .known: return EvaluationResult.known
        case .new where checker.isRefused(arrival.path, looks): return .known
        case .new where !renames.isEmpty && hashed > Hashing.budget: return .look(.comparedLater)
        case .new where admission.deriver?.isUnderWay(arrival) == true:
            return .look(.waiting(for: .seconds(30), why: "waiting for its derived files"))
        case .new:
            let origins = renames.origins(of: arrival.path)
            return origins.isEmpty ? ending?.considered : await considerRenamed(arrival, origins, &hashed)
        // Events must not wait while a remounted tree is hashed: the rest comes back in a moment.
        case .touched where hashed > Hashing.budget: return .look(.comparedLater)
        case .touched(let file):
            if file.hasChecksum { hashed += arrival.identity.size }
            return await considerTouched(arrival, file, looks)
        }
    }

    // MARK: - Answers of the journal

    /// A file that the journal does not know by its path, but may know by an earlier one.
    private mutating func considerRenamed(
        _ arrival: FoundFile, _ origins: [FilePath], _ hashed: inout Int64
    ) async -> EvaluationResult? {
        do {
            if let result = try await follow(arrival, from: origins) {
                hashed += arrival.identity.size
                return result
            }
            renames.forget(arrival.path)
        } catch {
            hashed += arrival.identity.size
            return .look(checker.failed(arrival.path, error))
        }
        return await adopt([arrival])[arrival.path]?.considered
    }

    /// A file of which only inode, device or ctime changed: known while its content is the admitted one. An unreadable
    /// file is compared later.
    ///
    /// - Returns: nil when it is another file.
    private mutating func considerTouched(
        _ arrival: FoundFile, _ file: FileRow, _ looks: FileChecker.Looks
    ) async -> EvaluationResult? {
        do {
            if file.hasChecksum {
                guard try await file.hasContent(try SourceFile(opening: arrival.place), hashing)
                else { return checker.isRefused(arrival.path, looks) ? .known : nil }
            } else if file.state == .pending {
                // Before the journal is asked whether it is being delivered: that may end at any time.
                admission.shared.transfers.keepTouched(file.id)
            }
            let touch = try await journal.refresh(
                file, identity: arrival.identity, uptimes: admission.registry.uptimes(), at: .now)
            if touch.isNoted || touch.isOutdated { admission.shared.transfers.takeTouched(file.id) }
            if touch.isOutdated { return .look(.comparedLater) }
            if touch.goesOn { admission.shared.signals.raiseDeliverable() }
            log.emit(.jobUnchanged(job: file.id, path: file.fullPath))
            return .known
        } catch let error as SystemError where error.isMissing {
            return .look(.gone)
        } catch {
            return .look(checker.failed(arrival.path, error))
        }
    }

    // MARK: - New files and companions

    private mutating func consider(_ arrival: FoundFile, _ status: Result<CompanionStatus, any Error>) async
        -> EvaluationResult
    {
        let path = arrival.path
        do {
            let status = try status.get()
            note(path, isAwaited: status.isAwaited)
            switch status {
            case .alone: return .look(checker.probe(arrival, mayBeFilled: true))
            case .main(let companions, let isWhole, let quiet):
                found[path] = companions
                let binding = isWhole ? nil : (quiet, "waiting for its sidecars")
                return .look(checker.probe(arrival, binding, mayBeFilled: true))
            case .marked(let companions):
                found[path] = companions
                return .look(checker.probe(arrival, (.zero, "")))
            case .unmarked(let marker):
                // Logged once per folder and extension. Such files are not kept in memory: their markers point to them.
                if unmarked.count(path) {
                    log.emit(
                        .fileAwaited(path: root.pushing(path), reason: "waiting for its marker \(Self.name(marker))"))
                }
                return .known
            case .unsettled: return .look(.belongingsUnsettled)
            case .corrected(let main, let job):
                guard try await journal.retake(job) else { return .look(.belongingsUnsettled) }
                return wait(path, for: main, .seconds(1))
            case .waiting(let main, let wait): return self.wait(path, for: main, wait)
            case .dormant: return .known
            case .late(let companion, let main, let quiet):
                late[path] = (companion, main)
                return .look(checker.probe(arrival, quiet.map { ($0, "waiting for its file") }))
            case .orphan(let quiet): return .look(checker.probe(arrival, (quiet, "waiting for its file")))
            }
        } catch {
            return .look(checker.failed(path, error))
        }
    }

    private mutating func wait(_ path: FilePath, for main: FilePath, _ wait: Duration) -> EvaluationResult {
        wakes.append((path, main))
        return .look(.waiting(for: wait, why: "waiting for its file \(Self.name(main))"))
    }

    /// Companions, and the files that they wait for, to be checked now.
    mutating func takeWakes() -> [(companion: FilePath, main: FilePath)] {
        defer { wakes = [] }
        return wakes
    }

    static func name(_ path: FilePath) -> String { DisplayText.escape(FileName(path).bytes) }

    private mutating func note(_ path: FilePath, isAwaited: Bool) {
        guard volume?.key != nil else { return }
        if isAwaited { awaited.insert(path) } else { awaited.remove(path) }
    }

    // MARK: - Complete files

    /// Called when the settler judges the file complete.
    mutating func candidate(_ path: FilePath, _ identity: FileIdentity) -> Candidate {
        let arrival = FoundFile(root: root, path: path, identity: identity, volume: volume)
        checker.refused.forget(path)
        return Candidate(
            arrival: arrival, companions: found[path] ?? [], late: late[path], rule: settings.sources,
            facts: facts(of: arrival))
    }

    func remembered(_ path: FilePath, _ identity: FileIdentity) -> FileProperties {
        learned[path].flatMap { $0.identity == identity ? $0.facts : nil } ?? FileProperties()
    }

    /// A file that comes back unchanged need not be read again. Its sidecar and its card's labels are read anew.
    mutating func remember(_ result: AdmissionResult) {
        var facts = result.facts
        facts.add(Sidecar())
        (facts.card, facts.awaitsCard) = (nil, false)
        labelWait.note(result.arrival.path, lacks: result.awaited)
        if !result.outcome.comesBack || facts == FileProperties() {
            if !learned.isEmpty { learned[result.arrival.path] = nil }
        } else {
            if learned.count >= Self.mostLearned { learned = [:] }
            learned[result.arrival.path] = (result.arrival.identity, facts)
        }
    }
}

/// Files of a removable volume that wait for a marker, or for another file with one. Only this remembers them. Bounded.
struct AwaitedFiles: Sendable {
    private var paths: Set<FilePath> = []
    /// Files beyond `most`; they count until the next listing.
    private var others = 0
    private let most: Int

    init(most: Int = 10_000) { self.most = most }

    mutating func insert(_ path: FilePath) {
        if paths.contains(path) { return }
        if paths.count < most { paths.insert(path) } else { others += 1 }
    }

    mutating func remove(_ path: FilePath) { paths.remove(path) }

    /// How many still wait and are still there.
    mutating func count(where isThere: (FilePath) -> Bool) -> Int {
        paths = paths.filter(isThere)
        return paths.count + others
    }
}
