#if DEBUG
    internal import GRDB
    internal import Synchronization

    extension Journal {
        /// The statements that `body` has SQLite run here, each once, without those of triggers: tests ask for their plans.
        package func statements(of body: () async throws -> Void) async throws -> [String] {
            try await seen(in: body).texts.withLock(\.self)
        }

        /// How often `body` has SQLite run a statement that begins with `verb`, without those of triggers.
        package func runs(of verb: String, in body: () async throws -> Void) async throws -> Int {
            try await seen(in: body).runs.withLock { $0[verb] ?? 0 }
        }

        private func seen(in body: () async throws -> Void) async throws -> SeenStatements {
            let seen = SeenStatements()
            try await noteStatements(in: seen)
            try await body()
            try await noteStatements(in: nil)
            return seen
        }

        private func noteStatements(in seen: SeenStatements?) async throws {
            // Whatever waits for the connection is done before.
            try await database.writeWithoutTransaction { database in
                guard let seen else { return database.trace(options: []) }
                database.trace(options: .statement) { event in
                    guard case .statement(let statement) = event, !statement.sql.hasPrefix("--") else { return }
                    seen.texts.withLock { if !$0.contains(statement.sql) { $0.append(statement.sql) } }
                    seen.runs.withLock { $0[String(statement.sql.prefix { $0 != " " }), default: 0] += 1 }
                }
            }
        }
    }

    private final class SeenStatements: Sendable {
        let texts = Mutex<[String]>([])
        /// By their first words.
        let runs = Mutex<[String: Int]>([:])
    }
#endif
