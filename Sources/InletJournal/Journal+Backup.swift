internal import Foundation
internal import GRDB
internal import GRDBSQLite
package import SystemPackage

extension Journal {
    /// Copies the journal to `target`, which must not exist, as one file that only its owner reads, and checks the copy.
    ///
    /// It holds all that was committed before the call, and what was committed while it ran: SQLite copies in steps of
    /// 1 MiB, each in line with the commits, and what changes in between goes through the same connection and so into the
    /// copy too. `VACUUM INTO` would keep every commit waiting until the end. Not yet synced to the disk when it returns;
    /// after an error a part of it may be there.
    package func copy(to target: FilePath) async throws(JournalError) {
        do {
            let copy = try Self.newCopy(target)
            let steps = try await Self.on(database) { try SteppedCopy($0, to: copy) }
            do {
                while try await !Self.on(database, { _ in try steps.step() }) { try Task.checkCancellation() }
            } catch {
                // In its turn, too: a commit that runs meanwhile tells the copy of its pages.
                try await Self.on(database) { _ in steps.finish() }
                throw error
            }
            // On the copy's own thread: the check reads all of it.
            try await Self.on(copy) { database in
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
                try Self.requireSound(database)
            }
            try copy.close()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            throw .damaged(path, cause: error.message ?? "found while it was copied")
        } catch {
            throw .from(error, at: target)
        }
    }

    private static func newCopy(_ target: FilePath) throws -> DatabaseQueue {
        guard !FileManager.default.fileExists(atPath: target.string) else {
            throw JournalError.failed(target, "there is a file already")
        }
        makePrivate(target)
        var configuration = Configuration()
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = OFF; PRAGMA cache_size = -2048") }
        return try DatabaseQueue(path: target.string, configuration: configuration)
    }

    /// Runs `body` on the thread of `queue`, in its turn and outside of a transaction.
    private static func on<Value: Sendable>(
        _ queue: DatabaseQueue, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.asyncWriteWithoutTransaction { database in
                continuation.resume(with: Result { try body(database) })
            }
        }
    }
}

/// SQLite's online backup (sqlite.org/c3ref/backup_finish.html).
///
/// Unchecked, because its handle is a bare pointer: made and used on the source's queue only, a step at a time.
private final class SteppedCopy: @unchecked Sendable {
    private var handle: OpaquePointer?
    /// Open for as long as the handle is.
    private let target: DatabaseQueue
    /// 1 MiB of SQLite's usual pages.
    private static let pages: Int32 = 256

    init(_ source: Database, to target: DatabaseQueue) throws {
        self.target = target
        // SQLite does not look whether there is a connection.
        guard let from = source.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_MISUSE) }
        handle = try target.inDatabase { copy in
            guard let handle = sqlite3_backup_init(copy.sqliteConnection, "main", from, "main") else {
                throw DatabaseError(resultCode: copy.lastErrorCode, message: copy.lastErrorMessage)
            }
            return handle
        }
    }

    deinit { assert(handle == nil, "finish must be called on the source's queue") }

    /// Ends a copy that is not whole.
    func finish() {
        sqlite3_backup_finish(handle)
        handle = nil
    }

    /// - Returns: whether that was the last.
    func step() throws -> Bool {
        let code = sqlite3_backup_step(handle, Self.pages)
        if code == SQLITE_OK { return false }
        let end = sqlite3_backup_finish(handle)
        handle = nil
        guard code == SQLITE_DONE, end == SQLITE_OK else {
            throw DatabaseError(resultCode: ResultCode(rawValue: code == SQLITE_DONE ? end : code))
        }
        return true
    }
}
