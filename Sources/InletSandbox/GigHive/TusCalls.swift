import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import SystemPackage

/// The calls of tus 1.0.0: creation, creation-with-upload, termination.
struct TusCalls: Sendable {
    private static let version = "1.0.0"

    let store: TusStore

    func options() -> Response {
        var response = answer(.ok)
        response.headers[.tusVersion] = Self.version
        response.headers[.tusExtension] = "creation,creation-with-upload,termination"
        return response
    }

    func create(_ request: Request, _ body: inout IncomingBody, host: String, _ rules: GigHiveRules) async throws
        -> Response
    {
        try checkVersion(request.headers)
        guard let length = request.headers[.uploadLength].flatMap(Int64.init), length >= 0 else {
            throw GigHiveRefusal.tus(400, "ERR_INVALID_UPLOAD_LENGTH: missing or invalid Upload-Length header")
        }
        let upload = try store.create(length: length, metadata: request.headers[.uploadMetadata] ?? "")
        var response = answer(.created)
        response.headers[.location] = "http://\(host)/files/\(upload.info.id)"
        if request.headers[.contentType] == Self.contentType {
            let offset = try await receive(upload.info.id, at: 0, &body, rules)
            response.headers[.uploadOffset] = String(offset)
        }
        return response
    }

    func patch(_ id: String, _ request: Request, _ body: inout IncomingBody, _ rules: GigHiveRules) async throws
        -> Response
    {
        try checkVersion(request.headers)
        guard request.headers[.contentType] == Self.contentType else {
            throw GigHiveRefusal.tus(400, "ERR_INVALID_CONTENT_TYPE: missing or invalid Content-Type header")
        }
        guard let offset = request.headers[.uploadOffset].flatMap(Int64.init), offset >= 0 else {
            throw GigHiveRefusal.tus(400, "ERR_INVALID_OFFSET: missing or invalid Upload-Offset header")
        }
        let reached = try await receive(id, at: offset, &body, rules)
        var response = answer(.noContent)
        response.headers[.uploadOffset] = String(reached)
        return response
    }

    func head(_ id: String, _ fields: HTTPFields) throws -> Response {
        try checkVersion(fields)
        guard let upload = store.upload(id) else { throw GigHiveRefusal.tusNotFound }
        var response = answer(.ok)
        response.headers[.uploadOffset] = String(upload.offset)
        response.headers[.uploadLength] = String(upload.info.length)
        if !upload.info.metadata.isEmpty { response.headers[.uploadMetadata] = upload.info.metadata }
        response.headers[.cacheControl] = "no-store"
        // The server behind tells the length of the data, which no body follows.
        response.headers[.contentLength] = String(upload.info.length)
        return response
    }

    func delete(_ id: String, _ fields: HTTPFields) throws -> Response {
        try checkVersion(fields)
        try store.remove(id)
        return answer(.noContent)
    }

    private static let contentType = "application/offset+octet-stream"

    private func checkVersion(_ fields: HTTPFields) throws(GigHiveRefusal) {
        guard fields[.tusResumable] == Self.version else {
            throw .tus(
                412, "ERR_UNSUPPORTED_VERSION: missing, invalid or unsupported Tus-Resumable header")
        }
    }

    private func answer(_ status: HTTPResponse.Status) -> Response {
        Response(status: status, headers: [.tusResumable: Self.version])
    }

    /// Appends the body; returns the offset that is reached.
    private func receive(
        _ id: String, at start: Int64, _ body: inout IncomingBody, _ rules: GigHiveRules
    ) async throws -> Int64 {
        let upload = try store.beginReceiving(id, at: start)
        var offset = start
        defer { store.endReceiving(id, at: offset) }
        let rest = upload.info.length - start
        guard Int64(body.expected ?? 0) <= rest else { throw Self.tooMuch }
        let file = try FileDescriptor.open(store.path(of: id), .writeOnly, options: .closeOnExec)
        // How much has come is asked of the file, not of this.
        defer { try? file.close() }
        do {
            while let chunk = try await body.next() {
                guard offset - start + Int64(chunk.readableBytes) <= rest else { throw Self.tooMuch }
                try chunk.withUnsafeReadableBytes { _ = try file.writeAll(toAbsoluteOffset: offset, $0) }
                offset += Int64(chunk.readableBytes)
            }
        } catch {
            if rules.holdsBackPatches {
                try file.resize(to: start)
                offset = start
            }
            throw error
        }
        return offset
    }

    private static let tooMuch = GigHiveRefusal.tus(413, "ERR_UPLOAD_SIZE_EXCEEDED: upload's size exceeded")
}

extension HTTPField.Name {
    static let tusResumable = tus("Tus-Resumable")
    fileprivate static let tusVersion = tus("Tus-Version")
    fileprivate static let tusExtension = tus("Tus-Extension")
    fileprivate static let uploadLength = tus("Upload-Length")
    fileprivate static let uploadOffset = tus("Upload-Offset")
    fileprivate static let uploadMetadata = tus("Upload-Metadata")

    /// Every name above is a valid token, so the fallback is never taken.
    private static func tus(_ name: String) -> HTTPField.Name { HTTPField.Name(name) ?? .eTag }
}
