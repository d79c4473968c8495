import InletConfig
import InletCore
import SystemPackage
import Testing

/// What arrives in `Settings` from a file.
struct SettingsTests {
    @Test func `defaults of the tables equal those of the settings`() throws {
        let read = try parse(small()).settings
        let plain = Settings(stateDirectory: "/var/lib/inlet")
        #expect(read.stateDirectory == plain.stateDirectory)
        #expect(read.workers == plain.workers)
        #expect(read.shutdownGrace == plain.shutdownGrace)
        #expect(read.log == plain.log)
        #expect(read.queueWarning == plain.queueWarning)
        #expect(read.journalBackup == nil && plain.journalBackup == nil)
        let watch = try #require(read.watch.first)
        let standard = WatchSettings(path: "/srv/drop")
        #expect(watch.path == standard.path && watch.recursive == standard.recursive)
        #expect(watch.settle == standard.settle && watch.rescan == standard.rescan && watch.hold == standard.hold)
        #expect(watch.existing == standard.existing && watch.ignore.isEmpty)
        #expect(watch.archiveDirectory == standard.archiveDirectory)
        #expect(watch.quarantineDirectory == standard.quarantineDirectory)
        let route = try #require(read.routes.first)
        #expect(route.key == .standard && route.to == ["lib"] && route.retry == RetryPolicy())
        #expect(route.onSuccess == .keep && route.onFailure == .keep && route.settle == nil)
        #expect(route.sidecars == SidecarRule() && route.unit == .file && route.completion == .quiet)
        #expect(route.match.paths.isEmpty && route.match.extensions.isEmpty && route.validate == Validation())
    }

    @Test func `the journal is backed up where the file says how often`() throws {
        func read(_ value: String) throws -> (every: Duration, keep: Int)? {
            try parse(small("journal_backup: \(value)")).settings.journalBackup
        }
        let (daily, often) = (try read("{ every: 24h }"), try read("{ every: 1m, keep: 2 }"))
        #expect(daily?.every == .seconds(86_400) && daily?.keep == 7)
        #expect(often?.every == .seconds(60) && often?.keep == 2)
        #expect(try read("{ keep: 2 }") == nil)
        #expect(try read("{ every: off }") == nil)
        #expect(throws: (any Error).self) { try read("{ every: 10s }") }
    }

    @Test func `files go to the history after 90 days, or when the file says`() throws {
        func read(_ line: String) throws -> Duration? {
            try parse(small(line)).settings.historyAfter
        }
        #expect(try read("") == .seconds(90 * 86_400))
        #expect(try read("journal_history: {}") == .seconds(90 * 86_400))
        #expect(try read("journal_history: { after: 30d }") == .seconds(30 * 86_400))
        #expect(try read("journal_history: { after: off }") == nil)
        #expect(throws: (any Error).self) { try read("journal_history: { after: 100ms }") }
    }

    @Test func `every form of every value is read`() throws {
        let settings = try parse(String(decoding: try FixtureTests.content("good/forms.yaml"), as: UTF8.self)).settings
        #expect(settings.stateDirectory == "/nowhere/user/state")
        #expect(settings.log.output == "/nowhere/logs/inlet.jsonl")
        #expect(settings.destinations.map(\.name) == ["Zulu.2", "alpha"])
        let values = try #require(settings.destinations.first?.values)
        #expect(values.string("api") == "https://storage.example/v1")
        #expect(values.values["api_key"] == .secret(Secret("canary-spiral")))
        #expect(values.string("public_url") == "literal ${env:X} and $ alone")
        #expect(values.string("ca_file") == "/nowhere/canary-value.pem")
        #expect(values.values["allow_http"] == .boolean(true))
        #expect(values.positions["api"] == SourcePosition(line: 9, column: 10))
        #expect(settings.watch.map(\.path) == ["/nowhere/user/drop", "/nowhere/drop"])
        #expect(settings.watch[0].rescan == nil && settings.watch[0].settle == .zero)
        #expect(settings.watch[0].archiveDirectory == "/srv/done")
        #expect(settings.watch[1].ignore.map(\.text) == ["[!a]*.x", "done/"])
    }

    @Test func `routes are read whole and in order`() throws {
        let settings = try parse(String(decoding: try FixtureTests.content("good/forms.yaml"), as: UTF8.self)).settings
        let (first, second) = (settings.routes[0], settings.routes[1])
        #expect(first.name == "first" && second.name == "second")
        #expect(first.match.extensions == ["mp4", "mov"] && second.validate.extensions == ["mp4", "mov"])
        #expect(first.to == ["alpha", "Zulu.2"] && second.to == ["alpha"])
        #expect(first.key.text == "{category}/{name}")
        #expect(first.with["on"]?.text == "storage.example {name}")
        #expect(first.with["title"] == nil && second.with.isEmpty)
        #expect(first.retry == RetryPolicy(attempts: 5, expire: nil))
        #expect(first.settle == .seconds(90))
        #expect(first.sidecars == SidecarRule(metadata: true, extensions: ["xmp", "srt"], wait: .seconds(60)))
        #expect(first.unit == .folder && first.completion == .marker)
        #expect(second.validate.minSize == 0 && second.validate.maxSize == 123_456_789)
    }

    @Test func `fields that no destination of a route knows are refused, and the missing ones get their defaults`()
        throws
    {
        let head = """
            destinations:
              bucket: { type: r2, api: "https://storage.example" }
              library: { type: folder, path: /srv/library }
            routes:
              - name: one

            """
        let route = try parse(head + "    to: [library, bucket]\n    with: { title: x }\n").settings.routes[0]
        #expect(route.with.mapValues(\.text) == ["title": "x", "label": "{stem}"])
        let table: [(String, String)] = [
            (
                "    to: [library, bucket]\n    with: { lable: x }\n",
                "7:13: unknown field 'lable' in with; did you mean 'label'?"
            ),
            (
                "    to: bucket\n    with: { colour: x }\n",
                "unknown field 'colour' in with; known fields: label, on, title"
            ),
            (
                "    to: library\n    with: { label: x }\n",
                "unknown field 'label' in with; destination 'library' takes no fields"
            ),
        ]
        for (text, complaint) in table { #expect(complaints(head + text).contains(complaint), "\(text)") }
        // What a destination with an error of its own would know cannot be told.
        #expect(!complaints(head + "    to: [bucket, nowhere]\n    with: { lable: x }\n").contains("unknown field"))
    }

    @Test func `a sidecar may set what the destinations of its route understand, and nothing else`() throws {
        let text = """
            destinations:
              stage: { type: gighive, url: "https://gighive.example", user: u, password: p }
              lib: { type: folder, path: /lib }
            routes:
              - { name: both, to: [lib, stage], sidecars: { metadata: true } }
              - { name: none, to: lib }
            """
        let routes = try parse(text).settings.routes
        #expect(routes[0].sidecarFields == ["label", "org_name", "event_date", "event_type", "keywords"])
        #expect(routes[1].sidecarFields == [])
        #expect(routes[0].sidecars == SidecarRule(metadata: true) && routes[1].sidecars.isEmpty)
    }

    @Test func `a file without watch, routes and destinations still loads`() throws {
        let settings = try parse("workers: 3\ndestinations:\nwatch:\nroutes:\n").settings
        #expect(settings.workers == 3)
        #expect(settings.watch.isEmpty && settings.routes.isEmpty && settings.destinations.isEmpty)
    }

    @Test func `all errors are told at once and in the file's order`() {
        let text = "workers: x\nlog: { level: y }\nroutes: [{ name: a, to: z }]\n"
        let lines = complaints(text).split(separator: "\n").filter { $0.hasPrefix("inlet.yaml:") }
        #expect(lines.map { $0.prefix(13) } == ["inlet.yaml:1:", "inlet.yaml:2:", "inlet.yaml:3:"])
    }

    @Test func `a value that is wrong by what its service knows is reported in the same form`() throws {
        let config = try parse("destinations:\n  lib: { type: folder, path: /lib }\n")
        let position = try #require(config.settings.destinations.first?.values.positions["path"])
        let error = config.error(at: position, "no such folder")
        let expected = "inlet.yaml:2:30: no such folder\n  lib: { type: folder, path: /lib }\n"
        #expect(error.description == expected + String(repeating: " ", count: 29) + "^")
    }

    @Test(arguments: [
        ([:], true, "/var/lib/inlet"), ([:], false, "/var/lib/inlet"),
        (["HOME": "/nowhere/a"], false, "/nowhere/a/.local/state/inlet"), (["HOME": "/root"], true, "/var/lib/inlet"),
        (["HOME": "/nowhere/a", "XDG_STATE_HOME": "/state"], false, "/state/inlet"),
        (["HOME": "/nowhere/a", "XDG_STATE_HOME": "relative"], false, "/nowhere/a/.local/state/inlet"),
    ])
    func `the state folder's default follows the XDG rules`(
        environment: [String: String], isRoot: Bool, expected: String
    ) {
        let defaults = ConfigDefaults.standard(environment: environment, isRoot: isRoot, workingDirectory: "/")
        #expect(defaults.stateDirectory.string == expected)
    }

    @Test func `a home is needed only where it is used`() {
        let defaults = ConfigDefaults(stateDirectory: "/state", home: nil, workingDirectory: "/")
        #expect(throws: Never.self) {
            _ = try ConfigFile.parse(
                text: "workers: 1".utf8, file: "a.yaml", types: standInTypes, environment: [:], defaults: defaults)
        }
        let error = #expect(throws: ConfigErrors.self) {
            _ = try ConfigFile.parse(
                text: "state_dir: ~/x".utf8, file: "a.yaml", types: standInTypes, environment: [:], defaults: defaults)
        }
        #expect(error?.description.hasPrefix("a.yaml:1:12: '~' needs HOME") == true)
    }
}

/// `mode:` and `poll:` of a watched folder.
struct WatchModeTests {
    @Test(arguments: [
        ("", WatchSettings.Mode.auto, Duration.seconds(10)), (", mode: auto, poll: 1m", .auto, .seconds(60)),
        (", mode: poll", .poll, .seconds(10)), (", mode: inotify, poll: 1s", .inotify, .seconds(1)),
    ])
    func `a folder says how its changes are noticed`(keys: String, mode: WatchSettings.Mode, poll: Duration) throws {
        let watch = try #require(try parse(small(watch: keys)).settings.watch.first)
        #expect(watch.mode == mode)
        #expect(watch.poll == poll)
    }

    @Test(arguments: [
        (", mode: events", "auto, inotify, poll"), (", poll: 500ms", "1s or longer"), (", poll: off", "not a duration"),
    ])
    func `another word, a pause below a second and none at all are refused`(keys: String, why: String) throws {
        let errors = try #require(throws: ConfigErrors.self) { try parse(small(watch: keys)) }
        #expect("\(errors)".contains(why), "\(errors)")
    }
}

/// Watched folders that come and go with their volumes.
struct VolumeSettingsTests {
    @Test func `a path with wildcards is a pattern, and its volumes are left as they are`() throws {
        let watch = try #require(try parse(small(path: "\"/media/*/DCIM\"")).settings.watch.first)
        #expect(watch.pattern?.parent == "/media")
        #expect(!watch.volumeWrites && watch.volumeDoneAfter == nil)
        let two = try parse(small(path: "\"/media/*/DCIM\", volume_done_after: 2")).settings.watch.first
        #expect(two?.volumeDoneAfter == 2)
        #expect(watch.onComplete == .keep && watch.onCard == nil)
        let lamp = try parse(small(path: "\"/media/*/DCIM\", on_complete: eject, on_card: [/bin/lamp, red]")).settings
            .watch.first
        #expect(lamp?.onComplete == .eject && lamp?.onCard == ["/bin/lamp", "red"])
        #expect(lamp?.at("/media/EOS/DCIM").onCard == ["/bin/lamp", "red"])
        #expect(watch.cardReport.isEmpty)
        for (list, forms) in [("[html, csv]", [.html, .csv]), ("json", [.json])] as [(String, [OffloadForm])] {
            let reports = try parse(small(path: "\"/media/*/DCIM\", card_report: \(list)")).settings.watch.first
            #expect(reports?.cardReport == forms)
        }
        #expect(watch.covers("/media/EOS/DCIM"))
        #expect(!watch.covers("/media/EOS/DCIM/100CANON"))
        #expect(watch.at("/media/EOS/DCIM").path == "/media/EOS/DCIM")
        #expect(try parse(small(path: "/srv/drop")).settings.watch.first?.pattern == nil)
    }

    @Test func `a person can be asked for a card's labels, or not, or waited for`() throws {
        let entry = "\"/media/*/DCIM\""
        #expect(try parse(small(path: entry)).settings.watch.first?.ask == .offer)
        for question in CardQuestion.allCases {
            let text = small(path: "\(entry), ask: \(question.rawValue)")
            #expect(try parse(text).settings.watch.first?.ask == question)
        }
        #expect(complaints(small(path: "\(entry), ask: later")).contains("never, offer, wait"))
    }

    @Test(arguments: [", on_success: delete", ", on_success: archive", ", on_failure: quarantine"])
    func `what writes to a volume must be meant`(route: String) throws {
        let refused = complaints(small(path: "\"/media/*/DCIM\"", route: route))
        #expect(refused.contains("volume_writes") && refused.contains("route 'all'"), "\(refused)")
        for (word, isAllowed) in [("true", true), ("false", false)] {
            let text = small(path: "\"/media/*/DCIM\", volume_writes: \(word)", route: route)
            #expect(try parse(text).settings.watch.first?.volumeWrites == isAllowed)
        }
        #expect(complaints(small(path: "/srv/drop", route: route)).isEmpty)
    }

    @Test(arguments: ["/media/EOS/DCIM", "\"/media/EOS*/DCIM\"", "/media/EOS/DCIM/100CANON"])
    func `a folder that a pattern stands for cannot be watched beside it`(other: String) {
        for (one, two) in [("\"/media/*/DCIM\"", other), (other, "\"/media/*/DCIM\"")] {
            #expect(complaints(small(path: "\(one) }, { path: \(two)")).contains("can match the same folder"))
        }
        #expect(complaints(small(path: "\"/media/*/DCIM\" }, { path: /media/EOS/MUSIC")).isEmpty)
    }

    @Test(arguments: [
        ("/srv/drop, volume_done_after: 2", "pattern"), ("/srv/drop, card_report: html", "pattern"),
        ("\"/media/*/DCIM\", card_report: pdf", "html, csv, json"),
        ("\"/media/*/DCIM\", volume_done_after: 0", "volume_done_after"),
        ("\"/media/**/DCIM\"", "'**'"), ("\"/media/[a/DCIM\"", "["), ("/srv/drop, volume_writes: true", "pattern"),
        ("/srv/drop, ask: wait", "remove 'ask'"),
        ("/srv/drop, on_complete: keep", "pattern"), ("/srv/drop, on_card: /bin/lamp", "pattern"),
        ("\"/media/*/DCIM\", on_card: [lamp, red]", "'on_card' must start with the program's absolute path"),
        ("\"/media/*/DCIM\", on_complete: pull", "keep, eject"),
    ])
    func `what cannot be a pattern is refused`(watch: String, word: String) {
        #expect(complaints(small(path: watch)).contains(word))
    }
}

/// Whose files a watched folder takes.
struct OwnerTests {
    @Test(arguments: [
        ("", SourceRule()), (", owners: [root, 1004]", SourceRule(owners: [0, 1004])),
        (", owners: root", SourceRule(owners: [0])), (", hard_links: refuse", SourceRule(hardLinks: .refuse)),
        (", owners: ['0'], hard_links: allow", SourceRule(owners: [0])),
    ])
    func `users are named by name or number`(_ watch: String, _ rule: SourceRule) throws {
        #expect(try parse(small(watch: watch)).settings.watch.first?.sources == rule)
    }

    @Test(arguments: [
        (", owners: [root, nobody-has-this]", "2:", "'nobody-has-this'"),
        (", owners: [4294967295]", "2:", "'4294967295'"), (", owners: [-1]", "2:", "'-1'"),
        (", owners: []", "2:", "no user"), (", hard_links: perhaps", "2:", "hard_links"),
    ])
    func `a user that there is not is an error where it stands`(_ watch: String, line: String, word: String) {
        let found = complaints(small(watch: watch))
        #expect(found.contains(word) && found.contains(":\(line)"), "\(found)")
    }

    @Test func `the unknown one of several is pointed at`() {
        let found = complaints(small(watch: ", owners: [root, nobody-has-this]"))
        // watch: [{ path: /srv/drop, owners: [root, nobody-has-this
        #expect(found.contains(":2:43:"), "\(found)")
    }
}
