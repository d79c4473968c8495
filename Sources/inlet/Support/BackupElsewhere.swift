import InletAgent
import InletCore
import InletDashboard
import InletLinux
import SystemPackage

/// A backup of the journal to where a confined agent may not write: it makes one in its state directory, which this command
/// copies.
enum BackupElsewhere {
    /// Whether the agent cannot do it.
    static func isNeeded(_ target: FilePath, _ confinement: ConfinementReport?) -> Bool {
        confinement.map { !$0.mayWrite(in: target.removingLastComponent()) } ?? false
    }

    /// - Throws: `SystemError`, `FileCopyError`, `Refusal`, `ControlError`.
    static func make(
        through control: any ControlAPI, of state: FilePath, at target: FilePath
    ) async throws -> CommandReport {
        try JournalBackups.requireBackup(target, of: StateDirectory.journal(in: state))
        let name = try JournalBackups.name(of: target)
        // One name: what a command leaves behind that was killed, the next one writes over.
        let own = state.appending("backup-for-a-command.sqlite")
        let made = try await control.ask(Endpoints.backup, body: BackupOrder(path: own))
        if !made.done { return made }
        // As one that a killed command leaves.
        defer { try? DurableFile.remove(own) }
        let folder = target.removingLastComponent()
        let pool = BlockingPool(name: "backup", threads: 1)
        defer { pool.shutdown() }
        try await pool.run {
            FileCopy.removeLeftovers(of: name, in: folder)
            // What the agent made, and nothing that a link in its folder leads to.
            let copy = try FileCopy.copy(
                SourceFile(opening: own), toTemporaryIn: folder, name: name, isCancelled: { false }, progress: { _ in })
            do {
                try DurableFile.place(copy, at: target)
            } catch {
                // What was wrong first is what is told.
                try? DurableFile.remove(copy)
                throw error
            }
        }
        return CommandReport(done: true, message: made.message.replacing(own.display, with: target.display))
    }
}
