import InletCore
import SystemPackage
import Testing

@testable import InletConfig

@Suite struct ConfigComparisonTests {
    private static let types = [
        DestinationType(
            name: "box", summary: "A box.",
            keys: [
                KeySpec("path", .path, required: true, "Where."),
                KeySpec("part_size", .bytes(orWord: nil), default: "8MiB", "Size."),
                KeySpec("key", .secret, "Key."),
            ])
    ]

    private static func load(_ text: String, _ environment: [String: String] = [:]) throws -> LoadedConfig {
        try ConfigFile.parse(
            text: text.utf8, file: "/etc/inlet.yaml", types: types, environment: environment,
            defaults: ConfigDefaults(stateDirectory: "/state", home: nil, workingDirectory: "/"))
    }

    private static let plain = """
        destinations:
          one: { type: box, path: /one }
          two: { type: box, path: /two, key: secret-1 }
        watch:
          - { path: /in }
        routes:
          - { name: first, match: { extensions: [mp4] }, to: one }
          - { name: rest, to: [one, two] }

        """

    private static func texts(
        _ old: String, _ new: String, _ environment: [String: String] = [:], _ later: [String: String]? = nil
    ) throws -> [String] {
        try ConfigDiff.changes(
            from: load(old, environment), to: load(new, later ?? environment), types: types
        ).map(\.text)
    }

    @Test func `what is the same differs in nothing, wherever it stands`() throws {
        #expect(try Self.texts(Self.plain, "# a line more\n" + Self.plain) == [])
        #expect(try Self.texts(Self.plain, "workers: 4\n" + Self.plain) == [])
    }

    @Test(arguments: [
        ("{ path: /in }", "{ path: /in, settle: 9s }", "watch[/in].settle: 5s -> 9s"),
        ("path: /one }", "path: /one, part_size: 16MiB }", "destinations.one.part_size: 8MiB -> 16MiB"),
        ("key: secret-1", "key: secret-2", "destinations.two.key: *** -> ***"),
        ("to: [one, two]", "to: [two]", "routes[rest].to: [one, two] -> [two]"),
        ("{ path: /in }", "{ path: /on }", "watch[/in]: {path: /in} -> (none)"),
        ("destinations:", "workers: 8\ndestinations:", "workers: 4 -> 8 (needs a restart)"),
        ("destinations:", "state_dir: /other\ndestinations:", "state_dir: /state -> /other (needs a restart)"),
        ("destinations:", "limits: { bandwidth: 5MiB/s }\ndestinations:", "limits.bandwidth: (none) -> 5MiB/s"),
        (
            "path: /one }", "path: /one }\n  new: { type: box, path: /n }",
            "destinations.new: (none) -> {type: box, path: /n}"
        ),
    ]) func `a change is told by its keys, with what was and what is`(_ old: String, _ new: String, _ told: String)
        throws
    {
        let texts = try Self.texts(Self.plain, Self.plain.replacing(old, with: new))
        #expect(texts.contains(told), "\(texts)")
    }

    @Test func `the order of routes is a change of its own`() throws {
        let lines = Self.plain.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        let turned = (lines[0..<6] + [lines[7], lines[6]]).joined(separator: "\n") + "\n"
        #expect(try Self.texts(Self.plain, turned) == ["routes: first, rest -> rest, first"])
    }

    @Test func `what stands behind a reference is compared, and never shown`() throws {
        let text = Self.plain.replacing("secret-1", with: "\"${env:KEY}\"")
        #expect(try Self.texts(text, text, ["KEY": "a"]) == [])
        let told = try Self.texts(text, text, ["KEY": "hidden-a"], ["KEY": "hidden-b"])
        #expect(
            told.count == 1 && told[0].hasPrefix("destinations.two.key: ") && !told[0].contains("hidden"), "\(told)")
    }

    @Test func `a line above changes nothing, and what a proxy becomes is told`() throws {
        let proxied = Self.plain + "proxy: { url: \"http://proxy.example:3128\", no_proxy: [\".lan\"] }\n"
        #expect(try Self.texts(proxied, "# a remark\n\n" + proxied) == [])
        let told = try Self.texts(proxied, proxied.replacing(".lan", with: ".home"))
        #expect(told.count == 1 && told[0].hasPrefix("proxy.no_proxy: [.lan] -> [.home]"), "\(told)")
    }

    @Test func `what config show prints can be compared with a file`() throws {
        let config = try Self.load(Self.plain)
        let shown = try ConfigFile.shown(
            ConfigPrinter.show(config, types: Self.types), file: "/etc/inlet.yaml", types: Self.types,
            defaults: ConfigDefaults(stateDirectory: "/elsewhere", home: nil, workingDirectory: "/"))
        #expect(ConfigDiff.changes(from: shown, to: config.effective, types: Self.types) == [])
        let other = try Self.load(Self.plain.replacing("{ path: /in }", with: "{ path: /in, settle: 1s }"))
        let changes = ConfigDiff.changes(from: shown, to: other.effective, types: Self.types)
        #expect(changes.map(\.path) == ["watch[/in].settle"])
    }

    @Test func `what needs a restart stays as it was, also for the next comparison`() throws {
        let running = try Self.load(Self.plain)
        let changed = """
            state_dir: /other
            workers: 8
            landlock: required
            tls_key_log: /keys
            dashboard: { listen: "127.0.0.1:8844" }
            proxy: "http://proxy.example:3128"

            """
        let loaded = try Self.load(changed + Self.plain.replacing("/one", with: "/1"))
        let next = loaded.taking(over: running)
        func isKept(_ value: (Settings) -> some Equatable) -> Bool {
            let was = value(running.settings)
            return value(loaded.settings) != was && value(next.settings) == was
        }
        #expect(isKept(\.stateDirectory) && isKept(\.workers))
        #expect(isKept(\.landlock) && isKept(\.tlsKeyLog))
        #expect(isKept(\.dashboard) && isKept(\.proxy))
        let changes = ConfigDiff.changes(from: running, to: next, types: Self.types)
        #expect(changes.map(\.path) == ["destinations.one.path"])
    }

    @Test func `what a running agent keeps until its restart is told by the keys`() throws {
        let kept = ConfigKeys.specs.filter { $0.untilRestart != nil }.map(\.name)
        #expect(kept == ["state_dir", "workers", "landlock", "tls_key_log", "dashboard", "fleet", "proxy"])
        let changes = ConfigDiff.changes(
            from: try Self.load(Self.plain),
            to: try Self.load(Self.plain + "workers: 8\nlog: { keep: 9 }\nproxy: { url: \"off\" }\n"),
            types: Self.types)
        #expect(changes.filter(\.needsRestart).map(\.path) == ["workers", "proxy.url"])
        #expect(changes.filter { !$0.needsRestart }.map(\.path) == ["log.keep"])
    }

    @Test(arguments: [
        ("state_dir: /s\nwatch: 5\n", "/s"), ("state_dir: /s\nwatch: [\n", "/s"), ("watch: [\n", "/state"),
        ("", "/state"),
    ]) func `the state directory of a file that is wrong is found as far as it can be`(
        _ text: String, _ path: FilePath
    ) throws {
        let found = ConfigFile.stateDirectory(
            inText: Array(text.utf8), of: "/etc/inlet.yaml", types: Self.types, environment: [:],
            defaults: ConfigDefaults(stateDirectory: "/state", home: nil, workingDirectory: "/"))
        #expect(found == path)
    }
}
