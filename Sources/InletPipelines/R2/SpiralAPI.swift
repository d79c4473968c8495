internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The control calls of the Spiral Storage API, in the configured dialect. Every call is one request, never retried here.
struct SpiralAPI: Sendable {
    let settings: R2Settings
    let client: HTTPClient

    typealias Upload = OpenUpload

    private var base: String { settings.dialect == .v1 ? "v1/multipart" : "r2/multipart" }

    /// Opens an upload of `count` parts.
    /// - Throws: `badPartList` unless exactly the parts 1...count have one URL each.
    func create(_ order: DeliveryOrder, count: Int) async throws(DeliveryError) -> Upload {
        let message =
            settings.dialect == .seed
            ? SpiralMessages.Create(key: order.key, partCount: count)
            : SpiralMessages.Create(key: order.key, contentType: order.mediaType, parts: count)
        let what = "creating the upload at \(settings.api.redacted)"
        let response = try await post("\(base)/create", message, what, answerLimit: 64 << 10 + count * 4096)
        let created: SpiralMessages.Created = try parse(response, what)
        let parts = (created.partURLs ?? created.parts ?? []).sorted { $0.number < $1.number }
        // No store has longer ones.
        let key = created.key.flatMap { $0.utf8.count <= 1024 ? $0 : nil } ?? order.key
        guard parts.map(\.number) == Array(1...count), !created.uploadID.isEmpty else {
            try? await abort(id: created.uploadID, key: key)
            throw DeliveryError(
                .giveUp, .badPartList,
                "\(what): asked for \(count) part URLs numbered 1 to \(count), got \(parts.count) "
                    + "numbered \(parts.first?.number ?? 0) to \(parts.last?.number ?? 0)",
                heard: Heard(response.status, .refusal))
        }
        return Upload(id: created.uploadID, key: key, partURLs: parts.map(\.url))
    }

    /// Composes the object. - Returns: where the store says it is, if it does.
    func complete(_ upload: Upload, etags: [String]) async throws(DeliveryError) -> String? {
        let parts = etags.enumerated().map { SpiralMessages.Part(number: $0.offset + 1, etag: $0.element) }
        let what = "completing the upload at \(settings.api.redacted)"
        let message = SpiralMessages.Complete(key: upload.key, uploadID: upload.id, parts: parts)
        let response = try await post("\(base)/complete", message, what, deadline: .seconds(300))
        let completed: SpiralMessages.Completed = try parse(response, what)
        guard let url = completed.objectURL ?? completed.url else {
            if completed.key != nil { return nil }
            throw .misunderstood("\(what): the answer has neither a URL nor a key")
        }
        return response.redactor.redacted(url)
    }

    /// Drops an upload and its parts. An upload that is not there counts as dropped.
    func abort(id: String, key: String) async throws(DeliveryError) {
        let what = "aborting an upload at \(settings.api.redacted)"
        do throws(DeliveryError) {
            _ = try await post("\(base)/abort", SpiralMessages.Complete(key: key, uploadID: id), what)
        } catch {
            guard error.code == .notFound else { throw error }
        }
    }

    /// A presigned PUT for a small file (dialect v1).
    func presign(_ order: DeliveryOrder) async throws(DeliveryError) -> String {
        let what = "asking for an upload URL at \(settings.api.redacted)"
        let message = SpiralMessages.Presign(key: order.key, contentType: order.mediaType)
        let location: SpiralMessages.Location = try parse(try await post("v1/presign/upload", message, what), what)
        return location.url
    }

    /// A presigned GET of an object (dialect v1); nil when the store has no such key.
    func objectURL(_ key: String) async throws(DeliveryError) -> String? {
        let what = "looking up an object at \(settings.api.redacted)"
        let request = HTTPRequest(
            "GET", settings.api.appending(path: "v1/objects/url/\(key)"), headers: headers)
        let response = try await send(request)
        // Only the API's own word says that there is none: a page of its host does not.
        if response.status == 404, !response.isPage, !response.isHostsOwn { return nil }
        guard (200..<300).contains(response.status) else { throw refusal(response, what) }
        let location: SpiralMessages.Location = try parse(response, what)
        return location.url
    }

    /// Whether the API answers, and takes our key, by a question that leaves nothing: for the URL of an object (dialect v1), or
    /// to drop an upload, neither of which is there. false for an answer that may be another program's, or about something else.
    func answers() async throws(DeliveryError) -> Bool {
        let (name, what) = (".inlet-check", "asking \(settings.api.redacted) whether it answers")
        let response: HTTPResponse
        if settings.dialect == .v1 {
            response = try await send(
                HTTPRequest("GET", settings.api.appending(path: "v1/objects/url/\(name)"), headers: headers))
        } else {
            response = try await exchange("\(base)/abort", SpiralMessages.Complete(key: name, uploadID: name), what)
        }
        if response.isPage || response.isHostsOwn { return false }
        switch response.status {
        case 204: return true
        // Whether it is JSON is what this asks; why it is none makes no difference.
        case 200: return (try? JSONValue(parsing: response.body)) != nil
        // There is none, as we knew, in whatever words but a page's or a host's, or none at all.
        case 400, 404, 409, 410, 422:
            return response.body.first { $0 > UInt8(ascii: " ") }.map { $0 != UInt8(ascii: "<") } ?? false
        // Perhaps the store's word that there is none, passed on.
        case 500: return false
        default: throw refusal(response, what)
        }
    }

    private var headers: HTTPFields {
        var headers: HTTPFields = [("Accept", "application/json")]
        if settings.dialect == .v1, let key = settings.apiKey { headers.append(("X-API-Key", key.reveal())) }
        return headers
    }

    private func post(
        _ path: String, _ message: some Encodable, _ what: String, answerLimit: Int = 1 << 20,
        deadline: Duration = .seconds(60)
    ) async throws(DeliveryError) -> HTTPResponse {
        let response = try await exchange(path, message, what, answerLimit: answerLimit, deadline: deadline)
        guard (200..<300).contains(response.status) else { throw refusal(response, what) }
        return response
    }

    /// The answer as it is, whatever its status.
    private func exchange(
        _ path: String, _ message: some Encodable, _ what: String, answerLimit: Int = 1 << 20,
        deadline: Duration = .seconds(60)
    ) async throws(DeliveryError) -> HTTPResponse {
        let body: [UInt8]
        do {
            body = try SpiralMessages.encode(message)
        } catch {
            throw DeliveryError(.giveUp, .internalFault, "\(what): the request cannot be encoded: \(error)")
        }
        let request = HTTPRequest(
            "POST", settings.api.appending(path: path), headers: headers + [("Content-Type", "application/json")],
            body: .bytes(body), answerLimit: answerLimit,
            answerDeadline: deadline)
        return try await send(request)
    }

    private func refusal(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        DeliveryError(response, what, in: .json, secretsMatter: true, now: .now)
    }

    func send(_ request: HTTPRequest, meter: TransferMeter? = nil) async throws(DeliveryError) -> HTTPResponse {
        do {
            return try await client.send(request, meter: meter)
        } catch {
            throw DeliveryError(error)
        }
    }

    private func parse<Message: Decodable>(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> Message {
        do {
            return try SpiralMessages.decode(response.body)
        } catch {
            throw .misunderstood("\(what): the answer is not the JSON it should be: \(DeliveryError.said(response))")
        }
    }
}
