import Foundation
import InletSandbox
import SystemPackage
import Testing

/// `existing: adopt` with real destinations.
@Suite struct AdoptTests {
    private static let adopting = ["existing: ingest", "existing: adopt\n    adopt_check: true"]

    /// Sends two files, forgets that it did, changes those of `changed` and adds another, and watches all as a stranger's. Only
    /// what was not there is sent.
    private static func adoptAfterSending(_ place: Place, changed: Set<String>) async throws {
        let old: Set = ["same.bin", "other.bin"]
        for name in old { try place.put(FilePath(name), bytes(1000)) }
        let first = try await place.run()
        for name in old { try await first.line("job.finished") { $0.isAbout(name) } }
        #expect(try await first.stop() == .code(0))
        try FileManager.default.removeItem(atPath: place.state.string)
        for name in changed { try place.put(FilePath(name), bytes(1001)) }
        try place.put("new.bin", bytes(7))
        try place.configure(replacing: adopting[0], with: adopting[1])
        let second = try await place.run()
        let expected = changed.union(["new.bin"])
        for name in expected { try await second.line("job.finished") { $0.isAbout(name) } }
        let adopted = try await second.line("watch.adopted")
        #expect(adopted.number("files") == Int64(old.subtracting(changed).count))
        #expect(try await place.status().files == ["delivered": 3])
        #expect(try await second.stop() == .code(0))
        let sent = second.lines("job.admitted").compactMap { $0["path"]?.split(separator: "/").last }
        #expect(Set(sent.map(String.init)) == expected && second.lines("file.not_adopted").count == expected.count)
    }

    @Test func `a bucket is asked for each file, and gets what it has not`() async throws {
        try await withS3("if_exists: overwrite") { place, sandbox in
            try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    \(Self.adopting[0])")
            try await Self.adoptAfterSending(place, changed: ["other.bin"])
            #expect(sandbox.traffic.counts[.putObject] == 4)
            #expect(sandbox.objects().count == 3)
        }
    }

    @Test func `a folder is asked for each file, and gets what it has not`() async throws {
        let place = try Place(watch: [Self.adopting[0]])
        try await Self.adoptAfterSending(place, changed: [])
        #expect(
            Place.files(below: place.library) == [
                "same.bin": bytes(1000), "other.bin": bytes(1000), "new.bin": bytes(7),
            ])
    }

    @Test(.timeLimit(.minutes(4)))
    func `an agent that is killed while it adopts goes on, and sends nothing of what was there`() async throws {
        let place = try Place(watch: ["existing: adopt"])
        for folder in 0..<20 {
            for file in 0..<150 { try place.put(FilePath("d\(folder)/f\(file).bin"), bytes(8, seed: UInt64(file))) }
        }
        // The first look at the folder decides what was there: not the millisecond of the last file.
        try place.put("last", Data([1]))
        var delivered = 0
        for _ in 0..<3 where delivered < 3001 {
            let agent = try await place.run()
            try await agent.wait("it has adopted more") {
                let now = try await place.balance()["delivered"] ?? 0
                defer { delivered = max(delivered, now) }
                return now > delivered
            }
            try await agent.kill()
        }
        try place.put("d0/new.bin", bytes(9))
        let last = try await place.run()
        try await last.line("job.finished") { $0.isAbout("new.bin") }
        try await last.wait("all is known") { try await place.balance()["delivered"] == 3002 }
        let balance = try await place.balance()
        #expect(balance.values.reduce(0, +) == 3002, "\(balance)")
        #expect(try await last.stop() == .code(0))
        #expect(Place.files(below: place.library) == ["d0/new.bin": bytes(9)])
    }
}

/// What `inlet check` says of adoption that could find nothing.
@Suite struct AdoptCheckTests {
    private static func said(_ key: String) async throws -> String {
        try await Place(key: key, watch: ["existing: adopt", "adopt_check: true"]).inlet("check").output
    }

    @Test(arguments: ["{epoch_ms}_{name}", "{now:yyyy}/{name}", "{now:HH}/{name}", "{now:ss}-{name}", "{seq}-{name}"])
    func `a key that is another one each time is warned of`(_ key: String) async throws {
        #expect(try await Self.said(key).contains("adopt_check, route all: the key '\(key)' is another one each time"))
    }

    @Test func `a key that lasts, at a folder, is fine`() async throws {
        #expect(try await !Self.said("{mtime:yyyy}/{dir}/{name}").contains("adopt_check"))
    }
}
