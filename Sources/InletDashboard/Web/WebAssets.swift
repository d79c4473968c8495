internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import InletCore
internal import NIOCore

/// Serves the page's files; who has one already is told that it is the same.
struct WebAssets: Sendable {
    private struct Asset: Sendable {
        var type: String
        var tag: String
        var body: ByteBuffer
    }

    private let assets: [String: Asset]

    init(_ files: [WebFile]) {
        let pairs = files.map { file in
            let bytes = Array(file.text.utf8)
            let tag = "\"\(SHA256.bytes(of: bytes).prefix(16).hex)\""
            return (file.path, Asset(type: file.type, tag: tag, body: ByteBuffer(bytes: bytes)))
        }
        assets = Dictionary(pairs) { first, _ in first }
    }

    /// nil for a path that is none of theirs.
    func response(to request: Request) -> Response? {
        guard let asset = assets[request.uri.path] else { return nil }
        guard request.method == .get || request.method == .head else {
            return .fault(APIFault(405, "method", "this path knows GET", allowed: ["GET"]))
        }
        // Kept, and asked about each time: another version of Inlet has other files.
        var headers: HTTPFields = [.eTag: asset.tag, .cacheControl: "no-cache"]
        let known = request.headers[.ifNoneMatch]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        if known.contains(asset.tag) || known.contains("*") { return Response(status: .notModified, headers: headers) }
        headers[.contentType] = asset.type
        let response = Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: asset.body))
        return request.method == .head ? response.withoutBody : response
    }
}
