import CFaultVFS
import Foundation
import InletCore
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

@testable import InletJournal

/// "Fail the Nth call": one run of `FaultScript` after the other, in each of which a later call of SQLite's to the file
/// system fails, until a run in which none does. In a process of its own, because the VFS is the default of all of it.
@Suite(.seated, .serialized) struct FaultTests {
    /// Every N up to here, then every thirteenth in a full run, from another one each time: thirteen of them have all.
    private static let dense = Load.of(40)
    private static let stride = Load.isFull ? 13 : 130
    /// `INLET_FAULT_OFFSET` repeats what failed.
    private static let offset =
        ProcessInfo.processInfo.environment["INLET_FAULT_OFFSET"].flatMap { UInt8($0) }.map { Int($0) }
        ?? Int.random(in: 0..<stride)

    /// As numbers: what an exit test captures must be Codable.
    private static let kinds: [(name: String, fault: UInt32)] = [("full", 0), ("I/O error", 1), ("descriptors", 2)]

    @Test(arguments: kinds.indices, [false, true])
    func `whatever call to the disk fails, what was promised is kept and the rest is whole`(
        kind: Int, isForever: Bool
    ) async throws {
        let (fault, offset) = (Self.kinds[kind].fault, Self.offset)
        let what =
            "\(Self.kinds[kind].name), from then on: \(isForever), INLET_FAULT_OFFSET=\(offset), INLET_TESTS=\(Load.isFull ? "full" : "")"
        await #expect(processExitsWith: .success, "\(what)") {
            [fault = fault as UInt32, isForever = isForever as Bool, offset = offset as Int] in
            inlet_fault_install()
            for day in FaultScript.days { try await Self.failEachCall(day, fault, isForever, offset) }
        }
    }

    /// What was done before the first fault is left: the second kind of run ends at the first failure.
    private static func failEachCall(
        _ steps: [FaultScript.Step], _ fault: UInt32, _ isForever: Bool, _ offset: Int
    ) async throws {
        let place = try FaultPlace()
        let claim = try await FaultScript.anyClaim()
        let wanted = try await FaultRun.withoutFaults(place, steps, claim)
        var number = 1
        while true {
            let what = "call \(number) fails with \(fault)\(isForever ? ", and all after it" : "")"
            let run = FaultRun(place, steps, wanted, claim, isForever: isForever, what)
            let failed = try await run.run {
                inlet_fault_arm(InletFault(fault), number, isForever ? 1 : 0)
            }
            if failed == 0 { break }
            number += number == dense ? 1 + offset % stride : number < dense ? 1 : stride
        }
        // A run that hits nothing at once would show nothing.
        if number < 5 { throw Unexpected(what: "only \(number) calls were seen") }
    }

    @Test(arguments: kinds.indices)
    func `a journal that could not be made because of its disk is made the next time`(kind: Int) async throws {
        let fault = Self.kinds[kind].fault
        await #expect(processExitsWith: .success) { [fault = fault as UInt32] in
            inlet_fault_install()
            for number in 1... {
                let place = try FaultPlace()
                inlet_fault_arm(InletFault(fault), number, 0)
                try? Journal(path: place.journal, now: Bench.start).close()
                let failed = inlet_fault_disarm()
                let journal = try Journal(path: place.journal, now: Bench.start)
                guard try await journal.admit(.test("a"), at: Bench.start) == .admitted(id: 1) else {
                    throw Unexpected(what: "not admitted after call \(number) failed")
                }
                journal.close()
                try place.requireNothingSetAside("call \(number)")
                if failed == 0 { return }
            }
        }
    }
}

/// A folder with a journal, and how that was at first.
struct FaultPlace {
    private let directory: TemporaryDirectory
    var journal: FilePath { directory.path.appending("journal.sqlite") }
    private var template: FilePath { directory.path.appending("template") }

    init() throws { directory = try TemporaryDirectory.inMemory() }

    /// Keeps the closed journal, for `renew`.
    func keep() throws { try FileManager.default.moveItem(atPath: journal.string, toPath: template.string) }

    /// Puts the kept journal there again, without a log.
    func renew() throws {
        for suffix in ["", "-wal", "-shm"] where FileManager.default.fileExists(atPath: journal.string + suffix) {
            try FileManager.default.removeItem(atPath: journal.string + suffix)
        }
        try FileManager.default.copyItem(atPath: template.string, toPath: journal.string)
    }

    /// A failing disk is no damage.
    func requireNothingSetAside(_ when: String) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path.string)
        let aside = names.filter { $0.contains("unreadable") || $0.contains("newer") }
        if !aside.isEmpty { throw Unexpected(what: "\(when): set aside: \(aside)") }
    }
}

/// All that can be seen of a journal, and all that it keeps besides: notices, lists that are owed, checkpoints.
struct JournalPicture: Equatable {
    /// Every row of every table, by the table's name.
    var rows: [String: [String]]
    var jobs: [Job]
    var batches: [Batch]
    var totals: [FileState: Int]
    var receipts: Int
    var paused: Set<String>
    var uptimes: [String: Int64]
    var leftovers: [Int64]
    var due: WallTime?

    init(_ journal: Journal) async throws {
        let jobs = try await journal.jobs(FileFilter(limit: 10_000))
        self.jobs = jobs
        batches = []
        for job in jobs where job.file.batchID != nil {
            if let batch = try await journal.batch(of: job.file.id) { batches.append(batch) }
        }
        totals = try await journal.totals().mapValues(\.files)
        receipts = try await journal.receipts(limit: 10_000).count
        paused = try await journal.paused()
        uptimes = try await journal.uptimes()
        leftovers = try await journal.leftovers(at: Bench.start + .seconds(86_400), limit: 1000).map(\.delivery.id)
        due = try await journal.nextDue(destinations: ["r2", "disk"])
        rows = try await Self.rows(journal)
    }

    private static func rows(_ journal: Journal) async throws -> [String: [String]] {
        try await journal.read { database in
            let tables = try database.rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'grdb%'"
            ) { $0.text(0) ?? "" }
            var rows: [String: [String]] = [:]
            for table in tables {
                let columns = try database.rows("SELECT name FROM pragma_table_info(?)", table) { row in
                    "quote(\"\(row.text(0) ?? "")\")"
                }
                rows[table] = try database.rows(
                    "SELECT \(columns.joined(separator: " || ' ' || ")) FROM \"\(table)\" ORDER BY 1"
                ) { $0.text(0) ?? "" }
            }
            // Each journal's own, by chance.
            rows["counter"]?.removeAll { $0.hasPrefix("'identity'") }
            // Where something has been on the way, and nothing is now.
            rows["queue_tally"]?.removeAll { $0.hasSuffix(" 0") }
            return rows
        }
    }

    /// The rows that only one of the two has, for people.
    func difference(_ other: JournalPicture) -> String {
        rows.keys.sorted().map { table in
            let (wanted, found) = (Set(rows[table] ?? []), Set(other.rows[table] ?? []))
            if wanted == found { return "" }
            return "\n\(table): wanted \(wanted.subtracting(found)), found \(found.subtracting(wanted))"
        }.joined()
    }

    /// Every file seen is in one state, and the totals say in which.
    var isBalanced: Bool {
        let counted = Dictionary(grouping: jobs, by: \.file.state).mapValues(\.count)
        return totals.filter { $0.value > 0 } == counted
    }
}

/// One run of `FaultScript` on a copy of a prepared journal, with a fault somewhere in it.
struct FaultRun {
    private let place: FaultPlace
    private let steps: [FaultScript.Step]
    /// The pictures before the first step and after each, as they are without faults.
    private let wanted: [JournalPicture]
    private let claim: Claim
    /// Every call fails from the fault on, so that only a new start goes on.
    private let isForever: Bool
    private let what: String

    init(
        _ place: FaultPlace, _ steps: [FaultScript.Step], _ wanted: [JournalPicture], _ claim: Claim, isForever: Bool,
        _ what: String
    ) {
        self.place = place
        self.steps = steps
        self.wanted = wanted
        self.claim = claim
        self.isForever = isForever
        self.what = what
    }

    /// Makes the journal that all runs begin with, and the pictures.
    static func withoutFaults(
        _ place: FaultPlace, _ steps: [FaultScript.Step], _ claim: Claim
    ) async throws -> [JournalPicture] {
        let journal = try Journal(path: place.journal, now: Bench.start)
        _ = try await journal.admit(.test("early", to: ["r2", "disk"]), at: Bench.start)
        journal.close()
        try place.keep()
        try place.renew()
        var state = FaultScript(place.journal, claim)
        try await state.open()
        var pictures = [try await JournalPicture(state.opened())]
        for step in steps {
            try await step.act(&state)
            let picture = try await JournalPicture(state.opened())
            // A fault in a step that does nothing would show nothing.
            if picture == pictures.last, !step.isIdle { throw Unexpected(what: "'\(step.name)' changes nothing") }
            pictures.append(picture)
        }
        state.close()
        return pictures
    }

    /// - Parameter arm: sets the fault.
    /// - Returns: how many calls failed.
    func run(_ arm: () -> Void) async throws -> Int {
        try place.renew()
        arm()
        var state = FaultScript(place.journal, claim)
        var failed = 0
        var done = 0
        while done < steps.count {
            do {
                if !state.isOpen { try await state.open() }
                try await steps[done].act(&state)
                done += 1
            } catch {
                failed = max(failed, inlet_fault_disarm())
                if failed == 0 { throw Unexpected(what: "\(what): step \(done) without a fault: \(error)") }
                try place.requireNothingSetAside(what)
                done += try await isThere(done, &state) ? 1 : 0
            }
        }
        failed = max(failed, inlet_fault_disarm())
        try await check(&state, done)
        state.close()
        return failed
    }

    /// Whether the step that failed was done all the same, on a disk that works again. Steps before it were promised.
    private func isThere(_ step: Int, _ state: inout FaultScript) async throws -> Bool {
        if isForever { state.close() }
        if !state.isOpen { try await state.open() }
        let picture = try await JournalPicture(state.opened())
        if picture == wanted[step] { return false }
        if picture == wanted[step + 1] { return true }
        throw Unexpected(
            what:
                "\(what): after '\(steps[step].name)' failed the journal is neither as before nor as after"
                + wanted[step].difference(picture))
    }

    /// All is as it would have been without the fault, also for the next process.
    private func check(_ state: inout FaultScript, _ done: Int) async throws {
        for _ in 0..<2 {
            let picture = try await JournalPicture(state.opened())
            guard picture == wanted[done] else {
                throw Unexpected(what: "\(what): the end is another" + wanted[done].difference(picture))
            }
            guard picture.isBalanced else { throw Unexpected(what: "\(what): the balance does not add up") }
            state.close()
            try await state.open()
        }
        state.close()
        guard inlet_fault_is_sound(place.journal.string) != 0 else {
            throw Unexpected(what: "\(what): the database is damaged")
        }
        try await state.open()
        // Work goes on.
        _ = try await state.opened().admit(.test("late"), at: Bench.start)
    }
}
