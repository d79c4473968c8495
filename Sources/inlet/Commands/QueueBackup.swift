import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletDashboard
import InletJournal
import InletLinux
import SystemPackage

extension Queue {
    struct Backup: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "backup", abstract: "Back up the journal to one file, while the agent runs.",
            discussion: """
                The file is complete, checked, and readable only by its owner. It replaces an earlier backup of the same
                name. Without FILE it goes to 'backups' in state_dir, named after the time. The running agent writes it,
                as its user; where the agent may not write (landlock:), it writes to state_dir, and this command copies
                the file. Set 'journal_backup:' in the configuration for automatic backups.

                Examples:
                  inlet queue backup
                  inlet queue backup /var/lib/inlet/backups/before-upgrade.sqlite
                """)

        @OptionGroup var options: ConfigOption
        @Argument(
            help: ArgumentHelp("The backup's path.", valueName: "FILE"), completion: .file())
        var file: String?

        func run() async throws {
            let target = file.map { FilePath.absolute($0) }
            let config = try options.load()
            let report = try await ControlAccess.use(config) { control in
                guard let target,
                    let confinement = try await control.ask(Endpoints.status).confinement,
                    !confinement.mayWrite(in: target.removingLastComponent())
                else {
                    return try await control.ask(Endpoints.backup, body: BackupRequest(path: target))
                }
                do {
                    return try await Queue.backUp(
                        through: control, of: config.settings.stateDirectory, at: target)
                } catch let error
                    where error is SystemError || error is Refusal || error is FileCopyError
                {
                    return .refused("no backup was made: \(error)")
                }
            }
            try report.show()
        }
    }

    struct Restore: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "restore", abstract: "Restore the journal from a backup, while no agent runs.",
            discussion: """
                Keeps the present journal beside the restored one, which knows nothing after the backup. Files that were
                waiting then are sent again under the same keys: no second objects appear. Later files count as new if
                they are still in the watched folders. Later files that were deleted or archived are at their
                destinations, but not in the journal.

                Example: inlet queue restore /var/lib/inlet/backups/journal-20260101030000000.sqlite --yes
                """)

        @OptionGroup var options: ConfigOption
        @Argument(help: ArgumentHelp("The backup.", valueName: "FILE"), completion: .file()) var file: String
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            guard yes else { throw ValidationError("this replaces the journal with FILE; confirm with --yes") }
            let backup = FilePath.absolute(file)
            try await Queue.useStopped(try options.load().settings.stateDirectory) { journal in
                let done = try Journal.restore(backup, to: journal, now: .now)
                if let aside = done.setAside { Console.print("The journal was kept as \(aside.display).") }
                Console.print(
                    "\(backup.display) is the journal now: \(done.files) files, \(done.open) deliveries still to be made. "
                        + "Those may have arrived since: they go to the same keys again.")
            }
        }
    }

    struct Reset: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "reset", abstract: "Start an empty journal and keep the old one, while no agent runs.",
            discussion: """
                Touches no file of yours, and nothing at a destination. Files that are still in the watched folders
                count as new and are sent again, unless their watch entry says 'existing: skip'. Interrupted uploads
                stay at the destinations until they expire there. To go back, give the old journal to 'inlet queue
                restore'.

                Example: inlet queue reset --yes
                """)

        @OptionGroup var options: ConfigOption
        @Flag(help: "Do it without asking.") var yes = false

        func run() async throws {
            guard yes else {
                throw ValidationError("this forgets every file, waiting or done; confirm with --yes")
            }
            try await Queue.useStopped(try options.load().settings.stateDirectory) { journal in
                guard let aside = try Journal.reset(journal, now: .now) else {
                    Console.print("There is no journal yet; the next start makes one.")
                    return
                }
                Console.print(
                    """
                    The journal was kept as \(aside.display).
                    The next start begins an empty one: files still in the watched folders are new ones then.
                    """)
            }
        }
    }
}

extension Queue {
    /// Calls `body` with the path of the journal under its lock. Exits with 75 while an agent runs, and waits a moment
    /// for other commands.
    private static func useStopped(_ path: FilePath, _ body: (FilePath) throws -> Void) async throws {
        let state = try await AgentSession.takeState(path)
        do {
            try state.requireOwnJournal()
            defer { state.giveJournal() }
            try body(state.journal)
            try DurableFile.syncDirectory(path)
        } catch let error where error is JournalError || error is SystemError {
            throw ExitStatus.failed.saying("\(error)")
        }
        // The lock is held until here.
        _ = state.path
    }

    /// A backup to a folder where a confined agent may not write: the agent makes it in its state directory, and this
    /// command copies it.
    ///
    /// - Throws: `SystemError`, `FileCopyError`, `Refusal`, `ControlError`.
    private static func backUp(
        through control: any ControlAPI, of state: FilePath, at target: FilePath
    ) async throws -> CommandReport {
        try JournalBackups.requireBackup(target, of: StateDirectory.journal(in: state))
        let name = try JournalBackups.name(of: target)
        // Always the same name: the next command overwrites what a killed one left behind.
        let own = state.appending("backup-for-a-command.sqlite")
        let made = try await control.ask(Endpoints.backup, body: BackupRequest(path: own))
        if !made.done { return made }
        defer { DurableFile.discard(own) }
        let folder = target.removingLastComponent()
        let pool = BlockingPool(name: "backup", threads: 1)
        defer { pool.shutdown() }
        try await pool.run {
            FileCopy.removeLeftovers(of: name, in: folder)
            // Opens the agent's own file, and follows no symlink in its folder.
            let copy = try FileCopy.copy(
                SourceFile(opening: own), toTemporaryIn: folder, name: name, isCancelled: { false }, progress: { _ in })
            do {
                try DurableFile.place(copy, at: target)
            } catch {
                DurableFile.discard(copy)
                throw error
            }
        }
        return .done(made.message.replacing(own.display, with: target.display))
    }
}
