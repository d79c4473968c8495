import Foundation
import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Rows that cannot be read or written, in the lane of small files and in that of big ones.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3")), .timeLimit(.minutes(8)))
struct RefusingJournalTests {
    private static let damage = "UPDATE file SET policy = x'00' WHERE path = CAST('a' AS BLOB)"
    private static let repair =
        "UPDATE file SET policy = (SELECT policy FROM file WHERE path = CAST('b' AS BLOB)) WHERE path = CAST('a' AS BLOB)"

    /// - Parameter smallLimit: with 0 all files are big.
    private func scene(_ smallLimit: Int64, in directory: TemporaryDirectory? = nil) throws -> Scene {
        var scene = try Scene(in: directory)
        scene.destinations = [.scripted("here", scene.here, smallLimit: smallLimit)]
        // Who waited for the grace to end would not be back in time.
        scene.grace = .seconds(3600)
        return scene
    }

    private func sql(_ scene: Scene, _ text: String) throws {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
        let journal = scene.directory.path.appending("state").appending("journal.sqlite")
        shell.arguments = ["-cmd", ".timeout 60000", journal.string, text]
        try shell.run()
        shell.waitUntilExit()
        #expect(shell.terminationStatus == 0)
    }

    @Test(arguments: [0, 1 << 20] as [Int64])
    func `one that cannot be read is parked and said, and the others get their turn`(smallLimit: Int64) async throws {
        let scene = try scene(smallLimit)
        try await scene.run { stage in
            let commands = stage.agent.control
            _ = try await commands.setPaused(true, "here", by: "test")
            try scene.drop("a")
            try await stage.job("a")
            try scene.drop("b")
            try await stage.job("b")
            try sql(scene, Self.damage)
            _ = try await commands.setPaused(false, "here", by: "test")
            try await stage.finished("b")
            try await eventually("it is said") { stage.events.count("file.error") == 1 }
            #expect(try await stage.journal.deliveryCounts(.parked) == ["here": 1])
            let job = try #require(try await stage.agent.control.jobs(FileFilter()).first { $0.file.path == "a" })
            #expect(job.file.state == .pending)
            #expect(job.deliveries[0].code == .internalFault && job.deliveries[0].attempts == 0)
            #expect(job.deliveries[0].reason?.contains("damaged") == true)
        }
        #expect(scene.here.record.orders.map(\.key) == ["b"])
        try sql(scene, Self.repair)
        try await scene.run { stage in try await stage.finished("a") }
        #expect(scene.here.record.orders.map(\.key) == ["b", "a"])
    }

    @Test(arguments: [0, 1 << 20] as [Int64])
    func `an end that the journal refuses is said once, and does not hold up the end of the agent`(
        smallLimit: Int64
    ) async throws {
        let scene = try scene(smallLimit)
        let gate = Gate()
        scene.here.script("a", .hold(gate, .deliver))
        try await scene.run { stage in
            try scene.drop("b")
            try await stage.finished("b")
            try scene.drop("a")
            try await eventually("a is on its way") { scene.here.record.running == 1 }
            try sql(scene, Self.damage)
            gate.open()
            try await eventually("it is said") { stage.events.count("file.error") == 1 }
            try scene.drop("c")
            try await stage.finished("c")
            #expect(try await stage.journal.deliveryCounts(.claimed) == ["here": 1])
            #expect(stage.events.count("file.error") == 1)
        }
        try sql(scene, Self.repair)
        try await scene.run { stage in
            try await stage.finished("a")
            #expect(stage.events.count("job.recovered") == 1)
        }
        #expect(scene.here.record.orders.map(\.key) == ["b", "a", "c", "a"])
    }

    @Test func `the journal is asked less and less often, and a few last times at the end`() {
        var patience = JournalPatience()
        #expect((0..<6).map { _ in patience.pause(isStopping: false) } == [1, 2, 4, 8, 8, 8].map { .seconds($0) })
        #expect(
            (0..<5).map { _ in patience.pause(isStopping: true) } == [.seconds(1), .seconds(1), .seconds(1), nil, nil])
    }

    @Test func `who waits for the journal is woken by the end of the agent`() async {
        let isStopping = StopFlag()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<5 {
                group.addTask {
                    var patience = JournalPatience()
                    // So long that the test would not see its end.
                    await isStopping.wait(until: .now.advanced(by: .seconds(3600)))
                    return await patience.wait(isStopping)
                }
            }
            isStopping.set()
            for await goesOn in group { #expect(goesOn) }
        }
    }
}
