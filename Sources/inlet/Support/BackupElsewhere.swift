import Foundation
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

    /// - Throws: `SystemError`, `JournalBackups.Refusal`, `CocoaError`.
    static func make(
        through control: any ControlAPI, of state: FilePath, at target: FilePath
    ) async throws -> CommandReport {
        try JournalBackups.requireBackup(target, of: StateDirectory.journal(in: state))
        let draft = try JournalBackups.draft(of: target)
        // One name: what a command leaves behind that was killed, the next one writes over.
        let own = state.appending("backup-for-a-command.sqlite")
        let made = try await control.backUp(to: own)
        if !made.done { return made }
        defer { try? DurableFile.remove(own) }
        try? DurableFile.remove(draft)
        do {
            try FileManager.default.copyItem(atPath: own.string, toPath: draft.string)
            try DurableFile.place(draft, at: target)
        } catch {
            try? DurableFile.remove(draft)
            throw error
        }
        return CommandReport(done: true, message: made.message.replacing(own.display, with: target.display))
    }
}
