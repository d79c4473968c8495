internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The last step of archive and quarantine: from the private name to the final one, which is journaled first.
struct SourceMove: Sendable {
    let journal: Journal
    let job: Job
    let intent: FinishIntent

    /// What became of the file, and where it is.
    struct End: Sendable {
        var disposition: String
        var place: FilePath
    }

    /// Moves the file. Never overwrites: a name that is taken gets a number.
    func run() async throws -> End {
        guard let wanted = intent.targetFile else {
            return End(disposition: Disposition.kept, place: intent.privateFile)
        }
        let directory = wanted.removingLastComponent()
        try DurableFile.makeDirectories(directory, mode: 0o755)
        var number = 1
        while true {
            let target = FinishPlaces.numbered(wanted, number)
            if try FileLook.look(at: target) == .missing {
                var step = intent
                step.target = target.bytes
                step.isMoving = true
                try await journal.intend(job.file.id, step.note)
                Failpoint.moveNoted.reached()
                if try moved(to: target) {
                    Failpoint.moved.reached()
                    try DurableFile.syncDirectory(directory)
                    try DurableFile.syncDirectory(intent.privateFile.removingLastComponent())
                    return try conclude(target)
                }
            } else if intent.isMoving == true, target == wanted,
                try AcrossFileSystems.isFinishedCopy(target, of: intent.privateFile)
            {
                // The process died between the copy and the removal.
                try DurableFile.remove(intent.privateFile)
                return try conclude(target)
            }
            number += 1
        }
    }

    /// The end when the private file is gone because the move had been made; nil when the target is not there.
    func found() throws -> End? {
        guard let target = intent.targetFile, let identity = try FileLook.look(at: target).identity,
            identity.isKnown(as: job.file.identity)
        else { return nil }
        return try conclude(target)
    }

    /// False when the name was taken meanwhile.
    private func moved(to target: FilePath) throws -> Bool {
        do {
            try DurableFile.rename(intent.privateFile, to: target)
            return true
        } catch {
            if error.isTaken { return false }
            guard error.isCrossDevice else { throw error }
        }
        return try AcrossFileSystems.move(intent.privateFile, to: target, size: job.file.identity.size)
    }

    private func conclude(_ target: FilePath) throws -> End {
        guard intent.action == .quarantine else {
            return End(disposition: Disposition.archived(target.display), place: target)
        }
        let disposition = Disposition.quarantined(target.display)
        let note = FilePath(bytes: target.bytes + Array(".reason.json".utf8))
        let receipt = Receipt(job, state: job.file.state, disposition: disposition, finishedAt: .now)
        try DurableFile.write(receipt.json + [UInt8(ascii: "\n")], to: note, mode: 0o644)
        Failpoint.reasonWritten.reached()
        return End(disposition: disposition, place: target)
    }
}
