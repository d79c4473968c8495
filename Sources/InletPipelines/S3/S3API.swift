internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Signed requests to one bucket. Every call is one request, never retried here.
struct S3API: Sendable {
    let settings: S3Settings
    let client: HTTPClient
    let keyring: Keyring
    /// The Host field.
    private let authority: String

    typealias Query = [(name: String, value: String)]

    /// One call as a caller sees it, before it is signed.
    struct Call {
        var method: String
        /// nil is the bucket itself.
        var key: String?
        var query: Query = []
        var headers: HTTPFields = []
        var body: HTTPBody = .none
        /// Whether the body is of a file, also of one that is in memory.
        var isFile = false
        /// Of such a body; needed over plain HTTP.
        var sha256: Digest?
        var answerLimit = 1 << 20
        var answerDeadline = Duration.seconds(60)
    }

    init(settings: S3Settings, client: HTTPClient) {
        self.settings = settings
        self.client = client
        keyring = Keyring(settings.credentials)
        authority = settings.base.authority
    }

    /// The address of an object or of the bucket, without query.
    func url(_ key: String?) -> HTTPURL { key.map { settings.base.appending(path: $0) } ?? settings.base }

    /// The request, signed for this moment.
    func signed(_ call: Call, at time: WallTime = .now) throws(DeliveryError) -> HTTPRequest {
        var url = url(call.key)
        let signer = try keyring.signer(at: time, region: settings.region)
        let payload = payload(call)
        var headers: HTTPFields = []
        headers.reserveCapacity(call.headers.count + 4)
        headers += call.headers
        headers.append(("x-amz-date", signer.scope.time))
        headers.append(("x-amz-content-sha256", payload))
        if let token = signer.credentials.sessionToken { headers.append(("x-amz-security-token", token.reveal())) }
        // curl writes the host itself: its place is the signature's afterwards.
        headers.append(("host", authority))
        let authorization = SigV4(
            request: SigV4.Request(
                method: call.method, path: url.path, query: call.query, headers: headers, payload: payload),
            scope: signer.scope
        ).authorization(accessKey: signer.credentials.accessKey.reveal(), signer.key)
        headers[headers.count - 1] = ("Authorization", authorization)
        for item in call.query { url = url.appending(queryItem: item.name, item.value) }
        var signed = HTTPRequest(
            call.method, url, headers: headers, body: call.body, answerLimit: call.answerLimit,
            answerDeadline: call.answerDeadline)
        // Stores compose large objects without a word.
        signed.silenceTimeout = call.answerDeadline
        return signed
    }

    /// TLS covers the bytes of a file; without it the signature does.
    private func payload(_ call: Call) -> String {
        switch call.body {
        case .none: Self.emptyPayload
        case .bytes(let bytes) where !call.isFile: (call.sha256 ?? Checksum.sha256(bytes)).hex
        case .bytes, .slice, .form: call.sha256?.hex ?? SigV4.unsignedPayload
        }
    }

    private static let emptyPayload = Checksum.sha256([]).hex

    /// Sends a call and returns its success.
    /// - Parameter what: the step, e.g. `creating the upload at https://s3.example/media/key`.
    func send(_ call: Call, _ what: @autoclosure () -> String) async throws(DeliveryError) -> HTTPResponse {
        // A limit of 0 may hold for hours, and signatures for a quarter of one.
        if call.body.length > 0 { await client.untilOpen() }
        let response = try await client.exchange(try signed(call))
        guard response.isSuccess else { throw refusal(response, what(), call.method) }
        return response
    }

    /// What is not a success. Keys that are refused may have been renewed in their file.
    func refusal(_ response: HTTPResponse, _ what: String, _ method: String = "") -> DeliveryError {
        let said = S3Refusal(response, isWordless: method == "HEAD", now: .now)
        let error = DeliveryError(said, what, now: .now)
        if error.verdict == .credentials { keyring.forget() }
        return error
    }

    /// The XML of an answer, whose root must begin so; stores end it with `Result`, `Response` or nothing.
    func parse(_ response: HTTPResponse, root: String, _ what: String) throws(DeliveryError) -> XMLAnswer {
        let answer: XMLAnswer
        do {
            answer = try XMLReader.read(response.body)
        } catch {
            throw Self.badAnswer(response, what)
        }
        // CompleteMultipartUpload begins to answer before it knows.
        if answer.name == "Error" { throw refusal(response, what) }
        guard answer.name.hasPrefix(root) else { throw Self.badAnswer(response, what) }
        return answer
    }

    static func badAnswer(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        .misunderstood("\(what): the answer is not the XML it should be: \(DeliveryError.said(response))")
    }
}
