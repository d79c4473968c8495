import HTTPTypes
import Hummingbird
import NIOCore

/// What is answered instead of the result: a status and a line of text.
struct RoboscopeRefusal: Error, Equatable {
    var status: Int
    var message: String

    static func notFound(_ what: String) -> Self { Self(status: 404, message: "\(what) not found") }
    static func invalid(_ message: String) -> Self { Self(status: 422, message: message) }
    static let conflict = Self(status: 409, message: "Version conflict: the object was changed by somebody else")
    static let noToken = Self(status: 401, message: "Missing or invalid token")
    static let tooLarge = Self(status: 413, message: "Failed to buffer the request body: length limit exceeded")

    var response: Response {
        Response(
            status: HTTPResponse.Status(code: status), headers: [.contentType: "text/plain; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: message)))
    }
}
