import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletConfig

/// Credentials come in from files and the environment, and never come out again.
struct SecretTests {
    private static let canary = "kanarienvogel"

    /// Ways to write the same credential.
    private static let forms = [
        "api_key: kanarienvogel", "api_key: \"kanarienvogel\"", "api_key: 'kanarienvogel'",
        "api_key: >-\n      kanarienvogel", "api_key:\n      kanarienvogel", "\"api_key\" : kanarienvogel",
        "api_key: \"kanari\\\n      envogel kanarienvogel\"", "api_key: &k kanarienvogel\n    public_url: *k",
    ]
    /// Things wrong around it, with its line as `%`.
    private static let faults = [
        "    %\n    verify: sha1\n", "    % : x\n", "    %\n   dialect: v1\n", "    %\n    %\n",
        "    %\n\tdialect: v1\n",
        "    %\n    unknown: 1\n", "    %\n    dialect: \"v1\n", "    dialect: [\n    %\n",
        "    dialect: \"\n    %\n    x: \"\n",
        "    %\n    parallel_parts: 100\n", "    %\n      deeper: 1\n", "    % #\n    api: twice\n", "    - %\n",
    ]

    @Test(arguments: forms)
    func `a credential never shows in an error`(form: String) {
        var refused = 0
        for fault in Self.faults {
            let head = "destinations:\n  spiral:\n    type: r2\n    api: \"https://a.example\"\n"
            let text = head + fault.replacingOccurrences(of: "%", with: form)
            let shown = complaints(text)
            if !shown.isEmpty { refused += 1 }
            #expect(!shown.contains(Self.canary), "\(shown)")
        }
        // Where the credential is a block of text, some of the damage becomes part of it.
        #expect(refused >= Self.faults.count - 3)
    }

    @Test(arguments: forms)
    func `a file cut anywhere behind a credential does not show it`(form: String) {
        let text = "destinations:\n  spiral:\n    type: r2\n    \(form)\n    verify: [md5, {\n  other: \"x"
        let bytes = Array(text.utf8)
        for length in bytes.indices {
            #expect(!complaints(Array(bytes[..<length]), file: "a").contains(Self.canary))
        }
    }

    @Test(arguments: ["api_kye", "apikey", "access_token", "Password", "my-secret"])
    func `a credential under a mistyped key does not show`(key: String) {
        let text = "destinations:\n  spiral: { type: r2, api: a, \(key): kanarienvogel }\n"
        #expect(complaints(text).contains("unknown key '\(key)'"))
        #expect(!complaints(text).contains(Self.canary))
    }

    @Test func `a credential that looks like an alias, a tag or a mapping does not show`() {
        for value in [
            "*kanarienvogel", "!kanarienvogel x", "{ x: kanarienvogel }", "[kanarienvogel]", "@kanarienvogel",
        ] {
            let text = "destinations:\n  spiral: { type: r2, api: a, api_key: \(value) }\n"
            #expect(!complaints(text).isEmpty)
            #expect(!complaints(text).contains(Self.canary), "\(complaints(text))")
        }
    }

    @Test func `a quote that closes too late does not carry a credential into the message`() {
        for value in ["\"v1, api_key: kanarienvogel\"", "'v1\n    api_key: kanarienvogel\n    '"] {
            let text = "destinations:\n  spiral:\n    type: r2\n    api: a\n    dialect: \(value)\n    \(value): 1\n"
            #expect(complaints(text).contains("dialect") || complaints(text).contains("YAML"))
            #expect(!complaints(text).contains(Self.canary), "\(complaints(text))")
        }
    }

    @Test func `what is filled in never becomes part of an error or of what is shown`() throws {
        let bad = """
            destinations: { lib: { type: folder, path: "/${env:CANARY}" } }
            routes:
              - { name: "${env:CANARY}", to: "${env:CANARY}", key: "{${env:CANARY}}", settle: "${env:CANARY}" }
              - { name: "${env:CANARY}", to: lib, match: { path: "${env:CANARY}[", extensions: "*${env:CANARY}" } }
            """
        #expect(complaints(bad).contains("unknown destination '${env:CANARY}'"))
        #expect(!complaints(bad).contains("canary-value"), "\(complaints(bad))")
        let config = try parse(
            "destinations: { a: { type: r2, api: \"https://u:${env:CANARY}@x\", api_key: kanarienvogel } }")
        let shown = ConfigPrinter.show(config, types: standInTypes)
        #expect(shown.contains("https://***@x") && shown.contains("api_key: \"***\""))
        for text in [shown, "\(config.settings.destinations)", String(reflecting: config.effective)] {
            #expect(!text.contains(Self.canary))
        }
        #expect(!shown.contains("canary-value"))
    }

    @Test(arguments: [
        "https://user:kanarienvogel@a.example", "user:kanarienvogel@a.example", "HTTP://kanarienvogel@a.example/x@y",
        "https://user:kanarien/kanarienvogel@a.example",
    ])
    func `a login in an address is shown nowhere, whether the address can be used or not`(address: String) throws {
        let text = "destinations: { a: { type: r2, api: \"\(address)\", api_key: x } }"
        let config = try parse(text)
        // What its destination finds wrong later is told with the line.
        let error = config.error(at: SourcePosition(line: 1, column: 36), "'api' is no address")
        #expect(!"\(error)".contains(Self.canary), "\(error)")
        let shown = ConfigPrinter.show(config, types: standInTypes)
        #expect(!shown.contains(Self.canary) && shown.contains("***@"), "\(shown)")
        let other = try parse(text.replacing("kanarienvogel", with: "kanarienvogel-neu"))
        let changes = ConfigDiff.changes(from: config, to: other, types: standInTypes)
        #expect(changes.count == 1 && !"\(changes)".contains(Self.canary), "\(changes)")
        for wrong in ["verify", "part_size", "if_exists"] {
            let text = text.replacing("api_key: x", with: "api_key: x,\n  \(wrong): \"\(address)\"")
            #expect(complaints(text).contains(wrong) && !complaints(text).contains(Self.canary), "\(complaints(text))")
        }
        let misplaced = text.replacing("api_key: x", with: "\"\(address)\": x")
        #expect(complaints(misplaced).contains("unknown key") && !complaints(misplaced).contains(Self.canary))
    }

    @Test func `a template with a field that has a colon is no login`() throws {
        #expect(SecretMask.login(in: "{date:yyyy}@{name}".unicodeScalars) == nil)
        #expect(SecretMask.login(in: "crew@a.example".unicodeScalars) == nil)
    }

    @Test func `a file's content is trimmed of one line break`() throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array("kanarienvogel\n".utf8), to: "one")
        try folder.write(Array("kanarienvogel\r\n".utf8), to: "two")
        for name in ["one", "two"] {
            let config = try load("api_key: \"${file:\(name)}\"", in: folder)
            #expect(config.settings.destinations.first?.values.values["api_key"] == .secret(Secret(Self.canary)))
        }
    }

    @Test(arguments: [
        ("large", "it is larger than 64 KiB"), ("binary", "is not UTF-8"), ("gone", "No such file or directory"),
        ("folder", "Is a directory"), ("lines", "contains a control character"), ("empty", "'api_key' is empty"),
    ])
    func `a file that cannot be a credential is refused with its reason`(name: String, reason: String) throws {
        let folder = try TemporaryDirectory()
        try folder.write(Array(repeating: 0x61, count: 65_537), to: "large")
        try folder.write([0x61, 0xFF], to: "binary")
        try folder.write(Array("kanarienvogel\nb\n".utf8), to: "lines")
        try folder.write([], to: "empty")
        try folder.makeDirectory("folder")
        let error = #expect(throws: ConfigErrors.self) { try load("api_key: \"${file:\(name)}\"", in: folder) }
        #expect(error?.list.count == 1)
        #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
        #expect(error?.description.contains(Self.canary) == false)
    }

    @Test func `a literal credential in a file that others can read is warned of`() throws {
        let folder = try TemporaryDirectory()
        let open = try load("api_key: kanarienvogel", in: folder, mode: 0o644)
        #expect(open.warnings.map(\.position) == [SourcePosition(line: 5, column: 14)])
        #expect(open.warnings.allSatisfy { !$0.description.contains(Self.canary) })
        #expect(try load("api_key: kanarienvogel", in: folder, mode: 0o600).warnings.isEmpty)
        #expect(try load("api_key: \"${env:CANARY}\"", in: folder, mode: 0o644).warnings.isEmpty)
    }

    @Test func `a configuration that is not there is an error with its path`() {
        let error = #expect(throws: ConfigErrors.self) {
            try ConfigFile.load("/no/such.yaml", types: [], environment: [:], defaults: standInDefaults)
        }
        #expect(
            error?.description == "/no/such.yaml:1:1: cannot read the configuration: No such file or directory")
    }

    private func load(_ line: String, in folder: TemporaryDirectory, mode: Int = 0o600) throws -> LoadedConfig {
        let text = "destinations:\n  spiral:\n    type: r2\n    api: \"https://a.example\"\n    \(line)\n"
        let file = try folder.write(Array(text.utf8), to: "inlet.yaml")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.string)
        var defaults = standInDefaults
        defaults.reader = FileTrust.Reader(user: getuid(), groups: [getgid()])
        return try ConfigFile.load(file, types: standInTypes, environment: standInEnvironment, defaults: defaults)
    }
}

/// Modes and owners of files that hold credentials, or say what runs.
struct FileTrustTests {
    private static let us = FileTrust.Reader(user: 990, groups: [990, 44])
    private static let root = FileTrust.Reader(user: 0, groups: [0])

    private static func objections(
        _ mode: UInt32, owner: UInt32 = 990, group: UInt32 = 990, _ kind: FileTrust.Kind,
        _ reader: FileTrust.Reader = us
    ) -> [String] {
        FileTrust(permissions: FilePermissions(rawValue: CInterop.Mode(mode)), owner: owner, group: group)
            .objections(to: kind, for: reader)
    }

    @Test(arguments: FileTrust.Kind.allCases)
    func `what is ours or root's and closed is fine`(_ kind: FileTrust.Kind) {
        for mode in [0o600, 0o400, 0o640, 0o440] as [UInt32] {
            #expect(Self.objections(mode, kind) == [])
            // The package's configuration, and credentials that systemd passes on.
            #expect(Self.objections(mode, owner: 0, kind) == [])
            #expect(Self.objections(mode, owner: 0, group: 0, kind) == [])
            #expect(Self.objections(mode, group: 44, kind) == [])
            #expect(Self.objections(mode, owner: 0, group: 990, kind, Self.root) == [])
        }
    }

    @Test(
        arguments: [
            (0o644, 990, 990, ["is a credential that everyone can read"]),
            (0o604, 990, 990, ["is a credential that everyone can read"]),
            (0o640, 990, 7, ["is a credential that group 7 can read"]), (0o620, 990, 990, ["can be changed by others"]),
            (0o602, 990, 990, ["can be changed by others"]), (0o600, 1001, 990, ["belongs to user 1001"]),
            (
                0o666, 1001, 7,
                ["is a credential that everyone can read", "can be changed by others", "belongs to user 1001"]
            ),
        ] as [(UInt32, UInt32, UInt32, [String])])
    func `of a credential's file each fault is told`(
        _ mode: UInt32, _ owner: UInt32, _ group: UInt32, _ expected: [String]
    ) {
        let found = Self.objections(mode, owner: owner, group: group, .credential)
        #expect(found.count == expected.count)
        for (text, start) in zip(found, expected) { #expect(text.hasPrefix(start), "\(text)") }
        // A configuration may be read, as long as no credential is written in it.
        let others = Self.objections(mode, owner: owner, group: group, .configuration)
        #expect(others.count == expected.count { !$0.contains("read") })
    }

    @Test func `who reads a configuration matters for the credentials in it`() {
        func isOpen(_ mode: UInt32, group: UInt32 = 990, _ reader: FileTrust.Reader = Self.us) -> Bool {
            FileTrust(permissions: FilePermissions(rawValue: CInterop.Mode(mode)), owner: 0, group: group)
                .isReadableByStrangers(for: reader)
        }
        #expect(isOpen(0o644) && isOpen(0o640, group: 7) && isOpen(0o604, group: 7, Self.root))
        #expect(!isOpen(0o640) && !isOpen(0o640, group: 0) && !isOpen(0o640, group: 7, Self.root))
        #expect(!isOpen(0o600, group: 7))
    }
}
