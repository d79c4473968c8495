import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Files on their way to GigHive, by both transports.
@Suite(.timeLimit(.minutes(15))) struct GigHiveDeliveryTests {
    private static let chunk = GigHivePlace.chunk

    @Test(arguments: ["multipart", "tus"])
    func `bytes arrive whole, and the proof is the server's SHA-256`(_ transport: String) async throws {
        try await withGigHive(transport) { place in
            for (index, count) in [1, Self.chunk, Self.chunk + 1, 2 * Self.chunk + 12_345].enumerated() {
                let (path, order) = try place.file(count, "clip \(index).mp4", seed: UInt64(index + 1))
                let attempt = Notes().attempt()
                let proof = try await place.attempt(path, order, attempt).get().proof()
                let bytes = content(count, seed: UInt64(index + 1))
                #expect(proof.key == order.key && proof.size == Int64(count) && proof.method == .sha256)
                #expect(attempt.bytesSent == Int64(count))
                let asset = try #require(place.sandbox.assets().last)
                #expect(proof.content?.digest == asset.sha256)
                #expect(try place.library().last == bytes)
                #expect(proof.details?["asset_id"] == String(asset.id) && proof.details?["status"] == "201")
                #expect(proof.details?["request"]?.hasPrefix("POST http://127.0.0.1") == true)
                #expect(proof.url?.hasSuffix("/api/uploads/\(asset.id)") == true)
            }
            #expect(place.sandbox.openUploads() == [])
            #expect(place.count(.upload) == (transport == "multipart" ? 4 : 0))
            #expect(place.count(.tusPatch) == (transport == "tus" ? 1 + 1 + 2 + 3 : 0))
        }
    }

    @Test(arguments: ["multipart", "tus"])
    func `fields, name and type arrive as they are`(_ transport: String) async throws {
        let fields = [
            "label": "It's \"one\" & größer", "event_date": "2024-02-29", "org_name": "Die Ärzte; \r\n--x",
            "event_type": "wedding", "participants": "Ann, Ben", "keywords": "live, loud", "location": "日本",
            "rating": "7",
            "notes": "first\nsecond", "colour": "of another destination",
        ]
        try await withGigHive(transport) { place in
            let (path, order) = try place.file(1000, "a \"b\".mp4", fields: fields)
            _ = try await place.deliver(path, order)
            let asset = try #require(place.sandbox.assets().first)
            #expect(asset.kind == "video" && asset.path.string.hasSuffix(".mp4"))
            if transport == "multipart" { #expect(asset.mimeType == "video/mp4") }
            let entry = try #require(asset.entries.first)
            #expect(entry.label == fields["label"] && entry.eventDate == "2024-02-29" && entry.eventType == "wedding")
            #expect(entry.orgName == "Die Ärzte; --x" && entry.participants == "Ann, Ben" && entry.rating == 7)
            #expect(entry.keywords == "live, loud" && entry.location == "日本" && entry.notes == "first\nsecond")
        }
    }

    @Test func `without fields the file's own name and day stand`() async throws {
        try await withGigHive { place in
            let (path, order) = try place.file(1000, "Song one.mp4", fields: [:])
            _ = try await place.deliver(path, order)
            let entry = try #require(place.sandbox.assets().first?.entries.first)
            #expect(entry.label == "Song one" && entry.orgName == "Band" && entry.eventType == "band")
            #expect(entry.eventDate.utf8.count == 10)
        }
    }

    // MARK: - Which way

    @Test func `auto sends what is over its limit by tus`() async throws {
        try await withGigHive(settings: ["multipart_limit": .bytes(1000)]) { place in
            for (index, count) in [1000, 1001].enumerated() {
                let (path, order) = try place.file(count, "\(index).mp4", seed: UInt64(index + 1))
                _ = try await place.deliver(path, order)
            }
            #expect(place.count(.upload) == 1 && place.count(.tusCreate) == 1 && place.count(.finalize) == 1)
        }
    }

    /// The note of the first chunk is written while the second is sent: only then may the first be hashed.
    @Test func `a slow hash holds up no chunk`() async throws {
        try await withGigHive("tus") { place in
            let (path, order) = try place.file(2 * GigHivePlace.chunk)
            let hashing = place.hashing.branch(try SourceFile(opening: path).opened.device)
            let (held, holding) = AsyncStream.makeStream(of: Void.self)
            let isFree = DispatchSemaphore(value: 0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 1...2 {
                    group.addTask {
                        await hashing.run {
                            holding.yield()
                            isFree.wait()
                        }
                    }
                }
                for await _ in held.prefix(2) {}
                let attempt = Notes().attempt { if $0 == ["offset"] { for _ in 1...2 { isFree.signal() } } }
                _ = try await place.attempt(path, order, attempt).get()
            }
            #expect(try place.library() == [content(2 * GigHivePlace.chunk)])
        }
    }

    static let refusals: [(String, FaultAction)] = [
        ("Apache's limit", .earlyReply(.page(413, "Request Entity Too Large"))),
        ("Cloudflare's limit", .earlyReply(.cloudflareLimit)),
        ("PHP's limit", .reply(.gigHive(413, error: "Payload Too Large", message: "too large"))),
        ("ModSecurity's limit", .reply(.page(500, "Internal Server Error"))),
        ("a cut line", .reset(afterBytes: 1 << 20)),
    ]

    @Test(arguments: refusals.indices)
    func `auto goes on by tus where a form is too large for something on the way`(_ index: Int) async throws {
        let (name, action) = Self.refusals[index]
        try await withGigHive(faults: GigHiveFault(action, at: .upload, times: nil)) { place in
            let count = Self.chunk + 1
            let (path, order) = try place.file(count)
            let notes = Notes()
            _ = try await place.deliver(path, order, notes)
            #expect(try place.library() == [content(count)], "\(name)")
            #expect(place.count(.upload) == 1 && place.count(.tusCreate) == 1)
            // The next attempt would not try the form again.
            #expect(notes.puts.contains { $0.contains("transport") })
        }
    }

    @Test func `a form alone fails for good where it is too large, and says who refuses it`() async throws {
        try await withGigHive("multipart", faults: GigHiveFault(.reply(.cloudflareLimit), at: .upload)) { place in
            let (path, order) = try place.file(2000)
            let error = try #require(try await place.failure(path, order))
            #expect(error.verdict == .giveUp && error.code == .tooLarge)
            #expect(error.reason.contains("Cloudflare"))
            #expect(place.count(.tusCreate) == 0)
        }
    }

    @Test func `the server's own limit, found out at the end, ends the file and not the queue`() async throws {
        let rules = GigHiveRules(maximumBytes: 3000, firewall: .off, hookWait: .zero)
        for transport in ["auto", "multipart", "tus"] {
            try await withGigHive(transport, rules: rules, file: 4000) { place, path, order, notes in
                let error = try #require(try await place.failure(path, order, notes.attempt()))
                #expect(error.verdict == .giveUp && error.code == .tooLarge, "\(transport): \(error)")
                try await place.pipeline.abandon(order, checkpoint: notes.entries)
                #expect(place.sandbox.openUploads() == [] && place.sandbox.assets() == [])
            }
        }
    }

    // MARK: - Nothing is sent

    @Test func `what cannot arrive is refused here, with nothing sent`() async throws {
        let table: [(Int, String, [String: String], ErrorCode, String)] = [
            (2001, "a.mp4", [:], .tooLarge, "max_upload_bytes"), (0, "a.mp4", [:], .badRequest, "empty"),
            (10, "a.exe", [:], .badRequest, ".exe"), (10, "a", [:], .badRequest, "extension"),
            (10, "a.mp4", ["event_date": "2026-02-30"], .badRequest, "event_date"),
            (10, "a.mp4", ["event_type": "weding"], .badRequest, "did you mean 'wedding'?"),
            (10, "a.mp4", ["rating": "11"], .badRequest, "rating"),
            (10, "a.mp4", ["label": String(repeating: "x", count: 256)], .badRequest, "label"),
        ]
        try await withGigHive(settings: ["max_upload_bytes": .bytes(2000)]) { place in
            for (count, name, fields, code, words) in table {
                let (path, order) = try place.file(count, name, fields: fields)
                let error = try #require(try await place.failure(path, order))
                #expect(error.verdict == .giveUp && error.code == code && error.reason.contains(words), "\(error)")
            }
            #expect(place.sandbox.traffic.counts.isEmpty)
        }
    }

    /// Sizes of a file, and how the refusal says it, with the limit that the reference has.
    static let sizes: [(Int64, String)] = [
        (6_442_450_945, "is 6442450945 bytes, over the limit of 6 GiB, 6442450944 bytes (max_upload_bytes)"),
        (7 << 30, "is 7 GiB, over the limit of 6 GiB (max_upload_bytes)"),
    ]

    @Test(arguments: sizes) func `a file over 6 GiB is refused with its size and the limit as people write them`(
        _ size: Int64, _ words: String
    ) async throws {
        try await withGigHive { place in
            let (path, small) = try place.file(1)
            try truncate(path, to: size)
            var order = small
            order.source = try SourceFile(opening: path).opened
            let error = try #require(try await place.failure(path, order))
            #expect(error.verdict == .giveUp && error.code == .tooLarge && error.reason.contains(words), "\(error)")
            #expect(error.reason.hasSuffix("nothing was sent") && place.sandbox.traffic.counts.isEmpty)
        }
    }

    /// PHP's `upload_max_filesize` and `post_max_size` are the application's limit: a form with such a file is larger.
    @Test func `a file of just the server's limit arrives, one byte more is not sent`() async throws {
        let limit = 3000
        let rules = GigHiveRules(maximumBytes: Int64(limit), formLimit: nil, firewall: .off, hookWait: .zero)
        try await withGigHive(rules: rules, settings: ["max_upload_bytes": .bytes(Int64(limit))]) { place in
            let (path, order) = try place.file(limit)
            _ = try await place.deliver(path, order)
            #expect(try place.library() == [content(limit)])
            #expect(place.count(.upload) == 1 && place.count(.tusCreate) == 1, "the form was refused, the file was not")
            let asked = place.sandbox.traffic
            let (large, refused) = try place.file(limit + 1, "large.mp4")
            #expect(try await place.failure(large, refused)?.code == .tooLarge)
            #expect(place.sandbox.traffic == asked && place.sandbox.assets().count == 1)
        }
    }

    // MARK: - What is there already

    @Test(arguments: ["multipart", "tus"])
    func `the same bytes in the same event are delivered, as what is there`(_ transport: String) async throws {
        try await withGigHive(transport, file: 3000) { place, path, order, _ in
            let first = try await place.deliver(path, order)
            let second = try await place.deliver(path, order)
            #expect(second.content == first.content && second.details?["status"] == "409")
            #expect(second.details?["asset_id"] == first.details?["asset_id"])
            #expect(second.details?["duplicate"] != nil && first.details?["duplicate"] == nil)
            #expect(second.secrets == nil && first.secrets != nil)
            #expect(place.sandbox.assets().count == 1 && place.sandbox.openUploads() == [])
            // Another event takes the same bytes once more; the upload does not stay behind.
            var other = order
            other.fields["event_date"] = "2026-11-22"
            let third = try await place.deliver(path, other)
            #expect(third.details?["status"] == "201" && third.secrets == nil)
            #expect(place.sandbox.assets().first?.entries.count == 2 && place.sandbox.openUploads() == [])
        }
    }

    @Test func `a duplicate with another checksum is no delivery`() async throws {
        let body = #"{"error":"Conflict","existing_asset_id":7,"checksum_sha256":"00ff"}"#
        let other = FaultReply(409, type: "application/json", body: body)
        try await withGigHive("multipart", faults: GigHiveFault(.reply(other), at: .upload)) { place in
            let (path, order) = try place.file(3000)
            expectError(try await place.failure(path, order), .giveUp, code: .conflict)
        }
    }

    @Test(arguments: ["multipart", "tus"])
    func `a file that the server holds damaged is sent again`(_ transport: String) async throws {
        let body = #"{"id":7,"asset_id":7,"checksum_sha256":"00ff","delete_token":"t"}"#
        let damaged = FaultReply(201, type: "application/json", body: body)
        let operation: GigHiveOperation = transport == "tus" ? .finalize : .upload
        try await withGigHive(transport, faults: GigHiveFault(.reply(damaged), at: operation)) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .corrupted)
            // What was filed wrongly is deleted with its token.
            #expect(place.count(.delete) == 1)
            #expect(Set(notes.entries.keys) == [CheckpointName.mayBeVisible] && place.sandbox.openUploads() == [])
            _ = try await place.deliver(path, order, notes)
            #expect(try place.library() == [content(3000)])
        }
    }
}

/// What a `type: gighive` section may say, and where a server may put an upload.
@Suite struct GigHiveSettingsTests {
    private static let pin = "sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    private static func settings(_ values: [String: ConfigValue?]) throws(SettingFault) -> GigHiveSettings {
        let good: [String: ConfigValue?] = [
            "url": .string("https://gig.example"), "user": .string("uploader"), "password": .secret(Secret("p")),
        ]
        return try GigHiveSettings(section(good.merging(values) { $1 }.compactMapValues(\.self)))
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
                "required": "false",
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

    @Test(arguments: locations)
    func `an upload is below our own server, or nowhere`(_ base: String, _ location: String, _ id: String?) throws {
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
