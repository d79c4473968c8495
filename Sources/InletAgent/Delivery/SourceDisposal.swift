internal import InletCore
internal import InletJournal
internal import InletLinux
internal import InletPipelines
internal import SystemPackage

/// One file's way out: intent journaled, renamed to a private name in its own directory, looked at once more, and only
/// then unlinked or moved. A file that is busy or another one is put back untouched.
struct SourceDisposal: Sendable {
    enum Ending: Sendable {
        /// `state` is set when the file turned out to be superseded; `place` is where the source is now, nil where it is
        /// gone or another one.
        case done(String, state: FileState?, place: FilePath?)
        case wait(until: WallTime, note: String)
    }

    let journal: Journal
    let places: FinishPlaces
    let job: Job
    let hashing: BlockingPool
    var roots = RootRegistry()

    private static let awayPause = Duration.seconds(60)
    private static let soon = Duration.seconds(1)
    private static let busyPause = Duration.seconds(30)

    private var file: FileRow { job.file }

    func dispose() async throws -> Ending {
        if let note = file.intent {
            let intent: FinishIntent
            do {
                intent = try FinishIntent(note)
            } catch {
                // It is taken for none: the file gets its own name back, and all begins anew.
                return try await withoutIntent()
            }
            SourceCopy.removeUnfinished(intent, in: places)
            return try await resume(intent)
        }
        let action = places.mayWrite ? FinishAction(file) : .keep
        if action == .keep { return .done(Disposition.kept, state: nil, place: file.fullPath) }
        if action == .delete, try await !areLinksProved() {
            return .done(Disposition.kept, state: nil, place: file.fullPath)
        }
        return try await begin(action)
    }

    /// Something was begun, and its note is damaged: a file that has one of our names gets its own back, and all begins
    /// anew. Where it has none of them, only a person can find out what became of it.
    private func withoutIntent() async throws -> Ending {
        for path in places.privateNames(file) {
            guard let hidden = try places.find(path), try hidden.look().identity != nil else { continue }
            return try await putBack(hidden, .wait(until: .now + Self.soon, note: "waiting: to be looked at anew"))
        }
        guard let source = try places.find(file.fullPath), try source.look().identity != nil else {
            if roots.isAway(file) { return away }
            throw UnreadableIntent(file: file, archive: places.archive, quarantine: places.quarantine)
        }
        try await journal.intend(file.id, nil)
        return .wait(until: .now + Self.soon, note: "waiting: to be looked at anew")
    }

    private func begin(_ action: FinishAction) async throws -> Ending {
        guard let source = try places.find(file.fullPath), let identity = try source.look().identity else {
            if roots.isAway(file) { return away }
            return .done(Disposition.untouched("it is no longer there"), state: nil, place: nil)
        }
        switch try await judge(identity, source) {
        case .same: break
        case .changed: return superseded("changed")
        case .moving: return Self.moving
        // To move it away hides nothing from anybody.
        case .doubtful where action == .quarantine: break
        case .doubtful: return .done(Self.doubtful, state: nil, place: file.fullPath)
        }
        switch try source.writer() {
        case .busy: return busy
        case .free: break
        case .unknown where action == .quarantine: break
        case .unknown: return try await hold(action, source, identity)
        }
        var intent = FinishIntent(
            action: action, privateFile: places.privateFile(file), target: places.target(file, action))
        if let target = intent.targetFile {
            // Found out now, while the file still has its own name.
            try places.open(target, making: 0o755).folder.requireWritable()
        }
        if let ending = try await rename(source, identity, to: &intent) { return ending }
        return try await resume(intent)
    }

    /// A file of which nothing was sent is deleted only on the proof of its own content: read once more, it has the
    /// checksum that was proved of the first one. Where nothing but a length was, it stays.
    private func areLinksProved() async throws -> Bool {
        let links = job.deliveries.compactMap(\.proof).filter { $0.sameAs != nil && $0.method != .registered }
        if links.isEmpty { return true }
        // When it is no longer there, whoever disposes of it finds that out.
        guard let source = try places.find(file.fullPath), try source.look().identity != nil else { return true }
        for link in links {
            guard let content = link.content,
                try await Fingerprint.matches(content, try source.source(), on: hashing)
            else { return false }
        }
        return true
    }

    private var away: Ending {
        .wait(
            until: .now + (roots.isUnknown(file.root) ? Self.soon : Self.awayPause),
            note: "waiting for \(file.root.display) to come back")
    }

    /// Opened for writing is not written to: whether the content changes shows when the writer has let go.
    private var busy: Ending {
        .wait(until: .now + Self.busyPause, note: "waiting: open for writing by another program")
    }

    /// Looked at while somebody was at it: a moment later it stands still.
    private static var moving: Ending { .wait(until: .now + soon, note: "waiting: it changes while it is looked at") }

    private static let doubtful = Disposition.untouched(
        "it was touched after it was delivered, and no checksum tells whether its content changed; "
            + "compare it with what was delivered, and remove it yourself")

    private enum Judgement {
        case same, changed
        /// Touched, and nothing tells whether its content is another one.
        case doubtful
        /// Touched while it was read.
        case moving
    }

    /// Whether this is what was delivered. Where only ctime, device or inode differ, content decides.
    ///
    /// - Parameter ours: its ctime after our own rename; nil where it is not known, and is left out.
    private func judge(
        _ now: FileIdentity, _ found: OpenName, isRenamed: Bool = false, ours: Int64? = nil
    ) async throws -> Judgement {
        var proved = file.identity
        if let ours { proved.changed = ours }
        switch SourceStanding(now, since: proved, ignoringChangeTime: isRenamed && ours == nil) {
        // After a crash nothing tells whether it was edited since it has its private name.
        case .same where isRenamed && ours == nil && file.hasChecksum: break
        case .same: return .same
        case .changed: return .changed
        case .unclear: break
        }
        guard file.hasChecksum else {
            // Without a checksum only its numbers tell, and a remount or a server gives others to the same file.
            let isNumbered = now.inode == proved.inode && now.device == proved.device
            return isNumbered || now.changed == proved.changed || file.volume != nil ? .doubtful : .changed
        }
        guard try await file.hasContent(try found.source(), Hashing(pool: hashing)) else { return .changed }
        guard try found.look().identity == now else { return .moving }
        // Read once, not at each try.
        if !isRenamed { try await journal.refresh([(id: file.id, identity: now)]) }
        return .same
    }

    /// Where writers cannot be known, the file is taken out of their way and looked at again after `hold`.
    private func hold(_ action: FinishAction, _ source: OpenName, _ identity: FileIdentity) async throws -> Ending {
        let until = WallTime.now + places.hold
        do {
            return try await hold(action, source, identity, in: places.root, until)
        } catch let error as SystemError where error.isCrossDevice {
            // Another file system is mounted below the root: the file stays on its own.
            return try await hold(action, source, identity, in: file.fullPath.removingLastComponent(), until)
        }
    }

    private func hold(
        _ action: FinishAction, _ source: OpenName, _ identity: FileIdentity, in folder: FilePath, _ until: WallTime
    ) async throws -> Ending {
        let held = places.heldFile(file, below: folder)
        _ = try places.open(held, making: 0o755)
        var intent = FinishIntent(
            action: action, privateFile: held, target: places.target(file, action), heldUntil: until)
        if let ending = try await rename(source, identity, to: &intent) { return ending }
        try await journal.intend(file.id, try intent.note)
        return .wait(until: until, note: Self.holdNote(until))
    }

    private static func holdNote(_ until: WallTime) -> String {
        "held until \(until.rfc3339): writers cannot be known here"
    }

    /// Renames what is `identity` to its private name, whose ctime `intent` gets.
    ///
    /// - Returns: why it was left where it is; nil once it is renamed.
    private func rename(
        _ source: OpenName, _ identity: FileIdentity, to intent: inout FinishIntent
    ) async throws -> Ending? {
        Failpoint.intending.reached()
        if let other = try await journal.beginFinish(file, try intent.note) {
            return .wait(until: .now + Self.busyPause, note: "waiting: job \(other) needs the file")
        }
        Failpoint.intentWritten.reached()
        let hidden: OpenName
        do {
            hidden = try privateName(intent, beside: source)
            // The last moment at which its ctime is not ours.
            guard try source.look().identity == identity else {
                try await journal.intend(file.id, nil)
                return Self.moving
            }
            try source.rename(to: hidden)
        } catch {
            try await journal.intend(file.id, nil)
            throw error
        }
        intent.changed = try hidden.look().identity?.changed
        Failpoint.renamedAway.reached()
        return nil
    }

    /// Gives the file its own name back. That was our rename too: what had not changed until then has the ctime of that.
    private func renameBack(_ hidden: OpenName, _ identity: FileIdentity) async throws {
        let back = try places.open(file.fullPath)
        try hidden.rename(to: back)
        guard let now = try back.look().identity, now.isUntouched(since: identity, ignoringChangeTime: true) else {
            return
        }
        try await journal.refresh([(id: file.id, identity: now)])
    }

    /// In the folder that is open, where it is to stay in that.
    private func privateName(_ intent: FinishIntent, beside source: OpenName) throws -> OpenName {
        let path = intent.privateFile
        guard path.removingLastComponent() == source.folder.path, let name = path.lastComponent else {
            return try places.open(path)
        }
        return source.beside(name)
    }

    /// Goes on from what the journal says was begun; every step may have been taken or not.
    private func resume(_ intent: FinishIntent) async throws -> Ending {
        guard let hidden = try places.find(intent.privateFile), let identity = try hidden.look().identity else {
            return try await withoutPrivateFile(intent)
        }
        if let until = intent.heldUntil, until > .now { return .wait(until: until, note: Self.holdNote(until)) }
        switch try await judge(identity, hidden, isRenamed: true, ours: intent.changed) {
        case .same: break
        case .changed: return try await putBack(hidden, superseded("changed"))
        case .moving: return Self.moving
        case .doubtful where intent.action == .quarantine: break
        case .doubtful:
            return try await putBack(hidden, .done(Self.doubtful, state: nil, place: file.fullPath))
        }
        if try hidden.writer() == .busy { return try await lend(hidden, identity, intent) }
        switch intent.action {
        case .keep: return try await putBack(hidden, superseded("changed"))
        case .delete:
            try hidden.remove()
            try hidden.folder.synchronize()
            return .done(Disposition.deleted, state: nil, place: nil)
        case .archive, .quarantine:
            do {
                let end = try await move(intent).run(hidden, identity)
                return .done(end.disposition, state: nil, place: end.place)
            } catch {
                // A person must not find the file hidden for as long as the archive cannot be used. Where it stays hidden
                // all the same, the intent says so, and what went wrong first is what a person must mend.
                try? await renameBack(hidden, identity)
                throw error
            }
        }
    }

    /// The process died before the first rename, or after the last step; or the volume is not there.
    private func withoutPrivateFile(_ intent: FinishIntent) async throws -> Ending {
        if roots.isAway(file) { return away }
        if let source = try places.find(file.fullPath), let identity = try source.look().identity {
            switch try await judge(identity, source, isRenamed: true) {
            case .same: return try await again(intent, source)
            case .moving: return Self.moving
            case .changed, .doubtful: break
            }
        }
        switch intent.action {
        case .delete: return .done(Disposition.deleted, state: nil, place: nil)
        case .keep: return .done(Disposition.kept, state: nil, place: file.fullPath)
        case .archive, .quarantine:
            let end = try move(intent).found()
            return .done(
                end?.disposition ?? Disposition.untouched("it is no longer there"), state: nil, place: end?.place)
        }
    }

    /// Begins anew with the file under its own name.
    private func again(_ intent: FinishIntent, _ source: OpenName) async throws -> Ending {
        if try isCopied(intent, source) {
            // Only the removal failed; another copy would be a second file in the archive.
            try source.rename(to: privateName(intent, beside: source))
            var intent = intent
            intent.changed = nil
            return try await resume(intent)
        }
        try await journal.intend(file.id, nil)
        return try await begin(intent.action)
    }

    /// Whether the archive on another file system holds the whole file already.
    private func isCopied(_ intent: FinishIntent, _ source: OpenName) throws -> Bool {
        guard intent.isMoving == true, let target = try intent.targetFile.flatMap(places.find) else { return false }
        return try SourceCopy.isFinished(target, of: source)
    }

    private func move(_ intent: FinishIntent) -> SourceMove {
        SourceMove(journal: journal, places: places, job: job, intent: intent)
    }

    /// The writer has the file under its own name while it is waited for, unless another file has that name by now. What is
    /// known of a copy that was begun stays known.
    private func lend(_ hidden: OpenName, _ identity: FileIdentity, _ intent: FinishIntent) async throws -> Ending {
        do {
            try await renameBack(hidden, identity)
        } catch let error as SystemError where error.isTaken {
            return busy
        }
        if intent.isMoving != true { try await journal.intend(file.id, nil) }
        return busy
    }

    /// - Parameter ending: what became of it where it got its own name back.
    private func putBack(_ hidden: OpenName, _ ending: Ending) async throws -> Ending {
        // Somebody may have cleaned up a folder that looked empty.
        let path = try hidden.renameNumbered(to: places.open(file.fullPath, making: 0o755)).path
        try await journal.intend(file.id, nil)
        if path == file.fullPath { return ending }
        // Somebody put a new file there meanwhile: both are kept, under a name that says so.
        return .done(Disposition.untouched("kept as \(path.display)"), state: .superseded, place: nil)
    }

    private func superseded(_ why: String) -> Ending {
        .done(Disposition.untouched("it was \(why) after it was delivered"), state: .superseded, place: nil)
    }
}
