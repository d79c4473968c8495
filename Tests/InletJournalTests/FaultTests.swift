import CFaultVFS
import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

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
