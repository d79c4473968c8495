import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Cards that come back: no verdict is taken from the journal alone.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct CardReturnSceneTests {
    private static let two =
        ["library": "type: folder, path: library", "nas": "type: folder, path: nas"]
        as KeyValuePairs

    /// Copies a card, and takes it out again.
    private func visited(_ place: Place, _ card: DiskImage) async throws -> InletProcess {
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe)
        try card.unmount(place.reader("one"))
        try await agent.line("volume.removed")
        return agent
    }

    @Test func `a copy that was deleted meanwhile is missed, and sent again when a person says so`() async throws {
        let place = try Place.readers(Self.two)
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000), "DCIM/b.jpg": bytes(2000, seed: 2)])
        let agent = try await visited(place, card)
        try FileManager.default.removeItem(atPath: place.path("nas/EOS/b.jpg").string)
        try card.mount(at: place.reader("two"))
        let missed = try await place.wait("call_somebody", by: agent)
        #expect(missed.headline.contains("1 file is no longer at nas"), "\(missed)")
        #expect(missed.says("at nas 1 of 2: 1 missing") && missed.says("at library 2 of 2, proved"), "\(missed)")
        #expect(agent.headlines().count { $0 == InletProcess.safe } == 1)
        try await place.inlet("cards", "resend", "EOS", code: 0, says: "1 file is sent again")
        try await agent.told(InletProcess.safe, number: 2)
        #expect(try place.content(place.path("nas/EOS/b.jpg")) == bytes(2000, seed: 2))
    }

    @Test func `a copy of another length is missed, and is never overwritten`() async throws {
        let place = try Place.readers()
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await visited(place, card)
        let copy = place.path("library/EOS/a.jpg")
        try bytes(999).write(to: URL(fileURLWithPath: copy.string))
        try card.mount(at: place.reader("two"))
        try await agent.told("CALL SOMEBODY: 1 file is no longer at library")
        #expect(try await place.card().says("it has 999 bytes, not 1000"))
        try await place.inlet("cards", "resend", "EOS", code: 0)
        try await agent.told("CALL SOMEBODY: 1 file was not delivered")
        #expect(try place.content(copy) == bytes(999))
        try FileManager.default.removeItem(atPath: copy.string)
        try await place.inlet("queue", "retry", "--all-failed", code: 0)
        try await agent.told(InletProcess.safe, number: 2)
        #expect(try place.content(copy) == bytes(1000))
    }

    @Test func `another object of equal size under a key of the card is missed by its tag`() async throws {
        try await withStore { store, settings in
            let place = try Place.readers(["store": settings])
            let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
            let agent = try await visited(place, card)
            // Another machine has another card of the same name.
            let (foreign, other) = (
                try Place.readers(["store": settings]), try DiskImage.card(["DCIM/a.jpg": bytes(1000, seed: 9)])
            )
            _ = try await visited(foreign, other)
            #expect(store.objects().map(\.versions) == [2])
            try card.mount(at: place.reader("one"))
            try await agent.told("CALL SOMEBODY: 1 file is no longer at store")
            try await place.inlet("cards", "resend", "EOS", code: 0)
            try await agent.told(InletProcess.safe, number: 2)
            let objects = store.objects()
            #expect(try objects.contains { try place.content($0.path) == bytes(1000) }, "\(objects)")
        }
    }

    @Test func `a destination that is away keeps a card from being safe, until it is there`() async throws {
        let place = try Place.readers(Self.two)
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await visited(place, card)
        try FileManager.default.moveItem(atPath: place.path("nas").string, toPath: place.path("away").string)
        try card.mount(at: place.reader("one"))
        let waiting = try await place.wait("not_yet", by: agent) { $0.says("1 unknown") }
        #expect(waiting.says("at library 1 of 1, proved"), "\(waiting)")
        #expect(agent.headlines() == [InletProcess.safe])
        try FileManager.default.moveItem(atPath: place.path("away").string, toPath: place.path("nas").string)
        try await agent.told(InletProcess.safe, number: 2)
        #expect(agent.headlines() == [InletProcess.safe, InletProcess.safe])
    }

    @Test func `a destination that left the configuration needs a person, and counts again once it is back`()
        async throws
    {
        let place = try Place.readers(Self.two)
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await visited(place, card)
        let text = try place.content(place.configuration)
        try place.configure(replacing: "  nas: { type: folder, path: nas }\n", with: "")
        try place.configure(replacing: "to: [library, nas]", with: "to: [library]")
        try await place.inlet("reload", code: 0)
        try card.mount(at: place.reader("one"))
        let missed = try await place.wait("call_somebody", by: agent)
        #expect(missed.says("at nas 0 of 1: 1 not confirmed (it is not in the configuration)"), "\(missed)")
        try await agent.told(missed.headline)
        #expect(agent.headlines() == [InletProcess.safe, missed.headline])
        try text.write(to: URL(fileURLWithPath: place.configuration.string))
        try await place.inlet("reload", code: 0)
        try await agent.told(InletProcess.safe, number: 2)
    }

    @Test func `another card in the same reader starts anew, and a reload keeps a card's stay and its labels`()
        async throws
    {
        let place = try Place.readers()
        let first = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let second = try DiskImage.card(["DCIM/a.jpg": bytes(1000, seed: 2)], label: "FUJI")
        let agent = try await place.run()
        try first.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe)
        try first.unmount(place.reader("one"))
        try second.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe, of: "FUJI")
        #expect(place.names(in: "library") == ["EOS/a.jpg", "FUJI/a.jpg"])
        #expect(try await place.cards().map(\.name) == ["FUJI"])
        try await place.inlet("cards", "label", "FUJI", "--roll", "B007", code: 0)
        try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    copies: 1")
        try await place.inlet("reload", code: 0)
        let card = try await place.wait("safe", of: "FUJI", by: agent)
        #expect(card.roll == "B007", "\(card)")
    }

    @Test func `a copy of a lost file is sent again too, and what is there is not`() async throws {
        let place = try Place.readers(Self.two, route: ["dedupe: link"])
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000), "DCIM/b.jpg": bytes(1000)])
        let agent = try await visited(place, card)
        let names = place.names(in: "nas")
        for name in names { try FileManager.default.removeItem(atPath: place.path("nas/\(name)").string) }
        try card.mount(at: place.reader("two"))
        try await agent.told("CALL SOMEBODY: 2 files are no longer at nas")
        try await place.inlet("cards", "resend", "EOS", code: 0)
        try await agent.told(InletProcess.safe, number: 2)
        #expect(try place.content(place.path("nas/EOS/a.jpg")) == bytes(1000))
    }

    @Test func `two cards of one label never share a folder, whatever their order`() async throws {
        let place = try Place.readers()
        let cards = try [1, 2].map { try DiskImage.card(["DCIM/a.jpg": bytes(1000, seed: $0)], label: "UNTITLED") }
        let names = ["UNTITLED", "UNTITLED (2)"]
        let agent = try await place.run()
        for (card, slot) in zip(cards, ["one", "two"]) {
            try card.mount(at: place.reader(slot))
            try await agent.line("volume.done", number: slot == "one" ? 1 : 2)
        }
        #expect(Set(try await place.cards().map(\.name)) == Set(names))
        #expect(try await agent.stop() == .code(0))
        for (card, slot) in zip(cards, ["one", "two"]) { try card.unmount(place.reader(slot)) }
        try cards[0].write(bytes(10, seed: 3), to: "DCIM/b.jpg")
        try cards[1].write(bytes(10, seed: 4), to: "DCIM/b.jpg")
        let next = try await place.run()
        for (number, slot) in [(1, "one"), (0, "two")] {
            try cards[number].mount(at: place.reader(slot))
            try await next.told(InletProcess.safe, of: names[number])
        }
        #expect(place.names(in: "library") == names.flatMap { ["\($0)/a.jpg", "\($0)/b.jpg"] }.sorted())
        for (number, name) in names.enumerated() {
            let seed = UInt64(number)
            #expect(try place.content(place.path("library/\(name)/a.jpg")) == bytes(1000, seed: seed + 1))
            #expect(try place.content(place.path("library/\(name)/b.jpg")) == bytes(10, seed: seed + 3))
        }
    }

    @Test func `a card that was formatted and has files of the same names is another card`() async throws {
        let place = try Place.readers()
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await visited(place, card)
        try card.reformat(label: "EOS")
        try card.write(bytes(1000, seed: 2), to: "DCIM/a.jpg")
        try card.mount(at: place.reader("one"))
        try await agent.told(InletProcess.safe, of: "EOS (2)")
        #expect(place.names(in: "library") == ["EOS (2)/a.jpg", "EOS/a.jpg"])
        #expect(try place.content(place.path("library/EOS (2)/a.jpg")) == bytes(1000, seed: 2))
    }

    @Test func `two cards at once have verdicts of their own`() async throws {
        let place = try Place.readers()
        let good = try DiskImage.card(["DCIM/a.jpg": bytes(1000)], label: "GOOD")
        let other = try DiskImage.card(["DCIM/a.jpg": bytes(1000, seed: 2), "x.txt": bytes(1)], label: "OTHER")
        let agent = try await place.run()
        try other.mount(at: place.reader("one"))
        try good.mount(at: place.reader("two"))
        try await agent.told(InletProcess.safe, of: "GOOD")
        try await agent.told("NOT YET: 1 other file on it", of: "OTHER")
        let cards = try await place.cards()
        #expect(cards.filter(\.safe).map(\.name) == ["GOOD"] && cards.count == 2, "\(cards)")
        #expect(!agent.headlines(of: "OTHER").contains(InletProcess.safe))
    }

    @Test func `kills in the middle and after the end cost nothing, and nothing is told twice`() async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        try await withStore { store, settings in
            let hook = "webhook: \"http://127.0.0.1:\(server.port)/\", on: [volume_done]"
            let place = try Place.readers(
                ["store": settings + ", part_size: 5MiB, multipart_threshold: 6MiB"],
                top: ["notify:", "  - { name: ops, \(hook) }"])
            let card = try DiskImage.card(["DCIM/a.mov": bytes(8 << 20), "DCIM/b.mov": bytes(8 << 20, seed: 2)])
            let gate = RequestGate()
            store.faults.add(S3Fault(.hold(gate), at: .uploadPart, part: 2, times: nil))
            var agent = try await place.run()
            try card.mount(at: place.reader("one"))
            try await agent.wait("second parts") { store.traffic.counts[.uploadPart] ?? 0 >= 2 }
            try await agent.kill()
            #expect(receiver.notices.isEmpty)
            store.faults.clear()
            gate.open()
            agent = try await place.run()
            try await agent.told(InletProcess.safe)
            try await agent.line("notification.sent")
            for isKilled in [true, false] {
                if isKilled { try await agent.kill() } else { #expect(try await agent.stop() == .code(0)) }
                agent = try await place.run()
                try await place.wait("safe", by: agent)
            }
            #expect(try await agent.stop() == .code(0))
            #expect(receiver.notices.count == 1, "\(receiver.notices.map { String(decoding: $0.body, as: UTF8.self) })")
            #expect(store.objects().map(\.versions) == [1, 1])
            let stays = try await place.inlet("cards", "history", "--json", code: 0).objects()
            #expect(stays.count == 1, "\(stays)")
        }
    }

    @Test func `a store is asked about thousands of files by its list`() async throws {
        try await withStore { store, settings in
            let place = try Place.readers(["store": settings])
            let card = try DiskImage(label: "EOS", megabytes: 64)
            let point = try place.folder.makeDirectory("point")
            try card.mount(at: point)
            let folders = Load.of(12)
            for folder in 0..<folders {
                let path = point.pushing(FilePath("DCIM/\(100 + folder)"))
                try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
                for file in 0..<100 {
                    try bytes(100 + file, seed: UInt64(folder)).write(
                        to: URL(fileURLWithPath: path.appending("\(file).jpg").string))
                }
            }
            try card.unmount(point)
            let agent = try await visited(place, card)
            #expect(store.objects().count == 100 * folders)
            func requests() -> Int { store.traffic.counts.values.reduce(0, +) }
            let before = requests()
            try card.mount(at: place.reader("two"))
            try await agent.told(InletProcess.safe, number: 2)
            #expect(requests() - before <= 20)
            #expect(store.traffic.counts[.headObject] ?? 0 == 0)
            #expect(try await place.card().says("at store \(100 * folders) of \(100 * folders), proved"))
        }
    }

    @Test(.enabled(if: DiskImage.hasExFAT, "needs mkfs.exfat, and exFAT in the kernel or mount.exfat-fuse"))
    func `an exFAT card is known again, although its inodes are others`() async throws {
        let place = try Place.readers(key: "{dir}/{name}")
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000), "DCIM/b.jpg": bytes(2001)], format: .exfat)
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        try await agent.line("volume.done")
        #expect(try await place.cards().first?.headline == InletProcess.safe)
        try card.unmount(place.reader("one"))
        try await agent.line("volume.removed")
        try card.mount(at: place.reader("two"))
        let done = try await agent.line("volume.done", number: 2)
        #expect(done["verdict"] == InletProcess.safe && agent.lines("job.started").count == 2, "\(done)")
        #expect(place.names(in: "library") == ["a.jpg", "b.jpg"])
    }
}
