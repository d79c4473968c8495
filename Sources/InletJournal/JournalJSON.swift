internal import Foundation
internal import GRDB
internal import Synchronization

/// The one encoding of structured columns; keys are sorted so that equal values have equal bytes.
enum JournalJSON {
    static func encode(_ value: some Encodable) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(value)
    }

    static func decode<Value: Decodable>(_ data: Data) throws -> Value {
        try JSONDecoder().decode(Value.self, from: data)
    }
}

/// The few policies that a configuration has, and their encodings: every file has one of them, and reading JSON takes longer
/// than all else about a row.
final class PolicyNotes: Sendable {
    static let shared = PolicyNotes()
    /// More than routes have; beyond it, what is remembered is forgotten.
    private static let mostKept = 512

    private let policies = Mutex<[Data: FilePolicy]>([:])

    func policy(_ data: Data) throws -> FilePolicy {
        if let known = policies.withLock({ $0[data] }) { return known }
        let policy: FilePolicy = try JournalJSON.decode(data)
        policies.withLock { policies in
            if policies.count >= Self.mostKept { policies = [:] }
            policies[data] = policy
        }
        return policy
    }
}

extension Database {
    /// One statement, prepared once: to prepare it anew each time would take longer than to run it.
    func run(sql: String, arguments: StatementArguments = []) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }
}
