internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// The next step for one source whose deliveries have ended. Results and errors come back as a `DisposalStepResult`; an
/// error never means "nothing is there" or "nothing to do".
enum DisposalStep: Sendable {
    /// Opens the folder and checks the name in it; later steps on that name use this folder.
    case look(DisposalName, FilePath)
    /// Reads the file and compares its known checksum; it must be this file before and after.
    case compare(DisposalName, FileIdentity)
    /// Reads an unsent file, and compares it with the proof of the first file of its content.
    case proveLinks
    /// Asks the destinations whether they have the content of a hidden file now.
    case proveCopies
    case askWriter(DisposalName)
    /// Whether the watched folder is there, and is the one of the check.
    case askRoot
    /// Creates the folder of a name, and checks that files can be created in it.
    case makeWritable(FilePath)
    /// Writes the first intent, unless a younger job needs the file.
    case begin(FinishIntent)
    case note(FinishIntent?)
    /// Journals the file's present numbers.
    case remember(FileIdentity)
    /// Renames the file, which must still be this one, to its private name.
    case hide(FileIdentity, as: FilePath)
    /// The last name, or its numbered one, and the name of an incomplete copy.
    case chooseTarget(FilePath, number: Int)
    /// Whether the last name has a complete copy, on another file system, of the file with this name.
    case compareCopy(DisposalName)
    case move(FileIdentity)
    case copy(FileIdentity)
    /// It is durable: its name is forgotten with the next copy.
    case removeCopy(FilePath)
    /// Removes the file under the private name, which must be this file.
    case remove(FileIdentity)
    /// Makes renames and removals in the open folders durable: until then a power cut may undo them, and the intent
    /// must not be forgotten.
    case synchronize
    /// Writes the reason for the quarantine beside the file.
    case writeReason(String)
    /// Gives the file its own name again, where that is free: as `found` with its present numbers, until then as this
    /// one.
    case giveBack(FileIdentity)
    /// The same, or the first free one of its numbered names.
    case putBack
    case wait(until: WallTime, note: String)
    /// `state` is set when the file turned out to be superseded; `place` is the source's present place, nil where it is
    /// gone or replaced.
    case end(String, state: FileState?, place: FilePath?)
    case fail(any Error)
}

/// The names of a file during its disposal.
enum DisposalName: Sendable { case own, hidden, target }

/// The result of a step.
enum DisposalStepResult: Sendable {
    enum Content: Sendable { case same, another, moving }
    /// `unknown` passes in a moment: nobody has checked yet, or it came back since the check.
    enum Root: Sendable { case here, away, unknown }

    case begun
    case done
    case found(FileIdentity)
    /// No regular file has the name.
    case missing
    case content(Content)
    case answer(Bool)
    case copies(CopyProof)
    case writer(LeaseProbe)
    case root(Root)
    /// Another job, which has yet to send or finish the file.
    case needed(by: Int64)
    /// The last name and the name of its copy.
    case free(target: FilePath, copy: FilePath)
    case taken
    /// The file's place after it was put back.
    case put(FilePath)
    case failed(any Error)
}

/// Whether the destinations of a file that was not sent have its content now, with the reason in words.
enum CopyProof: Sendable, Equatable {
    case proved(String)
    case unproved(String)
    /// Nobody can tell yet: the order waits.
    case postponed(String)

    /// The agent stops; the next start asks again.
    static let stopped = CopyProof.postponed("the agent was stopped")
}

extension DisposalStep {
    /// Whether nothing is left of the intent afterwards.
    var forgetsIntent: Bool {
        switch self {
        case .note(nil), .end: true
        default: false
        }
    }
}

/// Why the disposal of a file cannot go on.
enum DisposalError: Error, CustomStringConvertible {
    /// A result that does not belong to its step, or an impossible one.
    case misstep(state: String, seen: String)
    /// The journal's intent is unreadable, and the file has none of the names that it can have by one.
    case unreadableIntent(FileRow, FinishFolders)

    var description: String {
        switch self {
        case .misstep(let state, let seen):
            "the disposal cannot go on from \(state) with \(seen): this is a bug in Inlet"
        case .unreadableIntent(let file, let places):
            "\(file.fullPath.display): the journal's record of its disposal is damaged, and the file is gone; "
                + "look in \(places.archive.display) and \(places.quarantine.display): "
                + "'inlet queue forget \(file.id)' once it is found"
        }
    }
}

/// Takes the steps that `Disposal` decides on. It holds the watched folder from the first check to the last step, and
/// the folders of the file's names from their check to their steps. A decision applies to the checked file, even if
/// folders above it are replaced meanwhile.
struct DisposalRunner: Sendable {
    let journal: Journal
    let places: FinishFolders
    let job: Job
    let hashing: BlockingPool
    let roots: RootRegistry
    /// Asks the destinations of the job. It takes no error for a proof.
    let prove: @Sendable (Job) async -> CopyProof
    private var disposal: Disposal
    private var root: Folder?
    private var names: [DisposalName: OpenName] = [:]
    /// The last name before it got a number, and the name of an incomplete copy.
    private var wanted: (name: OpenName, copy: OpenName)?

    init(
        journal: Journal, places: FinishFolders, job: Job, hashing: BlockingPool, roots: RootRegistry,
        prove: @escaping @Sendable (Job) async -> CopyProof
    ) {
        (self.journal, self.places, self.job, self.hashing, self.roots) = (journal, places, job, hashing, roots)
        self.prove = prove
        disposal = Disposal(job, places)
    }

    private var file: FileRow { job.file }

    /// Until the file is finished or must wait: the last step, which is `end` or `wait`.
    ///
    /// - Throws: an error that prevents both; retried later.
    mutating func run() async throws -> DisposalStep {
        var seen = DisposalStepResult.begun
        while true {
            let step = disposal.next(seen, at: .now)
            switch step {
            case .end, .wait: return step
            case .fail(let error): throw error
            default: seen = await take(step)
            }
        }
    }

    /// The result of a step. Blocks.
    mutating func take(_ step: DisposalStep) async -> DisposalStepResult {
        do {
            return switch step {
            case .look(let name, let path): try look(name, path)
            case .compare(let name, let identity): .content(try await compare(try open(name), identity))
            case .proveLinks: .answer(try await areLinksProved())
            case .proveCopies: .copies(await prove(job))
            case .askWriter(let name): .writer(try open(name).writer())
            case .askRoot: .root(try askRoot())
            case .begin(let intent): try await begin(intent)
            case .note(let intent): try await note(intent)
            case .remember(let identity): try await remember(identity)
            default: try change(step)
            }
        } catch {
            return .failed(error)
        }
    }

    /// Of the steps that change names.
    private mutating func change(_ step: DisposalStep) throws -> DisposalStepResult {
        switch step {
        case .makeWritable(let path): try open(path, making: 0o755).folder.requireWritable()
        case .hide(let identity, let path): return try hide(identity, as: path)
        case .chooseTarget(let path, let number): return try chooseTarget(path, number)
        case .compareCopy(let name): return .answer(try open(.target).isFinishedCopy(of: try open(name)))
        case .move(let identity): try move(identity)
        case .copy(let identity): try copy(identity)
        case .removeCopy(let path): try removeCopy(path)
        case .remove(let identity): try remove(identity)
        case .synchronize: try synchronize()
        case .writeReason(let disposition): try writeReason(disposition)
        case .giveBack(let identity): return try giveBack(identity)
        // Somebody may have cleaned up a folder that looked empty.
        case .putBack:
            let own = try own(making: 0o755)
            names[.own] = own
            return .put(try open(.hidden).renameNumbered(to: own).path)
        default: throw DisposalError.misstep(state: "\(step)", seen: "nothing to be done")
        }
        return .done
    }

    // MARK: - Looking

    private mutating func look(_ name: DisposalName, _ path: FilePath) throws(SystemError) -> DisposalStepResult {
        // A file hidden in an open folder is checked in that folder.
        if name != .hidden || names[name]?.path != path { names[name] = try find(path) }
        return try names[name]?.look().identity.map { .found($0) } ?? .missing
    }

    private mutating func open(_ path: FilePath, making mode: UInt32? = nil) throws(SystemError) -> OpenName {
        try OpenName(path, below: places.root, in: openRoot(for: path), making: mode)
    }

    private mutating func find(_ path: FilePath) throws(SystemError) -> OpenName? {
        try OpenName.find(path, below: places.root, in: openRoot(for: path))
    }

    private mutating func openRoot(for path: FilePath) -> Folder? {
        // If it cannot be opened, `OpenName` tries again, and has the reason.
        if root == nil, !places.root.isEmpty, path.isWithin(places.root) { root = try? Folder(places.root) }
        return root
    }

    /// Earlier checks and files.
    private func open(_ name: DisposalName) throws(DisposalError) -> OpenName {
        guard let open = names[name] else { throw DisposalError.misstep(state: "\(name)", seen: "no look at it") }
        return open
    }

    /// A read during a change proves nothing.
    private func compare(_ name: OpenName, _ identity: FileIdentity) async throws -> DisposalStepResult.Content {
        guard try await file.hasContent(try name.source(), Hashing(pool: hashing)) else { return .another }
        return try name.look().identity == identity ? .same : .moving
    }

    /// An unsent file is deleted only on the proof of its own content: read once more, it has the proved checksum of
    /// the first one.
    private func areLinksProved() async throws -> Bool {
        for link in job.deliveries.compactMap(\.proof) where link.isOfAnother {
            guard let content = link.content,
                try await SourceDigests.matches(content, try open(.own).source(), on: hashing)
            else { return false }
        }
        return true
    }

    /// A folder that was away is not an empty one, also where it has come back since.
    private func askRoot() throws(SystemError) -> DisposalStepResult.Root {
        if roots.isAway(file) { return roots.isUnknown(file.root) ? .unknown : .away }
        guard !places.root.isEmpty else { return .here }
        do throws(SystemError) {
            guard let seen = try root?.identity() else { return .unknown }
            let now = try Folder(places.root).identity()
            return now.inode == seen.inode && now.device == seen.device ? .here : .unknown
        } catch  where error.isMissing {
            return .unknown
        }
    }

    // MARK: - Journaling

    private func begin(_ intent: FinishIntent) async throws -> DisposalStepResult {
        Failpoint.intending.reached()
        if let other = try await journal.beginFinish(file, try intent.note) { return .needed(by: other) }
        Failpoint.intentWritten.reached()
        return .done
    }

    private func note(_ intent: FinishIntent?) async throws -> DisposalStepResult {
        try await journal.intend(file.id, try intent?.note)
        if intent?.isMoving == true { Failpoint.moveNoted.reached() }
        return .done
    }

    private func remember(_ identity: FileIdentity) async throws -> DisposalStepResult {
        try await journal.refresh([(id: file.id, identity: identity)])
        return .done
    }

    // MARK: - Names

    private mutating func hide(_ identity: FileIdentity, as path: FilePath) throws -> DisposalStepResult {
        let own = try open(.own)
        // In the open folder, if it stays there.
        let isBeside = path.removingLastComponent() == own.folder.path
        let hidden = try path.lastComponent.flatMap { isBeside ? own.beside($0) : nil } ?? open(path)
        names[.hidden] = hidden
        // The last moment before the agent's own rename changes its ctime.
        guard try own.look().identity == identity else { return .content(.moving) }
        try own.rename(to: hidden)
        let now = try hidden.look().identity
        Failpoint.renamedAway.reached()
        return now.map { .found($0) } ?? .missing
    }

    /// Beside the private name, in the folder that is open, where it has that.
    private mutating func own(making mode: UInt32? = nil) throws -> OpenName {
        let hidden = try open(.hidden)
        if let name = file.path.lastComponent, hidden.folder.path == file.fullPath.removingLastComponent() {
            return hidden.beside(name)
        }
        return try open(file.fullPath, making: mode)
    }

    private mutating func giveBack(_ identity: FileIdentity) throws -> DisposalStepResult {
        let hidden = try open(.hidden)
        let own = try own()
        names[.own] = own
        // A file that had not changed until then has the ctime of the agent's rename.
        let isIt = try hidden.look().identity == identity
        try hidden.rename(to: own)
        guard isIt, let now = try own.look().identity, now.isUntouched(since: identity, ignoringChangeTime: true) else {
            return .done
        }
        return .found(now)
    }

    private mutating func chooseTarget(_ path: FilePath, _ number: Int) throws(SystemError) -> DisposalStepResult {
        let (name, copy): (OpenName, OpenName)
        if number > 1, let wanted {
            (name, copy) = wanted
        } else {
            name = try open(path, making: 0o755).shortened()
            copy = name.beside(FileCopy.temporaryName(for: name.name))
            wanted = (name, copy)
        }
        let target = name.numbered(number)
        names[.target] = target
        return try target.look() == .missing ? .free(target: target.path, copy: copy.path) : .taken
    }

    private func move(_ identity: FileIdentity) throws {
        let (hidden, target) = (try open(.hidden), try open(.target))
        try hidden.rename(to: target)
        // A writer to the watched folder may have put another file under the private name since the check.
        guard let now = try target.look().identity, now.isFile(identity) else {
            // If that fails it keeps the name in the archive, which the journal has: the error names it.
            try? target.rename(to: hidden)
            throw SystemError(call: "rename", path: hidden.path, target: target.path, code: .staleNFSFileHandle)
        }
        Failpoint.moved.reached()
    }

    private func copy(_ identity: FileIdentity) throws {
        guard let copy = wanted?.copy else { throw DisposalError.misstep(state: "copy", seen: "no name for it") }
        try open(.hidden).copy(identity, to: try open(.target), by: copy)
        Failpoint.moveCopied.reached()
    }

    private func remove(_ identity: FileIdentity) throws {
        let hidden = try open(.hidden)
        guard let now = try hidden.look().identity, now.isFile(identity) else {
            throw SystemError(call: "unlink", path: hidden.path, code: .staleNFSFileHandle)
        }
        try hidden.remove()
        if names[.target] != nil { Failpoint.moved.reached() }
    }

    private mutating func removeCopy(_ path: FilePath) throws(SystemError) {
        guard let copy = try find(path) else { return }
        try copy.removeIfThere()
        // Also if it is missing: the process that removed it may have died.
        try copy.folder.synchronize()
    }

    private func synchronize() throws(SystemError) {
        let (target, hidden, own) = (names[.target]?.folder, names[.hidden]?.folder, names[.own]?.folder)
        try target?.synchronize()
        if hidden !== target { try hidden?.synchronize() }
        if own !== hidden { try own?.synchronize() }
    }

    private func writeReason(_ disposition: String) throws {
        let receipt = Receipt(job, state: file.state, disposition: disposition, finishedAt: .now)
        try open(.target).writeReason(receipt, disposition: disposition)
        Failpoint.reasonWritten.reached()
    }
}

extension Proof {
    /// Of an unsent file, because another one has its content.
    var isOfAnother: Bool { isLink && method != .registered }
}
