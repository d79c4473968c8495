import Hummingbird
package import InletCore
import InletLinux
package import SystemPackage

/// The table of calls and their answers: control calls with JSON in and out and presigned URLs in the answers, bodies
/// in through presigned PUTs, objects out. Members of messages have the names of the JSON.
struct SpiralService: Sendable {
    /// The path before the keys of presigned URLs: the bucket's name, as in path-style S3 addresses.
    private static let bucket = "/sandbox/"

    let store: ObjectStore
    let signer: RequestSigner
    let apiKey: Secret?
    /// Seconds.
    let urlLifetime: Int64

    var routes: [SandboxRoute<SpiralOperation>] {
        [
            .init("POST /r2/multipart/create", .create) { try await create(&$0, takesSeed: true) },
            .init("POST /v1/multipart/create", .create, keyed { try await create(&$0, takesSeed: false) }),
            .init("POST /r2/multipart/complete", .complete) { call in
                try .json(["object_url": try await complete(&call).url])
            },
            .init(
                "POST /v1/multipart/complete", .complete,
                keyed { call in
                    let (url, key) = try await complete(&call)
                    return try .json(["url": url, "key": key])
                }),
            .init("POST /r2/multipart/abort", .abort, abort),
            .init("POST /v1/multipart/abort", .abort, keyed(abort)),
            .init("POST /v1/presign/upload", .presign, keyed(presign)),
            .init("GET /v1/objects/url/{key...}", .objectURL, keyed(objectURL)),
            .init("PUT /sandbox/{key...}?uploadId&partNumber", .part, signed(putPart)),
            .init("PUT /sandbox/{key...}", .single, signed(putSingle)),
            .init("GET|HEAD /sandbox/{key...}", .read, signed(read)),
            .init("GET|HEAD /public/{key...}", .read, read),
        ]
    }

    /// The control calls refuse in JSON, the store in XML.
    static func word(_ refusal: SandboxRefusal, _ operation: SpiralOperation?) throws -> SandboxReply {
        switch operation {
        case .part, .single, .read, nil: return refusal.xml
        case .create, .complete, .abort, .presign, .objectURL:
            return try .json(["error": refusal.message, "code": refusal.code], status: refusal.status)
        }
    }

    /// Calls that need the key of the v1 dialect, if there is one.
    private func keyed(_ handle: @escaping SandboxHandler) -> SandboxHandler {
        { call in
            guard let apiKey else { return try await handle(&call) }
            guard SigningSecret.areEqual(call.fields["X-API-Key"] ?? "", apiKey.reveal()) else {
                throw SandboxRefusal(401, "Unauthorized", "X-API-Key is missing or wrong.")
            }
            return try await handle(&call)
        }
    }

    /// Calls that must be presigned.
    private func signed(_ handle: @escaping SandboxHandler) -> SandboxHandler {
        { call in
            try signer.verify(call.address, now: .now)
            return try await handle(&call)
        }
    }
}

// MARK: - Control calls

extension SpiralService {
    /// The seed dialect sends `part_count`, and gets `key` and `parts`; r2 and v1 send `parts` and a content type, and get
    /// `part_urls`.
    private func create(_ call: inout SandboxCall, takesSeed: Bool) async throws -> Response {
        let message = try await call.body.json()
        let isSeed = takesSeed && message["part_count"] != nil
        guard let count = message[isSeed ? "part_count" : "parts"]?.whole else {
            throw SandboxRefusal.badRequest("The body needs `parts`, the number of parts.")
        }
        let key = try ObjectKey(message.member("key"))
        let upload = try store.createUpload(key: key, contentType: message["content_type"]?.text, partCount: count)
        let urls = SandboxJSON.array(partURLs(upload, call))
        let told: SandboxJSON = isSeed ? ["key": .string(upload.key), "parts": urls] : ["part_urls": urls]
        return try .json((told.fields ?? [:]).merging(["upload_id": .string(upload.id)]) { $1 })
    }

    private func complete(_ call: inout SandboxCall) async throws -> (url: String, key: String) {
        let message = try await call.body.json()
        guard let items = message["parts"]?.items else { throw SandboxRefusal.badRequest("The body needs `parts`.") }
        let parts = try items.map { item in
            guard let number = item["part_number"]?.whole else {
                throw SandboxRefusal.badRequest("A part needs its `part_number`.")
            }
            return ListedPart(number: number, etag: try item.member("etag"))
        }
        let key = try ObjectKey(message.member("key"))
        let object = try store.complete(upload: message.member("upload_id"), key: key, listed: parts)
        return ("http://\(call.host)" + URIText.encodePath("/public/" + object.key), object.key)
    }

    private func abort(_ call: inout SandboxCall) async throws -> Response {
        let message = try await call.body.json()
        try store.abort(upload: message.member("upload_id"), key: message.member("key"))
        return try .json([String: String]())
    }

    private func presign(_ call: inout SandboxCall) async throws -> Response {
        let message = try await call.body.json()
        let key = try ObjectKey(message.member("key"))
        let request = DecodedRequest(
            method: "PUT", path: Self.bucket + key.text, host: call.host,
            contentType: try message.member("content_type"))
        return try .json(["url": url(request, call), "key": key.text])
    }

    private func objectURL(_ call: inout SandboxCall) throws -> Response {
        let object = try store.object(ObjectKey(call["key"]))
        let request = DecodedRequest(method: "GET", path: Self.bucket + object.key, host: call.host)
        return try .json(["url": url(request, call), "key": object.key])
    }

    private func partURLs(_ upload: UploadRecord, _ call: SandboxCall) -> [SandboxJSON] {
        var numbers = Array(1...upload.partCount)
        if call.fault == .partURLs(.fewer) { numbers.removeLast() }
        if call.fault == .partURLs(.more) { numbers.append(upload.partCount + 1) }
        return numbers.map { number in
            let request = DecodedRequest(
                method: "PUT", path: Self.bucket + upload.key,
                query: [("uploadId", upload.id), ("partNumber", String(number))], host: call.host)
            let shown = call.fault == .partURLs(.renumbered) ? number - 1 : number
            return ["part_number": .init(shown), "url": .string(url(request, call))]
        }
    }

    private func url(_ request: DecodedRequest, _ call: SandboxCall) -> String {
        signer.url(request, lifetime: urlLifetime, now: .now, fault: call.fault)
    }
}

extension SandboxJSON {
    fileprivate var whole: Int? { number.flatMap(Int.init(exactly:)) }

    /// A required text.
    fileprivate func member(_ name: String) throws(SandboxRefusal) -> String {
        guard let text = self[name]?.text else { throw .badRequest("The body needs the text `\(name)`.") }
        return text
    }
}

// MARK: - Bodies and objects

extension SpiralService {
    private func putPart(_ call: inout SandboxCall) async throws -> Response {
        let (key, upload) = (try ObjectKey(call["key"]), call.query("uploadId") ?? "")
        guard let number = call.query("partNumber").flatMap(Int.init) else {
            throw SandboxRefusal.badRequest("A part's URL needs uploadId and a partNumber that is a number.")
        }
        try store.checkPart(number, upload: upload, key: key)
        var file = try ReceivedFile(in: store.incoming)
        try await call.receive(into: &file)
        let etag = call.etag(file.hash.finish().md5)
        try store.keepPart(number, upload: upload, etag: etag, file)
        return call.stored(etag: etag)
    }

    /// The signature covers the content type, so it is the presigned one.
    private func putSingle(_ call: inout SandboxCall) async throws -> Response {
        let key = try ObjectKey(call["key"])
        var file = try ReceivedFile(in: store.incoming)
        try await call.receive(into: &file)
        let object = try store.keepSingle(
            key, contentType: call.address.contentType ?? "application/octet-stream", file)
        return call.stored(etag: call.etag(object.md5.bytes))
    }

    private func read(_ call: inout SandboxCall) throws -> Response { try store.read(call["key"], call.fields) }
}

/// A loopback server that speaks the Spiral Storage dialects `seed`, `r2` and `v1`, and stores objects on disk.
///
/// Part URLs are presigned and verified as by S3. Uploads and objects survive on disk for the next sandbox, and
/// `faults` makes it misbehave. For `inlet demo` and the tests; it listens on 127.0.0.1 only. Public reads are at
/// `/public/<key>`.
package final class SpiralSandbox: LoopbackSandbox {
    package let server: SandboxServer<SpiralOperation>
    private let store: ObjectStore

    /// - Parameters:
    ///   - directory: The folder of objects, open uploads and the signing key; created if missing.
    ///   - apiKey: The required `X-API-Key` of the v1 dialect; nil requires none.
    ///   - urlLifetime: The lifetime of presigned URLs, in whole seconds up to 7 days.
    ///   - port: 0 = the system chooses one.
    /// - Throws: If the directory cannot be created, read or written.
    package init(
        directory: FilePath, apiKey: Secret?, faults plan: FaultPlan<SpiralOperation> = .none,
        urlLifetime: Duration = .seconds(3600), port: Int = 0
    ) throws {
        store = try ObjectStore(directory: directory)
        let service = SpiralService(
            store: store, signer: RequestSigner(secret: try SigningSecret.load(from: directory)), apiKey: apiKey,
            urlLifetime: urlLifetime.milliseconds / 1000)
        server = SandboxServer(port: port, SandboxRouter(plan, service.routes, wording: SpiralService.word))
    }

    /// The stored objects, by key.
    package func objects() -> [StoredObject] { store.objects() }

    /// Ids of uploads that were created and neither completed nor aborted, sorted.
    package func openUploads() -> [String] { store.openUploads() }
}

/// The sandbox's operations, for counters and faults.
package enum SpiralOperation: String, SandboxOperation {
    case create
    /// PUT to a part's presigned URL.
    case part
    case complete
    case abort
    case presign
    /// PUT to a presigned URL for a whole object.
    case single
    case objectURL
    /// GET or HEAD of an object, presigned or public.
    case read
}

package typealias Fault = OperationFault<SpiralOperation>
