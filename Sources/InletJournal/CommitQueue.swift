internal import GRDB
package import InletCore
internal import Synchronization

/// Changes of the journal that wait for a transaction.
struct CommitQueue: Sendable {
    /// `run` makes the change; the closure it returns reports the outcome to the caller once that is durable. It throws
    /// when SQLite rolled back the whole transaction, as it does on a full disk. With `isAlone` the transaction holds
    /// nothing else and needs no savepoint: if the change throws, all of it is rolled back.
    ///
    /// `fail` reports to the caller that nothing of the transaction was kept.
    typealias Change = (
        run: @Sendable (Database, _ isAlone: Bool) throws -> @Sendable () -> Void, fail: @Sendable (any Error) -> Void
    )

    /// Limits how long the first change of a burst waits for the last.
    private static let transactionLimit = 512

    private var waiting: [Change] = []
    private var isDraining = false
    var written = Histogram.ofWrites

    /// - Returns: whether the caller must drain the queue.
    mutating func add(_ change: Change) -> Bool {
        waiting.append(change)
        defer { isDraining = true }
        return !isDraining
    }

    mutating func next() -> [Change] {
        let taken = Array(waiting.prefix(Self.transactionLimit))
        waiting.removeFirst(taken.count)
        return taken
    }

    /// Marks the batch that `next` returned as done. - Returns: whether there is more to drain.
    mutating func goesOn() -> Bool {
        isDraining = !waiting.isEmpty
        return isDraining
    }
}

/// Group commit: changes that arrive while a transaction is being synced share the next one.
///
/// Each change runs in its own savepoint, so a change that throws rolls back only itself. A caller resumes once the
/// transaction with its change is durable, and receives the commit's error if there is one.
extension Journal {
    /// The durations of transactions that changed something since the journal was opened, in seconds, from their begin
    /// until they were on disk. Each counts once, however many changes shared it.
    package var writeTimes: Histogram { commits.withLock { $0.written } }

    /// Runs `body` in the next group commit and returns when it is durable.
    ///
    /// - Parameter durable: receives the outcome on the writing thread, before anybody can read or change it.
    @discardableResult
    func commit<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value,
        durable: @escaping @Sendable (Value) -> Void = { _ in }
    ) async throws(JournalError) -> Value {
        do {
            return try await withCheckedThrowingContinuation { continuation in
                let change: CommitQueue.Change = (
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
                    fail: { continuation.resume(throwing: $0) }
                )
                if commits.withLock({ $0.add(change) }) { database.asyncWriteWithoutTransaction { self.drain($0) } }
            }
        } catch {
            throw .from(error, at: path)
        }
    }

    private static func inSavepoint<Value>(_ database: Database, _ body: (Database) throws -> Value) throws -> Value {
        try database.change("SAVEPOINT change")
        do {
            let value = try body(database)
            try database.change("RELEASE change")
            return value
        } catch {
            // A full disk rolls back the whole transaction, and the savepoint with it.
            if database.isInsideTransaction {
                try database.change("ROLLBACK TO change")
                try database.change("RELEASE change")
            }
            throw error
        }
    }

    /// Commits one batch and queues again for the rest, so that a steady stream of changes lets reads through.
    private func drain(_ database: Database) {
        let batch = commits.withLock { $0.next() }
        let start = ContinuousClock.now
        do {
            var answers: [@Sendable () -> Void] = []
            var changes = 0
            try database.inTransaction(.immediate) {
                // Inside the transaction: a connection closed meanwhile must not be used.
                changes = database.totalChangesCount
                answers = try batch.map { try $0.run(database, batch.count == 1) }
                return .commit
            }
            // A transaction without changes did not wait for the disk.
            if database.totalChangesCount != changes {
                let time = start.duration(to: .now)
                commits.withLock { $0.written.add(time) }
            }
            for answer in answers { answer() }
        } catch {
            for change in batch { change.fail(error) }
        }
        if commits.withLock({ $0.goesOn() }) { self.database.asyncWriteWithoutTransaction { self.drain($0) } }
    }
}
