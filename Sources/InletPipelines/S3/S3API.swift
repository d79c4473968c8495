internal import FoundationEssentials
internal import InletCore
internal import InletLinux
internal import InletTransfer

/// Signed requests to one bucket. Every call is one request, never repeated here.
struct S3API: Sendable {
    let settings: S3Settings
    let client: HTTPClient
    let keyring: SignerCache
    let knowledge: S3StoreKnowledge
    private let authority: String

    typealias Query = [(name: String, value: String)]

    /// One call before it is signed.
    struct Call {
        var method: String
        /// nil is the bucket itself.
        var key: String?
        var query: Query = []
        var headers: HTTPFields = []
        var body: HTTPBody = .none
        /// Whether the body is file content, even in memory.
        var isFile = false
        /// The SHA-256 of such a body; needed over plain HTTP.
        var sha256: Digest?
        var answerLimit = 1 << 20
        var answerDeadline = Duration.seconds(60)
    }

    init(settings: S3Settings, client: HTTPClient, knowledge: S3StoreKnowledge) {
        self.settings = settings
        self.client = client
        self.knowledge = knowledge
        keyring = SignerCache(settings.credentials)
        authority = settings.base.authority
    }

    /// The address of an object or of the bucket, without query.
    func url(_ key: String?) -> HTTPURL { key.map { settings.base.appending(path: $0) } ?? settings.base }

    /// The request, signed now.
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
        // curl writes the host field itself; the signature takes its place.
        headers.append(("host", authority))
        let authorization = SigV4(
            method: call.method, path: url.path, query: call.query, headers: headers, payload: payload,
            scope: signer.scope
        ).authorization(accessKey: signer.credentials.accessKey.reveal(), signer.key)
        headers[headers.count - 1] = ("Authorization", authorization)
        for item in call.query { url = url.appending(queryItem: item.name, item.value) }
        var signed = HTTPRequest(
            call.method, url, headers: headers, body: call.body, answerLimit: call.answerLimit,
            answerDeadline: call.answerDeadline)
        // Stores compose large objects in silence.
        signed.silenceTimeout = call.answerDeadline
        return signed
    }

    /// TLS protects file content; without it the signature does.
    private func payload(_ call: Call) -> String {
        switch call.body {
        case .none: Self.emptyPayload
        case .bytes(let bytes) where !call.isFile: (call.sha256 ?? Checksum.sha256(bytes)).hex
        case .bytes, .slice, .form: call.sha256?.hex ?? SigV4.unsignedPayload
        }
    }

    private static let emptyPayload = Checksum.sha256([]).hex

    /// Sends a call and returns its success.
    /// - Parameter what: the step, such as `creating the upload at https://s3.example/media/key`.
    func send(_ call: Call, _ what: @autoclosure () -> String) async throws(DeliveryError) -> HTTPResponse {
        // A limit of 0 may last for hours, and signatures for a quarter of an hour.
        if call.body.length > 0 { await client.untilOpen() }
        let response = try await client.exchange(try signed(call))
        guard response.isSuccess else { throw refusal(response, what(), call.method) }
        return response
    }

    /// The error for an answer other than a success. Refused keys may have been renewed in their file.
    func refusal(_ response: HTTPResponse, _ what: String, _ method: String = "") -> DeliveryError {
        let error = DeliveryError.ofS3(response, what, isWordless: method == "HEAD", now: .now)
        if error.verdict == .credentials { keyring.forget() }
        return error
    }

    /// The XML of an answer, whose root must begin so; stores end it with `Result`, `Response` or nothing.
    func parse(_ response: HTTPResponse, root: String, _ what: String) throws(DeliveryError) -> XMLElement {
        guard let answer = response.xmlBody else { throw Self.badAnswer(response, what) }
        // CompleteMultipartUpload begins its answer before it knows the result.
        if answer.name == "Error" { throw refusal(response, what) }
        guard answer.name.hasPrefix(root) else { throw Self.badAnswer(response, what) }
        return answer
    }

    static func badAnswer(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        .misunderstood("\(what): the answer is not the XML it should be: \(DeliveryError.said(response))")
    }

    // MARK: - The calls of the S3 API that a delivery needs ("Actions", Amazon S3 API Reference).

    /// CreateMultipartUpload. - Returns: the upload's id.
    func create(_ key: String, headers: HTTPFields) async throws(DeliveryError) -> String {
        let what = "creating the upload at \(url(key).redacted)"
        let call = Call(method: "POST", key: key, query: [("uploads", "")], headers: headers)
        let response = try await send(call, what)
        let answer = try parse(response, root: "InitiateMultipartUpload", what)
        guard let id = answer.text(of: "UploadId"), !id.isEmpty else { throw Self.badAnswer(response, what) }
        return id
    }

    /// The checksum, where the store keeps one.
    typealias ListedPart = (size: Int64, etag: String, checksum: Digest?)

    /// ListParts, all pages of it.
    ///
    /// The next page begins after the last part seen: stores differ in the next marker, and in whether it is listed
    /// again.
    func parts(_ upload: OpenUpload) async throws(DeliveryError) -> [Int: ListedPart] {
        let what = "listing the parts at \(url(upload.key).redacted)"
        var parts: [Int: ListedPart] = [:]
        while true {
            let call = Self.listing(upload, after: parts.keys.max() ?? 0)
            let answer = try parse(try await send(call, what), root: "ListParts", what)
            let before = parts.count
            for part in answer.all("Part") {
                guard let number = part.integer("PartNumber"), (1...S3Settings.mostParts).contains(number),
                    let size = part.integer("Size"), let etag = part.text(of: "ETag")
                else { continue }
                parts[Int(number)] = (size, etag, Self.checksum(part))
            }
            guard answer.text(of: "IsTruncated") == "true", parts.count > before else { return parts }
        }
    }

    /// One page of ListParts. Always requests its length: on its own, MinIO answers with up to 10,000 parts, more than
    /// one answer may hold here.
    /// - Parameter last: the last part seen; 0 for the first page.
    static func listing(_ upload: OpenUpload, after last: Int) -> Call {
        let marker: Query = last > 0 ? [("part-number-marker", "\(last)")] : []
        return Call(
            method: "GET", key: upload.key, query: [("uploadId", upload.id), ("max-parts", "1000")] + marker,
            answerLimit: 4 << 20)
    }

    private static func checksum(_ part: XMLElement) -> Digest? {
        S3ChecksumTrial.algorithms.lazy.compactMap { checksum($0, part.text(of: "Checksum\($0.nameInS3)")) }.first
    }

    /// The checksum that the store says of a body or an object; nil for none, and for one over parts.
    static func checksum(_ algorithm: Digest.Algorithm, of answer: HTTPResponse) -> Digest? {
        checksum(algorithm, answer.header(algorithm.fieldInS3))
    }

    private static func checksum(_ algorithm: Digest.Algorithm, _ text: String?) -> Digest? {
        guard let bytes = text.flatMap({ Data(base64Encoded: $0) }), bytes.count == algorithm.length else { return nil }
        return Digest(algorithm, bytes)
    }

    /// CompleteMultipartUpload. An error can come behind status 200.
    /// - Parameter wanted: the checksum of the composed object. A store that names another has composed other bytes.
    func complete(
        _ record: UploadRecord, headers: HTTPFields, wanted: Digest? = nil
    ) async throws(DeliveryError) -> ComposedObject {
        let what = "completing the upload at \(url(record.upload.key).redacted)"
        let call = Call(
            method: "POST", key: record.upload.key, query: [("uploadId", record.upload.id)],
            headers: headers + [("Content-Type", "application/xml")], body: .bytes(Array(Self.partList(record).utf8)),
            answerDeadline: .seconds(300))
        let answer = try parse(try await send(call, what), root: "CompleteMultipartUpload", what)
        if let wanted, let said = answer.text(of: "Checksum\(wanted.algorithm.nameInS3)") {
            // A checksum over parts has their number behind it.
            let said = Self.checksum(wanted.algorithm, said.split(separator: "-").first.map(String.init))
            guard said == wanted else {
                throw DeliveryError(
                    .retry(after: nil), .corrupted,
                    "\(what): the store composed other bytes than were sent: its \(wanted.algorithm.rawValue) is "
                        + "\(said?.hex ?? "unreadable"), not \(wanted.hex)")
            }
        }
        return (nil, answer.text(of: "ETag").map { ETagVerifier.bare($0) })
    }

    static func partList(_ record: UploadRecord) -> String {
        var text = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
        for number in 1...record.plan.count {
            guard let part = record.parts[number] else { continue }
            text += "<Part><PartNumber>\(number)</PartNumber><ETag>\(XMLText.escape(part.etag))</ETag>"
            if let checksum = part.checksum {
                let name = "Checksum\(checksum.algorithm.nameInS3)"
                text += "<\(name)>\(Data(checksum.bytes).base64EncodedString())</\(name)>"
            }
            text += "</Part>"
        }
        return text + "</CompleteMultipartUpload>"
    }

    /// AbortMultipartUpload. A missing upload counts as dropped.
    func abort(id: String, key: String) async throws(DeliveryError) {
        let call = Call(method: "DELETE", key: key, query: [("uploadId", id)])
        try await DeliveryError.ignoring(
            .uploadGone, .notFound, in: await send(call, "aborting an upload at \(url(key).redacted)"))
    }

    struct Found: Sendable, Equatable {
        var size: Int64
        /// Without quotes.
        var etag: String
        /// `x-amz-meta-mtime`
        var modified: String?
        /// The store's checksum of the whole object, where it was asked for and is long enough to know content by.
        var checksum: Digest?
    }

    /// As `head`; also nil for keys that may only write, which see no objects.
    func look(_ key: String, _ algorithm: Digest.Algorithm? = nil) async throws(DeliveryError) -> Found? {
        do throws(DeliveryError) {
            return try await head(key, algorithm)
        } catch {
            guard error.isDenied else { throw error }
            return nil
        }
    }

    /// DeleteObject. A missing object counts as deleted.
    func delete(_ key: String) async throws(DeliveryError) {
        _ = try await send(Call(method: "DELETE", key: key), "deleting \(url(key).redacted)")
    }

    /// HeadObject; nil when no object has the key.
    /// - Parameter algorithm: the checksum to ask for.
    func head(_ key: String, _ algorithm: Digest.Algorithm? = nil) async throws(DeliveryError) -> Found? {
        let mode: HTTPFields = algorithm == nil ? [] : [("x-amz-checksum-mode", "ENABLED")]
        func what() -> String { "looking up \(url(key).redacted)" }
        do throws(DeliveryError) {
            let response = try await send(Call(method: "HEAD", key: key, headers: mode), what())
            guard let size = response.header("Content-Length").flatMap({ Int64($0) }) else {
                throw Self.badAnswer(response, what())
            }
            return Found(
                size: size, etag: ETagVerifier.bare(response.header("ETag") ?? ""),
                modified: response.header("x-amz-meta-mtime"),
                checksum: algorithm.flatMap { $0.isShort ? nil : Self.checksum($0, of: response) })
        } catch {
            // Without a body a missing bucket looks like a missing object.
            if error.code == .notFound { return nil }
            throw error.code == .badRequest ? await explained(error, key) : error
        }
    }

    /// An answer to HEAD has no words. For a 400, such as an expired token or a wrong region, a listing names the
    /// cause; if the listing has nothing to say about the destination, the error stays.
    private func explained(_ error: DeliveryError, _ key: String) async -> DeliveryError {
        do throws(DeliveryError) {
            _ = try await page(key, limit: 1)
            return error
        } catch let reason {
            switch reason.verdict {
            case .outage, .cancelled: return reason
            case .credentials: return reason.isDenied ? error : reason
            default: return error
            }
        }
    }

    /// ListObjectsV2, one page. Keys are percent-encoded, because XML cannot hold every byte.
    /// - Parameter last: the `next` of the page before; nil after the last one.
    func page(
        _ prefix: String, after last: String? = nil, limit: Int? = nil
    ) async throws(DeliveryError) -> (objects: [ListedObject], next: String?) {
        let what = "listing \(settings.base.redacted)"
        var query: Query = [("list-type", "2"), ("encoding-type", "url")]
        if !prefix.isEmpty { query.append(("prefix", prefix)) }
        if let last { query.append(("continuation-token", last)) }
        if let limit { query.append(("max-keys", "\(limit)")) }
        let response = try await send(Call(method: "GET", query: query, answerLimit: 8 << 20), what)
        return Self.page(try parse(response, root: "ListBucket", what))
    }

    static func page(_ answer: XMLElement) -> (objects: [ListedObject], next: String?) {
        let isEncoded = answer.text(of: "EncodingType") == "url"
        let objects = answer.all("Contents").compactMap { item -> ListedObject? in
            guard let key = item.text(of: "Key"), let size = item.integer("Size") else { return nil }
            return ListedObject(
                key: isEncoded ? Percent.decode(key.replacing("+", with: " ")[...]) : key, size: size,
                modified: item.text(of: "LastModified") ?? "", etag: ETagVerifier.bare(item.text(of: "ETag") ?? ""))
        }
        let isTruncated = answer.text(of: "IsTruncated") == "true"
        return (objects, isTruncated ? answer.text(of: "NextContinuationToken").flatMap { $0.isEmpty ? nil : $0 } : nil)
    }
}

extension DeliveryError {
    /// Whether the keys are valid but lack this permission.
    var isDenied: Bool { code == .unauthorized && reason.contains(" AccessDenied") }
}
