import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// The control calls: JSON in, JSON out, presigned URLs in the answers.
struct ControlCalls: Sendable {
    let store: ObjectStore
    let signer: URLSigner
    /// Seconds.
    let urlLifetime: Int64

    /// `host` is the one the client called, so that it finds the addresses it is given.
    func create(_ door: SpiralRoute.Door, _ body: inout IncomingBody, host: String, fault: FaultAction?) async throws
        -> Response
    {
        let message = try await body.json(SpiralMessages.Create.self)
        let isSeed = door == .r2 && message.part_count != nil
        guard let count = isSeed ? message.part_count : message.parts else {
            throw StoreError.badRequest("The body needs `parts`, the number of parts.")
        }
        let key = try ObjectKey(message.key)
        let upload = try store.createUpload(
            key: key, contentType: message.content_type ?? "application/octet-stream", partCount: count)
        let urls = partURLs(upload, host: host, fault: fault)
        if isSeed {
            return try .json(SpiralMessages.CreatedSeed(upload_id: upload.id, key: upload.key, parts: urls))
        }
        return try .json(SpiralMessages.Created(upload_id: upload.id, part_urls: urls))
    }

    func complete(_ door: SpiralRoute.Door, _ body: inout IncomingBody, host: String) async throws -> Response {
        let message = try await body.json(SpiralMessages.Complete.self)
        let parts = message.parts.map { ListedPart(number: $0.part_number, etag: $0.etag) }
        let object = try store.complete(upload: message.upload_id, key: ObjectKey(message.key), listed: parts)
        let url = "http://\(host)" + URIText.encodePath(SpiralRoute.publicFolder + object.key)
        switch door {
        case .r2: return try .json(SpiralMessages.ObjectURL(object_url: url))
        case .v1: return try .json(SpiralMessages.URLAndKey(url: url, key: object.key))
        }
    }

    func abort(_ body: inout IncomingBody) async throws -> Response {
        let message = try await body.json(SpiralMessages.Abort.self)
        try store.abort(upload: message.upload_id, key: message.key)
        return try .json(SpiralMessages.Empty())
    }

    func presign(_ body: inout IncomingBody, host: String, fault: FaultAction?) async throws -> Response {
        let message = try await body.json(SpiralMessages.Presign.self)
        let key = try ObjectKey(message.key)
        let request = SignableRequest(
            method: "PUT", path: SpiralRoute.bucket + key.text, host: host, contentType: message.content_type)
        return try .json(SpiralMessages.URLAndKey(url: url(request, fault: fault), key: key.text))
    }

    func objectURL(_ key: String, host: String, fault: FaultAction?) throws -> Response {
        let object = try store.object(ObjectKey(key))
        let request = SignableRequest(method: "GET", path: SpiralRoute.bucket + object.key, host: host)
        return try .json(SpiralMessages.URLAndKey(url: url(request, fault: fault), key: object.key))
    }

    private func partURLs(_ upload: UploadRecord, host: String, fault: FaultAction?) -> [SpiralMessages.PartURL] {
        var numbers = Array(1...upload.partCount)
        if fault == .partURLs(.fewer) { numbers.removeLast() }
        if fault == .partURLs(.more) { numbers.append(upload.partCount + 1) }
        return numbers.map { number in
            let request = SignableRequest(
                method: "PUT", path: SpiralRoute.bucket + upload.key,
                query: [("uploadId", upload.id), ("partNumber", String(number))], host: host)
            let shown = fault == .partURLs(.renumbered) ? number - 1 : number
            return SpiralMessages.PartURL(part_number: shown, url: url(request, fault: fault))
        }
    }

    private func url(_ request: SignableRequest, fault: FaultAction?) -> String {
        var origin = "http://\(request.host)"
        if case .partURLs(.origin(let other))? = fault { origin = other }
        let query = signer.presign(request, lifetime: fault == .expiredURLs ? 0 : urlLifetime, now: .now)
        return origin + URIText.encodePath(request.path) + "?" + query
    }
}
