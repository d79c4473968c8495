import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What was delivered, looked at again; and the receipts that are files.
@Suite(.serialized) struct VerifyTests {
    /// Three files in the library: jobs 1, 2 and 3.
    private func withLibrary(running: Bool, _ body: @Sendable (Place) async throws -> Void) async throws {
        let place = try Place()
        let agent = try await place.run()
        for (number, name) in ["a.bin", "b.bin", "c.bin"].enumerated() {
            try place.put(FilePath(name), bytes(1000))
            try await agent.line("job.finished", number: number + 1)
        }
        if !running { #expect(try await agent.stop() == .code(0)) }
        try await body(place)
    }

    @Test(arguments: [true, false])
    func `verify says what is missing and what is different, and changes nothing`(_ running: Bool) async throws {
        try await withLibrary(running: running) { place in
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

    @Test func `verify is about the jobs, the age, the destination or the batch that was named`() async throws {
        try await withLibrary(running: false) { place in
            let two = try await place.inlet("verify", "1", "3", "--json")
            #expect(try Self.verdicts(two) == ["1": "same", "3": "same"])
            let recent = try await place.inlet("verify", "--since", "1d", "--json")
            #expect(try Self.verdicts(recent).count == 3)
            try await place.inlet("verify", "--batch", "77", says: "Nothing that was delivered")
            try await place.inlet("verify", code: 64)
            try await place.inlet("verify", "1", "--all", code: 64)
            try await place.inlet("verify", "--since", "soon", code: 64)
            try await place.inlet("verify", "--destination", "stor", code: 78)
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
            let next = try await place.run()
            try await next.line("job.finished")
            #expect(try await next.stop() == .code(0))
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
