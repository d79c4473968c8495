import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Whether a card may be taken out: of the whole volume, and by what its destinations have. Each scene is a person with a
/// card at a running agent.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct CardSceneTests {
    private static let pictures: KeyValuePairs<String, Data> = [
        "DCIM/100/a.jpg": bytes(1000), "DCIM/100/b.jpg": bytes(2000, seed: 2),
    ]

    /// A card whose files are at `library`, at least, and its agent.
    private func copied(_ place: Place, _ card: DiskImage) async throws -> InletProcess {
        let agent = try await place.run()
        try card.mount(at: place.reader("one"))
        return agent
    }

    @Test func `a card is safe within five seconds of its last proof at two destinations, and everybody says so`()
        async throws
    {
        let place = try Place.readers(["library": "type: folder, path: library", "nas": "type: folder, path: nas"])
        let disk = try DiskImage.card(Self.pictures)
        let agent = try await copied(place, disk)
        try await agent.line("job.finished", number: 2)
        try await agent.told(InletProcess.safe, within: InletProcess.promise)
        let card = try await place.card()
        #expect(card.safe && card.accounted == 2 && card.files == 2, "\(card)")
        #expect(card.says("everything on the card is accounted for: 2 files") && card.says("at nas 2 of 2, proved"))
        try await place.inlet("cards", says: InletProcess.safe)
        try await place.inlet("cards", "show", "EOS", code: 0, says: InletProcess.safe, "at library 2 of 2, proved")
        #expect(agent.headlines() == [InletProcess.safe])
        #expect(place.names(in: "nas") == ["EOS/100/a.jpg", "EOS/100/b.jpg"])
    }

    @Test func `files outside of the watched folder hold a card up until a person leaves them, and each new one does`()
        async throws
    {
        let place = try Place.readers()
        let disk = try DiskImage.card(["DCIM/a.jpg": bytes(1000), "PRIVATE/x.xml": bytes(20)])
        let agent = try await copied(place, disk)
        let card = try await place.wait("others_left", by: agent)
        #expect(card.headline == "NOT YET: 1 other file on it" && card.says("in PRIVATE"), "\(card)")
        try await place.inlet("cards", "show", "EOS", code: 1)
        try await place.inlet("cards", "leave", "EOS", code: 0)
        try await agent.told(InletProcess.safe, within: InletProcess.promise)
        try place.put(bytes(9000), on: "one", "MISC/new.bin")
        try await place.wait("others_left", by: agent, within: .seconds(10)) { $0.headline.contains("2 other files") }
        try await place.inlet("cards", "leave", "EOS", code: 0)
        try await agent.told(InletProcess.safe, number: 2, within: InletProcess.promise)
    }

    @Test func `files that no route takes count, unless only routed ones do`() async throws {
        let place = try Place.readers(route: ["match: { extensions: [jpg] }"])
        let card = try DiskImage.card([
            "DCIM/a.jpg": bytes(1000), "DCIM/a.thm": bytes(20), "other.txt": bytes(5),
        ])
        let agent = try await copied(place, card)
        let held = try await place.wait("others_left", by: agent)
        #expect(held.says("1 file, 20 bytes, that no route takes") && held.says("in the card's top"), "\(held)")
        try await agent.told("NOT YET")
        #expect(agent.headlines() == ["NOT YET: 2 other files on it"])
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    volume_safe: routed")
        let next = try await place.run()
        let free = try await place.wait("safe", by: next)
        #expect(free.says("that no route takes") && free.files == 3, "\(free)")
    }

    @Test(
        .enabled(if: Nobody.isAvailable, "needs root and setpriv"),
        arguments: ["DCIM/101", "DCIM/100/b.jpg", "PRIVATE"])
    func `a card with something unreadable is never safe`(_ secret: String) async throws {
        let place = try Place.readers(watch: ["volume_safe: routed"])
        let card = try DiskImage.card([
            "DCIM/100/a.jpg": bytes(1000), "DCIM/100/b.jpg": bytes(20), "DCIM/101/c.jpg": bytes(30),
            "PRIVATE/x": bytes(1),
        ])
        let point = try place.folder.makeDirectory("point")
        try card.mount(at: point)
        try FileManager.default.setAttributes(
            [.posixPermissions: 0], ofItemAtPath: point.pushing(FilePath(secret)).string)
        try card.unmount(point)
        try Nobody.own(place.folder.path)
        let agent = try await place.run(launcher: Nobody.launcher)
        try card.mount(at: place.reader("one"))
        // A file waits until its permissions change; nobody knows what is in a folder.
        let found = try await place.wait("call_somebody", by: agent) { $0.open == (secret.hasSuffix(".jpg") ? 1 : 0) }
        #expect(found.says("1 file or folder cannot be read"), "\(found)")
        #expect(!found.says("everything on the card is accounted for"), "\(found)")
        #expect(!agent.headlines().contains(InletProcess.safe))
    }

    @Test func `an empty file is delivered like the others, and an empty card has nothing on it`() async throws {
        let place = try Place.readers()
        let disk = try DiskImage.card(["DCIM/a.jpg": bytes(1000), "DCIM/empty.jpg": Data()])
        let agent = try await copied(place, disk)
        #expect(try await place.wait("safe", by: agent).accounted == 2)
        #expect(place.names(in: "library") == ["EOS/a.jpg", "EOS/empty.jpg"])
        let empty = try DiskImage(label: "EMPTY")
        let point = try place.folder.makeDirectory("point")
        try empty.mount(at: point)
        try FileManager.default.createDirectory(
            atPath: point.appending("DCIM").string, withIntermediateDirectories: true)
        try empty.unmount(point)
        try empty.mount(at: place.reader("two"))
        try await agent.told("NOTHING ON IT", of: "EMPTY")
        #expect(try await place.card("EMPTY").safe)
    }

    @Test func `what operating systems put on a card counts nowhere, and what was archived there where it was`()
        async throws
    {
        let place = try Place.readers(
            watch: ["volume_writes: true", "source_check: reread"], route: ["on_success: archive"])
        let disk = try DiskImage.card([
            "DCIM/a.jpg": bytes(1000), "DCIM/.DS_Store": bytes(10), "DCIM/._a.jpg": bytes(10), "Thumbs.db": bytes(10),
        ])
        let agent = try await copied(place, disk)
        let card = try await place.wait("safe", by: agent)
        #expect(card.says("1 file read twice, equal") && card.says("read errors 0"), "\(card)")
        #expect(card.says("not counted: ") && card.says("everything on the card is accounted for: 1 file,"), "\(card)")
        #expect(place.exists(place.reader("one").pushing("DCIM/.inlet/done/a.jpg")))
        try FileManager.default.removeItem(atPath: place.path("library/EOS/a.jpg").string)
        try disk.unmount(place.reader("one"))
        try await agent.line("volume.removed")
        try disk.mount(at: place.reader("one"))
        try await agent.told("CALL SOMEBODY: 1 file is no longer at library")
        try await place.inlet("cards", "resend", "EOS", code: 1, errors: "archived on the card")
    }

    @Test func `a disk that no pattern fits is told, and becomes a card with its first folder`() async throws {
        let place = try Place.readers()
        let said = place.path("said")
        try place.configure(
            replacing: "settle: 0s", with: "settle: 0s\n    on_card: [/bin/sh, -c, \"cat >> \(said)\"]")
        let stick = try DiskImage.card(["docs/a.txt": bytes(10), "b.txt": bytes(5)], label: "STICK")
        let agent = try await copied(place, stick)
        #expect(try await agent.line("volume.unknown").number("files") == 2)
        let unknown = try await place.card("STICK")
        #expect(unknown.headline == "NOT KNOWN HERE: 2 files" && !unknown.safe && unknown.needs_somebody)
        try place.put(bytes(100), on: "one", "DCIM/x.jpg")
        try await place.wait("others_left", of: "STICK", by: agent)
        try await place.inlet("cards", "leave", "STICK", code: 0)
        try await agent.told(InletProcess.safe, of: "STICK")
        try await agent.wait("its lamp is told") {
            (try? place.content(said)).map { String(decoding: $0, as: UTF8.self).contains(#""state":"safe""#) } ?? false
        }
    }

    @Test func `equal sizes are no proof, unless the entry says that they are enough`() async throws {
        let place = try Place.readers(["library": "type: folder, path: library, verify: size"])
        let disk = try DiskImage.card(Self.pictures)
        let agent = try await copied(place, disk)
        try await agent.told("NOT VERIFIED: copied, sizes equal")
        let card = try await place.card()
        #expect(!card.safe && card.says("copied, sizes equal, not verified") && !card.says("proved"), "\(card)")
        try await place.inlet("cards", "eject", "EOS", code: 1, errors: "stays in: NOT VERIFIED")
        #expect(agent.headlines() == ["NOT VERIFIED: copied, sizes equal"])
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    accept_size: true")
        let next = try await place.run()
        let accepted = try await place.wait("safe", by: next)
        #expect(accepted.says("copied, sizes equal, not verified"), "\(accepted)")
    }

    @Test func `two folders of one disk are one copy, and a disk in memory makes them two`() async throws {
        let place = try Place.readers(
            ["library": "type: folder, path: library", "nas": "type: folder, path: nas"], watch: ["copies: 2"])
        let card = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await copied(place, card)
        try await agent.told("CALL SOMEBODY: 1 file has fewer copies than 2")
        #expect(try await place.card().says("they are one copy"))
        try await place.inlet("check", says: "one copy")
        #expect(agent.headlines().count == 1)
        #expect(try await agent.stop() == .code(0))
        try card.unmount(place.reader("one"))
        let other = try DiskImage.card(["DCIM/a.jpg": bytes(1000)], label: "OTHER")
        let memory = try TestMount("tmpfs", at: place.path("nas"))
        let next = try await place.run()
        try other.mount(at: place.reader("one"))
        try await next.told(InletProcess.safe, of: "OTHER")
        #expect(try await !place.card("OTHER").says("they are one copy"))
        withExtendedLifetime(memory) {}
    }

    @Test func `a required destination is waited for, however many others have the files`() async throws {
        let place = try Place.readers(
            [
                "library": "type: folder, path: library", "nas": "type: folder, path: nas, required: true",
            ], watch: ["volume_done_after: 1"])
        try FileManager.default.moveItem(atPath: place.path("nas").string, toPath: place.path("away").string)
        let disk = try DiskImage.card(Self.pictures)
        let agent = try await copied(place, disk)
        try await agent.line("destination.down")
        try await agent.wait("the library has all") { place.names(in: "library").count == 2 }
        try await place.wait("not_yet", by: agent) { $0.says("at library 2 of 2") || $0.open == 2 }
        #expect(agent.headlines().isEmpty)
        try FileManager.default.moveItem(atPath: place.path("away").string, toPath: place.path("nas").string)
        try await agent.told(InletProcess.safe)
    }

    @Test func `one destination of two is enough where the entry says so, and the other may be away`() async throws {
        let place = try Place.readers(
            [
                "library": "type: folder, path: library, required: true", "nas": "type: folder, path: nas",
            ], watch: ["volume_done_after: 1"])
        try FileManager.default.removeItem(atPath: place.path("nas").string)
        let disk = try DiskImage.card(Self.pictures)
        let agent = try await copied(place, disk)
        try await agent.told(InletProcess.safe)
        #expect(try await place.card().says("at nas 0 of 2"))
    }

    @Test func `adopted files are asked about, and never called proved`() async throws {
        let place = try Place.readers(watch: ["existing: adopt"])
        try FileManager.default.createDirectory(
            atPath: place.path("library/EOS/100").string, withIntermediateDirectories: true)
        try bytes(1000).write(to: URL(fileURLWithPath: place.path("library/EOS/100/a.jpg").string))
        let disk = try DiskImage.card(Self.pictures)
        let agent = try await copied(place, disk)
        let card = try await place.wait("call_somebody", by: agent)
        #expect(card.headline.contains("1 file is no longer at library"), "\(card)")
        #expect(!card.says("proved"), "\(card)")
        try bytes(2000, seed: 2).write(to: URL(fileURLWithPath: place.path("library/EOS/100/b.jpg").string))
        #expect(try await agent.stop() == .code(0))
        let next = try await place.run()
        let whole = try await place.wait("unverified", by: next)
        #expect(whole.says("copied, sizes equal, not verified") && !whole.says("proved"), "\(whole)")
        #expect(agent.headlines().allSatisfy { $0 != InletProcess.safe })
    }

    @Test func `a card's roll is part of its keys, and its files wait for it where they must`() async throws {
        let place = try Place.readers(key: "{card.roll}/{name}", watch: ["ask: wait"])
        let disk = try DiskImage.card(["DCIM/a.jpg": bytes(1000)])
        let agent = try await copied(place, disk)
        let asked = try await place.wait("not_yet", by: agent) { $0.says("wait for the card's roll") }
        #expect(asked.ask && place.names(in: "library").isEmpty, "\(asked)")
        try await place.inlet("cards", "label", "EOS", "--roll", "A001", code: 0)
        try await agent.told(InletProcess.safe)
        #expect(place.names(in: "library") == ["A001/a.jpg"])
        #expect(try await place.card().roll == "A001")
        // The next one but one: a roll is missing.
        let second = try DiskImage.card(["DCIM/a.jpg": bytes(900)], label: "EOS_B")
        try second.mount(at: place.reader("two"))
        try await place.wait("not_yet", of: "EOS_B", by: agent) { $0.says("wait for the card's roll") }
        try await place.inlet("cards", "label", "EOS_B", "--roll", "A003", code: 0, says: "A002")
        try await agent.told(InletProcess.safe, of: "EOS_B")
        #expect(place.names(in: "library") == ["A001/a.jpg", "A003/a.jpg"])
    }
}
