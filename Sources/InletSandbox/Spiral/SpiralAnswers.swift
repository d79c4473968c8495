import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

extension Response {
    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Response(
            status: status, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try encoder.encode(value))))
    }

    /// S3's error document (API reference, "REST error responses").
    static func xml(_ error: StoreError) -> Response {
        let elements = [("Code", error.code), ("Message", error.message)] + error.details.map { ($0.name, $0.text) }
        let inner = elements.map { "<\($0)>\($1.escapedForXML)</\($0)>" }.joined()
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\(inner)<RequestId>sandbox</RequestId></Error>"
        return Response(
            status: HTTPResponse.Status(code: error.status), headers: [.contentType: "application/xml"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    static func failure(_ error: StoreError, asXML: Bool) throws -> Response {
        if asXML { return xml(error) }
        return try json(
            SpiralMessages.Failure(error: error.message, code: error.code),
            status: HTTPResponse.Status(code: error.status))
    }
}

extension String {
    var escapedForXML: String {
        replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;")
    }
}
