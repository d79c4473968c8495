import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Cards while they are in: they are pulled, change, fail, and go out.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct CardWatchSceneTests {
    /// How soon a pull or a new file without an event is noticed.
    private static let noticed = Duration.seconds(10)

    @Test func `a card that gives other bytes the second time is not safe, although no time has changed`() async throws
    {
        let place = try Place.readers(watch: ["source_check: reread"])
        let film = bytes(300_000)
        let card = try DiskImage.card(["DCIM/a.mov": film, "DCIM/b.jpg": bytes(1000, seed: 2)])
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe)
        #expect(try await place.card().says("2 files read twice, equal"))
        try card.unmount(place.reader("one"))
        try await agent.line("volume.removed")
        let part = film[131_072..<131_200]
        try card.overwrite(Data(part), with: Data(part.map { ~$0 }))
        try card.mount(at: place.reader("two"))
        let differs = try await place.wait("call_somebody", by: agent)
        #expect(differs.headline.contains("1 file reads differently the second time"), "\(differs)")
        #expect(differs.lines.contains { $0.mark == "bad" && $0.text.contains("a.mov") }, "\(differs)")
        #expect(agent.headlines().count { $0 == InletProcess.safe } == 1)
    }

    @Test func `a sample of a card is read a second time, once for each stay`() async throws {
        let place = try Place.readers(watch: ["source_check: sample"])
        let card = try DiskImage(label: "EOS", megabytes: 16)
        let point = try place.folder.makeDirectory("point")
        try card.mount(at: point)
        try FileManager.default.createDirectory(
            atPath: point.appending("DCIM").string, withIntermediateDirectories: true)
        for number in 0..<60 {
            let file = point.pushing(FilePath("DCIM/\(number).jpg"))
            try bytes(1000 + number).write(to: URL(fileURLWithPath: file.string))
        }
        try card.unmount(point)
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe)
        let line = try #require(try await place.card().lines.first { $0.text.contains("read twice, equal") })
        let count = try #require(line.text.firstMatch(of: /(\d+) files read twice/).flatMap { Int($0.1) })
        #expect(count > 0 && count < 60, "\(line)")
    }

    @Test func `a wrong checksum list on the card makes it unsafe, and a right one is as good as a second read`()
        async throws
    {
        let place = try Place.readers(watch: ["volume_safe: routed"], route: ["match: { extensions: [mov] }"])
        // MD5 of "one\n".
        let right = "5bbf5a52328e7439ae6e719dfe712200"
        func list(_ hash: String) -> Data {
            Data(
                """
                <?xml version="1.0" encoding="UTF-8"?>
                <hashlist version="1.1"><creatorinfo><name>x</name><username>x</username><hostname>x</hostname>
                <tool>x</tool><startdate>2026-11-12T10:00:00Z</startdate><finishdate>2026-11-12T10:00:00Z</finishdate>
                </creatorinfo><hash><file>DCIM/a.mov</file><size>4</size><md5>\(hash)</md5></hash>
                <hash><file>DCIM/._a.mov</file><size>4</size><md5>\(right)</md5></hash></hashlist>

                """.utf8)
        }
        let film = Data("one\n".utf8)
        let good = try DiskImage.card(
            ["DCIM/a.mov": film, "DCIM/._a.mov": film, "GOOD.mhl": list(right)], label: "GOOD")
        let bad = try DiskImage.card(
            ["DCIM/a.mov": film, "BAD.mhl": list(right.replacing("5bbf", with: "5bbe"))], label: "BAD")
        let agent = try await place.run()
        try good.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe, of: "GOOD")
        #expect(try await place.card("GOOD").says("1 file as in GOOD.mhl"))
        try bad.mount(at: place.reader("two"))
        try await agent.told("CALL SOMEBODY", of: "BAD")
        #expect(try await !place.card("BAD").safe && !agent.headlines(of: "BAD").contains(InletProcess.safe))
    }

    @Test
    func `a card that fails while it is copied is pulled, keeps its errors to itself, and goes on when it is back`()
        async throws
    {
        try await withStore { store, settings in
            let place = try Place.readers(["store": settings + ", part_size: 5MiB, multipart_threshold: 6MiB"])
            let card = try DiskImage.card(["DCIM/a.mov": bytes(8 << 20), "DCIM/b.jpg": bytes(1000, seed: 2)])
            let content = try card.bytes
            let gate = RequestGate()
            store.faults.add(S3Fault(.hold(gate), at: .uploadPart, times: nil))
            let agent = try await place.run()
            // A file system that is written to would make the medium whole again.
            try card.mount(at: place.reader("one"), readOnly: true)
            try await agent.wait("its parts") { store.traffic.counts[.uploadPart] ?? 0 >= 1 }
            try await agent.line("job.finished") { $0["path"]?.hasSuffix("b.jpg") == true }
            try card.fail()
            let pulled = try await place.wait("pulled", by: agent, within: Self.noticed)
            #expect(pulled.headline == "PULLED: 1 file not copied" && pulled.needs_somebody, "\(pulled)")
            try await agent.told("PULLED")
            store.faults.clear()
            gate.open()
            try card.pullGently(place.reader("one"))
            try await agent.line("volume.removed")
            try await agent.wait("it is let go") { card.isOut }
            // It is shown until it is back.
            #expect(try await place.card().verdict == "pulled")
            try card.restore(content)
            try card.mount(at: place.reader("two"))
            try await agent.told(InletProcess.safe)
            #expect(agent.lines("job.failed").isEmpty)
            let card2 = try await place.card()
            #expect(card2.safe && card2.says("read errors 0") && card2.read_errors == 0, "\(card2)")
            #expect(Set(store.objects().map(\.size)) == [8 << 20, 1000])
        }
    }

    @Test func `a card that fails while it is shown as safe is pulled`() async throws {
        let place = try Place.readers()
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(10_000)])
        let agent = try await place.run()
        try card.mount(at: place.reader("one"), readOnly: true)
        try await agent.told(InletProcess.safe)
        try card.fail()
        let pulled = try await place.wait("pulled", by: agent, within: Self.noticed)
        #expect(!pulled.safe && pulled.says("the card no longer answers"), "\(pulled)")
        try await place.inlet("cards", "eject", "EOS", code: 1, errors: "stays in: PULLED")
        try card.pullGently(place.reader("one"))
        try await agent.line("volume.removed")
        // Everything of it had been copied: nobody has to be called.
        #expect(try await place.cards().isEmpty)
    }

    @Test func `a card that goes in the middle and comes back in another reader goes on`() async throws {
        try await withStore { store, settings in
            let place = try Place.readers(["store": settings + ", part_size: 5MiB, multipart_threshold: 6MiB"])
            let card = try DiskImage.card(["DCIM/a.mov": bytes(8 << 20), "DCIM/b.mov": bytes(9 << 20, seed: 2)])
            let gate = RequestGate()
            store.faults.add(S3Fault(.hold(gate), at: .uploadPart, part: 2, times: nil))
            let agent = try await place.run()
            try card.mount(at: place.reader("one"))
            try await agent.wait("second parts") { store.traffic.counts[.uploadPart] ?? 0 >= 2 }
            try card.pullGently(place.reader("one"))
            try await agent.told("PULLED: 2 files not copied")
            store.faults.clear()
            gate.open()
            try card.mount(at: place.reader("two"))
            try await agent.told(InletProcess.safe)
            #expect(store.objects().map(\.versions) == [1, 1])
            #expect(try await place.cards().map(\.name) == ["EOS"])
        }
    }

    @Test func `a new file on a safe card makes it wait at once, and one outside is noticed`() async throws {
        let place = try Place.readers()
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(10_000)])
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe)
        try place.put(bytes(20_000, seed: 2), on: "one", "DCIM/b.jpg")
        try await agent.line("job.finished", number: 2)
        try await place.wait("safe", by: agent, within: InletProcess.promise) { $0.files == 2 && $0.accounted == 2 }
        try place.put(bytes(20_000, seed: 3), on: "one", "MISC/c.jpg")
        try await place.wait("others_left", by: agent, within: Self.noticed)
        try FileManager.default.removeItem(atPath: place.reader("one").pushing("MISC/c.jpg").string)
        try await place.wait("safe", by: agent, within: Self.noticed)
    }

    @Test func `with routed files alone no card is safe while one of them is not copied`() async throws {
        let place = try Place.readers(watch: ["volume_safe: routed"])
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe)
        for number in 0..<8 {
            let name = "\(number).jpg"
            try place.put(bytes(30_000, seed: UInt64(number)), on: "one", "DCIM/\(name)")
            try await agent.wait("\(name) is accounted for") {
                // In this order: what is at the library when it is asked was there when the card was.
                let card = try await place.card()
                let isThere = place.names(in: "library").contains("EOS/\(name)")
                if card.safe, card.files == number + 2 { #expect(isThere, "\(card)") }
                return card.safe && card.accounted == number + 2
            }
        }
    }

    @Test func `an eject waits for the verdict, and one by itself comes with it`() async throws {
        let place = try Place.readers()
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000), "x.txt": bytes(1)])
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await place.wait("others_left", by: agent)
        try await place.inlet(
            "cards", "eject", "EOS", code: 1, errors: "'EOS' stays in: NOT YET: 1 other file on it")
        try await place.inlet("cards", "leave", "EOS", code: 0)
        try await agent.told(InletProcess.safe)
        try await place.inlet("cards", "eject", "EOS", code: 0)
        try await agent.line("card.ejected")
        try await agent.wait("it is out") { card.isOut }
        let out = try await place.card()
        #expect(out.headline == "OUT: you can take it" && out.files == 2 && out.says("(they may stay)"), "\(out)")
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    on_complete: eject")
        let next = try await place.run()
        try card.mount(at: place.reader("one"))
        try await place.wait("others_left", by: next)
        #expect(next.lines("card.ejected").isEmpty)
        try await place.inlet("cards", "leave", "EOS", code: 0)
        #expect(try await next.line("card.ejected")["by"] == "on_complete")
        try await next.wait("it is out") { card.isOut }
    }
}
