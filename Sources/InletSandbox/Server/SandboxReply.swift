import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// An answer at hand: a fault's own, or a refusal in the words of its protocol. Thrown by a handler, it is answered as it is.
package struct SandboxReply: Error, Hashable {
    package var status: Int
    /// Besides Content-Length; names in any case.
    package var fields: [String: String]
    package var body: String

    package init(_ status: Int, type: String = "text/plain", fields: [String: String] = [:], body: String) {
        self.status = status
        self.fields = fields.merging(["Content-Type": type]) { given, _ in given }
        self.body = body
    }

    static func json(_ value: some Encodable, status: Int = 200) throws -> SandboxReply {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(value), as: UTF8.self)
        return SandboxReply(status, type: "application/json", body: text)
    }
}

package typealias FaultReply = SandboxReply

extension Response {
    init(_ reply: SandboxReply) {
        var fields = HTTPFields()
        for (name, value) in reply.fields { fields[name] = value }
        self.init(
            status: HTTPResponse.Status(code: reply.status), headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(string: reply.body)))
    }

    static func json(_ value: some Encodable, status: Int = 200) throws -> Response {
        Response(try SandboxReply.json(value, status: status))
    }
}

/// What a sandbox refuses, before its protocol has worded it; statuses and codes are those of S3 and R2 (S3 API reference,
/// "Error responses").
struct SandboxRefusal: Error, Equatable {
    var status: Int
    var code: String
    var message: String
    /// Further elements of S3's XML body, in order.
    var details: KeyValuePairs<String, String>

    init(_ status: Int, _ code: String, _ message: String, details: KeyValuePairs<String, String> = [:]) {
        (self.status, self.code, self.message, self.details) = (status, code, message, details)
    }

    static func == (one: Self, other: Self) -> Bool {
        (one.status, one.code, one.message) == (other.status, other.code, other.message)
            && one.details.elementsEqual(other.details) { $0 == $1 }
    }

    /// S3's error document (API reference, "REST error responses").
    var xml: SandboxReply {
        let elements = [("Code", code), ("Message", message)] + details.map { ($0.key, $0.value) }
        let inner = elements.map { "<\($0)>\($1.escapedForXML)</\($0)>" }.joined()
        return SandboxReply(
            status, type: "application/xml",
            body: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\(inner)<RequestId>sandbox</RequestId></Error>")
    }

    static func noSuchUpload(_ id: String) -> Self {
        Self(404, "NoSuchUpload", "No upload \(id) is open: it was completed, aborted or never made.")
    }
    static func noSuchKey(_ key: String) -> Self { Self(404, "NoSuchKey", "There is no object \(key).") }
    static func invalidKey(_ reason: String) -> Self { Self(400, "InvalidArgument", "The key is refused: \(reason).") }
    static func invalidArgument(_ message: String) -> Self { Self(400, "InvalidArgument", message) }
    static func badRequest(_ message: String) -> Self { Self(400, "InvalidRequest", message) }
    static func invalidPart(_ message: String) -> Self { Self(400, "InvalidPart", message) }
    static func conflict(_ message: String) -> Self { Self(409, "OperationAborted", message) }
    static func accessDenied(_ message: String, details: KeyValuePairs<String, String> = [:]) -> Self {
        Self(403, "AccessDenied", message, details: details)
    }
    static let keyIsPresent = Self(
        412, "PreconditionFailed", "At least one of the preconditions does not hold.",
        details: ["Condition": "If-None-Match"])
    static func badDigest(_ field: String) -> Self {
        Self(400, "BadDigest", "The body is not the one that \(field) was computed for.")
    }
    static func notImplemented(_ what: String) -> Self { Self(501, "NotImplemented", "\(what) is not implemented.") }
    static let signatureDoesNotMatch = Self(
        403, "SignatureDoesNotMatch",
        "The signature is not the one that belongs to this method, path, query and signed headers.")
    static let incompleteBody = Self(
        400, "IncompleteBody", "The connection ended before Content-Length bytes arrived.")
    static let missingLength = Self(411, "MissingContentLength", "Content-Length is required.")
    static let notFound = Self(404, "NotFound", "Nothing answers at this method and path.")
}

extension String {
    var escapedForXML: String {
        replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }
}
