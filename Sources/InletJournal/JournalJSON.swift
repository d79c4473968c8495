internal import Foundation
internal import GRDB
internal import Synchronization

/// The one encoding of structured columns; keys are sorted so that equal values have equal bytes.
enum JournalJSON {
    static func encode(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }

    static func decode<Value: Decodable>(_ bytes: [UInt8]) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(bytes))
    }
}

/// The few policies that a configuration has, and their encodings: every file has one of them, and reading and writing JSON takes
/// longer than all else about a row.
final class PolicyNotes: Sendable {
    static let shared = PolicyNotes()
    /// More than routes have; beyond it, what is remembered is forgotten.
    private static let mostKept = 512

    private let policies = Mutex<[[UInt8]: FilePolicy]>([:])
    private let notes = Mutex<[FilePolicy: [UInt8]]>([:])

    func note(_ policy: FilePolicy) throws -> [UInt8] {
        if let known = notes.withLock({ $0[policy] }) { return known }
        let note = try JournalJSON.encode(policy)
        notes.withLock { notes in
            if notes.count >= Self.mostKept { notes = [:] }
            notes[policy] = note
        }
        return note
    }

    func policy(_ data: [UInt8]) throws -> FilePolicy {
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
