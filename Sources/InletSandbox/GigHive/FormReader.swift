import Foundation
import NIOCore

/// Takes a `multipart/form-data` body apart (RFC 7578, RFC 2046 section 5.1) as it comes, holding a chunk at a time.
struct FormReader {
    /// One part's head.
    struct Part: Equatable {
        var name: String
        var fileName: String?
        var contentType: String?
    }

    enum Piece {
        case begin(Part)
        case content(UnsafeRawBufferPointer)
        case end
    }

    private enum State {
        case preamble
        case afterDelimiter
        case head
        case content
        case finished
    }

    private static let longestHead = 16 << 10

    private let delimiter: [UInt8]
    private var state = State.preamble
    /// What was not yet made out; begins with a line end, as the first delimiter may stand at the very start.
    private var pending: [UInt8] = [13, 10]

    /// Whether the closing delimiter has come.
    var isFinished: Bool { if case .finished = state { true } else { false } }

    /// nil when `contentType` is not that of a form with a boundary.
    init?(contentType: String?) {
        guard let contentType, contentType.lowercased().hasPrefix("multipart/form-data"),
            let boundary = HeaderParameters.value("boundary", of: contentType), !boundary.isEmpty
        else { return nil }
        delimiter = Array("\r\n--\(boundary)".utf8)
    }

    /// - Throws: What `sink` throws; `badRequest` for a head that is none.
    mutating func feed(_ chunk: ByteBuffer, _ sink: (Piece) throws -> Void) throws {
        pending.append(contentsOf: chunk.readableBytesView)
        var position = 0
        while let next = try step(from: position, sink) { position = next }
        pending.removeFirst(position)
        try flush(sink)
    }

    /// Goes on from `position` of what is pending; nil when more must come first.
    private mutating func step(from position: Int, _ sink: (Piece) throws -> Void) throws -> Int? {
        switch state {
        case .preamble, .content:
            guard let found = find(delimiter, from: position) else { return nil }
            if case .content = state {
                if found > position { try give(position..<found, sink) }
                try sink(.end)
            }
            state = .afterDelimiter
            return found + delimiter.count
        case .afterDelimiter:
            guard pending.count >= position + 2 else { return nil }
            state = pending[position] == UInt8(ascii: "-") ? .finished : .head
            return position + 2
        case .head:
            guard let end = find([13, 10, 13, 10], from: max(position - 2, 0)) else {
                guard pending.count - position <= Self.longestHead else {
                    throw GigHiveRefusal.badRequest("The head of a part is too long")
                }
                return nil
            }
            let head = end < position ? "" : String(decoding: pending[position..<end], as: UTF8.self)
            try sink(.begin(Self.part(head)))
            state = .content
            return end + 4
        case .finished:
            return position < pending.count ? pending.count : nil
        }
    }

    /// Lets go of bytes that cannot be the beginning of a delimiter any more.
    private mutating func flush(_ sink: (Piece) throws -> Void) throws {
        let sure = pending.count - delimiter.count + 1
        guard sure > 0 else { return }
        switch state {
        case .content: try give(0..<sure, sink)
        case .preamble: break
        case .afterDelimiter, .head, .finished: return
        }
        pending.removeFirst(sure)
    }

    private func give(_ range: Range<Int>, _ sink: (Piece) throws -> Void) throws {
        try pending.withUnsafeBytes { try sink(.content(UnsafeRawBufferPointer(rebasing: $0[range]))) }
    }

    /// Where `pattern` begins, which has two bytes or more.
    private func find(_ pattern: [UInt8], from start: Int) -> Int? {
        pending.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var position = start
            while position + pattern.count <= bytes.count,
                let found = memchr(base + position, Int32(pattern[0]), bytes.count - position - pattern.count + 1)
            {
                if memcmp(found, pattern, pattern.count) == 0 { return UnsafeRawPointer(found) - base }
                position = UnsafeRawPointer(found) - base + 1
            }
            return nil
        }
    }

    private static func part(_ head: String) -> Part {
        var part = Part(name: "")
        for line in head.split(separator: "\r\n") {
            let halves = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard halves.count == 2 else { continue }
            let value = halves[1].trimmingCharacters(in: .whitespaces)
            switch halves[0].lowercased() {
            case "content-disposition":
                part.name = HeaderParameters.value("name", of: value) ?? ""
                part.fileName = HeaderParameters.value("filename", of: value)
            case "content-type": part.contentType = value
            default: break
            }
        }
        return part
    }
}

/// Parameters of a field's value: `form-data; name="file"; filename="a \"b\".mp4"`.
enum HeaderParameters {
    static func value(_ name: String, of text: String) -> String? {
        var rest = text[...]
        while let semicolon = rest.firstIndex(of: ";") {
            rest = rest[rest.index(after: semicolon)...].drop { $0 == " " || $0 == "\t" }
            guard let equals = rest.firstIndex(of: "=") else { return nil }
            let found = rest[..<equals].lowercased()
            rest = rest[rest.index(after: equals)...]
            let value = rest.first == "\"" ? quoted(&rest) : plain(&rest)
            if found == name { return value }
        }
        return nil
    }

    private static func plain(_ rest: inout Substring) -> String {
        let end = rest.firstIndex(of: ";") ?? rest.endIndex
        defer { rest = rest[end...] }
        return rest[..<end].trimmingCharacters(in: .whitespaces)
    }

    private static func quoted(_ rest: inout Substring) -> String {
        var value = ""
        rest.removeFirst()
        while let character = rest.popFirst(), character != "\"" {
            if character == "\\", let next = rest.popFirst() {
                // Browsers send a backslash as it is; curl sends it, and the quote, escaped.
                value += next == "\"" || next == "\\" ? "\(next)" : "\\\(next)"
            } else {
                value.append(character)
            }
        }
        return value
    }
}
