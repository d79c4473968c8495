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
        let agent = try place.start("run", environment: ["INLET_FAILPOINT": "finished:4"])
        #expect(try await agent.ending() == .signal(SIGKILL))
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
