import Foundation
import InletConfig
import InletCore
import InletTestSupport
import SystemPackage
import Testing

/// `fleet:` of the configuration. Its errors at their places are in the fixtures.
struct FleetSettingsTests {
    private static let canary = "kanarienvogel"

    @Test func `a configuration without fleet has none, and one without keys has the documented defaults`() throws {
        #expect(try parse(small()).settings.fleet == nil)
        let fleet = try #require(try parse(small("fleet: { url_file: /f }")).settings.fleet)
        #expect(fleet == FleetSettings(url: .file("/f")))
        #expect(fleet.patience == .seconds(60) && fleet.whenAway == .tag && fleet.receipts)
        #expect(fleet.adminURL == nil && !fleet.allowsUnverified && fleet.name == nil)
    }

    @Test func `every key is read`() throws {
        let text = """
            fleet: { url: "postgresql://a@b/c", name: nas, join_file: /j, patience: 2m, when_away: wait, receipts: false,
              admin_url_file: /a, allow_unverified: true }
            """
        #expect(
            try parse(small(text)).settings.fleet
                == FleetSettings(
                    url: .text(Secret("postgresql://a@b/c")), name: "nas", joinFile: "/j", patience: .seconds(120),
                    whenAway: .wait, receipts: false, adminURL: .file("/a"), allowsUnverified: true))
    }

    @Test func `a destination of any type has a prefix and limits of the fleet`() throws {
        let text = """
            destinations:
              r2: { type: r2, api: "https://a.example", api_key: k, prefix: s/, fleet: { bandwidth: "off", slots: 3 } }
              lib: { type: folder, path: /lib, fleet: { bandwidth: 1MiB/s } }
            """
        let shares = try parse(text).settings.destinations.map(\.fleet)
        #expect(
            shares == [
                FleetShareSettings(prefix: "s/", bandwidth: nil, slots: 3), FleetShareSettings(bandwidth: 1 << 20),
            ])
    }

    @Test func `keys that do nothing without a fleet are warned of`() throws {
        let text = "destinations: { lib: { type: folder, path: /lib, prefix: s/ } }\n"
        let warnings = try parse(text).warnings
        #expect(warnings.map(\.message) == ["'prefix' does nothing without 'fleet:' at the top level"])
        #expect(warnings.map(\.position) == [SourcePosition(line: 1, column: 58)])
        #expect(try parse(text + "fleet: { url_file: /f }\n").warnings.isEmpty)
    }

    @Test func `an address that is none is refused, and not shown`() {
        for text in ["mysql://u:kanarienvogel@db", "kanarienvogel", "password='kanarienvogel"] {
            let shown = complaints(small("fleet: { url: \"\(text)\" }"))
            #expect(shown.contains("'url' ") && !shown.contains(Self.canary), "\(shown)")
        }
    }

    @Test func `a password never shows in the effective configuration, and is known as a secret`() throws {
        for text in ["postgresql://u:kanarienvogel@db/x", "host=db password=kanarienvogel"] {
            let config = try parse(small("fleet: { url: \"\(text)\" }"))
            #expect(!ConfigPrinter.show(config, types: standInTypes).contains(Self.canary))
            #expect(config.redacted("said kanarienvogel") == "said ***")
        }
    }

    @Test func `the password of the address's file is known as a secret`() throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Array("\n postgresql://u:kanarienvogel@db/x \n".utf8), to: "url")
        let config = try parse(small("fleet: { url_file: \"\(file)\" }"))
        #expect(config.redacted("said kanarienvogel") == "said ***")
        #expect(config.credentialFiles == [file])
        #expect(try config.settings.fleet?.url.read() == "postgresql://u:kanarienvogel@db/x")
    }

    @Test(arguments: [
        ("postgresql://u:kanarienvogel@db/x", 1), ("postgresql://db/x?user=u&password=kanarienvogel", 1),
        ("postgresql://u@db/x?sslmode=verify-full", 0),
    ])
    func `an address is a credential in a file for all only with a password`(url: String, warnings: Int) throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(Array(small("fleet: { url: \"\(url)\" }").utf8), to: "inlet.yaml")
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.string)
        var defaults = standInDefaults
        defaults.reader = FileTrust.Reader(user: getuid(), groups: [getgid()])
        let config = try ConfigFile.load(file, types: standInTypes, environment: [:], defaults: defaults)
        #expect(config.warnings.count == warnings, "\(config.warnings)")
    }

    @Test func `a file without an address names itself and the remedy`() throws {
        let folder = try TemporaryDirectory()
        let empty = try folder.write(Array("\n".utf8), to: "empty")
        for (path, cause) in [(empty, "is empty"), ("/nowhere/url", "cannot read")] as [(FilePath, String)] {
            let error = #expect(throws: FleetError.self) { try FleetSettings.Source.file(path).read() }
            let message = error?.message ?? ""
            #expect(message.contains(path.string) && message.contains(cause) && message.contains("put the address"))
        }
    }
}
