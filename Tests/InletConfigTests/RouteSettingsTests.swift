import InletConfig
import InletCore
import SystemPackage
import Testing

/// What a route says in one word: `dedupe:` and `priority:`.
struct RouteWordTests {
    @Test(arguments: [
        ("", DuplicateRule.off), (", dedupe: off", .off), (", dedupe: skip", .skip), (", dedupe: link", .link),
    ])
    func `a route says what happens to duplicates`(key: String, rule: DuplicateRule) throws {
        let route = try #require(try parse(small(route: key)).settings.routes.first)
        #expect(route.dedupe == rule)
        #expect(route.facts.contains(.sha256) == (rule != .off))
    }

    @Test(arguments: [
        ("", Priority.normal), (", priority: low", .low), (", priority: normal", .normal), (", priority: high", .high),
    ])
    func `a route says how urgent its files are`(key: String, priority: Priority) throws {
        #expect(try parse(small(route: key)).settings.routes.first?.priority == priority)
    }

    @Test(arguments: [("dedupe", "drop", "skip"), ("priority", "urgent", "high")])
    func `another word is refused`(key: String, word: String, offered: String) throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(small(route: ", \(key): \(word)")) }
        #expect("\(errors)".contains(key) && "\(errors)".contains(offered), "\(errors)")
    }
}

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

    @Test func `a route can ask for cameras, one or several`() throws {
        for (written, names) in [("Sony", ["Sony"]), ("[Sony, 'Canon EOS*']", ["Sony", "Canon EOS*"])] {
            let route = try parse(text(route: "match: { camera: \(written) }")).settings.routes.first
            #expect(route?.match.cameras.map(\.text) == names)
        }
        #expect(complaints(text(route: "match: { camera: ' ' }")).contains("name a maker or a model"))
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
        ("{ name: a, suffix: .a.jpg }", "'command' is empty; name a program"),
        (#"{ name: a, command: [p, "{in}"], suffix: .a.jpg }"#, "'command' must contain {out}"),
        (#"{ name: a, command: [p, "{out}"], suffix: .a.jpg }"#, "'command' must contain {in}"),
        (#"{ name: a, command: [p, "{in}", "{out}"] }"#, "'suffix' must end with an extension"),
        (#"{ name: a, command: [p, "{in}", "{out}"], suffix: a/b.jpg }"#, "'suffix' must end with an extension"),
        ("{ thumbnail: vips }, { thumbnail: vips }", "a rule above has the same name"),
    ])
    func `a rule that cannot work is refused`(rule: String, message: String) {
        #expect(complaints(text(route: "derive: [\(rule)]")).contains(message))
    }
}

/// What arrives of `bandwidth:`, `schedule:` and `window:`.
struct LimitSettingsTests {
    private static let mib: Int64 = 1 << 20

    @Test func `rates and timetables of all together and of a destination are read`() throws {
        let limits = try parse(String(decoding: try FixtureTests.content("good/limits.yaml"), as: UTF8.self)).settings
            .bandwidth
        #expect(limits.all.base == 20 * Self.mib && limits.all.zone == "Europe/Berlin")
        #expect(
            limits.all.entries == [
                .init(DaySpan(from: 480, to: 1080, days: [.mon, .fri]), rate: 2_500_000),
                .init(DaySpan(from: 1320, to: 360), rate: nil),
                .init(DaySpan(from: 720, to: 1440, days: [.sun]), rate: 0),
            ])
        #expect(limits.destinations.keys.sorted() == ["stage"])
        let stage = try #require(limits.destinations["stage"])
        #expect(stage.base == 3 * Self.mib / 2 && stage.zone == "Europe/Berlin" && stage.isClosed)
    }

    @Test func `a window has its route's size, or one of 1 GiB, and the zone of the limits`() throws {
        let routes = try parse(String(decoding: try FixtureTests.content("good/limits.yaml"), as: UTF8.self)).settings
            .routes
        #expect(
            routes[0].window
                == DeliveryWindow(
                    DaySpan(from: 1320, to: 360, days: [.sat]), above: 2 << 30, zone: "Europe/Berlin"))
        #expect(routes[1].window == DeliveryWindow(DaySpan(from: 1320, to: 360), zone: "Europe/Berlin"))
    }

    @Test func `without limits nothing is limited`() throws {
        let settings = try parse("destinations: { lib: { type: folder, path: /lib } }\nroutes: [{ name: a, to: lib }]")
            .settings
        #expect(settings.bandwidth == BandwidthLimits() && settings.routes[0].window == nil)
    }
}

/// `storage:` of destinations that only register files.
@Suite struct StorageTests {
    private static let types = [
        DestinationType(name: "bucket", summary: "A bucket.", keys: [], givesURLs: true),
        DestinationType(name: "disk", summary: "A disk.", keys: []),
        DestinationType(
            name: "register", summary: "A register.", keys: [KeySpec("storage", .string, "Where files are.")],
            fields: [FieldSpec("role", default: "auto", choices: ["auto", "model"], "What a file is.")],
            takesSidecars: false),
    ]

    private func complaint(storage: String, others: String) -> String {
        let text = """
            destinations:
              spaces: { type: register, storage: \(storage) }
            \(others)
            """
        do throws(ConfigErrors) {
            _ = try ConfigFile.parse(
                text: text.utf8, file: "inlet.yaml", types: Self.types, environment: [:], defaults: standInDefaults)
            return ""
        } catch {
            return error.list.map { "\($0.line):\($0.column): \($0.message)" }.joined(separator: "\n")
        }
    }

    @Test(arguments: [
        ("spiral", "  spiral: { type: bucket }", ""),
        ("spiral", "  spirals: { type: bucket }", "2:38: unknown destination 'spiral'; did you mean 'spirals'?"),
        ("spiral", "  x-y: { type: disk }", "2:38: unknown destination 'spiral'; known destinations: x-y"),
        ("spaces", "  spiral: { type: bucket }", "2:38: 'spaces' cannot store its own files; name another destination"),
        (
            "library", "  library: { type: disk }",
            "2:38: choose a destination of type bucket: the files of 'library' (type disk) have no URL"
        ),
        (
            "other", "  other: { type: register, storage: spiral }\n  spiral: { type: bucket }",
            "2:38: choose a destination of type bucket: the files of 'other' (type register) have no URL"
        ),
        // What is wrong with the storage itself is said there alone.
        (
            "spiral", "  spiral: { type: buckets }",
            "3:19: 'type' must be one of bucket, disk, register, not 'buckets'; did you mean 'bucket'?"
        ),
    ])
    func `a storage is another destination whose files have URLs`(storage: String, others: String, complaint: String) {
        #expect(self.complaint(storage: storage, others: others) == complaint)
    }

    @Test(arguments: [
        ("modell", "7:19: 'role' must be one of auto, model, not 'modell'; did you mean 'model'?"), ("Model", ""),
        ("\"{folder[1]}\"", ""),
    ])
    func `a field that can be few words only is checked where it is written`(role: String, complaint: String) {
        let others = """
              spiral: { type: bucket }
            watch: [{ path: /srv }]
            routes:
              - name: models
                with: { role: \(role) }
                to: spaces
            """
        #expect(self.complaint(storage: "spiral", others: others) == complaint)
    }

    @Test func `sidecars are no matter of their own while the storage is not known`() {
        let others = """
              x-y: { type: disk }
            watch: [{ path: /srv }]
            routes:
              - name: models
                match: { extensions: [glb] }
                sidecars: { extensions: [png] }
                to: spaces
            """
        #expect(complaint(storage: "xy", others: others) == "2:38: unknown destination 'xy'; did you mean 'x-y'?")
    }
}
