import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The names of files, from the watched folder to the other end (`names:`).
@Suite struct NameTests {
    /// As owners of a NAS have them.
    private static let names = [
        "Übung 1 (final).mov", "Mama & Papa/Urlaub 2026 - Tag 1.jpg", "e\u{301}te\u{301}.jpg", "\u{e9}t\u{e9}.jpg",
        "日本/写真 1.jpg",
        "C:\\temp?.txt", "100% #1 + 2=3.txt", "line\nbreak.txt", " space at both ends ", "dots...", "👩‍👩‍👧 family.png",
    ].map { Array($0.utf8) }
    /// Not UTF-8.
    private static let raw = Array("gr".utf8) + [0xFC, 0xDF] + Array("e 5%.txt".utf8)

    private func content(_ name: [UInt8]) -> Data { Data(name + name) }

    private func put(_ names: [[UInt8]], in place: Place, by agent: InletProcess) async throws {
        for name in names {
            let file = place.drop.pushing(FilePath(bytes: name))
            try DurableFile.makeDirectories(file.removingLastComponent(), mode: 0o755)
            try DurableFile.write(Array(content(name)), to: file, mode: 0o644)
        }
        try await agent.line("job.finished", number: names.count)
        #expect(agent.lines("job.finished").allSatisfy { $0["state"] == "delivered" })
    }

    /// What lies below a folder, by its name's bytes.
    private func files(_ top: FilePath, _ below: FilePath = "") throws -> [[UInt8]: Data] {
        var found: [[UInt8]: Data] = [:]
        var names = try Folder(top.pushing(below)).list()
        while let entry = try names.next() {
            let path = below.appending(entry.name)
            switch try FileLook.look(at: top.pushing(path)) {
            case .directory: found.merge(try files(top, path)) { one, _ in one }
            default: found[path.bytes] = Data(try SourceFile(opening: top.pushing(path)).content(limit: 9999))
            }
        }
        return found
    }

    @Test func `in a folder every name is there byte for byte, with its own content`() async throws {
        let (place, agent) = try await Place.running()
        let all = Self.names + [Self.raw]
        try await put(all, in: place, by: agent)
        #expect(try files(place.library) == Dictionary(uniqueKeysWithValues: all.map { ($0, content($0)) }))
        #expect(agent.lines("file.note").isEmpty)
        try await place.inlet("verify", "--all", "--read", code: 0)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `in a bucket every name is its key, and what is not UTF-8 is encoded and said`() async throws {
        try await withS3 { place, sandbox in
            let agent = try await place.run()
            try await put(Self.names + [Self.raw], in: place, by: agent)
            let encoded = "gr%FC%DFe 5%25.txt"
            let keys = Dictionary(uniqueKeysWithValues: sandbox.objects().map { (Array($0.key.utf8), $0.path) })
            #expect(Set(keys.keys) == Set(Self.names + [Array(encoded.utf8)]))
            for name in Self.names { #expect(try keys[name].map { try place.content($0) } == content(name)) }
            #expect(
                agent.lines("file.note").map { $0["note"] } == [
                    "store cannot hold a name of its path, and gets it as \(encoded)"
                ])
            let receipts = try await place.inlet("receipts").objects()
            let deliveries = receipts.compactMap { ($0["deliveries"] as? [[String: Any]])?.first }
            let told = deliveries.filter { $0["original_name"] != nil }
            #expect(told.map { $0["key"] as? String } == [encoded])
            #expect(told.first?["original_name"] as? String == "gr\\xFC\\xDFe 5%.txt")
            try await place.inlet("verify", "--all", code: 0)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `each destination has its own rule, and that of the route comes first`() async throws {
        let place = try Place()
        try place.folder.makeDirectory("other")
        try place.configure(
            replacing: "destinations:", with: "destinations:\n  other: { type: folder, path: other, names: clean }")
        try place.configure(
            replacing: "to: store",
            with: "to: [store, other]\n    sidecars: { extensions: [xmp] }\n    validate: { extensions: [mov] }")
        try await place.inlet("route", place.drop.appending("a b.mov").string, says: "a b.mov, a_b.mov at other")
        let agent = try await place.run()
        try place.put("a b.xmp", Data("x".utf8))
        try await place.deliver("a b.mov", Data("m".utf8), by: agent)
        try await agent.line("job.delivered", number: 4)
        #expect(
            try files(place.library).keys.map { String(decoding: $0, as: UTF8.self) }.sorted() == [
                "a b.mov", "a b.xmp",
            ])
        #expect(
            try files(place.folder.path.appending("other")).keys.map { String(decoding: $0, as: UTF8.self) }.sorted()
                == ["a_b.mov", "a_b.xmp"])
        #expect(try await agent.stop() == .code(0))
        try place.configure(replacing: "to: [store", with: "names: clean\n    to: [store")
        try await place.inlet("route", place.drop.appending("c d.mov").string, says: "key      c_d.mov")
    }

    @Test(
        .enabled(if: DiskImage.isAvailable && DiskImage.hasExFAT, "needs the right to mount, exfatprogs and exfat-fuse")
    )
    func `what exFAT refuses is encoded, and a file that is called so already stays beside it`() async throws {
        let place = try Place()
        let disk = try DiskImage(label: "exfat", megabytes: 16, format: .exfat)
        try disk.mount(at: place.library)
        let agent = try await place.run()
        let plain = ["Übung 1 (final).mov", "5%.txt", "a%3Ab 5%25.mov"]
        for name in plain { try await place.deliver(FilePath(name), content(Array(name.utf8)), by: agent) }
        for name in ["a:b 5%.mov", "what?/x|y.txt"] {
            try place.put(FilePath(name), content(Array(name.utf8)))
        }
        try await agent.line("job.finished", number: 5)
        // One whose own name is the encoded form of another.
        try await place.deliver("what%3F/x%7Cy.txt", content(Array("late".utf8)), by: agent)
        let found = try files(place.library)
        let wanted = [
            "a%3Ab 5%25_2.mov": "a:b 5%.mov", "what%3F/x%7Cy.txt": "what?/x|y.txt", "what%3F/x%7Cy_2.txt": "late",
        ].merging(plain.map { ($0, $0) }) { one, _ in one }
        #expect(found == Dictionary(uniqueKeysWithValues: wanted.map { (Array($0.utf8), content(Array($1.utf8))) }))
        try await place.inlet("verify", "--all", code: 0)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `after an update the first start and check say that names stay, and how to have them clean`()
        async throws
    {
        let place = try Place()
        let agent = try await place.run()
        try await place.deliver("a b", Data("1".utf8), by: agent)
        #expect(try await agent.stop() == .code(0))
        let counter = ["sqlite3", place.state.appending("journal.sqlite").string]
        #expect(agent.lines("names.kept").isEmpty)
        #expect(try await !place.inlet("check").output.contains("names: "))
        // As the version before has left it.
        try Tool.run("/usr/bin/env", counter[0], counter[1], "DELETE FROM counter WHERE name = 'clean_names'")
        let said = "new files keep their names at store"
        try await place.inlet("check", says: said)
        let second = try await place.run()
        #expect(try await second.line("names.kept").description.contains(#""destinations":["store"]"#))
        #expect(try await second.stop() == .code(0))
        let third = try await place.run()
        #expect(try await third.stop() == .code(0))
        #expect(third.lines("names.kept").isEmpty)
        try await place.inlet("check", says: said)
        try place.configure(replacing: "path: library", with: "path: library, names: clean")
        #expect(try await !place.inlet("check").output.contains(said))
    }
}
