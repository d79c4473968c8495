internal import GRDB
internal import InletCore
internal import Synchronization

/// Group commit: changes that arrive while a transaction is being synced to disk share the next one.
///
/// Each change runs in a savepoint of its own, so that one that throws takes back only itself. A caller resumes after
/// the transaction that holds its change is durable, and sees the commit's error if there is one.
final class CommitQueue: Sendable {
    private struct Change: Sendable {
        /// Runs the change; the returned closure tells its caller what came of it, once that is durable.
        ///
        /// Throws when SQLite took back the whole transaction with the change, as it does on a full disk.
        ///
        /// - Parameter isAlone: nothing else is in the transaction, so that it needs no savepoint: if the change throws, all
        ///   of it is taken back.
        let run: @Sendable (Database, _ isAlone: Bool) throws -> @Sendable () -> Void
        /// Tells the caller that nothing of the transaction was kept.
        let fail: @Sendable (any Error) -> Void
    }

    private struct State {
        var waiting: [Change] = []
        var isDraining = false
    }

    private let database: DatabaseQueue
    private let state = Mutex(State())
    private let written = Mutex(Histogram.ofWrites)
    /// Bounds how long the first of a burst waits for the last.
    private static let transactionLimit = 512

    init(_ database: DatabaseQueue) { self.database = database }

    /// How long transactions took that changed something, from their begin until they were on the disk, in seconds.
    var writeTimes: Histogram { written.withLock { $0 } }

    /// - Parameter durable: called with what came of it, before anybody can read or change what it wrote.
    func commit<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value, durable: @escaping @Sendable (Value) -> Void
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            let change = Change(
                run: { database, isAlone in
                    let outcome: Result<Value, any Error>
                    if isAlone {
                        outcome = .success(try body(database))
                    } else {
                        outcome = Result { try Self.inSavepoint(database, body) }
                        if case .failure(let error) = outcome, !database.isInsideTransaction { throw error }
                    }
                    return {
                        if case .success(let value) = outcome { durable(value) }
                        continuation.resume(with: outcome)
                    }
                },
                fail: { continuation.resume(throwing: $0) })
            enqueue(change)
        }
    }

    private static func inSavepoint<Value>(_ database: Database, _ body: (Database) throws -> Value) throws -> Value {
        try database.change("SAVEPOINT change")
        do {
            let value = try body(database)
            try database.change("RELEASE change")
            return value
        } catch {
            // A full disk takes back the whole transaction, and the savepoint with it.
            if database.isInsideTransaction {
                try database.change("ROLLBACK TO change")
                try database.change("RELEASE change")
            }
            throw error
        }
    }

    private func enqueue(_ change: Change) {
        let mustStart = state.withLock { state in
            state.waiting.append(change)
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if mustStart { database.asyncWriteWithoutTransaction { self.drain($0) } }
    }

    /// Commits one batch, and stands in line again for the rest, so that a steady stream of changes lets reads through.
    private func drain(_ database: Database) {
        let batch = state.withLock { state -> [Change] in
            let taken = Array(state.waiting.prefix(Self.transactionLimit))
            state.waiting.removeFirst(taken.count)
            return taken
        }
        commit(batch, database)
        let hasMore = state.withLock { state in
            state.isDraining = !state.waiting.isEmpty
            return state.isDraining
        }
        if hasMore { self.database.asyncWriteWithoutTransaction { self.drain($0) } }
    }

    private func commit(_ batch: [Change], _ database: Database) {
        let start = ContinuousClock.now
        do {
            var answers: [@Sendable () -> Void] = []
            var changes = 0
            try database.inTransaction(.immediate) {
                // Not before: of a connection that was closed meanwhile it may not be asked.
                changes = database.totalChangesCount
                answers = try batch.map { try $0.run(database, batch.count == 1) }
                return .commit
            }
            // One that only looked has waited for no disk.
            if database.totalChangesCount != changes {
                let time = start.duration(to: .now)
                written.withLock { $0.add(time) }
            }
            for answer in answers { answer() }
        } catch {
            for change in batch { change.fail(error) }
        }
    }
}
