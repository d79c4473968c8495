import InletConfig
import InletCore
import SystemPackage
import Testing

/// `media_type`, `existing: adopt` and `derive`.
struct MediaSettingsTests {
    private func text(watch: String = "path: /srv/drop", route: String) -> String {
        """
        destinations: { lib: { type: folder, path: /lib } }
        watch: [{ \(watch) }]
        routes:
          - name: all
            to: lib
            \(route)
        """
    }

    @Test func `media types are read, one or many`() throws {
        let route = try #require(
            try parse(text(route: "match: { media_type: video/* }")).settings.routes.first)
        #expect(route.match.mediaTypes.map(\.text) == ["video/*"])
        let other = try #require(
            try parse(text(route: "validate: { media_type: [image/*, application/pdf] }")).settings.routes.first)
        #expect(other.validate.mediaTypes.map(\.text) == ["image/*", "application/pdf"])
        #expect(complaints(text(route: "match: { media_type: mp4 }")).contains("a media type has two parts"))
    }

    @Test func `adoption and its check are read`() throws {
        let read = try parse(text(watch: "path: /srv/drop, existing: adopt, adopt_check: true", route: "owner: me"))
        let watch = try #require(read.settings.watch.first)
        #expect(watch.existing == .adopt && watch.adoptCheck)
        let wrong = complaints(text(watch: "path: /srv/drop, adopt_check: true", route: "owner: me"))
        #expect(wrong.contains("'adopt_check' needs 'existing: adopt'"))
    }

    @Test func `a preset is a rule of its own, and every part of it can be set`() throws {
        let read = try parse(
            text(
                route: """
                    derive:
                          - thumbnail: vips
                          - { thumbnail: ffmpeg, suffix: .frame.jpg, timeout: 5s, max_size: 1MiB }
                          - { name: proxy, command: [/opt/proxy, "{in}", "{out}"], suffix: .proxy.mp4, extensions: [.MXF] }
                    """))
        let rules = try #require(read.settings.routes.first).derive
        #expect(rules.map(\.name) == ["thumbnail", "thumbnail", "proxy"])
        #expect(rules[0] == DeriveRule.Preset.vips.rule)
        #expect(rules[1].suffix == ".frame.jpg" && rules[1].timeout == .seconds(5) && rules[1].maxSize == 1 << 20)
        #expect(rules[1].command == DeriveRule.Preset.ffmpeg.rule.command)
        #expect(rules[2].command == ["/opt/proxy", "{in}", "{out}"] && rules[2].extensions == ["mxf"])
        #expect(rules[2].timeout == .seconds(60) && rules[2].maxSize == 16 << 20)
    }

    @Test(arguments: [
        ("{ suffix: .a.jpg }", "needs 'thumbnail', or 'name', 'command' and 'suffix'"),
        ("{ name: a, suffix: .a.jpg }", "'command' names no program"),
        (#"{ name: a, command: [p, "{in}"], suffix: .a.jpg }"#, "'command' lacks {out}"),
        (#"{ name: a, command: [p, "{out}"], suffix: .a.jpg }"#, "'command' lacks {in}"),
        (#"{ name: a, command: [p, "{in}", "{out}"] }"#, "'suffix' is what follows"),
        (#"{ name: a, command: [p, "{in}", "{out}"], suffix: a/b.jpg }"#, "'suffix' is what follows"),
        ("{ thumbnail: vips }, { thumbnail: vips }", "a rule above has the same name"),
    ])
    func `a rule that cannot work is refused`(rule: String, message: String) {
        #expect(complaints(text(route: "derive: [\(rule)]")).contains(message))
    }
}
