import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What was delivered, looked at again; and the receipts that are files.
@Suite(.serialized) struct VerifyTests {
    /// Three files in the library: jobs 1, 2 and 3.
    private func withLibrary(running: Bool, _ body: @Sendable (Place) async throws -> Void) async throws {
        let (place, agent) = try await Place.running()
        for (number, name) in ["a.bin", "b.bin", "c.bin"].enumerated() {
            try place.put(FilePath(name), bytes(1000))
            try await agent.line("job.finished", number: number + 1)
        }
        if !running { #expect(try await agent.stop() == .code(0)) }
        try await body(place)
    }

    @Test(arguments: [true, false])
    func `verify says of what was named what is missing and what is different, and changes nothing`(
        _ running: Bool
    ) async throws {
        try await withLibrary(running: running) { place in
            let two = try await place.inlet("verify", "1", "3", "--json")
            #expect(try Self.verdicts(two) == ["1": "same", "3": "same"])
            let recent = try await place.inlet("verify", "--since", "1d", "--json")
            #expect(try Self.verdicts(recent).count == 3)
            try await place.inlet("verify", "--batch", "77", says: "No matching deliveries")
            for arguments in [[], ["1", "--all"], ["--since", "soon"]] {
                try await place.inlet(["verify"] + arguments, code: 64)
            }
            try await place.inlet("verify", "--destination", "stor", code: 78)
            try await place.inlet("verify", "--all", "--read", code: 0, says: "3 deliveries: 3 same")
            try FileManager.default.removeItem(atPath: place.library.appending("b.bin").string)
            var damaged = bytes(1000)
            damaged[500] ^= 1
            try damaged.write(to: URL(fileURLWithPath: place.library.appending("c.bin").string))

            let looked = try await place.inlet("verify", "--all", "--json", code: 1)
            #expect(try Self.verdicts(looked) == ["1": "same", "2": "missing", "3": "same"])
            let read = try await place.inlet("verify", "--all", "--read", "--json", code: 1)
            #expect(try Self.verdicts(read) == ["1": "same", "2": "missing", "3": "different"])

            let text = try await place.inlet("verify", "--destination", "store").output
            let missing = try #require(text.firstRange(of: "missing")), same = try #require(text.firstRange(of: "same"))
            #expect(missing.lowerBound < same.lowerBound, "\(text)")
            #expect(text.contains("3 deliveries: 1 missing, 2 same"), "\(text)")
            let balance = try await place.balance()
            #expect(balance["delivered"] == 3)
        }
    }

    @Test func `a destination that cannot be asked is 69, unless something is missing too`() async throws {
        try await withSpiral { place, sandbox in
            let agent = try await place.run()
            try place.put("a.bin", bytes(1000))
            try await agent.line("job.finished")
            try await place.inlet("verify", "--all", "--read", code: 0)
            sandbox.faults.add(Fault(.status(503), at: .objectURL, times: nil))
            let away = try await place.inlet("verify", "--all", "--json", code: 69)
            #expect(try Self.verdicts(away) == ["1": "unreachable"])
            sandbox.faults.clear()
            try await place.inlet("verify", "1", code: 0)
        }
    }

    @Test(arguments: ["folder", "sidecar"], ["archive", "keep", "delete"])
    func `a crash around the file of a receipt leaves one receipt`(_ receipts: String, _ disposition: String)
        async throws
    {
        for point in CrashPoints.receipt.list {
            let place = try Place(route: ["receipts: \(receipts)", "on_success: \(disposition)"])
            try place.put("camera/clip.mov", bytes(10))
            try await place.die(at: point)
            let before = try Self.receipts(place)
            #expect(before.count == (point == "receiptWritten" ? 1 : 0), "\(point): \(before)")
            try await place.runUntil("job.finished")
            let after = try Self.receipts(place)
            #expect(after.count == 1 && (before.isEmpty || after == before), "\(point): \(after)")
            let file = place.folder.path.pushing(FilePath(try #require(after.first)))
            let receipt = try JSONSerialization.jsonObject(with: place.content(file)) as? [String: Any]
            #expect(receipt?["state"] as? String == "delivered")
            #expect(receipt?["receipt_file"] as? String == file.string)
            let stored = try await place.inlet("receipts").objects()
            #expect(stored.count == 1 && stored.first?["receipt_file"] as? String == file.string)
            #expect(try await place.balance()["delivered"] == 1)
        }
    }

    /// Receipts that are files anywhere in the place, leavings of half-written ones included.
    private static func receipts(_ place: Place) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: place.folder.path.string)
            .filter { $0.hasPrefix("state/receipts/") && $0.contains(".json") || $0.contains("inlet-receipt") }.sorted()
    }

    /// By the number of the job.
    private static func verdicts(_ finished: Place.Finished) throws -> [String: String] {
        try finished.objects().reduce(into: [:]) { verdicts, line in
            verdicts["\(line["job"] as? Int ?? 0)"] = line["verdict"] as? String
        }
    }
}

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
                #expect(try Self.lines(found) == ["1 store": "unknown: the journal's proof cannot be read"])
            }
        }
    }
}

/// What is there already is not sent again: not the second file of a content, and nothing of what a crash came after.
@Suite(.serialized) struct DuplicateTests {
    private static let size = 6 << 20

    @Test(arguments: [("skip", "duplicate"), ("link", "delivered")])
    func `no byte of a second file of the same content goes out`(rule: String, state: String) async throws {
        try await withSpiral(route: "dedupe: \(rule)", "on_success: archive") { place, sandbox in
            let agent = try await place.run()
            try place.put("a.mov", bytes(Self.size))
            try await agent.line("job.finished")
            let sent = sandbox.traffic
            #expect(sent.bytesReceived >= Int64(Self.size))
            try place.put("b.mov", bytes(Self.size))
            let line = try await agent.line("job.duplicate")
            #expect(line.isAbout("b.mov") && line.number("same_as") == 1)
            try await agent.line("job.finished", number: 2)
            #expect(sandbox.traffic.bytesReceived == sent.bytesReceived)
            #expect(sandbox.objects().map(\.key) == ["a.mov"])
            let archive = place.drop.appending(".inlet").appending("done")
            #expect(place.exists(archive.appending("a.mov")) && place.exists(archive.appending("b.mov")))
            try await Self.checkReports(place, state)
            #expect(try await agent.stop() == .code(0))
        }
    }

    /// Jobs 1 and 2 are of one content.
    private static func checkReports(_ place: Place, _ state: String) async throws {
        let receipt = try #require(try await place.inlet("receipts", "--limit", "1").objects().first)
        #expect(receipt["job"] as? Int == 2 && receipt["state"] as? String == state)
        let delivery = try #require((receipt["deliveries"] as? [[String: Any]])?.first)
        #expect(delivery["key"] as? String == "a.mov")
        #expect((delivery["details"] as? [String: String])?["same_as"] == "1")
        let status = try await place.inlet("status", "--json").object()
        let files = try #require(status["files"] as? [String: Int])
        #expect(status["seen"] as? Int == 2 && files.values.reduce(0, +) == 2)
        #expect(files[state] == (state == "delivered" ? 2 : 1))
        // A third one is not dropped, only asked about.
        let third = try place.folder.write(bytes(size), to: "third.mov")
        let route = try await place.inlet("route", third.string)
        let end = state == "delivered" ? "linked" : "skipped"
        #expect(route.output.contains("would be \(end): same content as job 1, "), "\(route.output)\(route.errors)")
        #expect(route.output.contains("a.mov, which is there as a.mov"))
    }

    // MARK: - A restart never sends again what is proved

    @Test func `killed after the proof, nothing is sent again to a store with part URLs`() async throws {
        try await withSpiral(route: "on_success: archive") { place, sandbox in
            try await Self.killAfterProof(place) { sandbox.traffic.bytesReceived }
            #expect(sandbox.objects().map(\.key) == ["clip.mov"])
        }
    }

    /// The process dies between the proof and the end of the file, twice; the next one ends it without a byte.
    private static func killAfterProof(_ place: Place, _ received: @Sendable () -> Int64) async throws {
        let content = bytes(size)
        try place.put("clip.mov", content)
        try await place.die(at: Failpoint.delivered.rawValue)
        let sent = received()
        #expect(sent >= Int64(size))
        try await place.die(at: Failpoint.disposed.rawValue)
        try await place.runUntil("job.finished")
        #expect(received() == sent)
        let receipts = try await place.inlet("receipts").objects()
        #expect(receipts.map { $0["state"] as? String } == ["delivered"])
        #expect(try place.content(place.drop.appending(".inlet").appending("done").appending("clip.mov")) == content)
    }
}
