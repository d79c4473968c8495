import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What was named to `inlet verify` and never arrived must not pass for checked.
@Suite(.serialized) struct VerifySelectionTests {
    /// Job 1 is delivered, job 2 failed: another file has its name.
    private func withFailed(running: Bool, _ body: (Place) async throws -> Void) async throws {
        let place = try Place()
        try place.folder.write("another".utf8, to: "library/b.bin")
        let agent = try await place.run()
        for (number, name) in ["a.bin", "b.bin"].enumerated() {
            try place.put(FilePath(name), bytes(1000))
            try await agent.line("job.finished", number: number + 1)
        }
        if !running { #expect(try await agent.stop() == .code(0)) }
        try await body(place)
    }

    /// Verdicts by job and destination, and what was said.
    private static func lines(_ finished: Place.Finished) throws -> [String: String] {
        try finished.objects().reduce(into: [:]) { lines, line in
            let name = "\(line["job"] as? Int ?? 0) \(line["destination"] as? String ?? "?")"
            lines[name] = "\(line["verdict"] as? String ?? "?"): \(line["said"] as? String ?? "?")"
        }
    }

    @Test(arguments: [true, false])
    func `a named job that failed, or does not exist, is said and exits with 1`(_ running: Bool) async throws {
        try await withFailed(running: running) { place in
            let all = try await place.inlet("verify", "1", "2", "99", "--json")
            let lines = try Self.lines(all)
            #expect(all.ending == .code(1) && lines.count == 3, "\(all.output)\(all.errors)")
            #expect(lines["1 store"]?.hasPrefix("same: ") == true)
            #expect(lines["2 store"]?.hasPrefix("undelivered: failed: ") == true)
            #expect(lines["99 "] == "undelivered: there is no job 99")
            try await place.inlet("verify", "2", code: 1, says: "1 delivery: 1 undelivered")
            try await place.inlet("verify", "99", "--json", code: 1, says: "there is no job 99")
            // These ask about what was delivered, whatever else there is.
            try await place.inlet("verify", "1", code: 0)
            try await place.inlet("verify", "--all", code: 0)
            // Of a batch that it is not in, or that does not exist, nothing is fine.
            try await place.inlet("verify", "1", "--batch", "77", "--json", code: 1, says: "\"undelivered\"")
            try await place.inlet("verify", "--batch", "77", code: 1)
            try await place.inlet("verify", "--batch", "77", "--json", code: 1)
        }
    }

    @Test func `a job that arrived at one destination and not at another is not all the same`() async throws {
        let place = try Place()
        try place.configure(
            replacing: "destinations:\n", with: "destinations:\n  other: { type: folder, path: other }\n")
        try place.configure(replacing: "to: store", with: "to: [store, other]")
        try place.folder.write("another".utf8, to: "other/a.bin")
        let agent = try await place.run()
        try place.put("a.bin", bytes(1000))
        try await agent.line("job.finished")
        let both = try await place.inlet("verify", "1", "--json")
        let lines = try Self.lines(both)
        #expect(both.ending == .code(1) && lines.count == 2, "\(both.output)\(both.errors)")
        #expect(lines["1 store"]?.hasPrefix("same: ") == true)
        #expect(lines["1 other"]?.hasPrefix("undelivered: failed: ") == true)
        try await place.inlet("verify", "1", "--destination", "store", code: 0)
        try await place.inlet("verify", "1", "--destination", "other", code: 1)
        try await place.inlet("verify", "--destination", "other", code: 0)
    }

    @Test func `a named batch is fine when all of it is`() async throws {
        let place = try Place(route: ["match: { path: \"*/**\" }", "unit: folder", "completion: marker"])
        let blocked = try place.folder.write("another".utf8, to: "library/A001/b.mov")
        let agent = try await place.run()
        for name in ["a.mov", "b.mov"] { try place.put(FilePath("A001/\(name)"), bytes(1000)) }
        try place.put("A001/DONE", Data())
        try await agent.line("batch.ended")
        let batch = try #require(try await place.inlet("batch", "list", "--json").objects().first?["batch"] as? Int)
        let partial = try await place.inlet("verify", "--batch", "\(batch)", "--json")
        let verdicts = try Self.lines(partial).values.map { $0.prefix { $0 != ":" } }.sorted()
        #expect(
            partial.ending == .code(1) && verdicts == ["same", "undelivered"], "\(partial.output)\(partial.errors)")
        let failed = try #require(try partial.objects().first { $0["verdict"] as? String == "undelivered" })
        try FileManager.default.removeItem(atPath: blocked.string)
        try await place.inlet("queue", "retry", "\(failed["job"] as? Int ?? 0)", code: 0)
        try await agent.line("batch.ended", number: 2)
        let whole = try await place.inlet("verify", "--batch", "\(batch)", "--json", code: 0)
        #expect(try whole.objects().count == 2)
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3")))
    func `a delivery whose proof cannot be read is unknown, not left out`() async throws {
        try await withFailed(running: false) { place in
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
            shell.arguments = [
                place.state.appending("journal.sqlite").string, "UPDATE delivery SET proof = x'00' WHERE file_id = 1",
            ]
            try shell.run()
            shell.waitUntilExit()
            #expect(shell.terminationStatus == 0)
            for selection in ["--all", "1"] {
                let found = try await place.inlet("verify", selection, "--json", code: 0)
                #expect(try Self.lines(found) == ["1 store": "unknown: the journal's proof of it cannot be read"])
            }
        }
    }
}
