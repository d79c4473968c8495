import InletCore
import InletLinux
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What a `type: r2` section may say, and the URLs it makes the pipeline take.
@Suite struct R2SettingsTests {
    private static func settings(_ values: [String: ConfigValue]) throws(SettingFault) -> R2Settings {
        let good: [String: ConfigValue] = ["api": .string("https://api.example"), "api_key": .secret(Secret("k"))]
        return try R2Settings(
            ConfigSection(
                values: good.merging(values) { $1 }, positions: [:], position: SourcePosition(line: 1, column: 1)))
    }

    @Test func `defaults are those of the key table`() throws {
        let settings = try Self.settings([:])
        #expect(settings.dialect == .v1)
        #expect(settings.partSize == 8 << 20 && settings.largestPart == 64 << 20)
        #expect(settings.parallelParts == 4)
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

    @Test(arguments: faults)
    func `what cannot be used is refused at its key`(_ key: String, _ values: [String: ConfigValue]) {
        let fault = #expect(throws: SettingFault.self) { try Self.settings(values) }
        #expect(fault?.key == key)
        #expect(fault?.message.contains("canary") == false)
    }

    static let good: [[String: ConfigValue]] = [
        ["api": .string("http://127.0.0.1:8080")], ["api": .string("http://localhost/base")],
        ["api": .string("http://api.example"), "allow_http": .boolean(true)],
        ["dialect": .string("seed"), "api_key": .secret(Secret(""))], ["part_size": .bytes(5 << 20)],
        ["part_size": .bytes(4 << 30)], ["public_url": .string("https://cdn.example/media/")],
    ]

    @Test(arguments: good)
    func `what can be used is taken`(_ values: [String: ConfigValue]) {
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

    @Test(arguments: statuses)
    func `every status has its verdict, with credentials and for a presigned URL`(
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
