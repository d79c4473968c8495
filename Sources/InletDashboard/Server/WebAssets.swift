internal import HTTPTypes
internal import Hummingbird
internal import InletCore
internal import InletWeb
internal import NIOCore

/// Serves the files of the page, which the program holds (`Sources/InletWeb/page`). Answers 304 when the `ETag` matches.
struct WebAssets: Sendable {
    /// By path: `/` for the page itself, `/assets/NAME` for all others.
    private let files: [String: (type: String, tag: String, body: ByteBuffer)]

    init() {
        var files: [String: (type: String, tag: String, body: ByteBuffer)] = [:]
        for index in 0... {
            guard let file = inlet_web_file(index)?.pointee else { break }
            let name = String(cString: file.name)
            let bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.length))
            let tag = "\"\(SHA256.bytes(of: bytes).prefix(16).hex)\""
            let path = name == "index.html" ? "/" : "/assets/\(name)"
            files[path] = (String(cString: file.type), tag, ByteBuffer(bytes: bytes))
        }
        self.files = files
    }

    /// nil for a path that is none of theirs.
    func response(to request: Request) -> Response? {
        guard let file = files[request.uri.path] else { return nil }
        guard request.method == .get || request.method == .head else {
            return .fault(APIFault(405, "method", "this path knows GET", allowed: ["GET"]))
        }
        // Browsers keep the files, and ask each time: another version of Inlet has other files.
        var headers: HTTPFields = [.eTag: file.tag, .cacheControl: "no-cache"]
        let known = request.headers[.ifNoneMatch]?.split(separator: ",").map { $0.filter { $0 != " " } } ?? []
        if known.contains(file.tag) || known.contains("*") { return Response(status: .notModified, headers: headers) }
        headers[.contentType] = file.type
        let response = Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: file.body))
        return request.method == .head ? response.withoutBody : response
    }
}
