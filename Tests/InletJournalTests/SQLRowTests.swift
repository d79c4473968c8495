import InletCore
import InletJournalSupport
import Testing

@testable import InletJournal

@Suite(.seated) struct SQLRowTests {
    private static let texts = ["", "a", "\0", "a\0b", "\0\0", "é", "e\u{301}", "日本🎬", "'; DROP TABLE file; --"]
    private static let blobs: [[UInt8]] = [[], [0], [0, 0], [1, 0, 2], [0xFF, 0xFE], Array(0...255)]

    @Test func `a text comes back whole, with its NULs`() async throws {
        let bench = try Bench()
        let read = try await bench.journal.commit { database in
            try Self.texts.map { text in
                try database.row("SELECT ?, typeof(?1)", text) { ($0.text(0), $0.text(1)) }
            }
        }
        for (text, found) in zip(Self.texts, read) {
            // As bytes: equal texts may have different ones.
            #expect(found?.0.map { Array($0.utf8) } == Array(text.utf8))
            #expect(found?.1 == "text")
        }
    }

    @Test func `bytes come back whole, and an empty value is not NULL`() async throws {
        let bench = try Bench()
        let read = try await bench.journal.commit { database in
            try Self.blobs.map { bytes in
                try database.row("SELECT ?, typeof(?1)", bytes) {
                    ($0.bytes(0), $0.optionalBytes(0), $0.isNull(0), $0.text(1))
                }
            }
        }
        for (bytes, found) in zip(Self.blobs, read) {
            #expect(found?.0 == bytes)
            #expect(found?.1 == bytes)
            #expect(found?.2 == false)
            #expect(found?.3 == "blob")
        }
    }

    @Test func `numbers and NULL come back as what they are`() async throws {
        let bench = try Bench()
        let numbers: [Int64] = [0, 1, -1, .max, .min]
        let read = try await bench.journal.commit { database in
            try numbers.map { number in
                try database.row("SELECT ?, typeof(?1)", number) { ($0.optionalInteger(0), $0.text(1)) }
            }
        }
        #expect(read.map { $0?.0 } == numbers)
        #expect(read.allSatisfy { $0?.1 == "integer" })
        let nothing = try await bench.journal.commit { database in
            try database.row("SELECT ?", nil as String?) { row in
                (row.isNull(0), row.text(0), row.optionalBytes(0), row.optionalInteger(0), row.bytes(0))
            }
        }
        #expect(nothing?.0 == true && nothing?.1 == nil && nothing?.2 == nil && nothing?.3 == nil)
        #expect(nothing?.4 == [])
    }

    @Test func `a statement does not keep the values of its last run`() async throws {
        let bench = try Bench()
        let read = try await bench.journal.commit { database in
            let values: [any SQLValue] = ["a", [1 as UInt8], nil as Int64?, 2]
            return try values.map { value in
                try database.row("SELECT typeof(?)", value) { $0.text(0) }
            }
        }
        #expect(read == ["text", "blob", "null", "integer"])
    }

    @Test func `a statement with a value too few or too many is refused`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("a")
        for values in [[], [1, 1, 1]] {
            await #expect(throws: JournalError.self) {
                try await bench.journal.commit { database in
                    try database.rows("SELECT id FROM file WHERE id = ? AND size > ?", values) { $0.integer(0) }
                }
            }
        }
        #expect(try await bench.journal.totals()[.pending]?.files == 1)
    }

    @Test func `a reading that throws leaves its statement ready for the next`() async throws {
        let bench = try Bench()
        for name in ["a", "b", "c"] { _ = try await bench.admit(name) }
        let sql = "SELECT id FROM file WHERE size >= ? ORDER BY id"
        await #expect(throws: JournalError.self) {
            try await bench.journal.commit { database in
                try database.rows(sql, 0) { row in
                    if row.integer(0) > 1 { throw Unexpected(what: "enough") }
                }
            }
        }
        let ids = try await bench.journal.commit { try $0.rows(sql, 0) { $0.integer(0) } }
        #expect(ids.count == 3)
    }

    @Test func `what others say is kept whole, with its NULs`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", lane: .small)
        let said = "one\0two"
        try await bench.settle(.waiting(until: Bench.start, saying: said), lane: .small)
        #expect(try await bench.journal.waiting(limit: 9).map(\.saying) == [said])
        #expect(try await bench.job(id).deliveries[0].reason == said)
        try await bench.settle(
            .again(at: Bench.start, countsAttempt: true, code: .badAnswer, reason: said), lane: .small)
        #expect(try await bench.job(id).deliveries[0].reason == said)
        try await bench.settle(.ended(.failed, code: .badAnswer, reason: said), lane: .small)
        #expect(try await bench.job(id).deliveries[0].reason == said)
        #expect(try await bench.job(id).file.reason == said)
        try await bench.journal.postponeFinish(id, until: Bench.start, note: said)
        #expect(try await bench.job(id).file.disposition == said)
    }

    @Test func `a key with a NUL is delivered, found and taken as it is`() async throws {
        let bench = try Bench()
        let id = try await bench.admit("a", key: "k\0x")
        let other = try await bench.admit("b", key: "k")
        #expect(try await bench.job(id).deliveries[0].key == "k\0x")
        #expect(try await bench.job(other).deliveries[0].key == "k")
        let proof = Proof(key: "k\0x", size: 10, method: .size)
        try await bench.settle(.delivered(proof))
        #expect(try await bench.job(id).deliveries[0].proof == proof)
    }
}
