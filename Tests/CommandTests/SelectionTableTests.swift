import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Every command on a selection with every filter, one after the other: what it says, how it ends, what is left.
@Suite(.serialized) struct SelectionTableTests {
    private struct Step {
        let command: String
        let code: Int32
        let says: [String]
        let left: [String: Int]

        init(_ command: String, _ code: Int32 = 0, _ says: String..., left: [String: Int]) {
            (self.command, self.code, self.says, self.left) = (command, code, says, left)
        }
    }

    private static let all = ["delivered": 3, "failed": 1, "rejected": 1, "pending": 1]
    private static let withoutBatch = ["failed": 1, "rejected": 1, "pending": 1]

    /// What only asks, or is about nothing: all is as it was.
    private static let harmless = [
        Step("forget --state delivered --dry-run", 0, "3 files, 30 bytes, would be forgotten", "gigs/X/b", left: all),
        Step("forget --batch 1 --dry-run", 0, "3 files, 30 bytes, would be forgotten", "gigs/X/DONE", left: all),
        Step("forget --batch 2 --yes", 0, "0 files forgotten", left: all),
        Step("forget --batch 1", 64, "3 files, 30 bytes, would be forgotten", "--yes", left: all),
        Step("forget --older 1h --yes", 0, "0 files forgotten", left: all),
        Step("forget --older 0 --dry-run", 0, "5 files, ", left: all),
        Step("forget --code timed_out --yes", 0, "0 files forgotten", left: all),
        Step("forget --path held.bin --state delivered --yes", 0, "0 files forgotten", left: all),
        Step("forget", 64, "name a job or a filter", left: all),
        Step("retry --code too_large --dry-run", 0, "1 file, 6 MiB, would be queued again", "bad.bin", left: all),
        Step("retry --code timed_out --dry-run", 0, "0 files, ", left: all),
        Step("retry --all-failed --dry-run", 0, "1 file, 6 MiB, would be queued again", left: all),
        Step("retry --older 0 --dry-run", 0, "2 files, ", "bad.bin", "held.bin", left: all),
        Step("retry --older 1h", 0, "0 files queued again", left: all),
        Step("cancel --older 0 --dry-run", 0, "1 file, 40 bytes, would be cancelled", "held.bin", left: all),
        Step("cancel --batch 1 --yes", 0, "0 files cancelled", left: all),
        Step("clear --dry-run", 0, "1 file, 40 bytes, would be cancelled", "held.bin", left: all),
        Step("clear --older 1h --yes", 0, "0 files cancelled", left: all),
        Step("clear --older 0", 64, "--yes", left: all),
        Step("clear --code too_large --yes", 0, "0 files cancelled", left: all),
    ]

    /// What takes the queue apart.
    private static let harmful = [
        Step("forget --batch 1 --older 0 --yes", 0, "3 files forgotten", left: withoutBatch),
        Step("list --batch 1", 0, "No file matches", left: withoutBatch),
        Step("clear --older 0 --yes", 0, "1 file cancelled", left: ["failed": 1, "rejected": 1, "cancelled": 1]),
        // One alone is what was meant.
        Step("forget --code too_large", 0, "1 file forgotten", left: ["rejected": 1, "cancelled": 1]),
        Step("retry --older 0 --state cancelled", 0, "1 file queued again", left: ["rejected": 1, "pending": 1]),
        Step("forget --older 0 --yes", 0, "1 file forgotten", left: ["pending": 1]),
    ]

    @Test(arguments: [true, false])
    func `each filter and each switch means the same to each command`(_ running: Bool) async throws {
        try await withSelections(running: running) { place in
            for step in Self.harmless + Self.harmful {
                let done = try await place.inlet(["queue"] + step.command.split(separator: " ").map(String.init))
                let said = done.output + done.errors
                #expect(done.ending == .code(step.code), "\(step.command): \(said)")
                for text in step.says { #expect(said.contains(text), "\(step.command): \(said)") }
                #expect(try await place.status().files == step.left, "\(step.command): \(said)")
            }
        }
    }

    /// A folder of two that was delivered with its marker as batch 1; a file that failed, one that was rejected, and one
    /// that waits for the destination, which is paused.
    private func withSelections(
        running: Bool, _ body: @Sendable @escaping (Place) async throws -> Void
    ) async throws {
        try await withSpiral(route: "validate: { max_size: 9MiB }") { place, sandbox in
            try place.configure(
                replacing: "routes:\n",
                with: """
                    routes:
                      - name: gigs
                        match: { path: "gigs/**" }
                        to: store
                        key: "{dir}/{name}"
                        unit: folder
                        completion: marker

                    """)
            for (name, size) in [("a", 10), ("b", 20), ("DONE", 0)] {
                try place.put(FilePath("gigs/X/\(name)"), bytes(size))
            }
            let agent = try await place.run()
            try await agent.line("job.finished", number: 3)
            sandbox.faults.add(Fault(.reply(.tooLarge), at: .create, times: nil))
            try place.put("bad.bin", bytes(6 << 20))
            try place.put("huge.bin", bytes(10 << 20))
            try await agent.line("job.finished", number: 5)
            sandbox.faults.clear()
            try await place.inlet("pause", "store", code: 0)
            try place.put("held.bin", bytes(40))
            try await agent.line("job.admitted") { $0.isAbout("held.bin") }
            if !running { #expect(try await agent.stop() == .code(0)) }
            try await body(place)
        }
    }
}
