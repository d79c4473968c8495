internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The control calls of the Spiral Storage API in the configured dialect. Their answers are read leniently where the
/// generations differ: `parts` or `part_urls`, `object_url` or `url`, with or without a key. Every call is one request,
/// never repeated here.
struct SpiralAPI: Sendable {
    let settings: R2Settings
    let service: ServiceClient

    init(settings: R2Settings, client: HTTPClient) {
        self.settings = settings
        let key = settings.dialect == .v1 ? settings.apiKey : nil
        service = ServiceClient(
            settings.api, client, login: key.map { .field(name: "X-API-Key", value: $0) } ?? .none)
    }

    var client: HTTPClient { service.http }

    private var base: String { settings.dialect == .v1 ? "v1/multipart" : "r2/multipart" }

    /// Opens an upload of `count` parts.
    /// - Throws: `badPartList` unless exactly the parts 1...count have one URL each.
    func create(_ order: DeliveryOrder, count: Int) async throws(DeliveryError) -> OpenUpload {
        let message: JSONObject =
            settings.dialect == .seed
            ? ["key": .string(order.key), "part_count": JSONValue(count)]
            : ["key": .string(order.key), "content_type": .string(order.mediaType), "parts": JSONValue(count)]
        let what = "creating the upload at \(settings.api.redacted)"
        let response = try await post("\(base)/create", message, what, limit: 64 << 10 + count * 4096)
        guard let opened = Self.opened(response.body) else { throw Self.unreadable(response, what) }
        let parts = opened.parts.sorted { $0.number < $1.number }
        // No store has longer ones.
        let key = opened.key.flatMap { $0.utf8.count <= 1024 ? $0 : nil } ?? order.key
        guard parts.map({ Int($0.number) }) == Array(1...count), !opened.id.isEmpty else {
            // A leftover ends by itself at the store.
            await bestEffort(try await abort(id: opened.id, key: key))
            throw DeliveryError(
                .giveUp, .badPartList,
                "\(what): asked for \(count) part URLs numbered 1 to \(count), got \(parts.count) "
                    + "numbered \(parts.first?.number ?? 0) to \(parts.last?.number ?? 0)",
                heard: StepFailure(response.status, .refusal))
        }
        return OpenUpload(id: opened.id, key: key, partURLs: parts.map(\.url))
    }

    /// The answer to opening an upload; nil where a required member is missing or of another kind: nothing of such an
    /// answer is used.
    static func opened(_ body: [UInt8]) -> (id: String, key: String?, parts: [(number: Int64, url: String)])? {
        guard let said = JSON.value(body), let id = said["upload_id"]?.string, let key = said.text(at: "key") else {
            return nil
        }
        // Beside `part_urls` a member called `parts` may be anything, such as their number.
        guard let list = said["part_urls"] ?? said["parts"] else { return (id, key, []) }
        let parts = list.array?.compactMap { part -> (Int64, String)? in
            guard let number = part["part_number"]?.integer, let url = part["url"]?.string else { return nil }
            return (number, url)
        }
        guard let parts, parts.count == list.array?.count else { return nil }
        return (id, key, parts)
    }

    /// Composes the object. - Returns: its place according to the store, if it names one.
    func complete(_ upload: OpenUpload, etags: [String]) async throws(DeliveryError) -> String? {
        let parts = etags.enumerated().map {
            JSONValue.object(["part_number": JSONValue($0.offset + 1), "etag": .string($0.element)])
        }
        let what = "completing the upload at \(settings.api.redacted)"
        let message = Self.name(upload.id, upload.key).merging(["parts": .array(parts)]) { $1 }
        let response = try await post("\(base)/complete", message, what, deadline: .seconds(300))
        guard let said = response.jsonBody, said.object != nil, let url = said.text(at: "object_url"),
            let other = said.text(at: "url"), let key = said.text(at: "key")
        else { throw Self.unreadable(response, what) }
        if let url = url ?? other { return response.redactor.redacted(url) }
        if key != nil { return nil }
        throw .misunderstood("\(what): the answer has neither a URL nor a key")
    }

    /// Drops an upload and its parts. A missing upload counts as dropped.
    func abort(id: String, key: String) async throws(DeliveryError) {
        let what = "aborting an upload at \(settings.api.redacted)"
        try await DeliveryError.ignoring(.notFound, in: await post("\(base)/abort", Self.name(id, key), what))
    }

    /// A presigned PUT for a small file (dialect v1).
    func presign(_ order: DeliveryOrder) async throws(DeliveryError) -> String {
        let what = "asking for an upload URL at \(settings.api.redacted)"
        let message: JSONObject = ["key": .string(order.key), "content_type": .string(order.mediaType)]
        return try location(try await post("v1/presign/upload", message, what), what)
    }

    /// A presigned GET of an object (dialect v1); nil when the store has no such key.
    func objectURL(_ key: String) async throws(DeliveryError) -> String? {
        let what = "looking up an object at \(settings.api.redacted)"
        let response = try await service.answer(to: service.request("GET", "v1/objects/url/\(key)"))
        // Only the API itself can say that there is none: its host's page does not count.
        if response.status == 404, !response.isPage, !response.isHostsOwn { return nil }
        guard response.isSuccess else { throw Self.refusal(response, what) }
        return try location(response, what)
    }

    /// Whether the API answers and accepts our key, by a request that leaves nothing. It asks for the URL of an object
    /// (dialect v1), or to drop an upload; neither exists. Returns false for an answer that may come from another
    /// program, or concern something else.
    func answers() async throws(DeliveryError) -> Bool {
        let (name, what) = (".inlet-check", "asking \(settings.api.redacted) whether it answers")
        let request =
            settings.dialect == .v1
            ? service.request("GET", "v1/objects/url/\(name)")
            : service.request("POST", "\(base)/abort", json: JSONValue.object(Self.name(name, name)).bytes)
        let response = try await service.answer(to: request)
        if response.isPage || response.isHostsOwn { return false }
        switch response.status {
        case 204: return true
        case 200: return response.jsonBody != nil
        // There is none, as expected, in any words but a page's or a host's, or without words.
        case 400, 404, 409, 410, 422:
            return response.body.first { $0 > UInt8(ascii: " ") }.map { $0 != UInt8(ascii: "<") } ?? false
        // Perhaps the store's own statement that there is none, passed on.
        case 500: return false
        default: throw Self.refusal(response, what)
        }
    }

    private static func name(_ upload: String, _ key: String) -> JSONObject {
        ["key": .string(key), "upload_id": .string(upload)]
    }

    private func post(
        _ path: String, _ message: JSONObject, _ what: String, limit: Int = 1 << 20, deadline: Duration = .seconds(60)
    ) async throws(DeliveryError) -> HTTPResponse {
        var request = service.request("POST", path, json: JSONValue.object(message).bytes, limit: limit)
        request.answerDeadline = deadline
        return try await service.send(request) { Self.refusal($0, what) }
    }

    private static func refusal(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        DeliveryError(response, what, in: .json, secretsMatter: true, now: .now)
    }

    private func location(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> String {
        guard let url = response.jsonBody?["url"]?.string else { throw Self.unreadable(response, what) }
        return url
    }

    private static func unreadable(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        .misunderstood("\(what): the answer is not the JSON it should be: \(DeliveryError.said(response))")
    }

    /// Checks a URL from the server by the rules for such URLs.
    func checked(_ text: String) throws(DeliveryError) -> HTTPURL {
        do {
            return try HTTPURL(text, rules: .sentByServer(at: settings.api, allowHTTP: settings.allowHTTP))
        } catch {
            throw DeliveryError(error).redacted(by: Redactor([settings.apiKey].compactMap(\.self)))
        }
    }

    /// nil for one that the rules refuse.
    private func usable(_ text: String) -> HTTPURL? {
        // Both callers continue without such a URL, and report what is missing then.
        try? checked(text)
    }

    /// The answer about an object at `url`, and its length. A URL presigned for GET (dialect v1) cannot be sent as
    /// HEAD: it asks for one byte, and reads the length from Content-Range.
    func look(at url: HTTPURL) async throws(DeliveryError) -> (answer: HTTPResponse, size: Int64?) {
        let request =
            settings.dialect == .v1
            ? HTTPRequest("GET", url, headers: [("Range", "bytes=0-0")], answerLimit: 64 << 10)
            : HTTPRequest("HEAD", url)
        let answer = try await client.exchange(request)
        if answer.status == 416 { return (answer, 0) }
        guard answer.isSuccess else { return (answer, nil) }
        let total = answer.header("Content-Range")?.split(separator: "/").last.map(String.init)
        return (answer, (total ?? answer.header("Content-Length")).flatMap { Int64($0) })
    }
}

/// Multipart uploads through this API: every part has a presigned URL.
extension SpiralAPI: PartStore {
    var limits: PartLimits {
        PartLimits(
            partSize: settings.partSize, largestPart: settings.largestPart, mostParts: PartPlan.mostParts,
            parallel: settings.parallelParts, largestObject: Self.largestObject)
    }

    /// As many parts as we ask for, each as long as R2 allows ("Limits": 4.995 GiB).
    static let largestObject = PartPlan.mostParts * ((5 << 30) - (5 << 20))

    func open(_ order: DeliveryOrder, _ plan: PartPlan) async throws(DeliveryError) -> OpenUpload {
        let upload = try await create(order, count: plan.count)
        do throws(DeliveryError) {
            for url in upload.partURLs { _ = try checked(url) }
        } catch {
            // A leftover ends by itself at the store; the present error is the one to report.
            await bestEffort(try await abort(id: upload.id, key: upload.key))
            throw error
        }
        return upload
    }

    /// Parts noted as proved exist as long as the upload does; only URLs still needed can have expired. Another agent's
    /// upload comes without URLs, and no call of this API lists parts or signs new URLs for them: it is begun anew.
    func resume(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> UploadRecord? {
        guard record.upload.partURLs.count == record.plan.count else { return nil }
        try await DeliveryError.onTransfer(await client.acquaint(with: settings.api))
        let hasExpired = record.missing.contains { number in
            // A refused URL is renewed.
            guard let url = usable(record.upload.partURLs[number - 1]) else { return true }
            return url.hasExpired(now: .now) ?? false
        }
        return hasExpired ? nil : record
    }

    func target(_ number: Int, of upload: OpenUpload) throws(DeliveryError) -> any SliceTarget {
        PresignedTarget(url: try checked(upload.partURLs[number - 1]), headers: [])
    }

    func complete(_ record: UploadRecord) async throws(DeliveryError) -> ComposedObject {
        let raw = (1...record.plan.count).map { record.parts[$0]?.etag ?? "" }
        do throws(DeliveryError) {
            return (try await complete(record.upload, etags: raw.map { ETagVerifier.bare($0) }), nil)
        } catch {
            // Some stores want the tags exactly as they sent them.
            guard error.code == .badRequest, raw.contains(where: { $0.contains("\"") }) else { throw error }
            return (try await complete(record.upload, etags: raw), nil)
        }
    }

    /// Whether the object is there after an answer was lost, by `objects/url` (dialect v1) or the configured
    /// `public_url`; nil also where this destination cannot tell.
    func composed(_ record: UploadRecord, _ sender: PartSender?) async throws(DeliveryError) -> ComposedObject? {
        guard let (size, etag) = try await found(record.upload.key) else { return nil }
        let isOurs = Self.isSame((size, etag), as: (record.plan.fileSize, record.expectedETag))
        return isOurs ? (nil, etag) : nil
    }

    private func found(_ key: String) async throws(DeliveryError) -> (size: Int64?, etag: String?)? {
        var url = settings.publicURL?.appending(path: key)
        if settings.dialect == .v1 {
            // An address that the rules forbid tells nothing.
            url = try await objectURL(key).flatMap(usable)
        }
        guard let url else { return nil }
        let (answer, size) = try await look(at: url)
        return (size, answer.header("ETag").map { ETagVerifier.bare($0) })
    }

    /// By the ETag that the file has when it is cut so. It is read only where an object of its length is there.
    func arrived(_ record: UploadRecord, _ sender: PartSender) async throws(DeliveryError) -> Proof? {
        let (key, plan) = (record.upload.key, record.plan)
        guard let (size, etag) = try await found(key), size == plan.fileSize else { return nil }
        var proof = Proof(key: key, size: plan.fileSize, method: .size, etag: etag, url: location(key, answered: nil))
        if settings.verify == .size { return proof }
        let model = ContentHash(digest: Digest(.md5, []), partSize: plan.partSize)
        let content = try await DeliveryError.onTransfer(
            await Checksum.content(like: model, of: sender.source, on: sender.hashing.pool))
        try sender.source.requireUnchanged(since: sender.order)
        guard etag == "\(content.digest.hex)-\(plan.count)" else { return nil }
        (proof.method, proof.content) = (.md5Parts, content)
        return proof
    }

    /// By the length, and by the tag where both sides have R2's kind.
    static func isSame(_ found: (size: Int64?, etag: String?), as sent: (size: Int64, etag: String?)) -> Bool {
        guard found.size == sent.size else { return false }
        guard let etag = found.etag, let expected = sent.etag, etag.contains("-") || etag.count == 32 else {
            return true
        }
        return etag == expected
    }

    /// Below `public_url`, or the store's own place, without any signature.
    func location(_ key: String, answered: String?) -> String? {
        if let base = settings.publicURL { return base.appending(path: key).text }
        return answered.map { String($0.prefix { $0 != "?" && $0 != "#" }) }
    }
}

struct PresignedTarget: SliceTarget {
    let url: HTTPURL
    /// The fields that the URL was signed for.
    let headers: HTTPFields

    var address: String { url.redacted }

    func request(_ body: HTTPBody, _ sums: SliceSums) throws(DeliveryError) -> HTTPRequest {
        HTTPRequest("PUT", url, headers: headers, body: body, answerDeadline: .seconds(120))
    }

    /// A 403 for a presigned URL concerns the URL: expired by the answer or by its own fields (assumed when these do
    /// not say), or refused.
    func refusal(_ answer: HTTPResponse, _ what: String) -> DeliveryError {
        let said = String(decoding: answer.body.prefix(2000), as: UTF8.self).lowercased()
        let isPage = answer.isPage || answer.isHostsOwn
        // The store's own words, and whether they concern every URL: withdrawn keys refuse all.
        let heard = StepFailure(answer.status, isPage ? .foreign : .refusal)
        let isExpired = url.hasExpired(now: .now)
        if answer.status == 403, isExpired ?? !isPage || said.contains("expired") {
            return DeliveryError(.retry(after: nil), .urlExpired, "\(what): its upload URL has expired", heard: heard)
        }
        if answer.status == 404 && !isPage || said.contains("nosuchupload") {
            let text = "\(what): the store no longer knows this upload"
            return DeliveryError(.retry(after: nil), .uploadGone, text, heard: heard)
        }
        if answer.status == 503, said.contains("slowdown") {
            let after = answer.retryAfter(now: .now)
            return DeliveryError(.outage(after: after), .throttled, "\(what): the store asks for fewer requests")
        }
        return .ofStore(answer, "\(what) to \(url.redacted)")
    }
}

extension HTTPURL {
    /// Whether a presigned URL has expired by our clock, by its own fields (AWS Signature Version 4, query parameters);
    /// nil when it does not say.
    func hasExpired(now: WallTime) -> Bool? {
        guard let life = queryItem("X-Amz-Expires").flatMap(Int64.init),
            let signed = queryItem("X-Amz-Date").flatMap({ WallTime(signingTime: $0) })
        else { return nil }
        return signed + .seconds(life) <= now
    }
}
