import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// The calls around a multipart upload, all but the parts themselves.
struct S3UploadCalls: Sendable {
    let store: ObjectStore
    let bucket: String
    /// The most entries of one page.
    let pageSize: Int
    /// Whether the condition of a write is heeded.
    let composesOnlyNew: Bool

    func create(_ key: String, _ fields: HTTPFields) throws -> Response {
        let upload = try store.createUpload(
            key: ObjectKey(key), contentType: fields[.contentType] ?? "application/octet-stream", partCount: 10_000,
            attributes: ObjectAttributes.of(fields))
        return S3XML.document("InitiateMultipartUploadResult") { xml in
            xml.element("Bucket", bucket)
            xml.element("Key", upload.key)
            xml.element("UploadId", upload.id)
        }
    }

    func complete(
        _ key: String, upload: String, _ fields: HTTPFields, _ body: inout IncomingBody, host: String,
        fault: FaultAction?
    ) async throws -> Response {
        let key = try ObjectKey(key)
        let listed = try PartListXML.parse(String(decoding: try await body.whole(), as: UTF8.self))
        let isNew = try S3ObjectCalls.mustBeNew(fields) && composesOnlyNew
        let object = try store.complete(upload: upload, key: key, listed: listed, isNew: isNew)
        var etag: String? = object.etag
        if case .wrongETag = fault { etag = "\"\(ContentHash.md5(object.md5.bytes).hex)-\(listed.count)\"" }
        if fault == .missingETag { etag = nil }
        return S3XML.document("CompleteMultipartUploadResult") { xml in
            xml.element("Location", "http://\(host)" + URIText.encodePath("/\(bucket)/\(object.key)"))
            xml.element("Bucket", bucket)
            xml.element("Key", object.key)
            xml.element("ETag", etag)
        }
    }

    func abort(_ key: String, upload: String) throws -> Response {
        try store.abort(upload: upload, key: ObjectKey(key).text)
        return Response(status: .noContent)
    }

    func parts(_ key: String, upload: String, _ request: SignableRequest) throws -> Response {
        let marker = try S3Page.number("part-number-marker", of: request) ?? 0
        let wanted = try S3Page.size("max-parts", of: request, atMost: pageSize)
        let parts = try store.parts(upload: upload, key: ObjectKey(key)).filter { $0.number > marker }
        let page = parts.prefix(wanted)
        return S3XML.document("ListPartsResult") { xml in
            xml.element("Bucket", bucket)
            xml.element("Key", key)
            xml.element("UploadId", upload)
            xml.element("PartNumberMarker", String(marker))
            xml.element("MaxParts", String(wanted))
            xml.element("IsTruncated", String(page.count < parts.count))
            if page.count < parts.count { xml.element("NextPartNumberMarker", page.last.map { String($0.number) }) }
            for part in page {
                xml.element("Part") { xml in
                    xml.element("PartNumber", String(part.number))
                    xml.element("LastModified", part.modified.rfc3339)
                    xml.element("ETag", "\"\(part.etag)\"")
                    xml.element("Size", String(part.size))
                }
            }
        }
    }

    func uploads(_ request: SignableRequest) throws -> Response {
        let prefix = request.value("prefix") ?? ""
        let wanted = try S3Page.size("max-uploads", of: request, atMost: pageSize)
        let all = after(request, store.uploads().filter { $0.key.hasPrefix(prefix) })
        let page = all.prefix(wanted)
        return S3XML.document("ListMultipartUploadsResult") { xml in
            xml.element("Bucket", bucket)
            xml.element("KeyMarker", request.value("key-marker") ?? "")
            xml.element("UploadIdMarker", request.value("upload-id-marker") ?? "")
            xml.element("Prefix", prefix)
            xml.element("MaxUploads", String(wanted))
            xml.element("IsTruncated", String(page.count < all.count))
            if page.count < all.count {
                xml.element("NextKeyMarker", page.last?.key)
                xml.element("NextUploadIdMarker", page.last?.id)
            }
            for upload in page {
                xml.element("Upload") { xml in
                    xml.element("Key", upload.key)
                    xml.element("UploadId", upload.id)
                    xml.element("StorageClass", upload.attributes?["x-amz-storage-class"] ?? "STANDARD")
                    xml.element("Initiated", upload.created?.rfc3339)
                }
            }
        }
    }

    /// What follows the markers: with a key alone, the uploads of later keys.
    private func after(_ request: SignableRequest, _ uploads: [UploadRecord]) -> [UploadRecord] {
        guard let key = request.value("key-marker"), !key.isEmpty else { return uploads }
        let id = request.value("upload-id-marker") ?? ""
        if let index = uploads.firstIndex(where: { $0.key == key && $0.id == id }) {
            return Array(uploads[(index + 1)...])
        }
        return uploads.filter { key.utf8.lexicographicallyPrecedes($0.key.utf8) }
    }
}

/// The numbers that bound a page.
enum S3Page {
    static func number(_ name: String, of request: SignableRequest) throws(StoreError) -> Int? {
        guard let text = request.value(name), !text.isEmpty else { return nil }
        guard let number = Int(text), number >= 0 else {
            throw .invalidArgument("Argument \(name) must be an integer between 0 and 2147483647")
        }
        return number
    }

    static func size(_ name: String, of request: SignableRequest, atMost limit: Int) throws(StoreError) -> Int {
        min(try number(name, of: request) ?? limit, limit)
    }
}
