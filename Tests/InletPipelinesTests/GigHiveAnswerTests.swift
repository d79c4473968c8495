import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// What every answer of a GigHive server means, line by line.
@Suite struct GigHiveAnswerTests {
    private static func json(_ error: String, _ message: String) -> String {
        #"{"error":"\#(error)","message":"\#(message)"}"#
    }

    private static func answer(
        _ status: Int, _ body: String = "", type: String = "application/json", _ headers: HTTPFields = []
    ) -> HTTPResponse {
        HTTPResponse(status: status, headers: [("Content-Type", type)] + headers, body: Array(body.utf8))
    }

    private static func page(_ status: Int, _ headers: HTTPFields = []) -> HTTPResponse {
        let body = "<!DOCTYPE HTML><html><head><title>\(status)</title></head><body><h1>Sorry</h1></body></html>"
        return answer(status, body, type: "text/html; charset=iso-8859-1", headers)
    }

    private static let hook =
        "Upload data exists on disk but post-finish hook output has not been written yet (x). retry in a moment."
    private static let race =
        "SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry 'x' for key 'uq_assets_tenant_checksum'"

    // MARK: - The table

    static let jsonAnswers: [(Int, String, String, GigHiveEndpoint, GigHiveVerdict)] = [
        (201, "", "", .form, .done), (201, "", "", .finalize, .done), (200, "", "", .delete, .done),
        (409, "Conflict", "Duplicate", .form, .duplicate), (409, "Conflict", "", .finalize, .duplicate),
        (400, "Bad Request", "Missing label", .form, .giveUp(.badRequest)),
        (400, "Bad Request", "File too large (exceeds application limit)", .finalize, .giveUp(.tooLarge)),
        (400, "invalid token", "", .finalize, .credentials), (404, "invalid or expired", "", .finalize, .credentials),
        (404, "Not Found", "", .finalize, .retry(.notFound)), (403, "Forbidden", "", .delete, .giveUp(.unauthorized)),
        (413, "Payload Too Large", "", .form, .useTus), (413, "Payload Too Large", "", .finalize, .giveUp(.tooLarge)),
        (429, "Too Many Requests", "", .form, .retry(.throttled)),
        (500, "Server error", "DB connection failed: gone", .form, .outage),
        (500, "Server error", "DB connection failed: SQLSTATE[HY000] [2002] No such file", .finalize, .outage),
        (500, "Server error", "SQLSTATE[HY000] [2002] Connection refused", .delete, .outage),
        (500, "Server error", "SQLSTATE[HY000] [1040] Too many connections", .form, .outage),
        (500, "Server Error", "SQLSTATE[HY000]: General error: 2006 MySQL server has gone away", .finalize, .outage),
        (500, "Server Error", "SQLSTATE[08S01]: Communication link failure: 1053", .form, .outage),
        (500, "Server Error", "SQLSTATE[HY000]: General error: 1364 Field 'x'", .form, .retry(.serverError)),
        (500, "Server Error", hook, .finalize, .notYet), (500, "Server Error", race, .finalize, .notYet),
        (500, "Server Error", race, .form, .notYet),
        (500, "Server Error", "Failed to move file (rename)", .finalize, .notYet),
        (500, "Server Error", "Upload not found: no data or hook record for upload_id=x", .finalize, .sendAgain),
        (500, "Server Error", "Upload data missing on disk", .finalize, .sendAgain),
        (500, "Server Error", "SQLSTATE[22001]: Data too long for column 'label'", .form, .giveUp(.badRequest)),
        (500, "Server Error", "SQLSTATE[22007]: Invalid datetime format: 1292", .finalize, .giveUp(.badRequest)),
        (500, "Server Error", "SQLSTATE[01000]: Data truncated for column 'event_type'", .form, .giveUp(.badRequest)),
        (500, "Server Error", "Upload failed with code 1", .form, .useTus),
        (500, "Server Error", "Upload failed with code 3", .form, .retry(.serverError)),
        (500, "Server Error", "something new", .finalize, .retry(.serverError)),
        (501, "Not Implemented", "", .form, .giveUp(.badRequest)),
    ]

    @Test(arguments: jsonAnswers) func `the application's answers`(
        _ status: Int, _ error: String, _ message: String, _ endpoint: GigHiveEndpoint, _ verdict: GigHiveVerdict
    ) {
        #expect(GigHiveVerdict(Self.answer(status, Self.json(error, message)), at: endpoint) == verdict)
    }

    static let tusAnswers: [(Int, String, GigHiveVerdict)] = [
        (201, "", .done), (204, "", .done), (200, "", .done),
        (409, "ERR_MISMATCHED_OFFSET: mismatched offset", .resync), (423, "ERR_UPLOAD_LOCKED: locked", .resync),
        (400, "ERR_UPLOAD_INTERRUPTED: upload has been interrupted by another request", .resync),
        (400, "ERR_INVALID_UPLOAD_LENGTH: missing", .giveUp(.badRequest)), (404, "ERR_UPLOAD_NOT_FOUND: no", .gone),
        (410, "", .gone), (405, "method not allowed", .giveUp(.badRequest)),
        (412, "ERR_UNSUPPORTED_VERSION: missing", .giveUp(.badRequest)),
        (413, "ERR_MAX_SIZE_EXCEEDED: max", .giveUp(.tooLarge)),
        (500, "ERR_INTERNAL: disk", .retry(.serverError)),
    ]

    @Test(arguments: tusAnswers) func `the tus server's answers`(
        _ status: Int, _ text: String, _ verdict: GigHiveVerdict
    ) {
        #expect(GigHiveVerdict(Self.answer(status, text, type: "text/plain; charset=utf-8"), at: .files) == verdict)
    }

    static let pages: [(Int, GigHiveVerdict)] = [
        (301, .giveUp(.redirected)), (302, .giveUp(.redirected)), (401, .credentials), (403, .credentials),
        (408, .retry(.timedOut)), (413, .useTus), (415, .giveUp(.badRequest)), (500, .useTus), (502, .outage),
        (503, .outage), (504, .outage), (520, .retry(.serverError)), (521, .outage), (522, .outage), (523, .outage),
        (524, .retry(.timedOut)),
    ]

    @Test(arguments: pages) func `pages of what stands before the application`(_ status: Int, _ verdict: GigHiveVerdict)
    {
        #expect(GigHiveVerdict(Self.page(status), at: .form) == verdict)
        // The same with nothing in it, or with a page that says it is JSON.
        #expect(GigHiveVerdict(HTTPResponse(status: status), at: .form) == verdict)
        #expect(GigHiveVerdict(Self.answer(status, "<html>"), at: .form) == verdict)
        for endpoint in GigHiveEndpoint.allCases where endpoint != .form {
            let other = GigHiveVerdict(Self.page(status), at: endpoint)
            #expect(other != .useTus && other != .done, "\(endpoint)")
        }
    }

    @Test func `somebody else's 401 out of Cloudflare's cache is no login failure`() {
        let cached = Self.page(401, [("CF-Cache-Status", "HIT"), ("cf-ray", "1-FRA")])
        #expect(GigHiveVerdict(cached, at: .probe) == .retry(.unauthorized))
        #expect(GigHiveVerdict(cached, at: .form) == .credentials)
        #expect(GigHiveVerdict(Self.page(401), at: .probe) == .credentials)
    }

    // MARK: - Errors

    @Test func `an error says what was answered, in words and without secrets`() throws {
        var request = HTTPRequest("GET", try HTTPURL("https://h.example", rules: .configured(allowHTTP: false)))
        request.secrets = [Secret("canary-pass")]
        var response = Self.answer(400, Self.json("Bad Request", "no label, canary-pass"))
        response.sentCredentials = SentCredentials(request)
        let error = GigHiveVerdict(response, at: .form).error(response, "sending a.mp4")
        #expect(error.verdict == .giveUp && error.code == .badRequest)
        #expect(error.reason == "sending a.mp4 was answered with 400: Bad Request: no label, ***")
        let page = Self.page(503)
        let down = GigHiveVerdict(page, at: .form).error(page, "sending a.mp4")
        #expect(down.verdict == .outage(after: nil))
        #expect(down.reason == "sending a.mp4 was answered with 503: 503 Sorry")
    }

    @Test func `Cloudflare's limits are named where its mark is there`() {
        let limit = HTTPResponse(status: 413, headers: [("cf-ray", "8f1c-FRA")])
        let error = GigHiveVerdict(limit, at: .form).error(limit, "sending a.mp4")
        #expect(error.verdict == .giveUp && error.code == .tooLarge)
        #expect(error.reason.contains("Cloudflare") && error.reason.contains("100 MB") && error.reason.contains("tus"))
        let late = HTTPResponse(status: 524, headers: [("cf-ray", "8f1c-FRA")])
        #expect(GigHiveVerdict(late, at: .finalize).error(late, "x").reason.contains("100 s"))
        let own = Self.page(413)
        #expect(!GigHiveVerdict(own, at: .form).error(own, "x").reason.contains("Cloudflare"))
    }

    @Test(arguments: [
        (GigHiveVerdict.credentials, DeliveryError.Verdict.credentials), (.outage, .outage(after: .seconds(7))),
        (.retry(.timedOut), .retry(after: .seconds(7))), (.notYet, .retry(after: .seconds(7))), (.duplicate, .giveUp),
        (.gone, .retry(after: .seconds(7))), (.done, .retry(after: nil)), (.giveUp(.tooLarge), .giveUp),
    ]) func `verdicts become the agent's, with the server's wish for a wait`(
        _ verdict: GigHiveVerdict, _ expected: DeliveryError.Verdict
    ) {
        let response = HTTPResponse(status: 500, headers: [("Retry-After", "7")])
        #expect(verdict.error(response, "x").verdict == expected)
    }

    // MARK: - Replies

    @Test func `a reply keeps its token out of sight`() throws {
        let token = String(repeating: "ab", count: 32)
        let body =
            #"{"id":7,"asset_id":7,"checksum_sha256":"\#(String(repeating: "0F", count: 32))","delete_token":"\#(token)","file_name":"0f0f.mp4"}"#
        let reply = try #require(GigHiveReply(Self.answer(201, body), request: "POST https://h/api/uploads"))
        #expect(reply.assetID == 7 && reply.deleteToken == token && !reply.isDuplicate)
        #expect(reply.checksum == String(repeating: "0f", count: 32))
        let texts = Self.answer(409, #"{"existing_asset_id":"12","checksum_sha256":"00"}"#)
        #expect(GigHiveReply(texts, request: "x")?.assetID == 12)
        #expect(!reply.head.contains(token) && reply.head.contains("***"))
        let order = DeliveryOrder(
            id: 1, destination: "d", key: "k", mediaType: "video/mp4", fields: [:],
            source: FileIdentity(size: 5, modified: 0, changed: 0, inode: 1, device: 1))
        let proof = reply.proof(order, digest: Digest(.sha256, hex: String(repeating: "0f", count: 32)), asset: nil)
        #expect(
            proof.method == .sha256 && proof.details?["asset_id"] == "7" && proof.details?["name"] == "0f0f.mp4"
                && proof.details?["status"] == "201")
        #expect(proof.secrets?.reveal("delete_token") == token)
        #expect(!"\(proof)".contains(token) && !String(reflecting: proof).contains(token))
        let stored = try JSONDecoder().decode(Proof.self, from: JSONEncoder().encode(proof))
        #expect(stored == proof)
        #expect(stored.secrets?.reveal("delete_token") == token)
    }

    @Test(arguments: ["", "null", "[]", "{}", #"{"asset_id":"x"}"#, "<html>", #"{"asset_id":1"#])
    func `what is no reply is not taken for one`(_ body: String) {
        #expect(GigHiveReply(Self.answer(201, body), request: "x") == nil)
        #expect(GigHiveReply(Self.answer(201, #"{"asset_id":1}"#, type: "text/html"), request: "x") == nil)
    }
}

/// What may go with a file, and how it is written into a form.
@Suite struct GigHiveFieldTests {
    private static let defaults = [
        "label": "clip", "event_date": "2026-11-21", "org_name": "Band", "event_type": "band",
    ]

    private static func fields(_ given: [String: String], isGuest: Bool = false) throws(SettingFault)
        -> [String: String]
    {
        let fields = try GigHiveFields(given, defaults: defaults, isGuest: isGuest)
        return Dictionary(uniqueKeysWithValues: fields.values.map { ($0.name, $0.value) })
    }

    private static func fault(_ given: [String: String], isGuest: Bool = false) -> String? {
        do throws(SettingFault) {
            _ = try fields(given, isGuest: isGuest)
            return nil
        } catch { return error.key }
    }

    @Test func `what is missing or empty has its default, and optional fields stay out`() throws {
        #expect(try Self.fields([:]) == Self.defaults)
        #expect(try Self.fields(["label": " \n", "org_name": "", "rating": "", "notes": " "]) == Self.defaults)
    }

    @Test func `all fields arrive cleaned as the server cleans them`() throws {
        let given = [
            "label": "  Song one ", "event_date": "2024-02-29", "org_name": " The  Cafe\u{301}\t Band ",
            "event_type": "wedding", "participants": "Ann, Ben", "keywords": "live", "location": "Hall", "rating": "9",
            "notes": "two\nlines", "colour": "another destination's",
        ]
        var expected = given
        expected["colour"] = nil
        expected["label"] = "Song one"
        expected["org_name"] = "The Caf\u{E9} Band"
        let cleaned = try Self.fields(given)
        #expect(cleaned == expected)
        #expect(cleaned["org_name"]?.unicodeScalars.count == 13)
    }

    static let wrong: [(String, String)] = [
        ("event_date", "2026-02-29"), ("event_date", "1900-02-29"), ("event_date", "2026-13-01"),
        ("event_date", "2026-00-10"), ("event_date", "2026-04-31"), ("event_date", "2026-01-00"),
        ("event_date", "2026-1-1"), ("event_date", "26-01-01"), ("event_date", "2026/01/01"),
        ("event_date", "20260101"), ("event_date", "2026-01-01T00:00"), ("event_date", "٢٠٢٦-٠١-٠١"),
        ("event_date", "0999-01-01"), ("event_date", "-026-01-01"), ("event_date", "today"),
        ("event_type", "concert"), ("event_type", "Band"), ("event_type", "weddings"), ("rating", "10"),
        ("rating", "-1"), ("rating", "4.5"), ("rating", "٣"), ("rating", "five"), ("rating", "00"),
        ("label", String(repeating: "x", count: 256)), ("org_name", String(repeating: "x", count: 129)),
        ("location", String(repeating: "x", count: 256)),
    ]

    @Test(arguments: wrong) func `what the server would refuse is refused here`(_ name: String, _ value: String) {
        #expect(Self.fault([name: value]) == name)
    }

    static let right: [(String, String)] = [
        ("event_date", "2000-02-29"), ("event_date", "1000-01-01"), ("event_date", "9999-12-31"),
        ("event_type", "band"), ("event_type", "wedding"), ("event_type", "other"), ("rating", "0"), ("rating", "9"),
        ("label", String(repeating: "x", count: 255)), ("label", String(repeating: "é", count: 255)),
        ("label", "y"), ("org_name", String(repeating: "日", count: 128)),
        ("location", String(repeating: "é", count: 255)),
    ]

    @Test(arguments: right) func `what the server takes is taken`(_ name: String, _ value: String) throws {
        #expect(try Self.fields([name: value])[name] == value)
    }

    @Test func `a guest gives a label of so many bytes, and nothing else`() throws {
        #expect(try Self.fields(["label": "a", "event_date": "nonsense"], isGuest: true) == ["label": "a"])
        #expect(Self.fault(["label": String(repeating: "é", count: 128)], isGuest: true) == "label")
        #expect(try Self.fields(["label": String(repeating: "é", count: 127)], isGuest: true).count == 1)
    }

    @Test func `real dates are those of the calendar, for every day of 400 years`() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
        var found = 0
        for year in 1800..<2200 {
            for month in 0...13 {
                for day in [0, 1, 28, 29, 30, 31, 32] {
                    let text = String(format: "%04d-%02d-%02d", year, month, day)
                    let components = DateComponents(calendar: calendar, year: year, month: month, day: day)
                    #expect(GigHiveFields.isDate(text) == components.isValidDate, "\(text)")
                    found += 1
                }
            }
        }
        #expect(found == 400 * 14 * 7)
    }

    @Test func `every default is a template, and every field has a sentence`() throws {
        for spec in GigHiveFields.specs {
            #expect(!spec.summary.isEmpty)
            if let text = spec.defaultText { #expect(try KeyTemplate(text).text == text) }
        }
        #expect(FieldSpec.filled([:], GigHiveFields.specs).count == 4)
    }

    // MARK: - Files

    @Test(arguments: [
        ("a.mp4", true), ("a.MOV", true), ("a.ifo", true), ("a.flac", true), ("a.txt", false), ("a", false),
        (".mp4", false), ("a.mp4.exe", false), ("a.", false), ("a.mp5", false),
    ]) func `only audio and video are taken, by their extension`(_ name: String, _ isTaken: Bool) {
        #expect((GigHivePipeline.objection(to: FileName(bytes: name.utf8)) == nil) == isTaken)
    }

    @Test func `every extension that is taken has a type to declare`() {
        #expect(GigHivePipeline.objection(to: FileName(bytes: "a.mp5".utf8))?.contains("did you mean") == true)
        let words =
            "mp3 wav flac aac m4a m4p aif aifc aiff ogg oga au m2a wma mp4 mov mkv webm m4v avi mpg mpeg ts m2t m2ts ogv "
            + "mxf flv rm rmvb rv wmv vob m2v"
        for word in words.split(separator: " ").map(String.init) {
            #expect(GigHivePipeline.takes(word))
            let type = GigHivePipeline.declaredType(word, mediaType: MediaType.byExtension(word))
            #expect(type != MediaType.unknown, "\(word)")
        }
        #expect(GigHivePipeline.declaredType("mp4", mediaType: "video/mp4") == "video/mp4")
    }

    // MARK: - The form

    @Test func `a form is what RFC 7578 says`() {
        let form = FormData(
            fields: [("label", "a\r\nb\"c"), ("notes", "")], fileField: "file", fileName: Array("x.mp4".utf8),
            mediaType: "video/mp4", boundary: "B")
        let header =
            "--B\r\nContent-Disposition: form-data; name=\"label\"\r\n\r\na\r\nb\"c\r\n"
            + "--B\r\nContent-Disposition: form-data; name=\"notes\"\r\n\r\n\r\n"
            + "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.mp4\"\r\n"
            + "Content-Type: video/mp4\r\n\r\n"
        #expect(String(decoding: form.header, as: UTF8.self) == header)
        #expect(String(decoding: form.footer, as: UTF8.self) == "\r\n--B--\r\n")
        #expect(form.contentType == "multipart/form-data; boundary=B")
    }

    @Test func `a boundary that a value holds is replaced`() {
        let form = FormData(
            fields: [("label", "x--B1--")], fileField: "file", fileName: [0x61], mediaType: "video/mp4", boundary: "B1")
        #expect(form.boundary != "B1")
        #expect((1...70).contains(form.boundary.utf8.count))
        #expect(FormData.randomBoundary() != FormData.randomBoundary())
    }

    static let names: [([UInt8], String)] = [
        (Array("plain name.mp4".utf8), "plain name.mp4"), (Array("größe 日本.mp4".utf8), "größe 日本.mp4"),
        (Array("a\"b.mp4".utf8), "a%22b.mp4"), (Array("a\r\nX: y.mp4".utf8), "a%0D%0AX: y.mp4"),
        (Array("a\u{7F}\t.mp4".utf8), "a%7F%09.mp4"), ([0x61, 0xFF, 0xC3, 0x2E, 0x6D], "a%FF%C3.m"),
        (Array("100%.mp4".utf8), "100%.mp4"), (Array("back\\slash;.mp4".utf8), "back\\slash;.mp4"),
    ]

    @Test(arguments: names) func `a name stays within its quotes`(_ name: [UInt8], _ written: String) {
        #expect(String(decoding: FormData.escaped(name), as: UTF8.self) == written)
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func `no name adds a line or ends its quotes`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let name = (0..<Int.random(in: 1...60, using: &generator)).map { _ in
            UInt8.random(in: 1...255, using: &generator)
        }
        let escaped = FormData.escaped(name)
        #expect(!escaped.contains { $0 < 0x20 || $0 == UInt8(ascii: "\"") })
        #expect(String(validating: escaped, as: UTF8.self) != nil)
    }
}
