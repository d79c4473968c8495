import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// Videos in: the presigned address, and the PUT to it.
struct VOPIUploadCalls: Sendable {
    /// S3's limit of one PUT: 5 GiB.
    private static let largest = 5 << 30

    let shop: VOPIShop

    func presign(_ message: PresignMessage, host: String, fault: FaultAction?) throws -> Response {
        let lifetime = message.lifetime
        let key = "uploads/\(UUID().uuidString.lowercased()).\(message.ending)"
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
            throw SandboxRefusal.invalidArgument("Only one auth mechanism allowed")
        }
        guard let length = body.expected else { throw SandboxRefusal.missingLength }
        guard length <= Self.largest else {
            throw SandboxRefusal(400, "EntityTooLarge", "The body exceeds the maximum of one PUT.")
        }
        var file = try IncomingFile(in: shop.store.folders.incoming)
        while let chunk = try await body.next() { try file.write(chunk) }
        let object = try shop.store.keepSingle(
            ObjectKey(key), contentType: request.headers[.contentType] ?? "application/octet-stream", file)
        shop.keep(object, publicURL: VOPIResultCalls.origin(signable.host) + key)
        let etag: String? =
            switch fault {
            case .missingETag: nil
            case .wrongETag: "\"\(MD5.bytes(of: object.md5.bytes).hex)\""
            default: object.etag
            }
        return Response(status: .ok, headers: etag.map { [.eTag: $0] } ?? [:])
    }

    func get(_ key: String, _ request: Request, _ signable: SignableRequest) throws -> Response {
        var signed = signable
        signed.method = "GET"
        try shop.signer.verify(signed, now: shop.clock())
        return try shop.store.read(key, request.headers)
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
