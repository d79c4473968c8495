import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What a `type: r2` section may say, and the URLs it makes the pipeline take.
@Suite struct R2SettingsTests {
    private static func settings(_ values: [String: ConfigValue]) throws(SettingFault) -> R2Settings {
        let good: [String: ConfigValue] = ["api": .string("https://api.example"), "api_key": .secret(Secret("k"))]
        return try R2Settings(section(good.merging(values) { $1 }))
    }

    @Test func `defaults are those of the key table`() throws {
        let settings = try Self.settings([:])
        #expect(settings.dialect == .v1)
        #expect(settings.partSize == 8 << 20 && settings.largestPart == 64 << 20)
        #expect(settings.parallelParts == 8)
        #expect(settings.verify == .md5)
        #expect(settings.connections == 32)
        #expect(settings.maxInFlight == nil)
        #expect(!settings.allowHTTP)
    }

    @Test func `a part size that is given stays, and auto is no size`() throws {
        let given = try Self.settings(["part_size": .bytes(12 << 20)])
        #expect(given.partSize == 12 << 20 && given.largestPart == 12 << 20)
        let auto = try Self.settings(["part_size": .string("auto")])
        #expect(auto.partSize == 8 << 20 && auto.largestPart == 64 << 20)
    }

    static let faults: [(String, [String: ConfigValue])] = [
        ("api", ["api": .string("not a url")]), ("api", ["api": .string("")]),
        ("api", ["api": .string("ftp://api.example")]), ("api", ["api": .string("http://api.example")]),
        ("api", ["api": .string("http://192.168.1.4")]), ("api", ["api": .string("https://u:pw-canary@api.example")]),
        ("public_url", ["public_url": .string("http://cdn.example")]), ("public_url", ["public_url": .string("cdn")]),
        ("api_key", ["api_key": .secret(Secret(""))]), ("api_key", ["api_key": .string("not a secret")]),
        ("part_size", ["part_size": .bytes((5 << 20) - 1)]), ("part_size", ["part_size": .bytes((4 << 30) + 1)]),
        ("part_size", ["part_size": .bytes(0)]),
    ]

    @Test(arguments: faults) func `what cannot be used is refused at its key`(
        _ key: String, _ values: [String: ConfigValue]
    ) {
        let fault = #expect(throws: SettingFault.self) { try Self.settings(values) }
        #expect(fault?.key == key)
        #expect(fault?.message.contains("canary") == false)
    }

    @Test(arguments: ["https://acc.r2.cloudflarestorage.com", "https://ACC.eu.r2.cloudflarestorage.com/media"])
    func `R2's own S3 address is refused with the type and the key that it belongs to`(_ address: String) {
        let fault = #expect(throws: SettingFault.self) { try Self.settings(["api": .string(address)]) }
        #expect(fault?.key == "api" && fault?.message.contains("use 'type: s3' with 'endpoint: https://") == true)
        let host = address.contains(".eu.") ? "acc.eu" : "acc"
        // What is behind it is a bucket.
        let endpoint = "https://\(host).r2.cloudflarestorage.com"
        #expect(fault?.rightful == RightfulKey(type: "s3", key: "endpoint", address: endpoint))
    }

    static let good: [[String: ConfigValue]] = [
        ["api": .string("http://127.0.0.1:8080")], ["api": .string("http://localhost/base")],
        ["api": .string("http://api.example"), "allow_http": .boolean(true)],
        ["dialect": .string("seed"), "api_key": .secret(Secret(""))], ["part_size": .bytes(5 << 20)],
        ["part_size": .bytes(4 << 30)], ["public_url": .string("https://cdn.example/media/")],
        // Names that only resemble the store's.
        ["api": .string("https://r2.cloudflarestorage.com.example")], ["api": .string("https://api.example/r2")],
    ]

    @Test(arguments: good) func `what can be used is taken`(_ values: [String: ConfigValue]) {
        #expect(throws: Never.self) { try Self.settings(values) }
    }

    @Test(
        arguments: [
            ("https://store.example/k?sig=1", nil), ("http://store.example/k", .insecureURL),
            ("http://api.example/k", .insecureURL), ("https://127.0.0.1/k", .forbiddenURL),
            ("https://169.254.169.254/latest", .forbiddenURL), ("https://10.0.0.8/k", .forbiddenURL),
            ("https://[::1]/k", .forbiddenURL), ("file:///etc/passwd", .forbiddenURL), ("", .forbiddenURL),
        ] as [(String, ErrorCode?)])
    func `a URL from a server on the internet leads to the internet, encrypted`(
        _ text: String, _ code: ErrorCode?
    ) throws {
        let api = try Self.api()
        do throws(DeliveryError) {
            _ = try api.checked(text)
            #expect(code == nil)
        } catch {
            #expect(error.code == code)
            #expect(error.verdict == .giveUp)
        }
    }

    @Test func `a receipt's address has no signature`() throws {
        let answered = "https://store.example/a%20b?X-Amz-Signature=1#x"
        #expect(try Self.api().location("a b", answered: answered) == "https://store.example/a%20b")
        #expect(try Self.api().location("a b", answered: nil) == nil)
        let cdn = try Self.api(["public_url": .string("https://cdn.example/m")])
        #expect(cdn.location("a b/ü", answered: answered) == "https://cdn.example/m/a%20b/%C3%BC")
    }

    private static func api(_ values: [String: ConfigValue] = [:]) throws -> SpiralAPI {
        SpiralAPI(settings: try settings(values), client: HTTPClient(trust: .system, userAgent: "inlet-tests/1"))
    }
}

/// What errors of every kind mean to the agent.
@Suite struct VerdictTests {
    private static let now = WallTime(milliseconds: 0)

    static let statuses: [(Int, DeliveryError.Verdict, DeliveryError.Verdict, ErrorCode)] = [
        (301, .giveUp, .giveUp, .redirected), (307, .giveUp, .giveUp, .redirected),
        (400, .giveUp, .giveUp, .badRequest), (401, .credentials, .retry(after: nil), .unauthorized),
        (403, .credentials, .retry(after: nil), .unauthorized),
        (404, .retry(after: nil), .retry(after: nil), .notFound),
        (408, .retry(after: nil), .retry(after: nil), .timedOut), (409, .giveUp, .giveUp, .conflict),
        (410, .retry(after: nil), .retry(after: nil), .notFound), (413, .giveUp, .giveUp, .tooLarge),
        (422, .giveUp, .giveUp, .badRequest), (429, .retry(after: nil), .retry(after: nil), .throttled),
        (500, .retry(after: nil), .retry(after: nil), .serverError),
        (501, .retry(after: nil), .retry(after: nil), .serverError),
        (502, .outage(after: nil), .outage(after: nil), .serverError),
        (503, .outage(after: nil), .outage(after: nil), .serverError),
        (504, .outage(after: nil), .outage(after: nil), .serverError),
        (599, .retry(after: nil), .retry(after: nil), .serverError),
    ]

    @Test(arguments: statuses) func `every status has its verdict, with credentials and for a presigned URL`(
        _ status: Int, _ control: DeliveryError.Verdict, _ presigned: DeliveryError.Verdict, _ code: ErrorCode
    ) {
        let response = HTTPResponse(status: status)
        let first = DeliveryError(response, "asking", in: .json, secretsMatter: true, now: Self.now)
        let second = DeliveryError(response, "asking", in: .json, secretsMatter: false, now: Self.now)
        #expect(first.verdict == control)
        #expect(second.verdict == presigned)
        #expect(first.code == code && second.code == code)
        #expect(first.reason.contains("asking was answered with \(status)"))
    }

    @Test func `a Retry-After reaches the agent`() {
        let response = HTTPResponse(status: 503, headers: [("retry-after", "12")])
        let error = DeliveryError(response, "asking", in: .json, secretsMatter: true, now: Self.now)
        #expect(error.verdict == .outage(after: .seconds(12)))
    }

    @Test func `errors on the way and on the disk have theirs`() {
        let table: [(ErrorCode, Bool, DeliveryError.Verdict)] = [
            (.cancelled, false, .cancelled), (.sourceChanged, false, .sourceChanged), (.insecureURL, false, .giveUp),
            (.forbiddenURL, false, .giveUp), (.connectFailed, true, .outage(after: nil)),
            (.stalled, true, .outage(after: nil)), (.connectionLost, false, .retry(after: nil)),
            (.sourceUnreadable, false, .outage(after: nil)), (.answerTooLarge, false, .retry(after: nil)),
        ]
        for (code, isOutage, verdict) in table {
            let error = DeliveryError(TransferError(code, "why", isOutage: isOutage))
            #expect(error.verdict == verdict && error.code == code && error.reason == "why")
        }
        let missing = SystemError(call: "read", path: "/x", code: .noSuchFileOrDirectory)
        #expect(DeliveryError(reading: missing).verdict == .sourceGone)
        // Whose fault it is decides whether an attempt counts: the disk's and this machine's are nobody's attempt.
        for (errno, verdict, code) in [
            (Errno.ioError, DeliveryError.Verdict.outage(after: nil), ErrorCode.sourceUnreadable),
            (.permissionDenied, .outage(after: nil), .sourceForbidden),
            (.staleNFSFileHandle, .outage(after: nil), .sourceUnreadable),
            (.tooManyOpenFiles, .outage(after: nil), .outOfResources),
            (.noMemory, .outage(after: nil), .outOfResources),
        ] {
            let error = DeliveryError(reading: SystemError(call: "read", path: "/x", code: errno))
            #expect(error.verdict == verdict && error.code == code)
        }
    }

    @Test(arguments: [
        #"{"url":"https://h/x?X-Amz-Signature=canary"}"#, #"{"url": "https:\/\/h\/x?X-Amz-Signature=canary"}"#,
        "/bucket/x?X-Amz-Date=1&X-Amz-Signature=canary", "<SignatureProvided>canary</SignatureProvided>",
        "X-Amz-Credential=canary/2026", "/x?sig=canary",
    ])
    func `an excerpt shows no piece of a presigned URL`(_ body: String) {
        let said = DeliveryError.excerpt(Array("before \(body) after".utf8))
        #expect(!said.contains("canary"), "\(said)")
        #expect(said.hasPrefix("before "))
    }

    @Test func `an excerpt is short and printable`() {
        #expect(DeliveryError.excerpt([]) == "")
        #expect(DeliveryError.excerpt(Array(repeating: 0x1B, count: 5000)).count <= 200)
        #expect(!DeliveryError.excerpt([0x1B, 0x5B, 0x32, 0x4A]).contains("\u{1B}"))
    }
}

/// The rules of the R2 pipeline that need no server.
@Suite struct R2TableTests {
    // MARK: - PartPlan

    @Test(
        arguments: [
            (0, 8, 1, 8), (1, 8, 1, 8), (8 << 20, 8, 1, 8), ((8 << 20) + 1, 8, 2, 8), (6 << 30, 8, 768, 8),
            (48 << 30, 8, 984, 50), (1000 * (8 << 20), 8, 1000, 8), (1000 * (8 << 20) + 1, 8, 889, 9),
            (48 << 30, 64, 768, 64), (4 << 40, 8, 1000, 4195),
        ] as [(Int64, Int64, Int, Int64)])
    func `a file is cut into at most 1,000 parts of whole MiB`(
        _ size: Int64, _ configured: Int64, _ count: Int, _ mebibytes: Int64
    ) {
        let plan = PartPlan(fileSize: size, configured: configured << 20)
        #expect(plan.count == count)
        #expect(plan.partSize == mebibytes << 20)
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func `parts cover the file once, all equal but the last`(_ seed: UInt64)
    {
        var generator = SeededGenerator(seed: seed)
        let size = Int64.random(in: 0...(1 << Int64.random(in: 0...42, using: &generator)), using: &generator)
        let plan = PartPlan(fileSize: size, configured: Int64.random(in: 5...64, using: &generator) << 20)
        var end: Int64 = 0
        for number in 1...plan.count {
            let range = plan.range(number)
            #expect(range.lowerBound == end)
            #expect(number == plan.count || range.count == Int(plan.partSize))
            end = range.upperBound
        }
        #expect(end == size)
        #expect(plan.count <= 1000)
    }

    // MARK: - Refusals

    static let refusals: [(status: Int, body: String, code: ErrorCode)] = [
        (503, "<Error><Code>SlowDown</Code></Error>", .throttled),
        (503, "<Error><Code>Busy</Code></Error>", .serverError),
        (429, "", .throttled), (500, "<Error><Code>SlowDown</Code></Error>", .serverError),
    ]

    @Test(arguments: refusals) func `a store that asks for fewer requests is told from one that is broken`(
        _ status: Int, _ body: String, _ code: ErrorCode
    ) throws {
        let url = try HTTPURL("http://127.0.0.1/k", rules: .configured(allowHTTP: false))
        let answer = HTTPResponse(status: status, headers: [("Retry-After", "7")], body: Array(body.utf8))
        let error = PresignedTarget(url: url, headers: []).refusal(answer, "part 1")
        #expect(error.code == code)
        if status == 503 { #expect(error.verdict == .outage(after: .seconds(7))) }
    }

    // MARK: - ETagVerifier

    @Test func `the judge wants the same foreign tag twice before it speaks of the store`() throws {
        let md5 = Checksum.md5([1, 2, 3])
        let right = md5.hex
        let table: [([String], [ETagVerifier.Outcome])] = [
            (["\"\(right)\""], [.proved]), (["W/\"\(right.uppercased())\""], [.proved]), ([right], [.proved]),
            (["\"a\"", right], [.sendAgain, .proved]), (["a", "\"A\""], [.sendAgain, .notMD5]),
            (["a", "b"], [.sendAgain, .corrupted]), (["\(right)-1", "\(right)-1"], [.sendAgain, .notMD5]),
        ]
        for (tags, wanted) in table {
            var judge = ETagVerifier()
            #expect(tags.map { judge.judge($0, against: md5) } == wanted, "\(tags)")
        }
        var trusting = ETagVerifier()
        #expect(trusting.judge("anything", against: nil) == .proved)
    }

    // MARK: - Answers

    @Test(arguments: [
        (#"{"upload_id":"u","parts":[{"part_number":1,"url":"a"},{"part_number":2.0,"url":"b"}]}"#, "u - 1a 2b"),
        (#"{"upload_id":"u","key":"k","part_urls":[{"part_number":1,"url":"a"}],"parts":null}"#, "u k 1a"),
        (#"{"upload_id":"u","part_urls":[{"part_number":1,"url":"a"}],"parts":1}"#, "u - 1a"),
        (#"{"upload_id":"u","key":null}"#, "u -"), (#"{"key":"k"}"#, nil), (#"{"upload_id":1}"#, nil),
        (#"{"upload_id":"u","key":1}"#, nil), (#"{"upload_id":"u","parts":{}}"#, nil),
        (#"{"upload_id":"u","parts":[{"part_number":"1","url":"a"}]}"#, nil),
        (#"{"upload_id":"u","parts":[{"part_number":1}]}"#, nil), ("[]", nil),
    ])
    func `an opened upload is read by the names of each generation, and not by halves`(
        _ text: String, _ wanted: String?
    ) {
        // Of another kind or missing: neither is an upload.
        let words = SpiralAPI.opened(Array(text.utf8)).map { id, key, parts in
            [id, key ?? "-"] + parts.map { "\($0.number)\($0.url)" }
        }
        #expect(words?.joined(separator: " ") == wanted)
    }

    // MARK: - UploadRecord

    @Test(arguments: 0..<100 as Range<UInt64>) func `an upload comes back from its notes`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let size = Int64.random(in: 0...(200 << 20), using: &generator)
        let plan = PartPlan(fileSize: size, configured: 5 << 20)
        let urls = (1...plan.count).map { "https://r2.example/k?partNumber=\($0)&X-Amz-Signature=ü\"\\" }
        let upload = OpenUpload(id: "id/\(seed)+=", key: "k ü/\n", partURLs: urls)
        var notes = [UploadRecord.openingName: UploadRecord(upload: upload, plan: plan).openingNote]
        var proved: [Int: UploadRecord.VerifiedPart] = [:]
        for number in 1...plan.count where Bool.random(using: &generator) {
            let md5 = Bool.random(using: &generator) ? Checksum.md5([UInt8(number & 255)]).hex : nil
            proved[number] = UploadRecord.VerifiedPart(etag: "\"\(number)\"", md5: md5)
            notes[UploadRecord.partName(number)] = proved[number].map { JSON.note(of: $0) }
        }
        let record = try #require(UploadRecord(notes, fileSize: size))
        #expect(record.upload == upload)
        #expect(record.plan == plan)
        #expect(record.parts == proved)
        #expect(record.missing == (1...plan.count).filter { proved[$0] == nil })
        #expect(!record.isCompleting && !record.isStale)
        #expect(UploadRecord.identity(notes)?.id == upload.id)
        #expect(UploadRecord(notes, fileSize: size + 1) == nil)
        #expect(UploadRecord([:], fileSize: size) == nil)
        // A torn note of a part costs that part, not the upload.
        notes[UploadRecord.partName(1)] = [0x7B]
        #expect(UploadRecord(notes, fileSize: size)?.parts[1] == nil)
    }

    // MARK: - The life of presigned URLs

    @Test func `a presigned URL tells when it ends`() throws {
        let date = try #require(WallTime(signingTime: "20261121T072000Z"))
        #expect(date.rfc3339 == "2026-11-21T07:20:00.000Z")
        for text in ["", "20261121T072000", "2026-11-21T07:20Z", "20261121T0720000", "xxxxxxxxTxxxxxxZ"] {
            #expect(WallTime(signingTime: text) == nil, "\(text)")
        }
        let url = try Self.url("https://a.example/k?X-Amz-Date=20261121T072000Z&X-Amz-Expires=60")
        #expect(url.hasExpired(now: date + .seconds(59)) == false)
        #expect(url.hasExpired(now: date + .seconds(60)) == true)
        for silent in ["", "?X-Amz-Expires=60", "?X-Amz-Date=20261121T072000Z", "?X-Amz-Date=x&X-Amz-Expires=x"] {
            #expect(try Self.url("https://a.example/k" + silent).hasExpired(now: date) == nil)
        }
    }

    // MARK: - An object that was found

    @Test func `an object that was found is ours by length, and by tag where tags can tell`() {
        let (tag, other) = ("0123456789abcdef0123456789abcdef-2", "0123456789abcdef0123456789abcdee-2")
        let table: [(Int64?, String?, String?, Bool)] = [
            (5, tag, tag, true), (5, other, tag, false), (6, tag, tag, false), (nil, tag, tag, false),
            (5, nil, tag, true),
            (5, "opaque", tag, true), (5, other, nil, true), (5, String(repeating: "0", count: 32), tag, false),
        ]
        for (size, etag, expected, isOurs) in table {
            #expect(SpiralAPI.isSame((size, etag), as: (5, expected)) == isOurs, "\(etag ?? "-")")
        }
    }

    static func url(_ text: String) throws -> HTTPURL { try HTTPURL(text, rules: .configured(allowHTTP: true)) }
}
