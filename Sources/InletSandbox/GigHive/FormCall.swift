import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import InletLinux
import SystemPackage

/// The upload in one form: limits, the form itself, the file in the library.
struct FormCall: Sendable {
    let library: GigHiveLibrary

    func upload(
        _ door: GigHiveRoute.FormDoor, _ fields: HTTPFields, _ body: inout IncomingBody, _ rules: GigHiveRules
    ) async throws -> UploadAnswer {
        try Self.checkLimits(Int64(body.expected ?? 0), rules)
        guard let reader = FormReader(contentType: fields[.contentType]) else {
            try await body.discard()
            if door != .uploads, rules.firewall != .off { throw GigHiveRefusal.page(415, "Unsupported Media Type") }
            throw Self.missingFile(bytes: body.received)
        }
        var form = try ReceivedForm(in: library.incoming)
        try await receive(&body, reader, into: &form)
        return try file(form, rules, bytes: body.received)
    }

    private static func checkLimits(_ length: Int64, _ rules: GigHiveRules) throws(GigHiveRefusal) {
        if let limit = rules.formLimit, length > limit { throw .page(413, "Request Entity Too Large") }
        if length > rules.maximumBytes {
            switch rules.firewall {
            case .off: break
            case .detects: throw .page(500, "Internal Server Error")
            case .blocks: throw .page(413, "Request Entity Too Large")
            }
        }
        // PHP's own limits are set a little above that of the application.
        if length > rules.maximumBytes + rules.maximumBytes / 25 { throw payloadTooLarge }
    }

    private func receive(
        _ body: inout IncomingBody, _ reader: consuming FormReader, into form: inout ReceivedForm
    ) async throws {
        while let chunk = try await body.next() {
            try reader.feed(chunk) { piece in try form.take(piece) }
        }
        guard reader.isFinished || form.kind == .none else {
            throw GigHiveRefusal.serverError("Upload failed with code 3")
        }
    }

    private func file(
        _ form: borrowing ReceivedForm, _ rules: GigHiveRules, bytes: Int
    ) throws -> UploadAnswer {
        switch form.kind {
        case .none: throw Self.missingFile(bytes: bytes)
        case .several: throw GigHiveRefusal.badRequest("Multiple files not supported yet")
        case .one: break
        }
        let size = form.file.hash.size
        guard size > 0 else { throw GigHiveRefusal.badRequest("Empty upload") }
        guard size <= rules.maximumBytes else {
            throw GigHiveRefusal.badRequest("File too large (exceeds application limit)")
        }
        let fileExtension = Self.fileExtension(form.fileName)
        let declared = form.contentType ?? "application/octet-stream"
        let kind = try MediaKind.of(
            detected: MediaKind.detect(form.head), declared: declared, fileExtension: fileExtension)
        let fields = try GigFields(form.fields, today: Self.today)
        let media = ReceivedMedia(
            sha256: form.file.hash.finish().sha256.hex, size: size, fileExtension: fileExtension, kind: kind,
            mimeType: declared)
        return try library.take(media, fields) { try form.file.move(to: $0) }
    }

    /// The server's day.
    static var today: String { String(WallTime.now.rfc3339.prefix(10)) }

    /// Lower case; safe as a part of a file name.
    static func fileExtension(_ name: String) -> String {
        guard let dot = name.lastIndex(of: ".") else { return "" }
        let text = name[name.index(after: dot)...].lowercased()
        return text.utf8.count <= 16 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) } ? text : ""
    }

    private static let payloadTooLarge = GigHiveRefusal.json(
        413, error: "Payload Too Large",
        message: "Upload exceeded server limits (post_max_size / upload_max_filesize or web server request size).")

    /// PHP shows an over-long body as one without a file, so that is what the application takes a missing file for.
    private static func missingFile(bytes: Int) -> GigHiveRefusal {
        bytes > 0 ? payloadTooLarge : .badRequest("Missing file field")
    }
}

/// A form as it comes in: fields in memory, the file on disk.
struct ReceivedForm: ~Copyable {
    enum Kind {
        case none
        case one
        case several
    }

    private static let longestField = 1 << 20

    private let folder: FilePath
    private(set) var file: IncomingFile
    private(set) var kind = Kind.none
    private(set) var fileName = ""
    private(set) var contentType: String?
    /// The first bytes of the file.
    private(set) var head: [UInt8] = []
    private(set) var fields: [String: String] = [:]
    private var part: FormReader.Part?
    private var value: [UInt8] = []

    init(in folder: FilePath) throws {
        self.folder = folder
        file = try IncomingFile(in: folder)
    }

    mutating func take(_ piece: FormReader.Piece) throws {
        switch piece {
        case .begin(let part): try begin(part)
        case .content(let bytes): try append(bytes)
        case .end:
            if let part, part.fileName == nil { fields[part.name] = String(decoding: value, as: UTF8.self) }
            part = nil
        }
    }

    private mutating func begin(_ part: FormReader.Part) throws {
        self.part = part
        value = []
        guard let name = part.fileName else { return }
        if part.name == "file[]" { kind = .several }
        guard part.name == "file" else { return }
        // Of two the application sees the last.
        if kind == .one { file = try IncomingFile(in: folder) }
        if kind == .none { kind = .one }
        (fileName, contentType, head) = (name, part.contentType, [])
    }

    private mutating func append(_ bytes: UnsafeRawBufferPointer) throws {
        guard part?.fileName == nil else {
            guard part?.name == "file" else { return }
            if head.count < 512 { head += bytes.prefix(512 - head.count) }
            return try file.write(bytes)
        }
        guard value.count + bytes.count <= Self.longestField else {
            throw GigHiveRefusal.badRequest("A field is too long")
        }
        value += bytes
    }
}
