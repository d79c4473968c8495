internal import FoundationEssentials
package import InletCore
internal import InletLinux

/// A complete answer, whatever its status.
package struct HTTPResponse: Sendable {
    package var status: Int
    private let head: ResponseHead
    package var body: [UInt8]
    /// From the request's start on its connection to the end of the answer.
    package var delay = Duration.zero
    /// The server's certificate in PEM, for requests that ask only for it.
    var certificate: String?
    /// The facts of that certificate and its connection; nil without TLS.
    var peer: PeerCertificate?
    /// Credentials of the request, which an answer may repeat and nobody may see.
    package var sentCredentials = SentCredentials()

    /// Removes our credentials from the answer's words. Every text for people passes through it first.
    package var redactor: Redactor { redactor(also: []) }

    /// The same for an answer that contains credentials itself.
    package func redactor(also secrets: [Secret]) -> Redactor { Redactor(sentCredentials.all + secrets) }

    package init(status: Int, headers: HTTPFields = [], body: [UInt8] = []) {
        var head = ResponseHead()
        for (name, value) in headers { head.add(name.utf8, value.utf8) }
        self.init(status: status, head: head, body: body)
    }

    init(status: Int, head: ResponseHead, body: [UInt8]) {
        (self.status, self.head, self.body) = (status, head, body)
    }

    /// The final answer's fields, in their order; names as the server spelt them.
    package var headers: HTTPFields { head.fields }

    /// The value of the first field called `name`, in any case.
    package func header(_ name: String) -> String? { head.value(of: name) }

    /// The server's clock when it answered (RFC 9110, section 6.6.1); nil when it does not say.
    package var date: WallTime? { header("Date").flatMap { WallTime(httpDate: $0) } }

    /// The wait that the server asks for (RFC 9110, section 10.2.3), at most a day; nil without one, or when it is
    /// unreadable.
    package func retryAfter(now: WallTime) -> Duration? {
        guard let value = header("Retry-After") else { return nil }
        let day = Duration.seconds(86_400)
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return Int64(value).map { min(.seconds(min($0, 86_400)), day) } ?? day
        }
        return WallTime(httpDate: value).map { min(max($0 - now, .zero), day) }
    }
}

extension WallTime {
    /// A date in one of the three formats that recipients must read (RFC 9110, section 5.6.7); the first two with years
    /// of two and of four digits.
    init?(httpDate text: String) {
        self.init(
            text,
            formats: [
                // Two digits first: they leave the rest of a four-digit year, which is not a time.
                "%a, %d %b %y %H:%M:%S GMT", "%a, %d %b %Y %H:%M:%S GMT", "%a, %d-%b-%y %H:%M:%S GMT",
                "%a, %d-%b-%Y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y",
            ])
    }
}

/// The fields of an answer as they arrived, one a line: of most answers only one or two are looked at.
struct ResponseHead: Sendable {
    /// `name`, colon, value, line feed.
    private var lines: [UInt8] = []

    private static let usualLength = 384

    mutating func add(_ name: some Collection<UInt8>, _ value: some Collection<UInt8>) {
        if lines.isEmpty { lines.reserveCapacity(Self.usualLength) }
        lines += name
        lines.append(UInt8(ascii: ":"))
        lines += value
        lines.append(UInt8(ascii: "\n"))
    }

    var fields: HTTPFields {
        lines.split(separator: UInt8(ascii: "\n")).map { line in
            let (name, value) = Self.parts(line)
            return (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
        }
    }

    func value(of name: String) -> String? {
        let wanted = name.utf8
        // No name has one (RFC 9110, 5.1).
        if wanted.contains(UInt8(ascii: ":")) { return nil }
        return lines.withUnsafeBytes { bytes -> String? in
            var start = 0
            while start < bytes.count {
                let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
                let isWanted =
                    end - start > wanted.count && bytes[start + wanted.count] == UInt8(ascii: ":")
                    && zip(bytes[start...], wanted).allSatisfy { FieldName.lowercased($0) == FieldName.lowercased($1) }
                if isWanted { return String(decoding: bytes[(start + wanted.count + 1)..<end], as: UTF8.self) }
                start = end + 1
            }
            return nil
        }
    }

    private static func parts(_ line: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, ArraySlice<UInt8>) {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        return (line[..<colon], line[colon...].dropFirst())
    }
}

/// Collects an answer within bounds: 200 header fields, 64 KiB of header, `limit` bytes of body.
struct ResponseBuffer {
    /// Why reading an answer stops; continues a sentence about it.
    typealias Refusal = (why: String, code: ErrorCode)

    static let fieldLimit = 200
    static let headerLimit = 64 * 1024

    private let limit: Int
    private var head = ResponseHead()
    /// The transfer codings. libcurl leaves a Content-Encoding in place, and so do we: it is the stored form.
    private var codings: [String] = []
    private var lines = 0
    private var headerSize = 0
    private var body: [UInt8] = []
    /// Status of the latest header, even an interim one (1xx); 0 before the first.
    private(set) var status = 0
    /// Whether the empty line after a final status was reached.
    private(set) var hasFields = false

    init(limit: Int) { self.limit = limit }

    /// Whether any byte of an answer was understood.
    var hasBegun: Bool { lines > 0 }

    /// Takes one line of the header, with its line end.
    ///
    /// The bounds cover all heads of an answer together, interim ones too, and the lines behind a chunked body. These
    /// are ignored: they were unknown when the body was read (RFC 9110, 6.5.1).
    mutating func take(line: UnsafeRawBufferPointer) -> Refusal? {
        headerSize += line.count
        lines += 1
        guard headerSize <= Self.headerLimit, lines <= Self.fieldLimit + 2 else {
            return ("its header has more than \(Self.fieldLimit) fields or \(Self.headerLimit) bytes", .answerTooLarge)
        }
        if hasFields { return nil }
        let text = Self.trimmed(line[...])
        if text.starts(with: "HTTP/".utf8) {
            // A header after an interim one: only the last counts.
            (head, codings) = (ResponseHead(), [])
            let words = text.split(separator: UInt8(ascii: " "))
            status = words.dropFirst().first.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
        } else if text.isEmpty {
            // The following bytes would not be HTTP.
            if status == 101 { return ("it switches to another protocol without a request (status 101)", .badAnswer) }
            hasFields = status >= 200
            if hasFields, let coding {
                // Otherwise libcurl would pass on its own decoding of the body.
                let shown = DisplayText.escape(String(coding.prefix(100)))
                return (
                    "its body has a coding that was not requested (Transfer-Encoding: \(shown))", .badAnswer
                )
            }
        } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
            let value = Self.trimmed(text[(colon + 1)...])
            let name = UnsafeRawBufferPointer(rebasing: text[..<colon])
            head.add(name, value)
            if FieldName.isSame(name, "transfer-encoding") { codings.append(String(decoding: value, as: UTF8.self)) }
        }
        return nil
    }

    /// The transfer coding, unless it is none or chunked.
    private var coding: String? {
        let all = codings.joined(separator: ", ")
        return all.isEmpty || all.lowercased() == "chunked" ? nil : all
    }

    /// Without surrounding spaces, tabs and line ends (RFC 9110, 5.5).
    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> UnsafeRawBufferPointer {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return UnsafeRawBufferPointer(rebasing: rest)
    }

    /// Takes a piece of the body; false when the limit is exceeded.
    mutating func take(body piece: some Collection<UInt8>) -> Bool {
        guard body.count + piece.count <= limit else { return false }
        body.append(contentsOf: piece)
        return true
    }

    func response(status: Int) -> HTTPResponse { HTTPResponse(status: status, head: head, body: body) }
}

/// Receives an answer's body as it arrives, instead of keeping it in memory.
///
/// All calls come from the transfer's thread, one after the other. Each must return within milliseconds: it may write
/// to a file but not sync it, nor hash it where the client serves other transfers. An error thrown ends the request.
package protocol ResponseSink: Sendable {
    /// The head of the final answer. false leaves the body, within `answerLimit`, to the response: for an error's.
    func begins(_ head: HTTPResponse) throws(TransferError) -> Bool

    /// The next bytes of the body, valid within the call.
    func take(_ piece: UnsafeRawBufferPointer) throws(TransferError)
}

/// The credentials sent with a request. Its answer may repeat them, and so may a proxy's.
///
/// They are found by the names of fields and query items: a new one needs nothing here.
package struct SentCredentials: Sendable {
    private var headers: HTTPFields = []
    private var url: HTTPURL?
    private var body: [Secret] = []
    private var proxy: ProxyServer?

    /// None.
    package init() {}

    package init(_ request: HTTPRequest, proxy: ProxyServer? = nil) {
        headers = request.headers
        url = request.url
        body = request.secrets
        self.proxy = proxy
    }

    /// All of them. Computed when an answer is shown, which is rare.
    var all: [Secret] { body + headers.flatMap(Self.secrets) + querySecrets + proxySecrets }

    private static let names = [
        "authorization", "token", "secret", "password", "signature", "credential", "api-key", "api_key", "cookie",
    ]
    /// Credentials that occur only in queries: in addresses that a server has signed (Azure's SAS, plain gateways).
    private static let wholeNames: Set = ["sig", "auth", "jwt", "hmac"]

    private static func isSecret(_ name: String) -> Bool {
        let lower = name.lowercased()
        return names.contains { lower.contains($0) }
    }

    private static func secrets(of field: (name: String, value: String)) -> [Secret] {
        guard isSecret(field.name) else { return [] }
        let words = field.value.split(separator: " ", maxSplits: 1)
        guard words.count == 2 else { return [Secret(field.value)] }
        switch words[0].lowercased() {
        case "basic": return [Secret(String(words[1]))] + login(String(words[1]))
        case "aws4-hmac-sha256":
            return words[1].split { ", ".contains($0) }.compactMap { part in
                if part.hasPrefix("Credential=") { return Secret(String(part.dropFirst(11).prefix { $0 != "/" })) }
                return part.hasPrefix("Signature=") ? Secret(String(part.dropFirst(10))) : nil
            }
        default: return [Secret(field.value), Secret(String(words[1]))]
        }
    }

    /// The parts of a Basic login's word (RFC 7617).
    private static func login(_ word: String) -> [Secret] {
        guard let data = Data(base64Encoded: word) else { return [] }
        let text = String(decoding: data, as: UTF8.self)
        return [text, text.firstIndex(of: ":").map { String(text[$0...].dropFirst()) } ?? text].map { Secret($0) }
    }

    private var querySecrets: [Secret] {
        guard let url, let start = url.text.firstIndex(of: "?") else { return [] }
        return url.text[start...].dropFirst().split(separator: "&").flatMap { item -> [Secret] in
            let pair = item.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, let name = pair.first.map({ Percent.decode($0).lowercased() }),
                Self.isSecret(name) || Self.wholeNames.contains(name)
            else { return [] }
            return [Secret(String(pair[1])), Secret(Percent.decode(pair[1]))]
        }
    }

    private var proxySecrets: [Secret] {
        guard let password = proxy?.password?.reveal() else { return [] }
        return [Secret(password), Secret("\(proxy?.user ?? ""):\(password)")]
    }
}
