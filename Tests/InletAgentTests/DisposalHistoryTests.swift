import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Histories of files on their way out, drawn from seeds; `INLET_DISPOSAL_SEED` plays one again and tells it.
@Suite struct DisposalHistoryTests {
    private static let seed = ProcessInfo.processInfo.environment["INLET_DISPOSAL_SEED"].flatMap { UInt64($0) }
    /// Those that are always played, and others that nobody has seen yet.
    private static func seeds(_ full: Int) -> [UInt64] {
        if let seed { return [seed] }
        let new = UInt64.random(in: 1_000_000...1_000_000_000_000)
        let half = UInt64(Load.of(full) / 2)
        return Array(1...half) + Array(new..<new + half)
    }

    @Test func `whatever happens, nothing is lost, hidden for good, or there twice: in memory`() {
        for seed in Self.seeds(200_000) {
            var history = DisposalHistory(seed: seed)
            do {
                try history.play()
            } catch {
                var told = DisposalHistory(seed: seed, isTold: true)
                // It fails again.
                try? told.play()
                let lines = told.log.lines.joined(separator: "\n")
                Issue.record("INLET_DISPOSAL_SEED=\(seed): \(told.model.setting): \(error)\n\(lines)")
                return
            }
        }
    }

    @Test(.enabled(if: isOtherFileSystem("/dev/shm")))
    func `whatever happens, nothing is lost, hidden for good, or there twice: on a disk`() async throws {
        for seed in Self.seeds(2000) {
            let new = try await play(seed, .new)
            let old = try await play(seed, .old)
            if new != old, !Self.isKnown(new, old) {
                Issue.record("INLET_DISPOSAL_SEED=\(seed): now \(new); before \(old)")
            }
            _ = try await play(seed, .newWithFaults)
        }
    }

    /// Where the two differ, and why.
    private static func isKnown(_ new: DisposalFolder.Outcome, _ old: DisposalFolder.Outcome) -> Bool {
        guard new.files == old.files else { return false }
        // After a crash, what has the file's name, size and time is not taken for another file unlooked: it is judged like any
        // other. So it is said to have changed, and looked at again, or kept with a note, and not called deleted or gone.
        let isThere = new.files["drop/sub/a.txt"] != nil
        return isThere && (new.state == .superseded || new.end.hasPrefix(Disposition.untouched("it was touched")))
    }

    private enum Machine { case old, new, newWithFaults }

    private func play(_ seed: UInt64, _ machine: Machine) async throws -> DisposalFolder.Outcome {
        var random = SeededGenerator(seed: seed)
        var setting = DisposalModel.Setting(&random)
        (setting.isLinked, setting.areWritersUnknown) = (false, false)
        var folder = try await DisposalFolder(setting)
        let acts = DisposalFolder.acts(&random)
        var end: (String, FileState?)?
        for act in acts where end == nil {
            let before = folder
            let faults = machine == .newWithFaults ? random.next() : nil
            try await folder.act(act) { end = try await Self.dispose(before, machine, faults) }
        }
        try folder.calm()
        var last = "it waits"
        for _ in 0..<40 where end == nil {
            do {
                end = try await Self.dispose(folder, machine)
            } catch is UnreadableIntent {
                end = ("unreadable", nil)
            } catch {
                last = "\(error)"
            }
        }
        let outcome = try folder.outcome(end?.0 ?? "none: \(last)", end?.1)
        do {
            if end == nil { throw DisposalHistory.Broken(description: "it comes to no end: \(outcome)") }
            try folder.judge(outcome)
        } catch {
            Issue.record("INLET_DISPOSAL_SEED=\(seed): \(machine): \(setting): \(acts): \(error)")
        }
        return outcome
    }

    /// - Returns: nil while it must wait.
    private static func dispose(
        _ folder: DisposalFolder, _ machine: Machine, _ faults: UInt64? = nil
    ) async throws -> (String, FileState?)? {
        let (bench, job) = (folder.bench, try await folder.job())
        if machine == .old {
            let disposal = SourceDisposal(journal: bench.journal, places: bench.places, job: job, hashing: bench.pool)
            guard case .done(let text, let state, _) = try await disposal.dispose() else { return nil }
            return (text, state)
        }
        var runner = DisposalRunner(journal: bench.journal, places: bench.places, job: job, hashing: bench.pool)
        let ending =
            if let faults {
                try await folder.whileFailing(faults) { try await runner.run() }
            } else {
                try await runner.run()
            }
        guard case .done(let text, let state, _) = ending else { return nil }
        return (text, state)
    }
}
