import Foundation
import InletSandbox
import SystemPackage
import Testing

/// `existing: adopt` with real destinations.
@Suite struct AdoptTests {
    private static let adopting = ["existing: ingest", "existing: adopt\n    adopt_check: true"]

    /// Sends two files, forgets that it did, changes one of them and adds another, and watches them as a stranger's.
    ///
    /// - Returns: what the second process said.
    private static func adoptAfterSending(_ place: Place) async throws -> [LogLine] {
        for name in ["same.bin", "longer.bin"] { try place.put(FilePath(name), bytes(1000)) }
        let first = try await place.run()
        for name in ["same.bin", "longer.bin"] { try await first.line("job.finished") { $0.isAbout(name) } }
        #expect(try await first.stop() == .code(0))
        try FileManager.default.removeItem(atPath: place.state.string)
        try place.put("longer.bin", bytes(1001))
        try place.put("new.bin", bytes(7))
        try place.configure(replacing: adopting[0], with: adopting[1])
        let second = try await place.run()
        for name in ["longer.bin", "new.bin"] { try await second.line("job.finished") { $0.isAbout(name) } }
        try await second.line("watch.adopted")
        #expect(try await place.balance()["delivered"] == 3)
        #expect(try await second.stop() == .code(0))
        return second.log
    }

    /// Only what was not there is sent.
    private static func check(_ log: [LogLine]) {
        let sent = log.filter { $0.event == "job.admitted" }.compactMap { $0["path"]?.split(separator: "/").last }
        #expect(Set(sent) == ["longer.bin", "new.bin"])
        #expect(log.count { $0.event == "file.not_adopted" } == 2)
        #expect(log.filter { $0.event == "watch.adopted" }.map { $0.number("files") } == [1])
    }

    @Test func `a bucket is asked for each file, and gets what it has not`() async throws {
        try await withS3("if_exists: overwrite") { place, sandbox in
            try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    \(Self.adopting[0])")
            Self.check(try await Self.adoptAfterSending(place))
            #expect(sandbox.traffic.counts[.putObject] == 4)
            #expect(sandbox.objects().count == 3)
        }
    }

    @Test func `a folder is asked for each file, and gets what it has not`() async throws {
        var config = ConfigText()
        config.watch.append(Self.adopting[0])
        let place = try Place(config)
        Self.check(try await Self.adoptAfterSending(place))
        #expect(try place.content(place.library.appending("same.bin")) == bytes(1000))
        #expect(Place.files(below: place.library).values.contains(bytes(1001)))
        #expect(Place.files(below: place.library)["new.bin"] == bytes(7))
    }

    @Test(.timeLimit(.minutes(4)))
    func `an agent that is killed while it adopts goes on, and sends nothing of what was there`() async throws {
        var config = ConfigText()
        config.watch.append("existing: adopt")
        let place = try Place(config)
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
