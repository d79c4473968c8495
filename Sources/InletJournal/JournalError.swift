internal import GRDB
internal import InletCore
package import SystemPackage

/// What can be wrong with the journal, split by who must react.
package enum JournalError: Error, Sendable, CustomStringConvertible {
    /// The disk under the journal is full; admission stops and goes on when space returns.
    case full(FilePath)
    /// The disk does not read or write (`EIO`, a quota, a file system that went read-only); goes on when it does.
    case ioError(FilePath, cause: String)
    /// The process, or the system, has no file descriptor left; goes on when one is free.
    case noDescriptors(FilePath)
    /// An open journal turned out to be damaged. It is left as it is: what can still be read of it is.
    case damaged(FilePath, cause: String)
    /// The file is not a journal, or damaged; it was renamed to `setAside` and nothing of it was changed.
    case unreadable(FilePath, setAside: FilePath, cause: String)
    /// Written by a newer version of Inlet; set aside in the same way.
    case newerSchema(FilePath, setAside: FilePath)
    /// There is no journal, or an empty one, where `trace` says that there was one. Nothing was made or changed.
    case lost(FilePath, trace: FilePath)
    /// Another program has the journal locked, for longer than one that only reads it; goes on when it lets go.
    case locked(FilePath)
    /// The file of an open journal is gone, is empty, or is another one: what is written to it ends with the process.
    case displaced(FilePath)
    /// Anything else SQLite reports.
    case failed(FilePath, String)

    package var isFull: Bool { if case .full = self { true } else { false } }

    /// Nothing but room, or the end of another program, is wanted: a start waits for it.
    package var isPassing: Bool {
        switch self {
        case .full, .locked: true
        case .ioError, .noDescriptors, .damaged, .unreadable, .newerSchema, .lost, .displaced, .failed: false
        }
    }

    /// The disk, a lock, or the process's want of descriptors, and not one row: the next question gets the same answer.
    package var isOfDisk: Bool {
        switch self {
        case .full, .ioError, .noDescriptors, .locked: true
        case .damaged, .unreadable, .newerSchema, .lost, .displaced, .failed: false
        }
    }

    package var description: String {
        switch self {
        case .full(let path):
            "\(path.display): the disk is full; free some space and Inlet goes on by itself"
        case .ioError(let path, let cause):
            "\(path.display): the disk does not read or write (\(cause)); see 'dmesg', quotas and mounts. "
                + "Inlet goes on by itself when it does"
        case .noDescriptors(let path):
            "\(path.display): no file descriptor is left; raise the limit (LimitNOFILE=, 'ulimit -n'). "
                + "Inlet goes on by itself when one is free"
        case .damaged(let path, let cause):
            "\(path.display): the journal is damaged (\(cause)). Stop Inlet, then go on from a backup with "
                + "'inlet queue restore FILE --yes', or with an empty journal by 'inlet queue reset --yes': "
                + "both keep the damaged one"
        case .unreadable(let path, let aside, let cause):
            "\(path.display): the journal cannot be read (\(cause)). It was kept as \(aside.display). "
                + "'inlet queue restore FILE --yes' goes on from a backup. " + Self.advice
        case .newerSchema(let path, let aside):
            "\(path.display): the journal was written by a newer version of Inlet. It was kept as \(aside.display); "
                + "to use it, install that version and rename it back. " + Self.advice
        case .lost(let path, let trace):
            "\(path.display): the journal is gone or empty, but \(trace.display) says that there was one. Put it back, "
                + "go on from a backup with 'inlet queue restore FILE --yes', or with an empty journal by "
                + "'inlet queue reset --yes': files still in the watched folders would then be sent again"
        case .locked(let path):
            "\(path.display): another program has the journal locked ('fuser -v \(path.display)' names it). "
                + "Inlet goes on by itself when it has let go"
        case .displaced(let path):
            "\(path.display): the journal was removed, emptied or replaced while Inlet uses it. Its content is saved in "
                + "'backups' beside it, now and once more when Inlet stops: stop Inlet, then go on from the newest one "
                + "with 'inlet queue restore FILE --yes'"
        case .failed(let path, let cause):
            "\(path.display): \(cause)"
        }
    }

    private static let advice = """
        Starting again begins an empty journal: files still in the watched folders would then be sent again, \
        unless their watch entry says 'existing: skip'.
        """

    /// The error that `cause` means for the journal at `path`.
    static func from(_ cause: any Error, at path: FilePath) -> JournalError {
        if let known = cause as? JournalError { return known }
        guard let database = cause as? DatabaseError else { return .failed(path, "\(cause)") }
        let message = database.message ?? "SQLite error \(database.extendedResultCode.rawValue)"
        switch database.extendedResultCode {
        // The second: no room for the index of the write-ahead log.
        case .SQLITE_FULL, .SQLITE_IOERR_SHMSIZE: return .full(path)
        case .SQLITE_IOERR_NOMEM: return .failed(path, "out of memory")
        default: break
        }
        switch database.resultCode {
        case .SQLITE_CANTOPEN, .SQLITE_IOERR:
            if DescriptorShortage.isNow { return .noDescriptors(path) }
            return database.resultCode == .SQLITE_IOERR
                ? .ioError(path, cause: "\(message), code \(database.extendedResultCode.rawValue)")
                : .failed(path, message)
        case .SQLITE_BUSY, .SQLITE_LOCKED: return .locked(path)
        case .SQLITE_READONLY: return .ioError(path, cause: message)
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT: return .damaged(path, cause: message)
        default: return .failed(path, message)
        }
    }
}

/// SQLite says "unable to open" for a missing folder and for a full table of descriptors alike.
private enum DescriptorShortage {
    /// Whether no file can be opened at this moment (`EMFILE`, `ENFILE`).
    static var isNow: Bool {
        do {
            try FileDescriptor.open("/dev/null", .readOnly).close()
            return false
        } catch {
            return error as? Errno == .tooManyOpenFiles || error as? Errno == .tooManyOpenFilesInSystem
        }
    }
}
