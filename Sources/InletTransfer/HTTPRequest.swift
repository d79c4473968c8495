package import InletCore
package import InletLinux
package import SystemPackage

/// Header fields in their order.
package typealias HTTPFields = [(name: String, value: String)]

/// The body of a request; its length is always known and sent as Content-Length.
package enum HTTPBody: Sendable {
    case none
    case bytes([UInt8])
    /// `length` bytes of the open file from `offset`, read while they are sent.
    case slice(SourceFile, offset: Int64, length: Int64)
    /// `length` bytes of the open file from `offset`, between two texts: the one file of a form (RFC 7578).
    case form(header: [UInt8], SourceFile, offset: Int64, length: Int64, footer: [UInt8])

    package var length: Int64 {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .slice(_, _, let length): length
        case .form(let header, _, _, let length, let footer): Int64(header.count + footer.count) + length
        }
    }

    /// The number of the first `sent` bytes that count as progress: of a form, those of its file.
    func payload(in sent: Int64) -> Int64 {
        guard case .form(let header, _, _, let length, _) = self else { return sent }
        return min(max(sent - Int64(header.count), 0), length)
    }

    /// The file that is read while it is sent, and its range.
    var file: (source: SourceFile, offset: Int64, length: Int64)? {
        switch self {
        case .none, .bytes: nil
        case .slice(let source, let offset, let length): (source, offset, length)
        case .form(_, let source, let offset, let length, _): (source, offset, length)
        }
    }
}

/// One request. HTTP/1.1, no redirects, no `Expect: 100-continue`.
package struct HTTPRequest: Sendable {
    package var method: String
    package var url: HTTPURL
    /// Sent unchanged; `HTTPClient.send` refuses names and values that would break the framing.
    package var headers: HTTPFields
    package var body: HTTPBody
    /// Largest answer body, in bytes.
    package var answerLimit: Int
    /// From the acknowledged end of the body (without one: from the start) to the end of the answer.
    package var answerDeadline: Duration
    /// The longest time without a byte in either direction once connected.
    package var stallTimeout: Duration
    /// The server's time for silent work between the end of the body and its answer; nil = `stallTimeout`.
    package var silenceTimeout: Duration?
    /// Name look-up, TCP and TLS together.
    package var connectTimeout: Duration
    /// Connects to this socket instead of the URL's host and port.
    package var unixSocket: FilePath?
    /// Whether the request continues when its task is cancelled: for orders that must not be cut off between the
    /// server's doing and our knowing. The other limits hold.
    package var outlivesCancellation = false
    /// Credentials in the body. Those in headers and in the query are recognised by name.
    package var secrets: [Secret] = []
    /// The period in which `Pace.least` bytes must move.
    var paceWindow = Pace.usualWindow
    /// Only connects, without checking the peer, and reports the certificate: nothing of the request is sent.
    var readsCertificate = false

    package init(
        _ method: String, _ url: HTTPURL, headers: HTTPFields = [], body: HTTPBody = .none,
        answerLimit: Int = 1 << 20, answerDeadline: Duration = .seconds(60), stallTimeout: Duration = .seconds(60),
        connectTimeout: Duration = .seconds(10), unixSocket: FilePath? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.answerLimit = answerLimit
        self.answerDeadline = answerDeadline
        self.stallTimeout = stallTimeout
        self.connectTimeout = connectTimeout
        self.unixSocket = unixSocket
    }

    /// The same, with waiting times of at most `limit`; nil = unchanged.
    func stalling(atMost limit: Duration?) -> HTTPRequest {
        guard let limit else { return self }
        var request = self
        request.stallTimeout = min(stallTimeout, limit)
        request.silenceTimeout = silenceTimeout.map { min($0, limit) }
        return request
    }

    /// `PUT https://host/path`, for error texts.
    var label: String { "\(DisplayText.escape(method)) \(url.redacted)" }

    /// Whether the method promises a body, so that an empty one still needs `Content-Length: 0`.
    var hasBody: Bool {
        if case .none = body { return method == "PUT" || method == "POST" || method == "PATCH" }
        return true
    }

    /// A body that is sent in one piece with the header. nil for larger ones, and for requests that curl must not
    /// repeat by itself, as it does with such bodies.
    var inlineBody: [UInt8]? {
        guard case .bytes(let bytes) = body, !bytes.isEmpty, bytes.count <= 64 << 10, isRepeatable else { return nil }
        return bytes
    }

    /// Whether the request may be repeated (RFC 9110, 9.2.2).
    var isRepeatable: Bool {
        switch method {
        case "GET", "HEAD", "OPTIONS", "PUT", "DELETE": true
        default: false
        }
    }

    /// Refuses data that would become protocol: RFC 9110 tokens for method and names, no CR, LF or NUL in values, no
    /// framing fields besides our own.
    func validate() throws(TransferError) {
        guard Self.isToken(method) else {
            throw refusal("the method \(DisplayText.escape(method)) is not an HTTP token")
        }
        for (name, value) in headers {
            guard Self.isToken(name) else {
                throw refusal("the header name \(DisplayText.escape(name)) is not an HTTP token")
            }
            guard Self.isText(value) else {
                throw refusal("the value of header \(name) contains a control character")
            }
            if Self.ownFields.contains(where: { FieldName.isSame(name, $0) }) {
                throw refusal("the header \(name) is set by the client")
            }
        }
        if let file = body.file, file.offset < 0 || file.length < 0 {
            throw refusal("the body's offset or length is negative")
        }
    }

    private static let ownFields = ["expect", "connection", "content-length", "transfer-encoding"]

    private func refusal(_ why: String) -> TransferError {
        TransferError(.badRequest, "\(label) was not sent: \(why)", isOutage: false)
    }

    private static func isText(_ value: String) -> Bool {
        FieldName.bytes(of: value) { $0.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 } }
    }

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty && FieldName.bytes(of: text) { $0.allSatisfy(FieldName.isTokenByte) }
    }
}

/// Names of header fields, compared for every request: nothing is allocated.
enum FieldName {
    /// Whether `name` equals it, in any case (RFC 9110, 5.1).
    /// - Parameter lower: in lower case, of letters and hyphens.
    static func isSame(_ name: String, _ lower: String) -> Bool { isSame(name.utf8, lower) }

    static func isSame(_ name: some Collection<UInt8>, _ lower: String) -> Bool {
        name.count == lower.utf8.count && zip(name, lower.utf8).allSatisfy { lowercased($0) == $1 }
    }

    static func lowercased(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// The characters of names and methods (RFC 9110, 5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "-!#$%&'*+.^_`|~".utf8.contains(byte)
        }
    }

    /// Reads a text's bytes in place; a text that is not stored as UTF-8 is copied first.
    static func bytes<Answer>(of text: String, _ look: (UnsafeBufferPointer<UInt8>) -> Answer) -> Answer {
        if let answer = text.utf8.withContiguousStorageIfAvailable(look) { return answer }
        return Array(text.utf8).withUnsafeBufferPointer(look)
    }
}
