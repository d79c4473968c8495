/// Collects an answer within bounds: 200 header fields, 64 KiB of header, `limit` bytes of body.
struct AnswerBuffer {
    /// Why an answer is not read on.
    enum Refusal: Equatable {
        case headerTooLarge
        /// libcurl would hand over what it makes of the body, and nobody asked for another coding than the usual one.
        case coded(String)
        /// 101: what follows is no HTTP, and nobody asked for it.
        case switchesProtocol
    }

    static let fieldLimit = 200
    static let headerLimit = 64 * 1024
    private static let usualFields = 12

    private let limit: Int
    private var fields: HTTPFields = []
    private var lines = 0
    private var headerSize = 0
    private var body: [UInt8] = []
    /// Status of the latest header, also of an interim one (1xx); 0 before the first.
    private(set) var status = 0
    /// Whether the empty line after a final status was reached.
    private(set) var hasFields = false

    init(limit: Int) { self.limit = limit }

    /// Whether any byte of an answer was understood.
    var hasBegun: Bool { lines > 0 }

    /// Takes one line of the header, with its line end.
    ///
    /// The bounds are those of all heads of an answer together, interim ones too, and of the lines behind a chunked body.
    /// These say nothing: what is read there was not known when the body was (RFC 9110, 6.5.1).
    mutating func take(line: UnsafeRawBufferPointer) -> Refusal? {
        headerSize += line.count
        lines += 1
        guard headerSize <= Self.headerLimit, lines <= Self.fieldLimit + 2 else { return .headerTooLarge }
        if hasFields { return nil }
        let text = Self.trimmed(line[...])
        if text.starts(with: "HTTP/".utf8) {
            // A header after an interim one: only the last counts.
            fields = []
            fields.reserveCapacity(Self.usualFields)
            let words = text.split(separator: UInt8(ascii: " "))
            status = words.dropFirst().first.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
        } else if text.isEmpty {
            if status == 101 { return .switchesProtocol }
            hasFields = status >= 200
            if hasFields { return coding.map { .coded($0) } }
        } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
            let value = Self.trimmed(text[(colon + 1)...])
            let name = UnsafeRawBufferPointer(rebasing: text[..<colon])
            fields.append((String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
        }
        return nil
    }

    /// How the body comes, where that is neither as it is nor in chunks. What is coded with its content (Content-Encoding) is
    /// left so by libcurl, and kept so: it is what was stored.
    private var coding: String? {
        let codings = fields.lazy.filter { FieldName.isSame($0.name, "transfer-encoding") }.map(\.value)
        let all = codings.joined(separator: ", ")
        return all.isEmpty || all.lowercased() == "chunked" ? nil : all
    }

    /// Without the spaces, tabs and line ends around it (RFC 9110, 5.5).
    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> UnsafeRawBufferPointer {
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
        var rest = bytes.drop(while: isSpace)
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return UnsafeRawBufferPointer(rebasing: rest)
    }

    /// Takes a piece of the body; false when the limit is passed.
    mutating func take(body piece: some Collection<UInt8>) -> Bool {
        guard body.count + piece.count <= limit else { return false }
        body.append(contentsOf: piece)
        return true
    }

    func response(status: Int) -> HTTPResponse { HTTPResponse(status: status, headers: fields, body: body) }
}
