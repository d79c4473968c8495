import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import Synchronization
import SystemPackage
import Testing

@Suite(.seated) struct GroupCommitTests {
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

        let bench = try Bench()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<1000 { group.addTask { _ = try await bench.admit("\(number)") } }
            try await group.waitForAll()
        }
        #expect(try await bench.journal.totals()[.pending]?.files == 1000)
        #expect(try logSize(bench) < perAdmission * 1000 / 5)
    }

    @Test func `what is durable is told before anybody can claim it`() async throws {
        let bench = try Bench()
        let told = ToldFiles()
        let claimed = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for number in 0..<200 {
                group.addTask {
                    _ = try await bench.journal.admit([.test("\(number)")], at: Bench.start) { outcomes in
                        for case .admitted(let id) in outcomes.map(\.main) { told.ids.withLock { _ = $0.insert(id) } }
                    }
                    let wish = ClaimWish(lane: .big, room: .test("r2", 1000), most: 1000)
                    let claims = try await bench.journal.exchange([], for: wish, at: Bench.start).claims
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
        let bench = try Bench()
        let outcomes = await withTaskGroup(of: (Int, Bool).self) { group in
            for number in 0..<200 {
                group.addTask {
                    do {
                        if number.isMultiple(of: 10) {
                            // No such delivery: the foreign key refuses it.
                            try await bench.journal.checkpoint(4711, ["upload": []])
                        } else {
                            _ = try await bench.admit("\(number)")
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
        let bench = try Bench()
        let id = try await bench.admit("a")
        try await bench.settle(.test(.failed))
        // Sending again makes the delivery ready, and then reads the policy.
        try SQLiteShell.run(bench.journal.path, "UPDATE file SET policy = x'00'")
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { _ = try? await bench.admit("other-\(number)") } }
            group.addTask {
                await #expect(throws: JournalError.self) {
                    try await bench.journal.retry(id, uptimes: [:], at: Bench.start)
                }
            }
        }
        #expect(try await bench.journal.deliveryCounts(.ready) == ["r2": 20])
        #expect(try await bench.journal.deliveryCounts(.failed) == ["r2": 1])
    }

    @Test func `reads have their turn while changes stream in`() async throws {
        let bench = try Bench()
        let isAnswered = Flag()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<128 {
                group.addTask {
                    // A question that waited for a pause between changes would be answered after the last of them.
                    for round in 0..<40 where !isAnswered.isSet {
                        _ = try await bench.admit("\(writer)-\(round)")
                    }
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
        let bench = try Bench()
        bench.journal.close()
        await #expect(throws: JournalError.self) { _ = try await bench.admit("a") }
        await #expect(throws: JournalError.self) { _ = try await bench.journal.totals() }
        bench.journal.close()
    }
}

private final class ToldFiles: Sendable {
    let ids = Mutex<Set<Int64>>([])
}
