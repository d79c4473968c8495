import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// Videos in: the presigned address, and the PUT to it.
struct VOPIUploadCalls: Sendable {
    private static let types = ["video/mp4", "video/quicktime", "video/webm"]
    /// S3's limit of one PUT: 5 GiB.
    private static let largest = 5 << 30

    let shop: VOPIShop

    func presign(_ body: SandboxJSON, host: String, fault: FaultAction?) throws -> Response {
        guard let fields = body.fields else {
            throw VOPIRefusal.schema(path: "", keyword: "type", params: ["type": "object"], message: "must be object")
        }
        let name = fields["filename"]?.text ?? ""
        guard name.count <= 255 else {
            throw VOPIRefusal.schema(
                path: "/filename", keyword: "maxLength", params: ["limit": 255],
                message: "must NOT have more than 255 characters")
        }
        if let type = fields["contentType"], !Self.types.contains(type.text ?? "") {
            throw VOPIRefusal.schema(
                path: "/contentType", keyword: "enum",
                params: ["allowedValues": .array(Self.types.map(SandboxJSON.string))],
                message: "must be equal to one of the allowed values")
        }
        let wanted = fields["expiresIn"].map { $0.text ?? String($0.number ?? .nan) }
        let lifetime = try SchemaBounds.whole(wanted, "/expiresIn", default: 3600, 60...86_400)
        let key = "uploads/\(UUID().uuidString.lowercased()).\(Self.ending(of: name))"
        let request = SignableRequest(method: "PUT", path: VOPIRoute.bucket + key, host: host)
        shop.countPresign()
        return try .json(
            [
                "uploadUrl": .string(shop.presigned(request, lifetime: lifetime, fault: fault)), "key": .string(key),
                "publicUrl": .string(VOPIResultCalls.origin(host) + key), "expiresIn": .number(Double(lifetime)),
            ] as SandboxJSON)
    }

    func put(
        _ key: String, _ request: Request, _ signable: SignableRequest, _ body: inout IncomingBody, fault: FaultAction?
    ) async throws -> Response {
        try shop.signer.verify(signable, now: shop.clock())
        guard request.headers[.authorization] == nil else {
            throw StoreError.invalidArgument("Only one auth mechanism allowed")
        }
        guard let length = body.expected else { throw StoreError.missingLength }
        guard length <= Self.largest else {
            throw StoreError(status: 400, code: "EntityTooLarge", message: "The body exceeds the maximum of one PUT.")
        }
        var file = try IncomingFile(in: shop.store.folders.incoming)
        while let chunk = try await body.next() { try file.write(chunk) }
        let object = try shop.store.keepSingle(
            ObjectKey(key), contentType: request.headers[.contentType] ?? "application/octet-stream", file)
        shop.keep(object, publicURL: VOPIResultCalls.origin(signable.host) + key)
        let etag: String? =
            switch fault {
            case .missingETag: nil
            case .wrongETag: "\"\(ContentHash.md5(object.md5.bytes).hex)\""
            default: object.etag
            }
        return Response(status: .ok, headers: etag.map { [.eTag: $0] } ?? [:])
    }

    func get(_ key: String, _ request: Request, _ signable: SignableRequest) throws -> Response {
        var signed = signable
        signed.method = "GET"
        try shop.signer.verify(signed, now: shop.clock())
        return try shop.store.read(key, request)
    }

    /// What stands behind the last dot, whatever the content type is.
    private static func ending(of name: String) -> String {
        guard let dot = name.lastIndex(of: ".") else { return "mp4" }
        let ending = name[name.index(after: dot)...].lowercased()
        let isPlain =
            !ending.isEmpty && ending.utf8.allSatisfy { $0 < 0x80 && ($0 >= 0x61 || $0 <= 0x39 && $0 >= 0x30) }
        return isPlain ? ending : "mp4"
    }
}

extension VOPIShop {
    /// An address that is good for `lifetime` seconds, or for what a fault makes of it.
    func presigned(_ request: SignableRequest, lifetime: Int, fault: FaultAction?) -> String {
        var origin = "http://\(request.host)"
        if case .partURLs(.origin(let other))? = fault { origin = other }
        let seconds = fault == .expiredURLs ? 0 : Int64(lifetime)
        return origin + URIText.encodePath(request.path) + "?"
            + signer.presign(request, lifetime: seconds, now: clock())
    }
}
