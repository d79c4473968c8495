internal import InletCore
internal import InletJournal
internal import InletLinux
internal import SystemPackage

/// The last step of archive and quarantine: from the private name to the final one, which is journaled first.
struct SourceMove: Sendable {
    let journal: Journal
    let places: FinishPlaces
    let job: Job
    let intent: FinishIntent

    /// What became of the file, and where it is.
    struct End: Sendable {
        var disposition: String
        var place: FilePath
    }

    /// Moves the file `hidden`, which is `identity`. Never overwrites: a name that is taken gets a number.
    func run(_ hidden: OpenName, _ identity: FileIdentity) async throws -> End {
        guard let wanted = try intent.targetFile.map({ try places.open($0, making: 0o755).shortened() })
        else {
            return End(disposition: Disposition.kept, place: intent.privateFile)
        }
        let copy = wanted.beside(FileCopy.temporaryName(for: wanted.name))
        var number = 1
        while true {
            let target = wanted.numbered(number)
            if try target.look() == .missing {
                var step = intent
                step.target = target.path.bytes
                step.copy = copy.path.bytes
                step.isMoving = true
                try await journal.intend(job.file.id, try step.note)
                Failpoint.moveNoted.reached()
                if try moved(hidden, identity, to: target, copy) {
                    Failpoint.moved.reached()
                    try target.folder.synchronize()
                    try hidden.folder.synchronize()
                    return try conclude(target)
                }
            } else if intent.isMoving == true, number == 1,
                try SourceCopy.isFinished(target, of: hidden)
            {
                // The process died between the copy and the removal.
                try hidden.remove()
                return try conclude(target)
            }
            number += 1
        }
    }

    /// The end when the private file is gone because the move had been made; nil when the target is not there.
    func found() throws -> End? {
        guard let target = try intent.targetFile.flatMap(places.find), let identity = try target.look().identity,
            identity.isKnown(as: job.file.identity)
        else { return nil }
        return try conclude(target)
    }

    /// False when the name was taken meanwhile.
    private func moved(
        _ hidden: OpenName, _ identity: FileIdentity, to target: OpenName, _ copy: OpenName
    ) throws -> Bool {
        do {
            try hidden.rename(to: target)
        } catch {
            if error.isTaken { return false }
            guard error.isCrossDevice else { throw error }
            return try SourceCopy.move(hidden, identity, to: target, by: copy)
        }
        // Who may write in the watched folder may have put another file under the private name since it was looked at.
        guard let now = try target.look().identity, now.inode == identity.inode, now.device == identity.device else {
            // Where that fails it keeps the name in the archive, which the journal has: what is thrown names it.
            try? target.rename(to: hidden)
            throw SystemError(call: "rename", path: hidden.path, target: target.path, code: .staleNFSFileHandle)
        }
        return true
    }

    private func conclude(_ open: OpenName) throws -> End {
        let target = open.path
        guard intent.action == .quarantine else {
            return End(disposition: Disposition.archived(target.display), place: target)
        }
        let disposition = Disposition.quarantined(target.display)
        let receipt = Receipt(job, state: job.file.state, disposition: disposition, finishedAt: .now)
        try QuarantineReason(receipt: receipt, disposition: disposition).write(beside: open)
        Failpoint.reasonWritten.reached()
        return End(disposition: disposition, place: target)
    }
}
