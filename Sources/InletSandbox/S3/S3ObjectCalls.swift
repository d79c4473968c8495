import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// PutObject, GetObject, HeadObject and DeleteObject.
struct S3ObjectCalls: Sendable {
    let store: ObjectStore
    let faults: Faults<S3Operation>
    /// The longest body of one PUT, in bytes.
    let largestBody: Int64

    func put(
        _ key: String, _ fields: HTTPFields, _ payload: PayloadHash, _ body: inout IncomingBody, fault: FaultAction?
    )
        async throws -> Response
    {
        let key = try ObjectKey(key)
        guard fields[.amzCopySource] == nil else { throw StoreError.notImplemented("CopyObject") }
        let isNew = try Self.mustBeNew(fields)
        if isNew { try store.checkNew(key) }
        var checks = try BodyChecks(fields, payload: payload)
        var file = try IncomingFile(in: store.folders.incoming, withCRC32C: checks.needsCRC32C)
        try await receive(&body, &checks, into: &file)
        let object = try store.keepSingle(
            key, contentType: fields[.contentType] ?? "application/octet-stream",
            attributes: ObjectAttributes.of(fields), isNew: isNew, file)
        return tagged(object.md5.bytes, checks, fault: fault)
    }

    func part(
        _ number: Int, upload: String, key: String, _ fields: HTTPFields, _ payload: PayloadHash,
        _ body: inout IncomingBody, fault: FaultAction?
    ) async throws -> Response {
        let key = try ObjectKey(key)
        guard (1...10_000).contains(number) else {
            throw StoreError.invalidArgument("Part number must be an integer between 1 and 10000, inclusive")
        }
        guard fields[.amzCopySource] == nil else { throw StoreError.notImplemented("UploadPartCopy") }
        try store.checkPart(number, upload: upload, key: key)
        var checks = try BodyChecks(fields, payload: payload)
        var file = try IncomingFile(in: store.folders.incoming, withCRC32C: checks.needsCRC32C)
        try await receive(&body, &checks, into: &file)
        let etag = told(file.hash.finish().md5, fault: fault)
        try store.keepPart(number, upload: upload, etag: etag, file)
        return answer(etag, checks, fault: fault)
    }

    /// The object or the range asked for; no body for HEAD.
    func read(_ key: String, _ fields: HTTPFields, withBody: Bool) throws -> Response {
        let object = try store.object(ObjectKey(key))
        var headers = ObjectAttributes.shown(object.attributes)
        headers[.contentType] = object.contentType
        headers[.eTag] = object.etag
        headers[.acceptRanges] = "bytes"
        headers[.lastModified] = object.modified.httpDate
        guard let range = ByteRange(header: fields[.range], size: object.size) else {
            throw StoreError(status: 416, code: "InvalidRange", message: "The requested range is not satisfiable")
        }
        if range.isPartial { headers[.contentRange] = "bytes \(range.first)-\(range.end - 1)/\(object.size)" }
        headers[.contentLength] = String(range.count)
        let status: HTTPResponse.Status = range.isPartial ? .partialContent : .ok
        guard withBody, range.count > 0 else { return Response(status: status, headers: headers) }
        return Response(status: status, headers: headers, body: FileBody.slice(range, of: object.path))
    }

    func delete(_ key: String) throws -> Response {
        try store.delete(ObjectKey(key))
        return Response(status: .noContent)
    }

    /// `If-None-Match: *` is the one condition that writes know.
    static func mustBeNew(_ fields: HTTPFields) throws(StoreError) -> Bool {
        guard let condition = fields[.ifNoneMatch] else { return false }
        guard condition == "*" else { throw .notImplemented("If-None-Match with anything but *") }
        return true
    }

    private func receive(
        _ body: inout IncomingBody, _ checks: inout BodyChecks, into file: inout IncomingFile
    ) async throws {
        guard let length = body.expected else { throw StoreError.missingLength }
        guard length <= largestBody else {
            throw StoreError(
                status: 400, code: "EntityTooLarge",
                message: "Your proposed upload exceeds the maximum allowed object size.")
        }
        while let chunk = try await body.next() { try file.write(chunk) }
        try checks.check(file.hash)
    }

    /// The ETag without its quotes.
    private func told(_ md5: [UInt8], fault: FaultAction?) -> String {
        switch fault {
        case .wrongETag(.random): faults.randomBytes(16).hex
        case .wrongETag(.constant): ContentHash.md5(md5).hex
        default: md5.hex
        }
    }

    private func tagged(_ md5: [UInt8], _ checks: BodyChecks, fault: FaultAction?) -> Response {
        answer(told(md5, fault: fault), checks, fault: fault)
    }

    private func answer(_ etag: String, _ checks: BodyChecks, fault: FaultAction?) -> Response {
        var fields = checks.echoed
        if fault != .missingETag { fields[.eTag] = "\"\(etag)\"" }
        return Response(status: .ok, headers: fields)
    }
}
