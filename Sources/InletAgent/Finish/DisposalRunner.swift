internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// What is done next about one source whose deliveries have ended. What was found and done comes back as a `DisposalStepResult`, an
/// error too: it never stands for "nothing is there" or "nothing to do".
enum DisposalStep: Sendable {
    /// Opens the folder and looks at the name in it; what is done with that name later is done in this folder.
    case look(DisposalName, FilePath)
    /// Reads the file and holds it against the checksum that is known; it must be this one before and after.
    case compare(DisposalName, FileIdentity)
    /// Reads a file of which nothing was sent, and holds it against what was proved of the first one of its content.
    case proveLinks
    case askWriter(DisposalName)
    /// Whether the watched folder is there, and is the one in which was looked.
    case askRoot
    /// Makes the folder of a name, and sees that it takes files.
    case makeWritable(FilePath)
    /// Writes the first intent, unless a younger job needs the file.
    case begin(FinishIntent)
    case note(FinishIntent?)
    /// Journals the numbers that the file has now.
    case remember(FileIdentity)
    /// Renames the file, which must still be this one, to its private name.
    case hide(FileIdentity, as: FilePath)
    /// The last name, or its numbered one, and what a copy is called until it is whole.
    case chooseTarget(FilePath, number: Int)
    /// Whether the last name has a whole copy, on another file system, of what has this name.
    case compareCopy(DisposalName)
    case move(FileIdentity)
    case copy(FileIdentity)
    /// It is durable: its name is forgotten with the next copy.
    case removeCopy(FilePath)
    /// Removes what has the private name, which must be this file.
    case remove(FileIdentity)
    /// Makes durable what was renamed or removed in the folders that are open: until then a power cut may undo it, and the
    /// intent must not be forgotten.
    case synchronize
    /// Writes why it is in quarantine beside it.
    case writeReason(String)
    /// Gives the file its own name again, where that is free: `found` with its numbers now, where until then it was this one.
    case giveBack(FileIdentity)
    /// The same, or the first free one of its numbered names.
    case putBack
    case wait(until: WallTime, note: String)
    /// `state` is set when the file turned out to be superseded; `place` is where the source is now, nil where it is gone or
    /// another one.
    case end(String, state: FileState?, place: FilePath?)
    case fail(any Error)
}

/// The names by which a file is known on its way out.
enum DisposalName: Sendable { case own, hidden, target }

/// What came of a step.
enum DisposalStepResult: Sendable {
    enum Content: Sendable { case same, another, moving }
    /// `unknown` is told in a moment: nobody has looked yet, or it came back since it was looked for.
    enum Root: Sendable { case here, away, unknown }

    case begun
    case done
    case found(FileIdentity)
    /// No regular file has the name.
    case missing
    case content(Content)
    case answer(Bool)
    case writer(LeaseProbe)
    case root(Root)
    /// Another job, which has yet to send or finish the file.
    case needed(by: Int64)
    /// What the last name and its copy are to be.
    case free(target: FilePath, copy: FilePath)
    case taken
    /// Where the file has been put back.
    case put(FilePath)
    case failed(any Error)
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
    /// A step was answered by a fact that is none of its own, or is none that can be done.
    case misstep(state: String, seen: String)
    /// What the journal has of an intent cannot be read, and the file is under none of the names that it can have by one.
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

/// Takes the steps that `Disposal` decides on. It holds the watched folder from the first look to the last step, and the
/// folders of the file's names from the look at them to what is done with them: a decision is valid for what was looked at,
/// whatever is put in the place of the folders above it meanwhile.
struct DisposalRunner: Sendable {
    let journal: Journal
    let places: FinishFolders
    let job: Job
    let hashing: BlockingPool
    let roots: RootRegistry
    private var disposal: Disposal
    private var root: Folder?
    private var names: [DisposalName: OpenName] = [:]
    /// The last name before it got a number, and what its copy is called until it is whole.
    private var wanted: (name: OpenName, copy: OpenName)?

    init(journal: Journal, places: FinishFolders, job: Job, hashing: BlockingPool, roots: RootRegistry) {
        (self.journal, self.places, self.job, self.hashing, self.roots) = (journal, places, job, hashing, roots)
        disposal = Disposal(job, places)
    }

    private var file: FileRow { job.file }

    /// Until the file is done with, or must wait: the last step, which is `end` or `wait`.
    ///
    /// - Throws: why neither can be said; it is tried again later.
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

    /// What came of a step. Blocks.
    mutating func take(_ step: DisposalStep) async -> DisposalStepResult {
        do {
            return switch step {
            case .look(let name, let path): try look(name, path)
            case .compare(let name, let identity): .content(try await compare(try open(name), identity))
            case .proveLinks: .answer(try await areLinksProved())
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
        // What was hidden in an open folder is looked at in that.
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
        // Where it cannot be opened, `OpenName` tries again, and has the reason.
        if root == nil, !places.root.isEmpty, path.isWithin(places.root) { root = try? Folder(places.root) }
        return root
    }

    /// What was looked at, or made, before.
    private func open(_ name: DisposalName) throws(DisposalError) -> OpenName {
        guard let open = names[name] else { throw DisposalError.misstep(state: "\(name)", seen: "no look at it") }
        return open
    }

    /// Read while somebody is at it, it says nothing.
    private func compare(_ name: OpenName, _ identity: FileIdentity) async throws -> DisposalStepResult.Content {
        guard try await file.hasContent(try name.source(), Hashing(pool: hashing)) else { return .another }
        return try name.look().identity == identity ? .same : .moving
    }

    /// A file of which nothing was sent is deleted only on the proof of its own content: read once more, it has the checksum
    /// that was proved of the first one.
    private func areLinksProved() async throws -> Bool {
        for link in job.deliveries.compactMap(\.proof) where link.isOfAnother {
            guard let content = link.content,
                try await SourceDigests.matches(content, try open(.own).source(), on: hashing)
            else { return false }
        }
        return true
    }

    /// A folder that was not there is not one without files, also where it has come back since.
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
        // In the folder that is open, where it is to stay in that.
        let isBeside = path.removingLastComponent() == own.folder.path
        let hidden = try path.lastComponent.flatMap { isBeside ? own.beside($0) : nil } ?? open(path)
        names[.hidden] = hidden
        // The last moment at which its ctime is not ours.
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
        // What had not changed until then has the ctime of our rename.
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
        // Who may write in the watched folder may have put another file under the private name since it was looked at.
        guard let now = try target.look().identity, now.isFile(identity) else {
            // Where that fails it keeps the name in the archive, which the journal has: what is thrown names it.
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
        // Also where it is not there: who removed it may have died.
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
    /// Of a file of which nothing was sent, because another one has its content.
    var isOfAnother: Bool { sameAs != nil && method != .registered }
}
