import Foundation
import InletCore
import SystemPackage
import Testing

@testable import InletConfig

extension JSONValue: ExpressibleByStringLiteral {
    /// A text.
    public init(stringLiteral text: String) { self = .string(text) }
}

@Suite struct ConfigEditTests {
    private static let text = """
        # The station of hall 2.
        watch:
          - path: /in        # cards come here
            settle: 9s
            # ignore: [tmp]
        destinations:
          nas:
            type: folder
            path: /nas       # the big one
          r2:
            type: r2
            api: https://api.example
            api_key: hunter2hunter2   # from the vault

        routes:
          - name: films
            match:
              extensions: [mp4, mov]
            to:
              # both, always
              - nas
              - r2     # off-site

          - name: rest
            to: nas

        """

    private static func edited(_ text: String, _ edits: ConfigEdit...) throws -> String {
        let changed = try ConfigText(Array(text.utf8), types: standInTypes, file: "inlet.yaml").applying(edits)
        return String(decoding: changed, as: UTF8.self)
    }

    private static func json(_ text: String) throws -> JSONObject {
        try #require(try JSONValue(parsing: text.utf8).object)
    }

    @Test(
        arguments: [
            (
                "a folder", ConfigEdit(.watch, .add(name: nil, ["path": "/second", "recursive": .boolean(false)])),
                "    # ignore: [tmp]\n", "    # ignore: [tmp]\n  - path: /second\n    recursive: false\n"
            ),
            (
                "a destination",
                ConfigEdit(
                    .destinations, .add(name: "b2", ["type": "s3", "bucket": "films 2026", "secret_key": "${env:B2}"])),
                "# from the vault\n",
                "# from the vault\n  b2:\n    type: s3\n    bucket: \"films 2026\"\n    secret_key: \"${env:B2}\"\n"
            ),
            (
                "a route, apart as the others are",
                ConfigEdit(
                    .routes,
                    .add(name: nil, ["name": "last", "match": .object(["min_size": "1KiB"]), "to": .array(["nas"])])),
                "    to: nas\n",
                "    to: nas\n\n  - name: last\n    match:\n      min_size: 1KiB\n    to: [nas]\n"
            ),
            ("a value", ConfigEdit(.watch, .set(0, ["settle": "1m"])), "settle: 9s", "settle: 1m"),
            (
                "a value beside a comment", ConfigEdit(.destinations, .set(0, ["path": "/new place"])),
                "path: /nas       # the big one", "path: \"/new place\"       # the big one"
            ),
            (
                "a new key", ConfigEdit(.destinations, .set(1, ["part_size": "16MiB"])), "# from the vault\n",
                "# from the vault\n    part_size: 16MiB\n"
            ),
            (
                "an item of a list", ConfigEdit(.routes, .set(0, ["to": .array(["nas"])])),
                "      - r2     # off-site\n", ""
            ),
            (
                "one more item", ConfigEdit(.routes, .set(0, ["to": .array(["nas", "r2", "b2"])])),
                "# off-site\n", "# off-site\n      - b2\n"
            ),
            (
                "a key of a section", ConfigEdit(.routes, .set(0, ["match": .object(["min_size": "1MiB"])])),
                "[mp4, mov]\n", "[mp4, mov]\n      min_size: 1MiB\n"
            ),
            (
                "a section without its only key",
                ConfigEdit(.routes, .set(0, ["match": .object(["extensions": .null])])),
                "    match:\n      extensions: [mp4, mov]\n", ""
            ),
            ("a key less", ConfigEdit(.watch, .set(0, ["settle": .null])), "    settle: 9s\n", ""),
            (
                "a destination less", ConfigEdit(.destinations, .remove(0)),
                "  nas:\n    type: folder\n    path: /nas       # the big one\n", ""
            ),
            ("a route less", ConfigEdit(.routes, .remove(1)), "  - name: rest\n    to: nas\n", ""),
        ] as [(String, ConfigEdit, String, String)])
    func `a change touches its own lines and no others`(
        _ what: String, _ edit: ConfigEdit, _ old: String, _ new: String
    ) throws {
        #expect(Self.text.contains(old), "\(what)")
        #expect(try Self.edited(Self.text, edit) == Self.text.replacing(old, with: new, maxReplacements: 1))
    }

    @Test(arguments: ["routes:", "routes: []", "routes: ~", "routes: # none yet", "# nothing"])
    func `the first entry of a list can be added, however its absence is written`(_ line: String) throws {
        let changed = try Self.edited(
            "workers: 3\n" + line, ConfigEdit(.routes, .add(name: nil, ["name": "all", "to": "nas"])))
        let entries = try ConfigText(Array(changed.utf8), types: standInTypes, file: "").entries(.routes)
        #expect(entries.map(\.values) == [["name": "all", "to": "nas"]])
        #expect(changed.hasPrefix("workers: 3\n") && (changed.contains("# none yet") == line.contains("# none yet")))
    }

    @Test func `entries in braces change in their braces`() throws {
        let text =
            "destinations: { a: { type: folder, path: /a }, b: { type: folder, path: /b, verify: size } } # two\n"
        #expect(
            try Self.edited(text, ConfigEdit(.destinations, .set(0, ["verify": "size"])))
                == text.replacing("path: /a }", with: "path: /a, verify: size }"))
        #expect(
            try Self.edited(text, ConfigEdit(.destinations, .set(1, ["verify": .null, "path": "/c"])))
                == text.replacing("path: /b, verify: size }", with: "path: /c }"))
        #expect(
            try Self.edited(text, ConfigEdit(.destinations, .remove(0)))
                == text.replacing("a: { type: folder, path: /a }, ", with: ""))
        #expect(
            try Self.edited(text, ConfigEdit(.destinations, .remove(1)))
                == text.replacing(", b: { type: folder, path: /b, verify: size }", with: ""))
        #expect(
            try Self.edited(text, ConfigEdit(.destinations, .add(name: "c", ["type": "folder", "path": "/c"])))
                == text.replacing("size } }", with: "size }, c: { type: folder, path: /c } }"))
        let lists = "watch: [{ path: /a }]\n"
        #expect(
            try Self.edited(lists, ConfigEdit(.watch, .add(name: nil, ["path": "/b"])))
                == "watch: [{ path: /a }, { path: /b }]\n")
    }

    @Test func `what anchors share is refused, and so is a program`() throws {
        let text = """
            x-base: &base { type: folder, verify: size }
            destinations:
              a: { <<: *base, path: /a }
              b: *base
            routes:
              - &one
                name: one
                to: [a]
              - *one
            """
        func refused(_ edit: ConfigEdit) -> Bool {
            do {
                _ = try Self.edited(text, edit)
                return false
            } catch {
                return error is ConfigEditFault
            }
        }
        #expect(refused(ConfigEdit(.destinations, .set(0, ["verify": .null]))))
        #expect(refused(ConfigEdit(.destinations, .set(1, ["path": "/b"]))))
        #expect(refused(ConfigEdit(.routes, .set(0, ["name": "two"]))))
        #expect(refused(ConfigEdit(.routes, .remove(1))))
        // The merged value is overridden by one of its own.
        #expect(
            try Self.edited(text, ConfigEdit(.destinations, .set(0, ["verify": "read-back"]))).contains(
                "verify: read-back }"))
        #expect(refused(ConfigEdit(.watch, .add(name: nil, ["path": "/in", "on_card": .array(["/bin/sh"])]))))
        let deriving = try Self.json(#"{"derive": [{"name": "x", "command": ["/bin/sh"]}]}"#)
        #expect(refused(ConfigEdit(.routes, .set(0, deriving))))
        #expect(refused(ConfigEdit(.routes, .set(0, ["nam": "x"]))))
        #expect(refused(ConfigEdit(.routes, .set(7, ["name": "x"]))))
        #expect(refused(ConfigEdit(.destinations, .add(name: "a", ["type": "folder", "path": "/x"]))))
    }

    @Test(
        arguments: [
            (
                "watch:\n  - settle: 9s   # slow\n    # the second hall\n    path: /in\n",
                ConfigEdit(.watch, .set(0, ["settle": .null]))
            ),
            (
                "destinations: {\n  a: { type: folder, path: /a },\n  # legal hold\n  b: { type: folder, path: /b } }\n",
                ConfigEdit(.destinations, .remove(0))
            ),
            (
                "routes:\n  - name: x\n    match: { extensions: [mp4, # proxies\n      mov] }\n",
                ConfigEdit(.routes, .set(0, ["match": .object(["extensions": .array(["avi"])])]))
            ),
            (
                "routes:\n  - name: x\n    to:\n      # first\n      - a\n      - b\n",
                ConfigEdit(.routes, .set(0, ["to": .array(["b", "a"])]))
            ),
            ("routes:\n  - name: x\n    key: >-  # why\n      a/{name}\n", ConfigEdit(.routes, .set(0, ["key": "b"]))),
        ] as [(String, ConfigEdit)])
    func `a comment that a change would take with it is a reason to refuse`(_ text: String, _ edit: ConfigEdit) throws {
        #expect(throws: ConfigEditFault.self) { try Self.edited(text, edit) }
        let bare = text.replacing(#/ *#[^\n]*/#, with: "")
        #expect(try Self.edited(bare, edit) != bare)
    }

    @Test func `line breaks of Windows and a byte order mark stay`() throws {
        let text = "\u{FEFF}" + Self.text.replacing("\n", with: "\r\n")
        let changed = try Self.edited(text, ConfigEdit(.watch, .add(name: nil, ["path": "/b"])))
        #expect(changed.hasPrefix("\u{FEFF}#") && changed.contains("\r\n  - path: /b\r\n"))
        #expect(!changed.replacing("\r\n", with: "").contains("\n"))
    }

    @Test func `a form gets the values as they are written, and never a secret`() throws {
        let text =
            Self.text + """
                notify: []
                """
        let reader = try ConfigText(Array(text.utf8), types: standInTypes, file: "")
        let places = reader.entries(.destinations)
        #expect(places.map(\.name) == ["nas", "r2"] && places.map(\.line) == [8, 11])
        #expect(places[1].values == ["type": "r2", "api": "https://api.example"])
        #expect(places[1].secrets == ["api_key"])
        #expect(reader.entries(.routes).map(\.name) == ["films", "rest"])
        #expect(reader.entries(.watch)[0].values == ["path": "/in", "settle": "9s"])
        let named = try ConfigText(
            Array(#"destinations: { a: { type: r2, api: "http://u:pw@h", api_key: "${env:KEY}" } }"#.utf8),
            types: standInTypes, file: "")
        #expect(named.entries(.destinations)[0].values == ["type": "r2", "api_key": "${env:KEY}"])
        #expect(named.entries(.destinations)[0].secrets == ["api"])
    }

    @Test func `a comparison shows three lines around, and no secret`() throws {
        let defaults = ConfigDefaults(stateDirectory: "/state", home: nil, workingDirectory: "/")
        func side(_ text: String) -> TextDiff.Side {
            ConfigFile.side(Array(text.utf8), file: "inlet.yaml", types: standInTypes, defaults: defaults)
        }
        let changed = try Self.edited(Self.text, ConfigEdit(.destinations, .set(1, ["api_key": "correct-horse"])))
        let lines = TextDiff.lines(from: side(Self.text), to: side(changed))
        #expect(lines.map(\.mark.rawValue).joined() == "…   -+   …")
        #expect(lines.filter { $0.mark == .added }.map(\.text) == ["    api_key: ***"])
        #expect(!lines.contains { $0.text.contains("hunter2") || $0.text.contains("correct-horse") })
    }

    /// Whatever is changed: comments stay, and the values are those that were asked for, or it is refused.
    @Test(arguments: 0..<200) func `no change loses a comment or another value`(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        let name = FixtureTests.good[Int.random(in: 0..<FixtureTests.good.count, using: &random)]
        let text = String(decoding: try FixtureTests.content("good/\(name).yaml"), as: UTF8.self)
        let reader = try ConfigText(Array(text.utf8), types: standInTypes, file: name)
        let list = ConfigEdit.List.allCases[Int.random(in: 0..<3, using: &random)]
        let entries = reader.entries(list)
        let key = list == .destinations ? "allow_http" : list == .routes ? "priority" : "settle"
        let value: JSONValue = list == .destinations ? .boolean(true) : list == .routes ? "high" : "7s"
        let edit: ConfigEdit
        if let entry = entries.randomElement(using: &random), Bool.random(using: &random) {
            edit = ConfigEdit(list, .set(entry.index, [key: Bool.random(using: &random) ? value : .null]))
        } else {
            edit = ConfigEdit(
                list,
                .add(
                    name: list == .destinations ? "added" : nil,
                    list == .destinations ? ["type": "r2", "api": "x"] : [key: value]))
        }
        do {
            let changed = try reader.applying([edit])
            let comments = { (text: String) in text.split(separator: "\n").filter { $0.contains("# ") } }
            let after = Set(comments(String(decoding: changed, as: UTF8.self)).map { $0.drop { $0 != "#" } })
            for comment in comments(text) {
                // The comment of a removed line goes with it.
                if case .set(_, let values) = edit.change, values[key] == .null, comment.contains(key + ":") {
                    continue
                }
                #expect(after.contains(comment.drop { $0 != "#" }), "\(name): \(comment)")
            }
            let other = try ConfigText(changed, types: standInTypes, file: name)
            for one in ConfigEdit.List.allCases where one != list {
                #expect(other.entries(one).map(\.values) == reader.entries(one).map(\.values), "\(name)")
            }
        } catch is ConfigEditFault {
            // Then nothing is written.
        }
    }
}
