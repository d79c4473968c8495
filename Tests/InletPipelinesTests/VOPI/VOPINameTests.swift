import InletCore
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

struct VOPINameTests {
    @Test func `names keep what is harmless`() {
        let rows = [
            ("hero", "hero"), ("frame_00123", "frame_00123"), ("white-studio", "white-studio"), ("größe", "größe"),
            ("../../etc/passwd", "_.._etc_passwd"), ("a/b\\c", "a_b_c"), ("", "x"), (".", "x"), ("..", "x"),
            ("///", "x"),
            (".hidden", "hidden"), ("-rf", "rf"), ("a\u{0}b\n", "a_b_"), ("con", "_con"), ("dots...", "dots"),
            ("a:b*c?", "a_b_c_"), ("\u{202E}gnp", "_gnp"),
        ]
        for (text, name) in rows { #expect(VOPIManifest.safeName(text, or: "x") == name, "\(text)") }
    }

    @Test func `no text makes a name that leaves its folder`() {
        var generator = SeededGenerator(seed: 11)
        let alphabet: [Character] = [
            "/", ".", "..", "\\", "\u{0}", "a", "é", "日", "e\u{301}", "\n", "-", "_", " ", "👩‍👩‍👧",
        ].flatMap { Array($0) }
        for _ in 1...5000 {
            let count = Int.random(in: 0...250, using: &generator)
            let text = String((0..<count).compactMap { _ in alphabet.randomElement(using: &generator) })
            let name = VOPIManifest.safeName(text, or: "x")
            #expect((1...101).contains(name.utf8.count))
            #expect(!name.hasPrefix(".") && !name.contains("/") && !name.contains("\u{0}") && !name.contains("\\"))
            #expect(FilePath(name).components.count == 1)
        }
    }

    @Test func `links make names once, and the same ones when they are asked for anew`() throws {
        func downloads(_ query: String, _ extra: String = "") throws -> VOPIDownloads {
            let json = #"""
                {"jobId":"j","expiresIn":60,"frames":[
                {"frameId":"frame_1","downloadUrl":"https://s.example/j/a.png?\#(query)"},
                {"frameId":"frame_1","downloadUrl":"https://s.example/j/b.jpg?\#(query)"},
                {"frameId":"FRAME_1","downloadUrl":"https://s.example/j/c.png?\#(query)"},
                {"frameId":"frame_1","downloadUrl":"https://s.example/j/a.png?\#(query)"}\#(extra)],
                "commercialImages":{"a/b":{"real":"https://s.example/j/d.webp?\#(query)"},
                "a_b":{"real":"https://s.example/j/e.php?\#(query)"}}}
                """#
            let value = try #require(VOPIValue(Array(json.utf8)))
            let rules = URLRules.configured(allowHTTP: false)
            return try #require(VOPIDownloads(value, rules: rules))
        }
        var manifest = VOPIManifest()
        manifest.add(try downloads("sig=1"))
        #expect(
            manifest.entries.map(\.path) == [
                "images/a_b/real.webp", "images/a_b/real.png", "frames/frame_1.png", "frames/frame_1.jpg",
                "frames/FRAME_1_2.png",
            ])
        let before = manifest
        manifest.add(try downloads("sig=2"))
        #expect(manifest == before)
        manifest.add(try downloads("sig=3", #",{"frameId":"frame_1","downloadUrl":"https://s.example/j/z.png"}"#))
        #expect(manifest.entries.dropLast() == before.entries[...])
        #expect(manifest.entries.last?.path == "frames/frame_1_3.png")
        #expect(!manifest.entries.contains { $0.object.contains("sig") })
    }
}
