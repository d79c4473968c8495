#if DEBUG
    internal import GRDB
    internal import Synchronization

    extension Journal {
        /// The statements that `body` has SQLite run here, each once, without those of triggers: tests ask for their plans.
        package func statements(of body: () async throws -> Void) async throws -> [String] {
            let seen = SeenStatements()
            try await noteStatements(in: seen)
            try await body()
            try await noteStatements(in: nil)
            return seen.texts.withLock(\.self)
        }

        private func noteStatements(in seen: SeenStatements?) async throws {
            // Whatever waits for the connection is done before.
            try await database.writeWithoutTransaction { database in
                guard let seen else { return database.trace(options: []) }
                database.trace(options: .statement) { event in
                    guard case .statement(let statement) = event, !statement.sql.hasPrefix("--") else { return }
                    seen.texts.withLock { if !$0.contains(statement.sql) { $0.append(statement.sql) } }
                }
            }
        }
    }

    private final class SeenStatements: Sendable {
        let texts = Mutex<[String]>([])
    }
#endif
