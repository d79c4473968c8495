package import InletCore
package import InletJournal
package import InletLinux
internal import InletPipelines
package import SystemPackage

/// The directory that one agent owns while it runs: journal, lock and control socket.
package struct StateDirectory: ~Copyable {
    package let path: FilePath
    private let lock: FileLock

    /// Why the directory cannot be used.
    package enum Fault: Error, Sendable, CustomStringConvertible {
        /// Another process holds the lock.
        case held(FilePath)
        /// SQLite's locks and mmap are not safe there.
        case network(FilePath, String)
        /// The control socket's path would exceed the limit of a Unix socket.
        case tooLong(FilePath)
        case system(SystemError)

        package var description: String {
            switch self {
            case .held(let path):
                "\(path.display): another inlet is running with this state_dir; stop it, or set another state_dir"
            case .network(let path, let kind):
                "\(path.display): state_dir is on \(kind), which is not safe for the journal; put it on a local disk"
            case .tooLong(let path):
                "\(path.display): the path is too long for the control socket; state_dir may have at most "
                    + "\(StateDirectory.longestSocketPath - StateDirectory.socketName.utf8.count - 1) bytes"
            case .system(let error): error.description
            }
        }
    }

    private static let socketName = "control.sock"
    /// Linux's limit for the path of a Unix socket (unix(7)), without the terminating NUL.
    private static let longestSocketPath = 107

    /// Creates the directory if needed and takes its lock, which the kernel releases when the process dies.
    package init(_ path: FilePath) throws(Fault) {
        guard Self.controlSocket(in: path).length <= Self.longestSocketPath else { throw .tooLong(path) }
        let kind: FileSystemKind
        let taken: FileLock?
        do throws(SystemError) {
            try DurableFile.makeDirectories(path, mode: 0o750, asFolderOwner: true)
            kind = try FileSystemKind.of(path)
            taken = kind.isNetwork ? nil : try FileLock(path.appending("lock"))
        } catch {
            throw .system(error)
        }
        if kind.isNetwork { throw .network(path, kind.name) }
        guard let taken else { throw .held(path) }
        self.path = path
        lock = taken
    }

    /// Opens or creates the journal. Files that root creates here belong to the directory's owner, whose agent must be
    /// able to use them.
    package func openJournal(now: WallTime) throws(JournalError) -> Journal {
        try requireOwnJournal()
        let traces = [JournalSeal.fileName, FormerRoots.fileName].map { path.appending($0) }
        try Journal.requireNotLost(journal, traces: traces)
        let seal: JournalSeal
        do throws(SystemError) { seal = try JournalSeal(keptIn: path) } catch {
            throw .failed(path.appending(JournalSeal.fileName), error.description)
        }
        let journal = try Journal(path: journal, now: now, seal: seal) { [path] in FileOwner.give($0, toOwnerOf: path) }
        try Journal.hasBegun(self.journal)
        giveJournal()
        return journal
    }

    /// Root's commands must not change another file for a writer to the directory, neither by the journal's names nor
    /// by those of a restored one.
    ///
    /// - Throws: `JournalError.failed` for a link, and for anything but a regular file.
    package func requireOwnJournal() throws(JournalError) {
        for suffix in ["", ".restoring"].flatMap({ draft in ["", "-wal", "-shm", "-journal"].map { draft + $0 } }) {
            let file = FilePath(journal.string + suffix)
            let look: FileLook
            do throws(SystemError) { look = try FileLook.look(at: file) } catch {
                throw .failed(file, error.description)
            }
            switch look {
            case .missing, .regular(_, owner: _, links: 1): continue
            default:
                throw .failed(
                    file, "put the file itself there: it is a link or not a regular file, and a journal has one name")
            }
        }
    }

    /// The same for a journal that was put there.
    package func giveJournal() {
        for suffix in ["", "-wal", "-shm"] {
            FileOwner.give(FilePath(journal.string + suffix), toOwnerOf: path)
        }
    }

    package var journal: FilePath { Self.journal(in: path) }
    package var controlSocket: FilePath { Self.controlSocket(in: path) }

    package static func journal(in path: FilePath) -> FilePath { path.appending("journal.sqlite") }
    package static func controlSocket(in path: FilePath) -> FilePath { path.appending(socketName) }
}
