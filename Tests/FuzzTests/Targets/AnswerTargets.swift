import InletCore

@testable import InletPipelines
@testable import InletTransfer

extension FuzzTarget {
    /// What servers answer, and what stands before them.
    static let answers = [
        FuzzTarget("answers", longest: 8192) { bytes throws(Broken) in
            guard let response = response(bytes) else { return }
            try verdicts(response)
            contents(response)
            if let offset = Tus.offset(response, 5) {
                try promise((0...5).contains(offset), "an offset of \(offset) in 5 bytes")
            }
        },
        FuzzTarget("json", longest: 8192) { bytes throws(Broken) in
            var reader = JSONReader(Array(bytes))
            guard let value = try? reader.value() else { return }
            let text = Array(value.text.utf8)
            try promise(VOPIValue(text)?.plain == value, "JSON that is not read as it was written")
            _ = try? MarkerFile(Array(bytes), digest: Digest(.sha256, Array(repeating: 7, count: 32)))
        },
        FuzzTarget("xml", longest: 8192) { bytes throws(Broken) in
            guard let answer = try? XMLReader.read(Array(bytes)) else { return }
            try promise(size(answer) <= bytes.count, "more elements than came")
            _ = S3API.page(answer)
        },
        FuzzTarget("certificate") { bytes throws(Broken) in
            if let key = PublicKeyPin.publicKey(of: Array(bytes)) {
                try promise(key.count < bytes.count, "a key beyond its certificate")
            }
            _ = PublicKeyPin(certificatePEM: String(decoding: bytes, as: UTF8.self))
        },
    ]

    private static let secret = "canary-4711"
    private static let now = WallTime(milliseconds: 1_795_219_200_000)

    /// The head's lines one by one, as curl gives them, and the rest in two pieces.
    private static func response(_ bytes: UnsafeRawBufferPointer) -> HTTPResponse? {
        var buffer = ResponseBuffer(limit: 4096)
        var rest = bytes[...]
        while !buffer.hasFields, let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            guard buffer.take(line: UnsafeRawBufferPointer(rebasing: rest[...end])) == nil else { return nil }
            rest = rest[(end + 1)...]
        }
        guard buffer.take(body: rest.prefix(7)), buffer.take(body: rest.dropFirst(7)) else { return nil }
        var response = buffer.response(status: min(max(buffer.status, 100), 599))
        guard let url = try? HTTPURL("https://host.example/", rules: .configured(allowHTTP: false)) else { return nil }
        response.sentCredentials = SentCredentials(
            HTTPRequest("GET", url, headers: [("Authorization", "Bearer \(secret)")]))
        return response
    }

    /// Whatever is said of it tells no secret that the server sent back, and is safe to print.
    private static func verdicts(_ response: HTTPResponse) throws(Broken) {
        var errors = [
            RoboscopeAPI.error(response, "step"),
            DeliveryError.ofS3(response, "step", now: now),
            DeliveryError(response, "step", in: .json, secretsMatter: true, now: now),
        ]
        errors += GigHiveEndpoint.allCases.map {
            GigHiveVerdict(response, at: $0).error(response, "step")
        }
        errors += VOPIEndpoint.allCases.map {
            VOPIVerdict(response, at: $0).error(response, "step", hint: "hint", now: now)
        }
        for error in errors {
            try isHarmless(error.reason)
            try promise(!error.reason.contains(secret), "a secret that came back: \(error.reason)")
            try promise(error.reason.utf8.count <= 8192, "a reason of \(error.reason.utf8.count) bytes")
        }
        if let wait = response.retryAfter(now: now) {
            try promise(wait >= .zero && wait <= .seconds(86_400), "waits for \(wait)")
        }
    }

    /// Every message that a body can be.
    private static func contents(_ response: HTTPResponse) {
        _ = GigHiveReply(response, request: "POST")
        _ = try? RoboscopeAPI.list(response, "step")
        _ = try? RoboscopeAPI.object(response, "step")
        _ = SpiralAPI.opened(response.body)
        let tag = DownloadTag(response)
        _ = tag.judge(response, offset: 5)
        _ = DownloadTag(tag.note) == tag
        guard let value = VOPIValue(response.body),
            let api = try? HTTPURL("https://vopi.example/", rules: .configured(allowHTTP: false))
        else { return }
        let rules = URLRules.sentByServer(at: api, allowHTTP: false)
        _ = VOPIProgress(value)
        _ = try? VOPIAPI.uploadPlace(value, asked: .seconds(60), rules: rules)
        _ = VOPIDownloads(value, rules: rules)
    }

    private static func size(_ element: XMLElement) -> Int { element.children.reduce(1) { $0 + size($1) } }
}
