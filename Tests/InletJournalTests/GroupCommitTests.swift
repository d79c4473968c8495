import Foundation
import InletCore
import InletJournalSupport
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletJournal

@Suite(.seated) struct GroupCommitTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private func logSize(_ bench: Bench) throws -> Int64 {
        let file = try FileManager.default.attributesOfItem(atPath: bench.journal.path.string + "-wal")
        return (file[.size] as? NSNumber)?.int64Value ?? 0
    }

    /// Every commit appends each page that it changed to the write-ahead log: one admission changes a dozen.
    @Test func `a burst of admissions shares its transactions`() async throws {
        let alone = try Bench()
        let empty = try logSize(alone)
        for number in 0..<10 { _ = try await alone.admit("\(number)") }
        let perAdmission = (try logSize(alone) - empty) / 10

        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<1000 { group.addTask { try await bench.admit("\(number)") } }
            try await group.waitForAll()
        }
        #expect(try await bench.journal.totals()[.pending]?.files == 1000)
        #expect(try logSize(bench) < perAdmission * 1000 / 5)
    }

    @Test func `what is durable is told before anybody can claim it`() async throws {
        let told = ToldFiles()
        let claimed = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for number in 0..<200 {
                group.addTask {
                    _ = try await bench.journal.admit([.test("\(number)")], at: Bench.start) { outcomes in
                        for case .admitted(let id) in outcomes.map(\.main) { told.ids.withLock { _ = $0.insert(id) } }
                    }
                    let wish = ClaimRequest(lane: .big, room: .test("r2", 1000), most: 1000)
                    let claims = try await bench.exchange(for: wish).claims
                    let unsaid = claims.map(\.file.id).filter { id in told.ids.withLock { !$0.contains(id) } }
                    #expect(unsaid.isEmpty)
                    return claims.map(\.file.id)
                }
            }
            return try await group.reduce([]) { $0 + $1 }
        }
        #expect(claimed.count == 200)
    }

    @Test func `a change that fails takes no other of its group with it`() async throws {
        let outcomes = await withTaskGroup(of: (Int, Bool).self) { group in
            for number in 0..<200 {
                group.addTask {
                    do {
                        if number.isMultiple(of: 10) {
                            // No such delivery: the foreign key refuses it.
                            try await bench.journal.checkpoint(4711, ["upload": []])
                        } else {
                            try await bench.admit("\(number)")
                        }
                        return (number, true)
                    } catch {
                        return (number, false)
                    }
                }
            }
            return await group.reduce(into: [Int: Bool]()) { $0[$1.0] = $1.1 }
        }
        for number in 0..<200 { #expect(outcomes[number] == !number.isMultiple(of: 10), "\(number)") }
        #expect(try await bench.journal.totals()[.pending]?.files == 180)
    }

    @Test(.enabled(if: SQLiteShell.isInstalled))
    func `a change that fails halfway takes its first half back`() async throws {
        let id = try await bench.settled("a", .failed)
        // Sending again makes the delivery ready, and then reads the policy.
        try SQLiteShell.run(bench.journal.path, "UPDATE file SET policy = x'00'")
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { _ = try? await bench.admit("other-\(number)") } }
            group.addTask {
                await #expect(throws: JournalError.self) {
                    try await bench.retry(id)
                }
            }
        }
        #expect(try await bench.journal.deliveryCounts(.ready) == ["r2": 20])
        #expect(try await bench.journal.deliveryCounts(.failed) == ["r2": 1])
    }

    @Test func `reads have their turn while changes stream in`() async throws {
        let isAnswered = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<128 {
                group.addTask {
                    // A question that waited for a pause between changes would be answered after the last of them.
                    for round in 0..<40 where !isAnswered.isSet { try await bench.admit("\(writer)-\(round)") }
                    #expect(isAnswered.isSet)
                }
            }
            group.addTask {
                for _ in 0..<5 { _ = try await bench.journal.totals() }
                isAnswered.set()
            }
            try await group.waitForAll()
        }
    }

    @Test func `a closed journal refuses work instead of losing it`() async throws {
        bench.journal.close()
        await #expect(throws: JournalError.self) { try await bench.admit("a") }
        await #expect(throws: JournalError.self) { _ = try await bench.journal.totals() }
        bench.journal.close()
    }
}

private final class ToldFiles: Sendable {
    let ids = Mutex<Set<Int64>>([])
}

@Suite(.seated) struct SQLRowTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let texts = ["", "a", "\0", "a\0b", "\0\0", "é", "e\u{301}", "日本🎬", "'; DROP TABLE file; --"]
    private static let blobs: [[UInt8]] = [[], [0], [0, 0], [1, 0, 2], [0xFF, 0xFE], Array(0...255)]

    @Test func `a text comes back whole, with its NULs`() async throws {
        let read = try await bench.journal.commit { database in
            try Self.texts.map { text in try database.row("SELECT ?, typeof(?1)", text) { ($0.text(0), $0.text(1)) } }
        }
        for (text, found) in zip(Self.texts, read) {
            // As bytes: equal texts may have different ones.
            #expect(found?.0.map { Array($0.utf8) } == Array(text.utf8))
            #expect(found?.1 == "text")
        }
    }

    @Test func `bytes come back whole, and an empty value is not NULL`() async throws {
        let read = try await bench.journal.commit { database in
            try Self.blobs.map { bytes in
                try database.row("SELECT ?, typeof(?1)", bytes) {
                    ($0.bytes(0), $0.optionalBytes(0), $0.isNull(0), $0.text(1))
                }
            }
        }
        for (bytes, found) in zip(Self.blobs, read) {
            #expect(found?.0 == bytes && found?.1 == bytes && found?.2 == false && found?.3 == "blob")
        }
    }

    @Test func `numbers and NULL come back as what they are`() async throws {
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
        #expect(nothing?.0 == true && nothing?.1 == nil && nothing?.2 == nil && nothing?.3 == nil && nothing?.4 == [])
    }

    @Test func `a statement does not keep the values of its last run`() async throws {
        let read = try await bench.journal.commit { database in
            let values: [any SQLValue] = ["a", [1 as UInt8], nil as Int64?, 2]
            return try values.map { value in try database.row("SELECT typeof(?)", value) { $0.text(0) } }
        }
        #expect(read == ["text", "blob", "null", "integer"])
    }

    @Test func `a statement with a value too few or too many is refused`() async throws {
        try await bench.admit("a")
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
        for name in ["a", "b", "c"] { try await bench.admit(name) }
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
        let id = try await bench.admit("a", key: "k\0x")
        let other = try await bench.admit("b", key: "k")
        #expect(try await bench.job(id).deliveries[0].key == "k\0x")
        #expect(try await bench.job(other).deliveries[0].key == "k")
        let proof = Proof(key: "k\0x", size: 10, method: .size)
        try await bench.settle(.delivered(proof))
        #expect(try await bench.job(id).deliveries[0].proof == proof)
    }
}

/// What is written without an encoder must be what `Codable` reads.
@Suite(.seated) struct ProofNoteTests {
    @Test func `a proof that an earlier version has written is read whole, and written with the same names`() throws {
        let row = #"""
            {"key":"a/b.mp4","method":"md5_parts","size":7,"content":{"digest":{"algorithm":"md5","bytes":[1,2]},"partSize":4},
            "etag":"e","url":"u:b","address":"x","details":{"id":"4"},"keepsakes":{"delete_token":"t"}}
            """#
        let proof: Proof = try JSON.decode(row.utf8)
        #expect(proof.secrets?.reveal("delete_token") == "t" && proof.address == "x" && proof.details == ["id": "4"])
        for written in [proof.note, try JSON.encode(proof)] {
            #expect(JSON.value(written)?.object?.keys.sorted() == JSON.value(row.utf8)?.object?.keys.sorted())
        }
    }

    @Test(arguments: 0..<200) func `a proof's note is read as the same proof`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let proof = Proof.random(&generator)
        let read: Proof = try JSON.decode(proof.note)
        #expect(read == proof)
        // What an encoder writes is read alike: `replaceProof` has one.
        #expect(try JSON.decode(JSON.encode(proof)) as Proof == proof)
        // No checksum has no bytes.
        if proof.content?.digest.bytes.isEmpty == true { return }
        for key in [proof.key, "other"] { #expect(try Proof(note: proof.short(of: key), of: key) == proof) }
    }
}

extension Proof {
    fileprivate static func random(_ generator: inout SeededGenerator) -> Proof {
        let methods: [Method] = [.md5Parts, .checksum, .size, .readBack, .carried, .sha256, .registered]
        var proof = Proof(
            key: text(&generator), size: Int64.random(in: 0...Int64.max, using: &generator),
            method: methods.randomElement(using: &generator) ?? .size, content: content(&generator),
            etag: maybe(&generator, text), url: maybe(&generator, text), details: maybe(&generator, texts),
            secrets: maybe(&generator) { ProofSecrets(texts(&$0)) })
        proof.address = maybe(&generator, text)
        return proof
    }

    private static func content(_ generator: inout SeededGenerator) -> ContentHash? {
        maybe(&generator) { generator in
            let bytes = (0..<Int.random(in: 0...32, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let algorithms: [Digest.Algorithm] = [.md5, .sha256, .crc32c]
            return ContentHash(
                digest: Digest(algorithms.randomElement(using: &generator) ?? .md5, bytes),
                partSize: maybe(&generator) { Int64.random(in: 0...Int64.max, using: &$0) })
        }
    }

    private static func texts(_ generator: inout SeededGenerator) -> [String: String] {
        var texts: [String: String] = [:]
        for _ in 0..<Int.random(in: 0...3, using: &generator) { texts[text(&generator)] = text(&generator) }
        return texts
    }

    private static func maybe<Value>(
        _ generator: inout SeededGenerator, _ make: (inout SeededGenerator) -> Value
    ) -> Value? {
        Bool.random(using: &generator) ? make(&generator) : nil
    }

    /// Of what breaks JSON, and of every length that UTF-8 has.
    private static func text(_ generator: inout SeededGenerator) -> String {
        let pieces = [
            "\"", "\\", "\\u0041", "/", "\0", "\u{1}", "\u{1f}", "\u{7f}", "\n", "\r\n", "\t", "\u{8}", "\u{c}", "a",
            "é", "e\u{301}", "\u{2028}", "\u{feff}", "\u{fffd}", "日本", "🎬", "\u{10ffff}", "{}", "[,]", "'", " ",
        ]
        return (0..<Int.random(in: 0...12, using: &generator)).map { _ in
            pieces.randomElement(using: &generator) ?? ""
        }.joined()
    }
}
