internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// One file's way out: intent journaled, renamed to a private name in its own directory, looked at once more, and only
/// then unlinked or moved. A file that is busy or another one is put back untouched.
struct SourceDisposal: Sendable {
    enum Ending: Sendable {
        /// `state` is set when the file turned out to be superseded.
        case done(String, state: FileState?)
        case wait(until: WallTime, note: String)
    }

    let journal: Journal
    let places: FinishPlaces
    let job: Job

    private var file: FileRow { job.file }

    func dispose() async throws -> Ending {
        if let intent = FinishIntent(file.intent) { return try await resume(intent) }
        let action = FinishAction(file)
        if action == .keep { return .done(Disposition.kept, state: nil) }
        return try await begin(action)
    }

    private func begin(_ action: FinishAction) async throws -> Ending {
        guard let identity = try FileLook.look(at: file.fullPath).identity else {
            return .done(Disposition.untouched("it is no longer there"), state: nil)
        }
        guard identity.isUntouched(since: file.identity, ignoringChangeTime: true) else { return superseded("changed") }
        switch Lease.probe(path: file.fullPath) {
        case .busy: return superseded("open for writing")
        case .free: break
        case .unknown where action == .quarantine: break
        case .unknown: return try await hold(action)
        }
        let intent = FinishIntent(
            action: action, privateFile: places.privateFile(file), target: places.target(file, action))
        try await rename(to: intent)
        return try await resume(intent)
    }

    /// Where writers cannot be known, the file is taken out of their way and looked at again after `hold`.
    private func hold(_ action: FinishAction) async throws -> Ending {
        let held = places.heldFile(file)
        try DurableFile.makeDirectories(held.removingLastComponent(), mode: 0o755)
        let until = WallTime.now + places.hold
        let intent = FinishIntent(
            action: action, privateFile: held, target: places.target(file, action), heldUntil: until)
        try await rename(to: intent)
        return .wait(until: until, note: "held until \(until.rfc3339): writers cannot be known here")
    }

    private func rename(to intent: FinishIntent) async throws {
        try await journal.intend(file.id, intent.note)
        Failpoint.intentWritten.reached()
        do {
            try DurableFile.rename(file.fullPath, to: intent.privateFile)
        } catch {
            try await journal.intend(file.id, nil)
            throw error
        }
        Failpoint.renamedAway.reached()
    }

    /// Goes on from what the journal says was begun; every step may have been taken or not.
    private func resume(_ intent: FinishIntent) async throws -> Ending {
        guard let identity = try FileLook.look(at: intent.privateFile).identity else {
            return try await withoutPrivateFile(intent)
        }
        if let until = intent.heldUntil, until > .now {
            return .wait(until: until, note: "held until \(until.rfc3339): writers cannot be known here")
        }
        guard identity.isUntouched(since: file.identity, ignoringChangeTime: true),
            Lease.probe(path: intent.privateFile) != .busy
        else { return try await putBack(intent) }
        switch intent.action {
        case .keep: return try await putBack(intent)
        case .delete:
            try DurableFile.remove(intent.privateFile)
            try DurableFile.syncDirectory(intent.privateFile.removingLastComponent())
            return .done(Disposition.deleted, state: nil)
        case .archive, .quarantine:
            let target = try move(intent)
            return .done(
                intent.action == .archive
                    ? Disposition.archived(target.display) : Disposition.quarantined(target.display), state: nil)
        }
    }

    /// The process died before the first rename, or after the last step.
    private func withoutPrivateFile(_ intent: FinishIntent) async throws -> Ending {
        if let identity = try FileLook.look(at: file.fullPath).identity,
            identity.isUntouched(since: file.identity, ignoringChangeTime: true)
        {
            try await journal.intend(file.id, nil)
            return try await begin(intent.action)
        }
        let target = intent.targetFile?.display ?? ""
        return switch intent.action {
        case .archive: .done(Disposition.archived(target), state: nil)
        case .quarantine: .done(Disposition.quarantined(target), state: nil)
        case .delete: .done(Disposition.deleted, state: nil)
        case .keep: .done(Disposition.kept, state: nil)
        }
    }

    private func putBack(_ intent: FinishIntent) async throws -> Ending {
        do {
            try DurableFile.rename(intent.privateFile, to: file.fullPath)
        } catch {
            guard error.isTaken else { throw error }
            // Somebody put a new file there meanwhile: both are kept, under a name that says so.
            let path = try Self.renameNumbered(intent.privateFile, to: file.fullPath, from: 2)
            try await journal.intend(file.id, nil)
            return .done(Disposition.untouched("kept as \(path.display)"), state: .superseded)
        }
        try await journal.intend(file.id, nil)
        return superseded("changed or opened for writing")
    }

    private func superseded(_ why: String) -> Ending {
        .done(Disposition.untouched("it was \(why) after it was delivered"), state: .superseded)
    }

    private func move(_ intent: FinishIntent) throws -> FilePath {
        guard let wanted = intent.targetFile else { return intent.privateFile }
        let directory = wanted.removingLastComponent()
        try DurableFile.makeDirectories(directory, mode: 0o755)
        let target: FilePath
        do {
            target = try Self.renameNumbered(intent.privateFile, to: wanted, from: 1)
        } catch let error as SystemError where error.isCrossDevice {
            target = try AcrossFileSystems.move(intent.privateFile, to: wanted, admitted: file.identity)
        }
        try DurableFile.syncDirectory(directory)
        try DurableFile.syncDirectory(intent.privateFile.removingLastComponent())
        if intent.action == .quarantine {
            let reason = Receipt(job, state: file.state, disposition: "quarantined", finishedAt: .now)
            let note = FilePath(bytes: target.bytes + Array(".reason.json".utf8))
            try DurableFile.write(Array((reason.json + "\n").utf8), to: note, mode: 0o644)
        }
        return target
    }

    /// Renames to `wanted`, or to the first of its numbered names, from `first` on, that is free.
    static func renameNumbered(_ path: FilePath, to wanted: FilePath, from first: Int) throws -> FilePath {
        var number = first
        while try !isRenamed(path, to: FinishPlaces.numbered(wanted, number)) { number += 1 }
        return FinishPlaces.numbered(wanted, number)
    }

    private static func isRenamed(_ path: FilePath, to target: FilePath) throws -> Bool {
        do {
            try DurableFile.rename(path, to: target)
            return true
        } catch {
            if error.isTaken { return false }
            throw error
        }
    }
}
