/// Collects an answer within bounds: 200 header fields, 64 KiB of header, `limit` bytes of body.
struct AnswerBuffer {
    static let fieldLimit = 200
    static let headerLimit = 64 * 1024

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

    /// Takes one line of the header, with its line end; false when a bound is passed.
    mutating func take(line: some Collection<UInt8>) -> Bool {
        headerSize += line.count
        lines += 1
        guard headerSize <= Self.headerLimit, lines <= Self.fieldLimit + 2 else { return false }
        let text = String(decoding: line, as: UTF8.self).trimming { $0.isWhitespace }
        if text.hasPrefix("HTTP/"), !hasFields {
            // A header after an interim one: only the last counts.
            fields = []
            status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        } else if text.isEmpty {
            hasFields = hasFields || status >= 200
        } else if let colon = text.firstIndex(of: ":") {
            let value = text[text.index(after: colon)...]
            fields.append((String(text[..<colon]), String(value).trimming { $0.isWhitespace }))
        }
        return true
    }

    /// Takes a piece of the body; false when the limit is passed.
    mutating func take(body piece: some Collection<UInt8>) -> Bool {
        guard body.count + piece.count <= limit else { return false }
        body.append(contentsOf: piece)
        return true
    }

    func response(status: Int) -> HTTPResponse { HTTPResponse(status: status, headers: fields, body: body) }
}

extension String {
    /// The text without leading and trailing characters that `drops` names.
    fileprivate func trimming(_ drops: (Character) -> Bool) -> String {
        var rest = drop(while: drops)
        while let last = rest.last, drops(last) { rest.removeLast() }
        return String(rest)
    }
}
