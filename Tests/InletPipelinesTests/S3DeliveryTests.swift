import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Deliveries to an S3 store that behaves, and to one that does not.
@Suite(.timeLimit(.minutes(15))) struct S3DeliveryTests {
    private static let part = Place.part

    @Test func `files up to the threshold go in one request, larger ones in parts`() async throws {
        try await withS3Place { place in
            for (count, key) in [(0, "empty"), (1, "one"), (Self.part, "limit")] {
                let (path, order) = try place.file(count, key: key)
                let proof = try await place.deliver(path, order).get()
                #expect(proof.method == .md5Parts)
                #expect(proof.content?.partSize == nil)
                #expect(proof.content?.digest == place.s3?.objects().first { $0.key == key }?.md5)
            }
            #expect(place.count(.single) == 3)
            #expect(place.count(.create) == 0)
            let (path, order) = try place.file(Self.part + 1, key: "larger")
            let proof = try await place.deliver(path, order).get()
            #expect(proof.content?.partSize == Int64(Self.part))
            #expect(proof.etag.map { "\"\($0)\"" } == place.s3?.objects().first { $0.key == "larger" }?.etag)
            #expect(place.count(.single) == 3)
            #expect(place.count(.part) == 2)
            // No other request by default.
            #expect(place.count(.read) == 0)
            #expect(place.s3?.traffic.counts[.listObjects] == nil)
        }
    }

    @Test(arguments: [Implementation.s3("md5"), .r2("v1"), .r2("r2"), .r2("seed")])
    func `a file over the store's limit is refused before the first byte`(_ store: Implementation) async throws {
        let limits: [Int64?] = store.type == "s3" ? [nil, 1000] : [nil]
        for limit in limits {
            let settings = limit.map { ["max_object_size": ConfigValue.bytes($0)] } ?? [:]
            try await withPlace(store, settings: settings) { place in
                let (path, _) = try place.file(1001)
                // A file of holes: nothing of it is read either.
                if limit == nil { try truncate(path, to: (5 << 40) + 1) }
                let error = try await place.failure(path, try place.order(path, key: "reel.mov"))
                #expect(error?.verdict == .giveUp)
                #expect(error?.code == .tooLarge)
                #expect(error?.reason.hasPrefix("'reel.mov' has ") == true)
                #expect(place.count(.create) + place.count(.single) + place.count(.presign) == 0)
            }
        }
    }

    @Test func `objects have their type, time and configured fields`() async throws {
        let settings: [String: ConfigValue] = [
            "cache_control": .string("max-age=60"), "storage_class": .string("STANDARD_IA"),
            "metadata": .map(["origin": "nas"]),
        ]
        try await withS3Place(settings) { place in
            for count in [10, Self.part + 1] {
                let (path, order) = try place.file(count, key: "\(count)")
                _ = try await place.deliver(path, order).get()
                let object = try #require(place.s3?.objects().first { $0.key == order.key })
                #expect(object.contentType == "video/mp4")
                #expect(object.attributes["cache-control"] == "max-age=60")
                #expect(object.attributes["x-amz-storage-class"] == "STANDARD_IA")
                #expect(object.attributes["x-amz-meta-origin"] == "nas")
                #expect(object.attributes["x-amz-acl"] == nil)
                let time = try #require(object.attributes["x-amz-meta-mtime"])
                #expect(time.split(separator: ".").last?.count == 9)
                let seconds = Double(order.source.modified) / 1e9
                #expect(Double(time).map { abs($0 - seconds) < 0.001 } == true)
            }
        }
    }

    @Test(arguments: ["crc64nvme", "crc32c", "sha256"])
    func `a checksum that the store confirms is the proof`(_ verify: String) async throws {
        try await withS3Place(["verify": .string(verify)]) { place in
            for count in [0, 100_000, Self.part + 7] {
                let (path, order) = try place.file(count, key: "\(count)")
                let proof = try await place.deliver(path, order).get()
                #expect(proof.method == .checksum)
                #expect((proof.content == nil) == (verify == "crc32c"))
                #expect(proof.details?["checksum"]?.hasPrefix("crc32c:") == (verify == "crc32c" ? true : nil))
                if verify == "crc64nvme" {
                    let sums = SliceHasher.sums([.crc64nvme], of: Array(content(count)))
                    #expect(proof.content == sums[.crc64nvme].map { ContentHash(digest: $0, partSize: nil) })
                }
                let object = try #require(place.s3?.objects().first { $0.key == order.key })
                if verify == "sha256", count <= Self.part { #expect(proof.content?.digest == object.sha256) }
            }
        }
    }

    /// The faults that one more try gets over.
    static let passing: [FaultAction] = [
        .status(500), .reply(.slowDown()), .reply(.s3(500, "InternalError")), .reply(.s3(400, "BadDigest")),
        .reply(.s3(400, "RequestTimeout")), .reset(afterBytes: 100), .missingETag, .loseAnswer, .wrongETag(.random),
        .status(429, retryAfter: 1),
    ]

    @Test(arguments: passing) func `what passes is got over by sending again`(_ action: FaultAction) async throws {
        try await withS3Place { place in
            for count in [1000, Self.part + 1] {
                place.misbehave(action, at: count == 1000 ? .single : .part)
                let (path, order) = try place.file(count, key: "\(count)")
                let attempt = Notes().attempt()
                _ = try await place.deliver(path, order, attempt).get()
                #expect(attempt.bytesSent == Int64(count))
                #expect(try place.visible()[order.key] == content(count))
            }
            #expect(place.count(.single) == 2)
            #expect(place.count(.part) == 3)
            #expect(place.count(.create) == 1)
        }
    }

    @Test func `a tag that is another one each time is damage, the same wrong one is a store without MD5`() async throws
    {
        try await withS3Place { place in
            let (path, order) = try place.file(Self.part + 1)
            place.misbehave(.wrongETag(.random), at: .part, times: nil)
            #expect(try await place.failure(path, order)?.code == .corrupted)
            #expect(try place.leftovers() == [])
            place.behave()
            place.misbehave(.wrongETag(.constant), at: .part, times: nil)
            #expect(try await place.failure(path, order)?.code == .foreignETag)
        }
        try await withS3Place(["verify": .string("crc32c")]) { place in
            place.misbehave(.wrongETag(.constant), at: .part, times: nil)
            let (path, order) = try place.file(Self.part + 1)
            #expect(try await place.deliver(path, order).get().method == .checksum)
        }
    }

    @Test(arguments: ["md5", "crc64nvme", "crc32c", "size"])
    func `a file that is written to while it is sent never becomes an object`(_ verify: String) async throws {
        // More than the kernel's buffers take, so that its end is still to be read when the change comes.
        let size = 24 << 20
        let settings: [String: ConfigValue] = ["verify": .string(verify), "multipart_threshold": .bytes(32 << 20)]
        try await withS3Place(settings) { place in
            let gate = RequestGate()
            place.misbehave(.hold(gate), at: .single)
            let (path, order) = try place.file(size)
            async let written: Void = {
                defer { gate.open() }
                try await eventually("the object is under way") { place.count(.single) == 1 }
                // Neither length nor the part already read tell of it.
                try touch(path, at: Int64(size) - 2)
            }()
            let error = try await place.failure(path, order)
            try await written
            #expect(error?.verdict == .sourceChanged)
            #expect(try place.visible() == [:])
        }
    }

    static let refusals: [(FaultReply, DeliveryError.Verdict, ErrorCode)] = [
        (.s3(403, "SignatureDoesNotMatch"), .credentials, .unauthorized),
        (.s3(404, "NoSuchBucket"), .outage(after: nil), .notFound),
        (.s3(301, "PermanentRedirect"), .outage(after: nil), .redirected),
        (.s3(400, "EntityTooLarge"), .giveUp, .tooLarge),
        (.s3(403, "QuotaExceeded"), .outage(after: nil), .destinationFull),
        (.slowDown(retryAfter: 600), .outage(after: .seconds(600)), .throttled),
    ]

    @Test(arguments: refusals) func `what the store refuses for good is not sent again and again`(
        _ reply: FaultReply, _ verdict: DeliveryError.Verdict, _ code: ErrorCode
    ) async throws {
        try await withS3Place { place in
            place.misbehave(.reply(reply), at: .single, .create, times: nil)
            let (path, order) = try place.file(1000)
            expectError(try await place.failure(path, order), verdict, code: code)
            #expect(place.count(.single) == 1)
            let (large, second) = try place.file(Self.part + 1)
            #expect(try await place.failure(large, second)?.code == code)
            #expect(place.count(.part) == 0)
        }
    }

    @Test func `a wrong secret is a matter of credentials, and is never printed`() async throws {
        let wrong: [String: ConfigValue] = ["secret_key": .secret(Secret("wrong-canary"))]
        try await withS3Place(wrong) { place in
            for count in [1000, Self.part + 1] {
                let (path, order) = try place.file(count)
                let error = expectError(try await place.failure(path, order), .credentials)
                #expect(error?.reason.contains("canary") == false)
            }
            let error = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            #expect(error?.verdict == .credentials)
            #expect(try place.visible() == [:])
        }
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(-3600)])
    func `a clock that is an hour off is named`(_ offset: Duration) async throws {
        try await withS3Place(rules: S3Sandbox.Rules(clockOffset: offset)) { place in
            let (path, order) = try place.file(1000)
            let error = expectError(try await place.failure(path, order), .outage(after: nil), code: .clockSkewed)
            #expect(error?.reason.contains("RequestTimeTooSkewed") == true)
        }
    }

    @Test func `a probe of keys that may not list says so`() async throws {
        try await withS3Place { place in
            place.s3?.faults.add(S3Fault(.reply(.s3(403, "AccessDenied")), at: .listObjects))
            let refused = try await place.pipeline.probe()
            #expect(refused.contains("these keys may not list"))
            let said = try await place.pipeline.probe()
            #expect(said.hasSuffix(" answers"))
        }
    }

    @Test func `a listing has every object of its prefix, page by page`() async throws {
        try await withS3Place { place in
            let keys = ["a/1 +%.bin", "a/ü.bin", "a/3.bin", "a/4.bin", "a/5.bin", "b/1.bin"]
            for key in keys {
                let (path, order) = try place.file(3, key: key)
                _ = try await place.deliver(path, order).get()
            }
            let listing = try #require(place.pipeline as? any ObjectListing)
            let listed = Listing<String>()
            try await listing.list(prefix: "a/") { $0.forEach { listed.add($0.key) } }
            #expect(listed.all.sorted() == keys.filter { $0.hasPrefix("a/") }.sorted())
            #expect(place.s3?.traffic.counts[.listObjects] == 3)
        }
    }
}

/// The one table that makes verdicts of S3's error codes.
@Suite struct S3RefusalTests {
    private static let now = WallTime(milliseconds: 1_795_240_800_000)  // 2026-11-21T06:00:00Z

    private static func error(
        _ status: Int, _ body: String = "", headers: HTTPFields = [], now: WallTime = now
    ) -> DeliveryError {
        let response = HTTPResponse(status: status, headers: headers, body: Array(body.utf8))
        return DeliveryError.ofS3(response, "sending k to https://s3.example/media/k", now: now)
    }

    private static func xml(_ code: String, _ more: String = "") -> String {
        "<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>What it says.</Message>\(more)</Error>"
    }

    static let table: [(Int, String, DeliveryError.Verdict, ErrorCode)] = [
        (403, "AccessDenied", .credentials, .unauthorized), (403, "InvalidAccessKeyId", .credentials, .unauthorized),
        (403, "SignatureDoesNotMatch", .credentials, .unauthorized), (401, "Unauthorized", .credentials, .unauthorized),
        (400, "ExpiredToken", .credentials, .unauthorized), (400, "InvalidToken", .credentials, .unauthorized),
        (403, "RequestTimeTooSkewed", .outage(after: nil), .clockSkewed),
        (404, "NoSuchBucket", .outage(after: nil), .notFound),
        (301, "PermanentRedirect", .outage(after: nil), .redirected),
        (307, "TemporaryRedirect", .outage(after: nil), .redirected),
        (400, "AuthorizationHeaderMalformed", .outage(after: nil), .redirected),
        (503, "SlowDown", .outage(after: nil), .throttled), (503, "SlowDownWrite", .outage(after: nil), .throttled),
        (429, "TooManyRequests", .outage(after: nil), .throttled),
        (503, "ServiceUnavailable", .outage(after: nil), .serverError),
        (500, "InternalError", .retry(after: nil), .serverError),
        (200, "InternalError", .retry(after: nil), .serverError),
        (400, "RequestTimeout", .retry(after: nil), .timedOut),
        (400, "IncompleteBody", .retry(after: nil), .connectionLost),
        (404, "NoSuchUpload", .retry(after: nil), .uploadGone), (400, "InvalidPart", .retry(after: nil), .uploadGone),
        (400, "BadDigest", .retry(after: nil), .digestMismatch),
        (400, "XAmzContentSHA256Mismatch", .retry(after: nil), .digestMismatch),
        (409, "OperationAborted", .retry(after: nil), .conflict),
        (409, "ConditionalRequestConflict", .retry(after: nil), .conflict),
        (412, "PreconditionFailed", .giveUp, .destinationExists), (400, "EntityTooLarge", .giveUp, .tooLarge),
        (400, "EntityTooSmall", .giveUp, .badRequest), (400, "KeyTooLongError", .giveUp, .badRequest),
        (501, "NotImplemented", .giveUp, .badRequest), (403, "QuotaExceeded", .outage(after: nil), .destinationFull),
        (507, "XMinioStorageFull", .outage(after: nil), .destinationFull),
        // Not in the table: the status decides.
        (400, "SomethingNew", .giveUp, .badRequest), (403, "SomethingNew", .credentials, .unauthorized),
        (404, "SomethingNew", .retry(after: nil), .notFound), (500, "SomethingNew", .retry(after: nil), .serverError),
        (503, "SomethingNew", .outage(after: nil), .serverError),
    ]

    @Test(arguments: table)
    func `a code has its verdict`(_ status: Int, _ code: String, _ verdict: DeliveryError.Verdict, _ error: ErrorCode) {
        let refusal = Self.error(status, Self.xml(code))
        #expect(refusal.verdict == verdict)
        #expect(refusal.code == error)
        #expect(refusal.reason.contains("sending k to https://s3.example/media/k was answered with \(status) \(code)"))
        #expect(refusal.reason.contains("What it says."))
    }

    @Test(
        arguments: [
            (301, .outage(after: nil), .redirected), (400, .giveUp, .badRequest), (401, .credentials, .unauthorized),
            (403, .credentials, .unauthorized), (408, .retry(after: nil), .timedOut),
            (409, .retry(after: nil), .conflict), (412, .giveUp, .destinationExists), (413, .giveUp, .tooLarge),
            (429, .outage(after: nil), .throttled), (500, .retry(after: nil), .serverError),
            (502, .outage(after: nil), .serverError), (503, .outage(after: nil), .serverError),
            (507, .outage(after: nil), .destinationFull), (200, .giveUp, .badRequest),
        ] as [(Int, DeliveryError.Verdict, ErrorCode)],
        ["", "<html>proxy</html>", "not XML", "<Error></Error>"])
    func `without an S3 error the status decides`(
        _ expected: (Int, DeliveryError.Verdict, ErrorCode), _ body: String
    ) {
        let refusal = Self.error(expected.0, body)
        #expect(refusal.verdict == expected.1)
        #expect(refusal.code == expected.2)
    }

    @Test(arguments: ["404 page not found\n", "<html>proxy</html>", "<!doctype html><p>Gone", "{\"error\":404}"])
    func `a 404 in the words of a proxy is an outage, and says nothing of objects`(_ body: String) {
        let refusal = Self.error(404, body)
        #expect(refusal.verdict == .outage(after: nil))
        #expect(refusal.code == .serverError)
        #expect(refusal.reason.contains("404"))
        #expect(refusal.reason.contains("not an answer of an S3 store"))
        #expect(refusal.reason.contains("use 'type: r2'") == (body.first == "{"))
    }

    @Test(arguments: ["", "<Error></Error>", "<Error><Code>NoSuchKey</Code></Error>"])
    func `a 404 without words, or in the store's own, is about an object`(_ body: String) {
        #expect(Self.error(404, body).verdict == .retry(after: nil))
        #expect(Self.error(404, body).code == .notFound)
    }

    @Test func `Retry-After is heeded`() {
        let slow = Self.error(503, Self.xml("SlowDown"), headers: [("Retry-After", "7")])
        #expect(slow.verdict == .outage(after: .seconds(7)))
    }

    @Test(arguments: ["RequestTimeTooSkewed", "AccessDenied", "SignatureDoesNotMatch"])
    func `a wrong clock is named, with its distance`(_ code: String) {
        let date: HTTPFields = [("Date", "Sat, 21 Nov 2026 06:00:00 GMT")]
        let ahead = Self.error(403, Self.xml(code), headers: date, now: Self.now + .seconds(3600))
        #expect(ahead.code == .clockSkewed)
        #expect(ahead.verdict == .outage(after: nil))
        #expect(ahead.reason.contains("the clock of this machine is 1h ahead of the store's"))
        let behind = Self.error(400, Self.xml(code), headers: date, now: Self.now + .seconds(-1830))
        #expect(behind.code == .clockSkewed)
        #expect(behind.reason.contains("30m30s behind the store's"))
    }

    @Test func `a clock that is a little off explains nothing`() {
        let date: HTTPFields = [("Date", "Sat, 21 Nov 2026 06:00:00 GMT")]
        let error = Self.error(403, Self.xml("AccessDenied"), headers: date, now: Self.now + .seconds(500))
        #expect(error.code == .unauthorized)
        #expect(
            Self.error(400, Self.xml("EntityTooLarge"), headers: date, now: Self.now + .seconds(9000)).code == .tooLarge
        )
    }

    @Test func `a bucket elsewhere is named with its region and endpoint`() {
        let more = "<Endpoint>media.s3.eu-west-1.amazonaws.com</Endpoint>"
        let moved = Self.error(
            301, Self.xml("PermanentRedirect", more), headers: [("x-amz-bucket-region", "eu-west-1")])
        #expect(moved.reason.contains("region 'eu-west-1'"))
        #expect(moved.reason.contains("media.s3.eu-west-1.amazonaws.com"))
        let wrong = Self.error(400, Self.xml("AuthorizationHeaderMalformed", "<Region>us-west-2</Region>"))
        #expect(wrong.reason.contains("region 'us-west-2'"))
    }

    @Test func `what a store says is safe to print`() {
        let body =
            "<Error><Code>Bad\u{1B}[31m</Code><Message>\(String(repeating: "x\u{7}", count: 500))</Message></Error>"
        let error = Self.error(400, body)
        #expect(!error.reason.unicodeScalars.contains { $0.value < 0x20 })
        #expect(error.reason.utf8.count < 2000)
    }
}

/// The reader of S3's answers: strict, bounded, and never confused by what a stranger sends.
@Suite struct S3XMLTests {
    private static func read(_ text: String) throws(XMLReader.Fault) -> XMLElement {
        try XMLReader.read(Array(text.utf8))
    }

    @Test func `elements, text and children are there`() throws {
        let answer = try Self.read(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!-- by hand -->
            <s3:List xmlns:s3="http://s3.example/" a='<"' b=">">
              <Key>a &amp; b &lt;&gt;&quot;&apos; &#65;&#x1F600;</Key><Empty/><Empty a="1" /><Key>second</Key>
              <Raw><![CDATA[<&amp;]]>x</Raw ><Deep><Size> 12</Size></Deep><Size>34</Size>
            </s3:List>
            <!-- end --> <?end?>
            """)
        #expect(answer.name == "List")
        #expect(answer.text(of: "Key") == "a & b <>\"' A😀")
        #expect(answer.all("Key").map(\.text) == ["a & b <>\"' A😀", "second"])
        #expect(answer.all("Empty").count == 2)
        #expect(answer.text(of: "Raw") == "<&amp;x")
        #expect(answer.integer("Size") == 34)
        #expect(answer.children.first { $0.name == "Deep" }?.integer("Size") == nil)
        #expect(answer.text(of: "Missing") == nil)
    }

    @Test func `a byte order mark and a lone element are fine`() throws {
        #expect(try XMLReader.read([0xEF, 0xBB, 0xBF] + Array("<a/>".utf8)).name == "a")
        #expect(try Self.read("<a>\u{1}é</a>").text == "\u{1}é")
    }

    static let broken: [(String, XMLReader.Fault)] = [
        ("", .malformed), ("text", .malformed), ("<", .malformed), ("<a", .malformed), ("<a>", .malformed),
        ("<a></b>", .malformed), ("</a>", .malformed), ("<a/><b/>", .malformed), ("<a/>x", .malformed),
        ("<a>&nbsp;</a>", .malformed), ("<a>&amp</a>", .malformed), ("<a>&#xD800;</a>", .malformed),
        ("<a>&#1114112;</a>", .malformed), ("<a>&#-1;</a>", .malformed), ("<a>&;</a>", .malformed),
        ("<a b=\"</a>", .malformed), ("< a/>", .malformed), ("<a><b></a></b>", .malformed), ("<:/>", .malformed),
        ("<a><![CDATA[x</a>", .malformed), ("<![CDATA[x]]><a/>", .malformed), ("<?xml", .malformed),
        ("<!DOCTYPE a><a/>", .doctype), ("<a><!ENTITY x 'y'></a>", .doctype), ("<!-- <a/>", .doctype),
        ("<!DOCTYPE l [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><l>&x;</l>", .doctype),
        (String(repeating: "<a>", count: 17), .tooDeep),
        ("<a>" + String(repeating: "<b/>", count: 50_000) + "</a>", .tooMany),
    ]

    @Test(arguments: broken) func `what is not well-formed, or too much, is refused`(
        _ text: String, _ fault: XMLReader.Fault
    ) {
        #expect(throws: fault) { try Self.read(text) }
    }

    @Test func `depth and number have room for every real answer`() throws {
        let deep = String(repeating: "<a>", count: 16) + String(repeating: "</a>", count: 16)
        #expect(try Self.read(deep).name == "a")
        let wide = "<a>" + String(repeating: "<b/>", count: 49_999) + "</a>"
        #expect(try Self.read(wide).children.count == 49_999)
    }

    @Test(arguments: 0..<300 as Range<UInt64>) func `no mutation of a real answer does harm`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes = Array(
            """
            <?xml version="1.0"?><ListPartsResult xmlns="http://s3/"><IsTruncated>true</IsTruncated><Part>\
            <PartNumber>1</PartNumber><ETag>&quot;a&#34;</ETag><Size>5</Size></Part><!-- c --></ListPartsResult>
            """.utf8)
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0...3, using: &generator) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(contentsOf: "<>&;/!?\"'".utf8.shuffled(using: &generator).prefix(2), at: place)
            default: bytes = Array(bytes.prefix(place + 1))
            }
        }
        // It ends, and what it lets through is within its bounds.
        guard let answer = try? XMLReader.read(bytes) else { return }
        #expect(answer.children.count < bytes.count)
        #expect(answer.text.utf8.count <= 3 * bytes.count)
    }
}
