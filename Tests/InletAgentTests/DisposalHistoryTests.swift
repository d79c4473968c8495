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
            try await play(seed, isFailing: false)
            try await play(seed, isFailing: true)
        }
    }

    /// - Parameter isFailing: whether calls fail besides.
    private func play(_ seed: UInt64, isFailing: Bool) async throws {
        var random = SeededGenerator(seed: seed)
        var setting = DisposalModel.Setting(&random)
        (setting.isLinked, setting.areWritersUnknown) = (false, false)
        var folder = try await DisposalFolder(setting)
        let acts = DisposalFolder.acts(&random)
        var end: String?
        for act in acts where end == nil {
            let before = folder
            let faults = isFailing ? random.next() : nil
            try await folder.act(act) { end = try await Self.dispose(before, faults) }
        }
        try folder.calm()
        var last = "it waits"
        for _ in 0..<40 where end == nil {
            do {
                end = try await Self.dispose(folder)
            } catch is UnreadableIntent {
                end = "unreadable"
            } catch {
                last = "\(error)"
            }
        }
        do {
            if end == nil { throw DisposalHistory.Broken(description: "it comes to no end: \(last)") }
            try folder.judge(end)
        } catch {
            Issue.record("INLET_DISPOSAL_SEED=\(seed): \(isFailing ? "failing, " : "")\(setting): \(acts): \(error)")
        }
    }

    /// - Returns: nil while it must wait.
    private static func dispose(_ folder: DisposalFolder, _ faults: UInt64? = nil) async throws -> String? {
        let (bench, job) = (folder.bench, try await folder.job())
        var runner = bench.runner(job)
        if let faults { return try await folder.whileFailing(faults) { try await runner.run().disposition } }
        return try await runner.run().disposition
    }
}
