import HTTPTypes
import Hummingbird

extension ObjectStore {
    /// The object or the range asked for (RFC 9110, section 14); the body is left out for HEAD.
    ///
    /// A range of another version than the one `If-Range` names is not given: the whole is.
    func read(_ key: String, _ request: Request) throws -> Response {
        let object = try object(ObjectKey(key))
        var headers: HTTPFields = [
            .contentType: object.contentType, .eTag: object.etag, .acceptRanges: "bytes",
        ]
        let isSame = request.headers[.ifRange].map { $0 == object.etag } ?? true
        guard let range = ByteRange(header: isSame ? request.headers[.range] : nil, size: object.size) else {
            headers[.contentRange] = "bytes */\(object.size)"
            return Response(status: .rangeNotSatisfiable, headers: headers)
        }
        headers[.contentLength] = String(range.count)
        if range.isPartial { headers[.contentRange] = "bytes \(range.first)-\(range.end - 1)/\(object.size)" }
        let status: HTTPResponse.Status = range.isPartial ? .partialContent : .ok
        guard request.method == .get, range.count > 0 else { return Response(status: status, headers: headers) }
        return Response(status: status, headers: headers, body: FileBody.slice(range, of: object.path))
    }
}
