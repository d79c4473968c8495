import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// A plain delivery is settled in a third of the statements: the journal must be the same after it, to the last byte.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct PlainSettlementTests {
    @Test(arguments: 0..<30) func `the short way and the long way leave the same journal`(seed: UInt64) async throws {
        let (short, long) = try (Bench(), Bench())
        let settled = try await play(seed, short) { ended, ending, time in
            try await short.journal.exchange([ended], for: .none(.big), ending: ending, at: time).settled[0]
        }
        let stepwise = try await play(seed, long) { ended, ending, time in
            try await long.journal.commit { try Journal.settleStepwise(ended, ending, time, $0) }
        }
        #expect(settled == stepwise)
        #expect(try SQLiteShell.run(short.file, ".dump") == SQLiteShell.run(long.file, ".dump"))
    }

    @Test func `only what hangs on nothing goes the short way`() async throws {
        let bench = try Bench()
        _ = try await bench.admit("plain")
        _ = try await bench.admit("two", to: ["r2", "disk"])
        var unit = FileAdmission.test("unit/a")
        unit.unit = "unit"
        _ = try await bench.journal.admit(unit, at: Bench.start)
        var counted = FileAdmission.test("counted")
        counted.plan?.digests = [Digest(.sha256, Array(repeating: 7, count: 32))]
        _ = try await bench.journal.admit(counted, at: Bench.start)
        let wish = ClaimWish(lane: .big, room: .test("r2"), most: 100)
        let claims = try await bench.journal.exchange([], for: wish, at: Bench.start).claims
        let names = try await bench.journal.commit { database in
            try claims.filter {
                try Journal.settlePlain(EndedClaim($0, .delivered(.test())), nil, Bench.start, database) != nil
            }.map(\.file.path)
        }
        #expect(names == ["plain"])
    }

    private typealias Settling = (EndedClaim, EndingRule?, WallTime) async throws -> SettledFile

    /// Admits files of all kinds, claims them, cancels some, and settles what was claimed.
    /// - Returns: what each settling said.
    private func play(_ seed: UInt64, _ bench: Bench, _ settle: Settling) async throws -> [String] {
        var random = SeededGenerator(seed: seed)
        var said: [String] = []
        var now = Bench.start
        for number in 0..<12 {
            _ = try await bench.journal.admitSet(admission(number, &random), at: now)
        }
        for _ in 0..<4 {
            now = now + .seconds(1)
            let rooms = [ClaimRoom.test("r2", 4), .test("disk", 4)]
            let claims = try await bench.journal.claims(.big, rooms: rooms, most: 6, at: now)
            for claim in claims {
                if Int.random(in: 0..<6, using: &random) == 0 {
                    _ = try await bench.journal.cancel(claim.file.id, at: now)
                }
                if Bool.random(using: &random) {
                    try await bench.journal.checkpoint(claim.delivery.id, ["part:1": [1]])
                }
                let ended = EndedClaim(claim, Self.settlement(now, &random))
                let ending: EndingRule? = Bool.random(using: &random) ? Self.atOnce : nil
                let result = try await settle(ended, ending, now)
                let batch = result.finish?.endedBatch.map { "\($0.id) \($0.state)" }
                let disposition = result.finish?.disposition
                said.append("\(result.state) \(result.hasReleased) \(disposition ?? "-") \(batch ?? "-")")
            }
        }
        return said
    }

    private static let atOnce: EndingRule = { job in
        job.deliveries.count == 1
            ? Ending(disposition: "kept", receipt: Array("\(job.file.state) \(job.deliveries[0].state)".utf8)) : nil
    }

    private static func settlement(_ now: WallTime, _ random: inout SeededGenerator) -> Settlement {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .test(.failed)
        case 1: .again(now, counts: true)
        case 2: .delivered(Proof(key: "k", size: 10, method: .size))
        default: .test(.delivered)
        }
    }

    private func admission(_ number: Int, _ random: inout SeededGenerator) -> FileAdmission {
        let name = "file-\(number)"
        let isForTwo = Int.random(in: 0..<4, using: &random) == 0
        var admission = FileAdmission.test(name, to: isForTwo ? ["r2", "disk"] : ["r2"])
        switch Int.random(in: 0..<6, using: &random) {
        case 0: admission.plan?.digests = [Digest(.sha256, Array(repeating: UInt8(number % 3), count: 32))]
        case 1:
            admission.plan?.digests = [Digest(.sha256, Array(repeating: UInt8(number % 3), count: 32))]
            admission.plan?.dedupe = .link
        case 2:
            let companion = Companion(path: FilePath("\(name).xmp"), kind: .sameStem, ending: "xmp")
            admission.companions = [
                CompanionAdmission(
                    .test("\(name).xmp", .test(size: 3)), companion, category: "other", mediaType: "text/xml",
                    lanes: ["r2": .big])
            ]
        default: break
        }
        return admission
    }
}

extension Bench {
    fileprivate var file: FilePath { directory.path.appending("journal.sqlite") }
}
