internal import InletCore
internal import InletLinux
internal import InletTransfer

/// The control calls of the Spiral Storage API, in the configured dialect, and their answers, which are read leniently where
/// the generations differ: `parts` or `part_urls`, `object_url` or `url`, a key or none. Every call is one request, never
/// retried here.
struct SpiralAPI: Sendable {
    let settings: R2Settings
    let service: ServiceClient

    typealias Upload = OpenUpload

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
    func create(_ order: DeliveryOrder, count: Int) async throws(DeliveryError) -> Upload {
        let message: JSONObject =
            settings.dialect == .seed
            ? ["key": .string(order.key), "part_count": JSONValue(count)]
            : ["key": .string(order.key), "content_type": .string(order.mediaType), "parts": JSONValue(count)]
        let what = "creating the upload at \(settings.api.redacted)"
        let response = try await post("\(base)/create", message, what, limit: 64 << 10 + count * 4096)
        let created = try read(response, what) { json throws(JSONMismatch) in try Created(json) }
        let parts = created.parts.sorted { $0.number < $1.number }
        // No store has longer ones.
        let key = created.key.flatMap { $0.utf8.count <= 1024 ? $0 : nil } ?? order.key
        guard parts.map({ Int($0.number) }) == Array(1...count), !created.id.isEmpty else {
            try? await abort(id: created.id, key: key)
            throw DeliveryError(
                .giveUp, .badPartList,
                "\(what): asked for \(count) part URLs numbered 1 to \(count), got \(parts.count) "
                    + "numbered \(parts.first?.number ?? 0) to \(parts.last?.number ?? 0)",
                heard: Heard(response.status, .refusal))
        }
        return Upload(id: created.id, key: key, partURLs: parts.map(\.url))
    }

    /// What opening an upload is answered with.
    struct Created {
        var id: String
        var key: String?
        var parts: [(number: Int64, url: String)] = []

        /// nil where something is missing.
        init?(_ json: JSONValue) throws(JSONMismatch) {
            guard let id = try json.text("upload_id") else { return nil }
            self.id = id
            key = try json.text("key")
            let (parts, urls) = (try json.list("parts"), try json.list("part_urls"))
            for part in urls ?? parts ?? [] {
                guard let number = part["part_number"]?.integer, let url = try part.text("url") else { return nil }
                self.parts.append((number, url))
            }
        }
    }

    /// Composes the object. - Returns: where the store says it is, if it does.
    func complete(_ upload: Upload, etags: [String]) async throws(DeliveryError) -> String? {
        let parts = etags.enumerated().map {
            JSONValue.object(["part_number": JSONValue($0.offset + 1), "etag": .string($0.element)])
        }
        let what = "completing the upload at \(settings.api.redacted)"
        let message = Self.name(upload.id, upload.key).merging(["parts": .array(parts)]) { $1 }
        let response = try await post("\(base)/complete", message, what, deadline: .seconds(300))
        let said = try read(response, what) { json throws(JSONMismatch) in
            (try json.text("object_url"), try json.text("url"), try json.text("key"))
        }
        guard let url = said.0 ?? said.1 else {
            if said.2 != nil { return nil }
            throw .misunderstood("\(what): the answer has neither a URL nor a key")
        }
        return response.redactor.redacted(url)
    }

    /// Drops an upload and its parts. An upload that is not there counts as dropped.
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
        // Only the API's own word says that there is none: a page of its host does not.
        if response.status == 404, !response.isPage, !response.isHostsOwn { return nil }
        guard response.isSuccess else { throw Self.refusal(response, what) }
        return try location(response, what)
    }

    /// Whether the API answers, and takes our key, by a question that leaves nothing: for the URL of an object (dialect v1), or
    /// to drop an upload, neither of which is there. false for an answer that may be another program's, or about something else.
    func answers() async throws(DeliveryError) -> Bool {
        let (name, what) = (".inlet-check", "asking \(settings.api.redacted) whether it answers")
        let request =
            settings.dialect == .v1
            ? service.request("GET", "v1/objects/url/\(name)")
            : service.request("POST", "\(base)/abort", json: JSONValue.object(Self.name(name, name)).text)
        let response = try await service.answer(to: request)
        if response.isPage || response.isHostsOwn { return false }
        switch response.status {
        case 204: return true
        case 200: return response.jsonBody != nil
        // There is none, as we knew, in whatever words but a page's or a host's, or none at all.
        case 400, 404, 409, 410, 422:
            return response.body.first { $0 > UInt8(ascii: " ") }.map { $0 != UInt8(ascii: "<") } ?? false
        // Perhaps the store's word that there is none, passed on.
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
        var request = service.request("POST", path, json: JSONValue.object(message).text, limit: limit)
        request.answerDeadline = deadline
        return try await service.send(request) { Self.refusal($0, what) }
    }

    private static func refusal(_ response: HTTPResponse, _ what: String) -> DeliveryError {
        DeliveryError(response, what, in: .json, secretsMatter: true, now: .now)
    }

    private func location(_ response: HTTPResponse, _ what: String) throws(DeliveryError) -> String {
        try read(response, what) { json throws(JSONMismatch) in try json.text("url") }
    }

    /// What `take` finds in the object of a success; nil where it misses something.
    private func read<Value>(
        _ response: HTTPResponse, _ what: String, _ take: (JSONValue) throws(JSONMismatch) -> Value?
    ) throws(DeliveryError) -> Value {
        // What is wrong with it makes no difference: its words are shown.
        guard let json = response.jsonBody, json.object != nil, let value = try? take(json) else {
            throw .misunderstood("\(what): the answer is not the JSON it should be: \(DeliveryError.said(response))")
        }
        return value
    }

    /// Holds a URL that the server sent to the rules of URLs from servers.
    func checked(_ text: String) throws(DeliveryError) -> HTTPURL {
        do {
            return try HTTPURL(text, rules: .sentByServer(at: settings.api, allowHTTP: settings.allowHTTP))
        } catch {
            throw DeliveryError(error).redacted(by: Redactor([settings.apiKey].compactMap(\.self)))
        }
    }

    /// Where people find the object: below `public_url`, or where the store said, without any signature.
    func publicLocation(_ key: String, answered: String?) -> String? {
        if let base = settings.publicURL { return base.appending(path: key).text }
        return answered.map { String($0.prefix { $0 != "?" && $0 != "#" }) }
    }
}
