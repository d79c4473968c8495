import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

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
    .serialized, .timeLimit(.minutes(8)),
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
