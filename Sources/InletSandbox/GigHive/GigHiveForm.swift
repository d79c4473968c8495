import Foundation
import HTTPTypes
import InletCore
import NIOCore
import Synchronization
import SystemPackage

/// The upload in one form: its limits, the form, and the file in the library.
extension GigHiveService {
    func upload(_ call: inout SandboxCall) async throws -> SandboxReply {
        let rules = rules.withLock { $0 }
        try Self.checkLimits(Int64(call.body.expected ?? 0), rules)
        guard var reader = FormReader(contentType: call.fields[.contentType]) else {
            try await call.body.discard()
            if call.address.path != "/api/uploads", rules.firewall != .off {
                throw SandboxReply.page(415, "Unsupported Media Type")
            }
            throw Self.missingFile(call)
        }
        var form = try ReceivedForm(in: library.incoming)
        while let chunk = try await call.body.next() {
            try reader.feed(chunk) { piece in try form.take(piece) }
        }
        guard reader.isFinished || !form.hasFile && !form.hasSeveral else {
            throw SandboxReply.serverError("Upload failed with code 3")
        }
        guard !form.hasSeveral else { throw SandboxReply.badRequest("Multiple files not supported yet") }
        guard form.hasFile else { throw Self.missingFile(call) }
        guard form.file.hash.size > 0 else { throw SandboxReply.badRequest("Empty upload") }
        let asset = try library.asset(
            form.file.hash, head: form.head, declared: form.contentType ?? "application/octet-stream",
            name: form.fileName, limit: rules.maximumBytes)
        let fields = try GigHiveAsset.Entry(form.fields)
        return try .json(try library.take(asset, fields) { try form.file.move(to: $0) }, status: 201)
    }

    private static func checkLimits(_ length: Int64, _ rules: GigHiveRules) throws(SandboxReply) {
        if let limit = rules.formLimit, length > limit { throw .page(413, "Request Entity Too Large") }
        if length > rules.maximumBytes {
            switch rules.firewall {
            case .off: break
            case .detects: throw .page(500, "Internal Server Error")
            case .blocks: throw .page(413, "Request Entity Too Large")
            }
        }
        // PHP's own limits are a little above the application's.
        if length > rules.maximumBytes + rules.maximumBytes / 25 { throw payloadTooLarge }
    }

    private static let payloadTooLarge = SandboxReply.gigHive(
        413, error: "Payload Too Large",
        message: "Upload exceeded server limits (post_max_size / upload_max_filesize or web server request size).")

    /// PHP shows an over-long body as one without a file, so the application reports a missing file.
    private static func missingFile(_ call: SandboxCall) -> SandboxReply {
        call.body.received > 0 ? payloadTooLarge : .badRequest("Missing file field")
    }
}

/// A form as it comes in: fields in memory, the file on disk.
private struct ReceivedForm: ~Copyable {
    private static let longestField = 1 << 20

    private let folder: FilePath
    private(set) var file: ReceivedFile
    private(set) var hasFile = false
    /// The form has a list of files, which the application refuses.
    private(set) var hasSeveral = false
    private(set) var fileName = ""
    private(set) var contentType: String?
    /// The first bytes of the file.
    private(set) var head: [UInt8] = []
    private(set) var fields: [String: String] = [:]
    private var part: FormReader.Part?
    private var value: [UInt8] = []

    init(in folder: FilePath) throws {
        self.folder = folder
        file = try ReceivedFile(in: folder)
    }

    mutating func take(_ piece: FormReader.Element) throws {
        switch piece {
        case .begin(let part):
            (self.part, value) = (part, [])
            guard let name = part.fileName else { return }
            if part.name == "file[]" { hasSeveral = true }
            guard part.name == "file" else { return }
            // The application sees the last of two.
            if hasFile { file = try ReceivedFile(in: folder) }
            (hasFile, fileName, contentType, head) = (true, name, part.contentType, [])
        case .content(let bytes): try append(bytes)
        case .end:
            if let part, part.fileName == nil { fields[part.name] = String(decoding: value, as: UTF8.self) }
            part = nil
        }
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard part?.fileName == nil else {
            guard part?.name == "file" else { return }
            if head.count < 512 { head += bytes.prefix(512 - head.count) }
            return try file.write(bytes)
        }
        guard value.count + bytes.count <= Self.longestField else {
            throw SandboxReply.badRequest("A field is too long")
        }
        value += bytes
    }
}

/// Parses a `multipart/form-data` body (RFC 7578, RFC 2046 section 5.1) as it arrives, one chunk at a time in memory.
struct FormReader {
    /// One part's head.
    struct Part: Equatable {
        var name: String
        var fileName: String?
        var contentType: String?
    }

    enum Element {
        case begin(Part)
        case content(UnsafeRawBufferPointer)
        case end
    }

    private enum State {
        case preamble, head, content, finished
    }

    private static let longestHead = 16 << 10

    private let delimiter: [UInt8]
    private var state = State.preamble
    /// Bytes that are not parsed yet. Begins with a line end, because the first delimiter may be at the very start.
    private var pending: [UInt8] = [13, 10]

    /// Whether the closing delimiter has come.
    var isFinished: Bool { state == .finished }

    /// nil if `contentType` is not a form with a boundary.
    init?(contentType: String?) {
        guard let contentType, contentType.lowercased().hasPrefix("multipart/form-data"),
            let boundary = Self.parameter("boundary", of: contentType), !boundary.isEmpty
        else { return nil }
        delimiter = Array("\r\n--\(boundary)".utf8)
    }

    /// - Throws: The errors of `sink`; `badRequest` for an invalid head.
    mutating func feed(_ chunk: ByteBuffer, _ sink: (Element) throws -> Void) throws {
        pending.append(contentsOf: chunk.readableBytesView)
        while try step(sink) {}
    }

    /// Takes the next piece off the pending bytes; false if more must come first.
    private mutating func step(_ sink: (Element) throws -> Void) throws -> Bool {
        switch state {
        case .preamble, .content:
            let found = find(delimiter)
            // Bytes that can no longer be the beginning of a delimiter.
            let count = max(found ?? pending.count - delimiter.count + 1, 0)
            if state == .content, count > 0 {
                try pending.withUnsafeBytes { try sink(.content(UnsafeRawBufferPointer(rebasing: $0[..<count]))) }
            }
            pending.removeFirst(count + (found == nil ? 0 : delimiter.count))
            guard found != nil else { return false }
            if state == .content { try sink(.end) }
            state = .head
        case .head:
            guard pending.count >= 2 else { return false }
            if pending[0] == UInt8(ascii: "-") {
                state = .finished
                return true
            }
            // A head begins with the line end of its delimiter, so that an empty one has an end too.
            guard let end = find(Array("\r\n\r\n".utf8)) else {
                guard pending.count <= Self.longestHead else {
                    throw SandboxReply.badRequest("The head of a part is too long")
                }
                return false
            }
            try sink(.begin(Self.part(String(decoding: pending[..<end], as: UTF8.self))))
            pending.removeFirst(end + 4)
            state = .content
        case .finished:
            pending = []
            return false
        }
        return true
    }

    /// Where `pattern` (two bytes or more) begins.
    private func find(_ pattern: [UInt8]) -> Int? {
        pending.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var place = 0
            while place + pattern.count <= bytes.count,
                let found = memchr(base + place, Int32(pattern[0]), bytes.count - place - pattern.count + 1)
            {
                if memcmp(found, pattern, pattern.count) == 0 { return UnsafeRawPointer(found) - base }
                place = UnsafeRawPointer(found) - base + 1
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
                part.name = parameter("name", of: value) ?? ""
                part.fileName = parameter("filename", of: value)
            case "content-type": part.contentType = value
            default: break
            }
        }
        return part
    }

    /// A parameter of a field's value: `form-data; name="file"; filename="a \"b\".mp4"`.
    private static func parameter(_ name: String, of text: String) -> String? {
        for match in text.matches(of: /;[ \t]*([^=;"]+)=(?:"((?:[^"\\]|\\.)*)"|([^;]*))/)
        where match.1.lowercased() == name {
            guard let quoted = match.2 else { return match.3?.trimmingCharacters(in: .whitespaces) }
            // Browsers send a backslash unescaped; curl escapes it, and the quote.
            return String(quoted).replacing(/\\(["\\])/) { $0.1 }
        }
        return nil
    }
}
