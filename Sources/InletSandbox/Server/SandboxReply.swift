import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// A ready answer: a fault's, or a refusal in the words of its protocol. A handler throws it, and it is sent unchanged.
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
        SandboxReply(
            status, type: "application/json", body: String(decoding: try JSON.encode(value), as: UTF8.self))
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

/// A sandbox's refusal before its protocol words it. Statuses and codes are those of S3 and R2 (S3 API reference,
/// "Error responses").
struct SandboxRefusal: Error, Equatable {
    var status: Int
    var code: String
    var message: String
    /// More elements of S3's XML body, in order.
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

/// A JSON value of any shape (RFC 8259), for parts of messages that a sandbox keeps unchanged. Unlike `JSONValue`, it
/// distinguishes null from absent fields, as the real servers do. It also does not use our own reader to read our own
/// writer's output.
package enum SandboxJSON: Sendable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([SandboxJSON])
    case object([String: SandboxJSON])

    /// A field of an object; nil for other values and absent fields.
    package subscript(name: String) -> SandboxJSON? { fields?[name] }

    package var text: String? { if case .string(let text) = self { text } else { nil } }
    package var number: Double? { if case .number(let number) = self { number } else { nil } }
    package var fields: [String: SandboxJSON]? { if case .object(let fields) = self { fields } else { nil } }
    package var items: [SandboxJSON]? { if case .array(let items) = self { items } else { nil } }

    init(_ number: Int) { self = .number(Double(number)) }

    static let empty = SandboxJSON.object([:])
}

extension SandboxJSON: Codable {
    package init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        // A decoder finds a value's type by refusing all others.
        func read<Value: Decodable>() -> Value? { try? value.decode(Value.self) }
        if value.decodeNil() {
            self = .null
        } else if let text: String = read() {
            self = .string(text)
        } else if let flag: Bool = read() {
            self = .bool(flag)
        } else if let number: Double = read() {
            self = .number(number)
        } else if let fields: [String: SandboxJSON] = read() {
            self = .object(fields)
        } else {
            self = .array(try value.decode([SandboxJSON].self))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .null: try value.encodeNil()
        case .bool(let flag): try value.encode(flag)
        case .number(let number): try value.encode(number)
        case .string(let text): try value.encode(text)
        case .array(let items): try value.encode(items)
        case .object(let fields): try value.encode(fields)
        }
    }
}

extension SandboxJSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral {
    package init(stringLiteral text: String) { self = .string(text) }
    package init(booleanLiteral flag: Bool) { self = .bool(flag) }
    package init(integerLiteral number: Int) { self.init(number) }
}

extension SandboxJSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
    package init(dictionaryLiteral pairs: (String, SandboxJSON)...) { self = .object(Dictionary(pairs) { $1 }) }
    package init(arrayLiteral items: SandboxJSON...) { self = .array(items) }
}
