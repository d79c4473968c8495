internal import GRDB
internal import InletCore
package import SystemPackage

/// What can be wrong with the journal, split by who must react.
package enum JournalError: Error, Sendable, CustomStringConvertible {
    /// The disk under the journal is full; admission stops and goes on when space returns.
    case full(FilePath)
    /// The file is not a journal, or damaged; it was renamed to `setAside` and nothing of it was changed.
    case unreadable(FilePath, setAside: FilePath, cause: String)
    /// Written by a newer version of Inlet; set aside in the same way.
    case newerSchema(FilePath, setAside: FilePath)
    /// Anything else SQLite reports.
    case failed(FilePath, String)

    package var isFull: Bool { if case .full = self { true } else { false } }

    package var description: String {
        switch self {
        case .full(let path):
            "\(path.display): the disk is full; free some space and Inlet goes on by itself"
        case .unreadable(let path, let aside, let cause):
            "\(path.display): the journal cannot be read (\(cause)). It was kept as \(aside.display). "
                + Self.advice
        case .newerSchema(let path, let aside):
            "\(path.display): the journal was written by a newer version of Inlet. It was kept as \(aside.display); "
                + "to use it, install that version and rename it back. " + Self.advice
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
        return switch database.extendedResultCode {
        // The second: no room for the index of the write-ahead log.
        case .SQLITE_FULL, .SQLITE_IOERR_SHMSIZE: .full(path)
        default: .failed(path, database.message ?? "SQLite error \(database.resultCode.rawValue)")
        }
    }
}
