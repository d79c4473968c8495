import InletCore
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What a `type: gighive` section may say, and where a server may put an upload.
@Suite struct GigHiveSettingsTests {
    private static let pin = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    private static func settings(_ values: [String: ConfigValue?]) throws(SettingFault) -> GigHiveSettings {
        let good: [String: ConfigValue?] = [
            "url": .string("https://gig.example"), "user": .string("uploader"), "password": .secret(Secret("p")),
        ]
        return try GigHiveSettings(
            ConfigSection(
                values: good.merging(values) { $1 }.compactMapValues(\.self), positions: [:],
                position: SourcePosition(line: 1, column: 1)))
    }

    private static func guest(_ token: String, _ more: [String: ConfigValue?] = [:]) throws(SettingFault)
        -> GigHiveSettings
    {
        let values: [String: ConfigValue?] = [
            "user": nil, "password": nil, "upload_token": .secret(Secret(token)), "tos_accepted": .boolean(true),
        ]
        return try settings(values.merging(more) { $1 })
    }

    @Test func `defaults are those of the key table`() throws {
        let settings = try Self.settings([:])
        #expect(settings.transport == .auto && settings.chunkSize == 8 << 20 && settings.multipartLimit == 64 << 20)
        #expect(settings.maxUploadBytes == 6_442_450_944 && settings.maxInFlight == 2)
        #expect(try Self.settings(["max_upload_bytes": .bytes(11_811_182_592)]).maxUploadBytes == 11_811_182_592)
        #expect(settings.finalizeFor == .seconds(900) && settings.trust == .system)
        #expect(settings.credentials == .basic(user: "uploader", password: Secret("p")))
    }

    @Test func `a guest's token goes by tus`() throws {
        let settings = try Self.guest("abc_-9", ["display_name": .string("Ann")])
        #expect(settings.transport == .tus)
        #expect(settings.credentials == .token(Secret("abc_-9"), displayName: "Ann"))
    }

    static let faults: [(String, [String: ConfigValue?])] = [
        ("url", ["url": .string("gig.example")]), ("url", ["url": .string("http://gig.example")]),
        ("url", ["url": .string("https://u:p@gig.example")]), ("user", ["user": .string("")]), ("user", ["user": nil]),
        ("user", ["password": nil]), ("user", ["password": .secret(Secret(""))]), ("user", ["user": .string("a:b")]),
        ("chunk_size", ["chunk_size": .bytes(1 << 20)]), ("chunk_size", ["chunk_size": .bytes(9 << 20)]),
        ("max_upload_bytes", ["max_upload_bytes": .bytes(0)]), ("pin", ["pin": .string("sha256//x")]),
        ("pin", ["pin": .string("/etc/passwd")]), ("upload_token", ["upload_token": .secret(Secret("t"))]),
    ]

    @Test(arguments: faults.indices) func `what cannot be used is refused with its key`(_ index: Int) {
        let (key, values) = Self.faults[index]
        let fault = #expect(throws: SettingFault.self) { try Self.settings(values) }
        #expect(fault?.key == key)
    }

    @Test func `a guest needs a usable token, tus and the terms`() {
        let table: [(String, String, [String: ConfigValue?])] = [
            ("upload_token", "", [:]), ("upload_token", String(repeating: "a", count: 129), [:]),
            ("upload_token", "a b", [:]), ("upload_token", "a\r\nX: y", [:]),
            ("tos_accepted", "t", ["tos_accepted": .boolean(false)]), ("tos_accepted", "t", ["tos_accepted": nil]),
            ("transport", "t", ["transport": .string("multipart")]),
            ("display_name", "t", ["display_name": .string(String(repeating: "x", count: 101))]),
        ]
        for (key, token, values) in table {
            let fault = #expect(throws: SettingFault.self) { try Self.guest(token, values) }
            #expect(fault?.key == key)
        }
    }

    @Test func `ca_file and pin make up the trust`() throws {
        let settings = try Self.settings(["pin": .string(Self.pin), "ca_file": .string("/etc/ca.pem")])
        #expect(settings.trust == Trust(caFile: "/etc/ca.pem", pin: PublicKeyPin(Self.pin)))
    }

    @Test func `every key has a sentence, and the defaults are those of the table`() {
        let defaults = GigHiveSettings.type.keys.compactMap { spec in spec.defaultText.map { (spec.name, $0) } }
        #expect(
            Dictionary(uniqueKeysWithValues: defaults) == [
                "tos_accepted": "false", "transport": "auto", "chunk_size": "8MiB", "multipart_limit": "64MiB",
                "max_upload_bytes": "6442450944", "max_in_flight": "2", "finalize_for": "15m", "allow_http": "false",
            ])
        #expect(GigHiveSettings.type.fields.map(\.name).contains("event_date"))
    }

    // MARK: - Locations

    private static func files(_ base: String) throws -> HTTPURL {
        try HTTPURL(base, rules: .configured(allowHTTP: true)).appending(path: "files/")
    }

    static let locations: [(String, String, String?)] = [
        ("https://gig.example", "https://gig.example/files/abc123", "abc123"),
        ("https://gig.example", "https://GIG.example:443/files/a-b_C", "a-b_C"),
        ("https://gig.example", "http://gig.example/files/abc", "abc"),
        ("https://gig.example", "/files/abc", "abc"), ("https://gig.example/base", "/base/files/abc", "abc"),
        ("http://gig.example:8080", "http://gig.example:8080/files/abc", "abc"),
        ("https://gig.example", "https://evil.example/files/abc", nil),
        ("https://gig.example", "https://gig.example:8443/files/abc", nil),
        ("https://gig.example", "https://gig.example/other/abc", nil), ("https://gig.example", "/files/", nil),
        ("https://gig.example", "/files/../api", nil), ("https://gig.example", "/files/a/b", nil),
        ("https://gig.example", "/files/a?x=1", nil), ("https://gig.example", "/files/%2e%2e", nil),
        ("https://gig.example", "//evil.example/files/abc", nil),
        ("https://gig.example", "ftp://gig.example/files/a", nil),
        ("https://gig.example", "https://u:p@gig.example/files/abc", nil), ("https://gig.example", "", nil),
        ("https://gig.example/base", "/files/abc", nil),
        ("https://gig.example", "/files/" + String(repeating: "a", count: 201), nil),
    ]

    @Test(arguments: locations) func `an upload is below our own server, or nowhere`(
        _ base: String, _ location: String, _ id: String?
    ) throws {
        let files = try Self.files(base)
        do throws(DeliveryError) {
            let found = try Tus.id(location, below: files)
            #expect(found == id)
        } catch {
            #expect(id == nil)
            #expect(error.verdict == .giveUp)
        }
    }

    @Test func `tus metadata is base64 of bytes`() {
        let pairs: [(String, [UInt8])] = [("filename", Array("größe.mp4".utf8)), ("filetype", Array("video/mp4".utf8))]
        #expect(Tus.metadata(pairs) == "filename Z3LDtsOfZS5tcDQ=,filetype dmlkZW8vbXA0")
    }

    // MARK: - Notes

    @Test func `notes come back as they were written`() {
        var notes = GigHiveNotes([:])
        #expect(notes == GigHiveNotes(["unknown": [1, 2, 3]]))
        notes.upload = "abc"
        notes.offset = 5 << 30
        notes.sent = Digest(.sha256, [UInt8](repeating: 7, count: 32))
        (notes.waited, notes.tries, notes.missing, notes.stuckSince) = (
            1500, 3, 1, WallTime(milliseconds: 1_700_000_000_000)
        )
        (notes.needsTus, notes.isSecond, notes.mayBeVisible) = (true, true, true)
        var entries: [String: [UInt8]] = [:]
        for part in [notes.uploadNote, notes.offsetNote, notes.sentNote, notes.finalizeNote, notes.lasting] {
            entries.merge(part) { $1 }
        }
        #expect(GigHiveNotes(entries) == notes)
        notes.forgetUpload()
        #expect(notes == GigHiveNotes(notes.lasting))
        #expect(notes.upload == nil && notes.isSecond && notes.needsTus)
    }
}
