import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built binary with disks that come and go: ext4 in files, mounted over loop devices. What is simulated is the hardware, and
/// FAT.
@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"), .serialized)
struct CardCommandTests {
    private func place(notify: [String] = []) throws -> Place {
        let place = try Place(key: "cards/{volume}/{dir}/{name}", top: notify)
        for slot in ["one", "two"] { try place.folder.makeDirectory(FilePath("media/\(slot)")) }
        try place.configure(replacing: "path: drop", with: "path: \"\(place.media)/*/DCIM\"")
        return place
    }

    private func names(_ place: Place) throws -> [String] {
        let all = FileManager.default.enumerator(atPath: place.library.string)?.allObjects as? [String] ?? []
        return all.filter { $0.hasSuffix(".jpg") }.sorted()
    }

    /// With whatever the file system itself may note.
    private func listing(_ folder: FilePath) throws -> [String] {
        try #require(FileManager.default.enumerator(atPath: folder.string)?.allObjects as? [String]).sorted()
    }

    @Test func `two cards at once arrive as whole trees under their labels, and somebody is told that they can go`()
        async throws
    {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try place(notify: [
            "notify:", "  - { name: ops, webhook: \"http://127.0.0.1:\(server.port)/\", on: [volume_done] }",
        ])
        let cards = [try DiskImage(label: "EOS_A"), try DiskImage(label: "EOS_B")]
        for (number, card) in cards.enumerated() {
            for name in ["100CANON/a.jpg", "100CANON/b.jpg", "101CANON/a.jpg"] {
                try card.write(bytes(1000 + number, seed: UInt64(number)), to: FilePath("DCIM/" + name))
            }
        }
        let agent = try await place.run()
        for (card, slot) in zip(cards, ["one", "two"]) { try card.mount(at: place.slot(slot), readOnly: true) }
        for label in ["EOS_A", "EOS_B"] {
            let done = try await agent.line("volume.done") { $0["volume"] == label }
            #expect(done.number("files") == 3 && done.number("unproved") == 0)
        }
        let tree = ["100CANON/a.jpg", "100CANON/b.jpg", "101CANON/a.jpg"]
        #expect(try names(place) == ["EOS_A", "EOS_B"].flatMap { card in tree.map { "cards/\(card)/\($0)" } })
        #expect(try place.content(place.library.pushing("cards/EOS_B/101CANON/a.jpg")) == bytes(1001, seed: 1))
        try await agent.line("notification.sent", number: 2)
        let told = receiver.notices.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(
            told.count { $0.contains(": SAFE TO REMOVE") } == 2 && told.contains { $0.contains("EOS_B") }, "\(told)"
        )
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `without a desktop a command mounts a card where the agent takes it, and nothing on it changes`()
        async throws
    {
        let place = try place()
        let card = try DiskImage(label: "EOS")
        try card.write(bytes(1000), to: "DCIM/100/a.jpg")
        let before = try card.bytes
        let device = try card.insert()
        func cards(_ words: String...) async throws -> Place.Finished {
            try await InletProcess.run(["cards"] + words, in: place.folder.path)
        }
        let refused = try await cards("mount", device.string, "--in", place.media.string)
        #expect(refused.ending == .code(1) && refused.errors.contains("add --not-removable"), "\(refused.errors)")
        let agent = try await place.run()
        let mounted = try await cards("mount", device.string, "--not-removable", "--in", place.media.string)
        #expect(mounted.ending == .code(0) && mounted.output.hasSuffix("/EOS\n"), "\(mounted.output)")
        try await agent.line("volume.done") { $0["volume"] == "EOS" }
        #expect(try names(place) == ["cards/EOS/100/a.jpg"])
        #expect(try await agent.stop() == .code(0))
        #expect(try await cards("unmount", device.string).ending == .code(0))
        #expect(try await cards("unmount", device.string).output.contains("is not mounted"))
        #expect(try card.bytes == before)
    }

    @Test func `a card that comes back elsewhere sends only what is new, and nothing is written to it`() async throws {
        let place = try place()
        let card = try DiskImage(label: "EOS")
        try card.write(bytes(1000), to: "DCIM/100/a.jpg")
        var agent = try await place.run()
        try card.mount(at: place.slot("one"))
        try await agent.line("volume.done")
        #expect(try listing(place.slot("one")) == ["DCIM", "DCIM/100", "DCIM/100/a.jpg", "lost+found"])
        try card.unmount(place.slot("one"))
        try await agent.line("volume.removed")
        try card.write(bytes(2000), to: "DCIM/100/b.jpg")
        try card.mount(at: place.slot("two"))
        try await agent.line("volume.done", number: 2)
        #expect(try names(place) == ["cards/EOS/100/a.jpg", "cards/EOS/100/b.jpg"])
        #expect(agent.lines("job.started").count == 2)
        // It is known after a restart too, and at the first place again.
        #expect(try await agent.stop() == .code(0))
        try card.unmount(place.slot("two"))
        try card.mount(at: place.slot("one"))
        agent = try await place.run()
        let done = try await agent.line("volume.done")
        #expect(done.number("files") == 2 && agent.lines("job.started").isEmpty)
        #expect(try await agent.stop() == .code(0))
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/python3"), "needs python3"))
    func `a card that is pulled while it is read is gone on with at its return, and nothing half shows`() async throws {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            for slot in ["one", "two"] { try place.folder.makeDirectory(FilePath("media/\(slot)")) }
            try place.configure(replacing: "path: drop", with: "path: \"\(place.media)/*/DCIM\"")
            let (card, other) = (try DiskImage(label: "EOS", megabytes: 24), try DiskImage(label: "EOS"))
            let film = bytes(16 << 20)
            try card.write(film, to: "DCIM/100/film.mov")
            try other.write(bytes(1000), to: "DCIM/100/film.mov")
            sandbox.faults.add(Fault(.slowRead(bytesPerSecond: 2 << 20), at: .part, times: nil))
            let agent = try await place.run()
            try card.mount(at: place.slot("one"))
            try await agent.wait("the second part") { sandbox.traffic.partOrder.contains(2) }
            try card.pull(place.slot("one"))
            try await agent.line("volume.removed")
            try await agent.wait("it is let go") { card.isOut }
            sandbox.faults.clear()
            // Another card in the same place has a file of the same name.
            try other.mount(at: place.slot("one"))
            try await agent.line("volume.done")
            #expect(sandbox.objects().map(\.size) == [1000] && agent.lines("job.failed").isEmpty)
            let firstParts = sandbox.traffic.partOrder.count { $0 == 1 }
            try card.mount(at: place.slot("two"))
            #expect(try await agent.line("volume.added", number: 3).number("waiting") == 1)
            try await agent.line("volume.done", number: 2)
            let found = try #require(sandbox.objects().first { $0.size == film.count })
            #expect(try place.content(found.path) == film)
            // What had arrived is not sent again.
            #expect(sandbox.traffic.partOrder.count { $0 == 1 } == firstParts)
            #expect(try await place.balance()["delivered"] == 2)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `a card that is changed for another between two looks is another`() async throws {
        let place = try place()
        let cards = [try DiskImage(label: "EOS_A"), try DiskImage(label: "EOS_B")]
        for (number, card) in cards.enumerated() { try card.write(bytes(1000 + number), to: "DCIM/a.jpg") }
        let agent = try await place.run()
        try cards[0].mount(at: place.slot("one"))
        try await agent.line("volume.done")
        // While it does not look.
        agent.signal(SIGSTOP)
        try cards[0].unmount(place.slot("one"))
        try cards[1].mount(at: place.slot("one"))
        agent.signal(SIGCONT)
        try await agent.line("volume.done") { $0["volume"] == "EOS_B" }
        #expect(try names(place) == ["cards/EOS_A/a.jpg", "cards/EOS_B/a.jpg"])
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a disk that is not mounted at the start is waited for, and another one in its place is not taken`()
        async throws
    {
        let place = try Place()
        let (disk, other) = (try DiskImage(label: "PHOTOS"), try DiskImage(label: "PHOTOS"))
        try disk.write(bytes(1000), to: "a.bin")
        try other.write(bytes(1000), to: "stranger.bin")
        try disk.mount(at: place.drop)
        try await place.runUntil("job.finished") { $0.isAbout("a.bin") }
        try disk.unmount(place.drop)
        try other.mount(at: place.drop)
        let agent = try await place.run()
        let alarm = try await agent.line("watch.paused")
        #expect(alarm["reason"]?.contains("another file system") == true, "\(alarm)")
        try other.unmount(place.drop)
        try disk.write(bytes(2000), to: "b.bin")
        try disk.mount(at: place.drop)
        try await agent.line("job.finished") { $0.isAbout("b.bin") }
        #expect(agent.lines("job.admitted").count == 1)
        #expect(try await place.balance()["delivered"] == 2)
        #expect(try await agent.stop() == .code(0))
    }
}

extension Place {
    fileprivate var media: FilePath { folder.path.appending("media") }
    fileprivate func slot(_ name: String) -> FilePath { media.pushing(FilePath(name)) }
}

/// `inlet resume --root`, and what `inlet status` says of a paused folder; no mounts are needed.
@Suite(.serialized) struct ResumeRootTests {
    /// A place whose folder is empty although a file was left in it, and its agent, which has noticed.
    private func alarmed(_ top: [String] = []) async throws -> (Place, InletProcess) {
        let place = try Place(top: top)
        try place.put("a.bin", bytes(10))
        try await place.runUntil("job.finished")
        try FileManager.default.removeItem(atPath: place.drop.appending("a.bin").string)
        let agent = try await place.run()
        try await agent.line("watch.paused")
        return (place, agent)
    }

    @Test func `a paused folder is shown and told, and goes on when a person says so`() async throws {
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let (place, agent) = try await alarmed([
            "notify:", "  - { name: ops, webhook: \"http://127.0.0.1:\(server.port)/\", on: [root_paused] }",
        ])
        try await agent.line("notification.sent")
        let told = receiver.notices.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(told.count == 1 && told[0].contains("root_paused") && told[0].contains(place.drop.string), "\(told)")
        try await place.inlet("status", says: "paused: it is empty")
        try await place.inlet("resume", "--root", "drop", code: 0, says: "watched as it is")
        try await agent.line("watch.resumed")
        try await agent.line("watch.added")
        try await agent.wait("the status shows it") { try await !place.inlet("status").output.contains("paused") }
        try await place.deliver("b.bin", bytes(20), by: agent)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `what a person said of a folder holds for an agent that starts later`() async throws {
        let (place, agent) = try await alarmed()
        #expect(try await agent.stop() == .code(0))
        try await place.inlet("resume", "--root", "drop", code: 0)
        let next = try await place.run()
        try await next.line("watch.added")
        #expect(next.lines("watch.paused").isEmpty)
        #expect(try await next.stop() == .code(0))
    }

    @Test func `only a watched folder that is there can be resumed`() async throws {
        let place = try Place()
        try await place.inlet("resume", "--root", "library", code: 1, errors: "is not a watched folder")
        try FileManager.default.removeItem(atPath: place.drop.string)
        try await place.inlet("resume", "--root", place.drop.string, code: 1, errors: "is not a folder")
        try await place.inlet("resume", "store", "--root", "drop", code: 64)
    }
}

/// Units that end with a checksum list and a report, as a user sees them.
@Suite(.serialized) struct ManifestTests {
    static func place(manifest: String = "{ format: ascmhl, hash: xxh64 }") throws -> Place {
        return try Place(route: [
            "match: { path: \"*/**\" }", "unit: folder", "completion: marker", "manifest: \(manifest)",
        ])
    }

    static func offload(_ place: Place) throws {
        for name in ["a.mov", "raw/<b>.mov", "raw/c"] { try place.put(FilePath("A001/\(name)"), Data("one\n".utf8)) }
        try place.put("A001/DONE", Data())
    }

    static func lists(_ folder: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.string).sorted()
    }

    @Test func `the report of an offload is for the terminal, for paper and for programs`() async throws {
        let place = try Self.place()
        try await place.inlet("report", code: 1, errors: "no batch has ended yet")
        let agent = try await place.run()
        try Self.offload(place)
        try await agent.line("batch.ended")
        let text = try await place.inlet("report", code: 0)
        for part in ["OFFLOAD REPORT  A001", "raw/<b>.mov", "xxh64:22c8b2fe096816df", "read_back", "3 of 3 files"] {
            #expect(text.output.contains(part), "\(part)")
        }
        #expect(try await agent.stop() == .code(0))
        // Without an agent the journal says the same.
        let listed = try await place.inlet("batch", "list", "--json").objects()
        #expect(listed.map { $0["name"] as? String } == ["A001"])
        let number = try #require(listed.first?["batch"] as? Int)
        let page = place.folder.path.appending("page.html")
        let html = try await place.inlet("report", "\(number)", "--format", "html", "--output", page.string, code: 0)
        #expect(html.output.isEmpty)
        let written = String(decoding: try place.content(page), as: UTF8.self)
        #expect(written.contains("raw/&lt;b&gt;.mov") && !written.contains("<b>"))
        let report = try await place.inlet("report", "--format", "json").object()
        #expect((report["files"] as? [Any])?.count == 3)
        try await place.inlet("report", "99", code: 1)
        // In German a day comes before its month's name, and JSON is the same everywhere.
        let iso = /\d{4}-\d\d-\d\dT\d\d:\d\d/
        #expect(text.output.contains(iso), "\(text.output)")
        let german = try await place.inlet("report", "--locale", "de_DE", code: 0, says: "3 of 3 files")
        #expect(!german.output.contains(iso) && german.output.contains(/\d{1,2}\. \S+ \d{4}/), "\(german.output)")
        let json = try await place.inlet("report", "--json", "--locale", "de_DE", code: 0).object()
        #expect((json["printed_at"] as? String)?.contains(iso) == true, "\(json)")
        try await place.inlet("report", "--locale", "xx_nowhere", code: 64, errors: "is not a known locale")
    }

    @Test func `a crash between the end of a unit and its list costs nothing`() async throws {
        let place = try Self.place()
        try Self.offload(place)
        // The last of three files and a marker ends the unit; nobody has been told yet.
        try await place.die(at: "finished:4")
        let history = place.library.pushing("A001/ascmhl")
        #expect(!place.exists(history))
        for expected in [2, 0] {
            let next = try await place.run()
            if expected > 0 { try await next.line("manifest.written", number: expected) }
            #expect(try await next.stop() == .code(0))
            #expect(next.lines("manifest.written").count == expected)
            #expect(try Self.lists(history).count == 2)
        }
        let home = try Self.lists(place.state.appending("manifests"))
        #expect(home.count == 1)
        #expect(try Self.lists(place.state.pushing(FilePath("manifests/\(home.first ?? "")"))).count == 1)
        #expect(try Self.lists(place.drop.appending("A001")) == ["DONE", "a.mov", "raw"])
    }

    @Test(arguments: CrashPoints.manifest.list)
    func `a crash between the lists of a unit leaves each of them once, and whole`(_ point: String) async throws {
        let place = try Self.place()
        try Self.offload(place)
        try await place.die(at: point)
        let history = place.library.pushing("A001/ascmhl")
        let before = place.exists(history) ? try Self.lists(history).count : 0
        #expect(before == ["listAtHome": 0, "generationWritten": 1][point, default: 2])
        // What is owed is written until the journal says so, and then no more.
        if point != "listsDone" { try await place.die(at: "listsDone") }
        let last = try await place.run()
        #expect(try await last.stop() == .code(0))
        #expect(last.lines("manifest.written").isEmpty)
        let lists = try Self.lists(history)
        let list = try #require(lists.first { $0.hasSuffix(".mhl") })
        #expect(lists.count == 2 && list.hasPrefix("0001_A001_"), "\(lists)")
        let chain = String(decoding: try place.content(history.appending("ascmhl_chain.xml")), as: UTF8.self)
        #expect(chain.matches(of: /<path>/).count == 1 && chain.contains(list), "\(chain)")
        let text = String(decoding: try place.content(history.appending(list)), as: UTF8.self)
        #expect(text.matches(of: /22c8b2fe096816df/).count >= 3 && text.contains("</hashlist>"), "\(text)")
        let home = try Self.lists(place.state.appending("manifests"))
        #expect(home.count == 1)
        #expect(try Self.lists(place.state.pushing(FilePath("manifests/\(home.first ?? "")"))).count == 1)
        #expect(try Self.lists(place.drop.appending("A001")) == ["DONE", "a.mov", "raw"])
    }
}

/// The checksum lists that the agent has written, against the reference tool of ASC MHL and a verifier of classic MHL, which
/// others wrote.
@Suite(
    .serialized, .timeLimit(.minutes(15)),
    .enabled(
        if: ReferenceTool.areThere(ReferenceTool.manifests), Comment(rawValue: ReferenceTool.manifestReason)))
struct WrittenManifestTests {
    /// Exit codes of `ascmhl-debug verify` and `simple-mhl verify`.
    private enum Code {
        static let fine: Int32 = 0
        static let mismatch: Int32 = 11
        static let classicMismatch: Int32 = 40
    }

    /// A card that has been offloaded, with its lists.
    private static func offloaded(_ manifest: String) async throws -> Place {
        let place = try ManifestTests.place(manifest: manifest)
        let agent = try await place.run()
        try ManifestTests.offload(place)
        // One at home, one in the library.
        try await agent.line("manifest.written", number: 2)
        #expect(try await agent.stop() == .code(0))
        return place
    }

    private static func expect(_ code: Int32, _ result: (code: Int32, said: String)) {
        #expect(result.code == code, "\(result.said)")
    }

    private static func damage(_ file: FilePath) throws {
        try Data("0ne\n".utf8).write(to: URL(fileURLWithPath: file.string))
    }

    @Test(arguments: ["xxh64", "md5", "sha1"])
    func `the history in the library and the list at home verify, and damage is found`(_ hash: String) async throws {
        let place = try await Self.offloaded("{ format: ascmhl, hash: \(hash) }")
        let (card, copy) = (place.drop.appending("A001"), place.library.appending("A001"))
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
        Self.expect(Code.fine, try ReferenceTool.run("mhlver", "-s", copy.string))
        let manifests = place.state.appending("manifests")
        let home = manifests.appending(try #require(try ManifestTests.lists(manifests).first))
        let list = home.appending(try #require(try ManifestTests.lists(home).first))
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl-debug", "verify", "-pl", list.string, card.string))
        try Self.damage(copy.appending("a.mov"))
        Self.expect(Code.mismatch, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
        try Self.damage(card.appending("a.mov"))
        Self.expect(Code.mismatch, try ReferenceTool.run("ascmhl-debug", "verify", "-pl", list.string, card.string))
    }

    /// Each unit is a folder that a card was copied to, or a folder of a card.
    private static let layouts = [
        "A001": ["DCIM/100CANON/IMG_0001.CR3", "DCIM/101CANON/IMG_0002.CR3", "MISC/AUTPRINT.MRK"],
        "A002": ["PRIVATE/M4ROOT/CLIP/C0001.MP4", "PRIVATE/M4ROOT/CLIP/C0001M01.XML", "PRIVATE/M4ROOT/MEDIAPRO.XML"],
        "A003": ["XDROOT/Clip/A001C001.MXF"], "A004": ["CONTENTS/CLIPS001/A001C001/A001C001.MXF"],
        "A005_0101XY.RDM": ["A005_C001_0101XY.RDC/A005_C001_0101XY_001.R3D"],
        "A006": ["A006_01011200_C001.braw", "A006_01011205_C002.braw"],
        "Day 1": ["A007_0101XY.RDM/A007_C001_0101XY.RDC/A007_C001_0101XY_001.R3D"],
    ]

    @Test func `the history of every usual layout lies where its folder begins, and verifies`() async throws {
        let place = try ManifestTests.place()
        let agent = try await place.run()
        for (unit, names) in Self.layouts {
            for name in names { try place.put(FilePath("\(unit)/\(name)"), Data("\(name)\n".utf8)) }
            try place.put(FilePath("\(unit)/DONE"), Data())
        }
        // One at home, one in the library, each.
        try await agent.line("manifest.written", number: 2 * Self.layouts.count)
        #expect(try await agent.stop() == .code(0))
        for unit in Self.layouts.keys {
            let copy = place.library.appending(unit)
            #expect(try ManifestTests.lists(copy).contains("ascmhl"), "\(unit)")
            Self.expect(Code.fine, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
        }
    }

    /// The tool's own history on a card, whose hashes are of another kind.
    @Test func `the history of a card goes on in the library, which inlet verify knows`() async throws {
        let place = try ManifestTests.place()
        try ManifestTests.offload(place)
        let (card, copy) = (place.drop.appending("A001"), place.library.appending("A001"))
        try FileManager.default.removeItem(atPath: card.appending("DONE").string)
        try FileManager.default.moveItem(
            atPath: card.pushing("raw/<b>.mov").string, toPath: card.pushing("raw/b.mov").string)
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl", "create", "-h", "xxh128", card.string))
        try place.put("A001/DONE", Data())
        let agent = try await place.run()
        try await agent.line("manifest.written", number: 2)
        #expect(try await agent.stop() == .code(0))
        let lists = try ManifestTests.lists(copy.appending("ascmhl"))
        #expect(lists.map { $0.prefix(4) } == ["0001", "0002", "ascm"], "\(lists)")
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
        Self.expect(Code.fine, try ReferenceTool.run("mhlver", "-s", copy.string))
        try await place.inlet("verify", "--all", "--read", code: 0)
        try Self.damage(copy.appending("a.mov"))
        Self.expect(Code.mismatch, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
    }

    @Test(arguments: ["xxh64", "md5", "sha1"])
    func `the classic list in the library verifies, and damage is found`(_ hash: String) async throws {
        let place = try await Self.offloaded("{ format: mhl, hash: \(hash) }")
        let copy = place.library.appending("A001")
        let list = copy.appending(try #require(try ManifestTests.lists(copy).first { $0.hasSuffix(".mhl") })).string
        Self.expect(Code.fine, try ReferenceTool.run("simple-mhl", "verify", list))
        Self.expect(Code.fine, try ReferenceTool.run("simple-mhl", "xsd-schema-check", list))
        try Self.damage(copy.appending("a.mov"))
        Self.expect(Code.classicMismatch, try ReferenceTool.run("simple-mhl", "verify", list))
    }
}
