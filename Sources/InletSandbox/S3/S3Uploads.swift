import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// The calls around a multipart upload, all but the parts themselves.
extension S3Service {
    func create(_ call: inout SandboxCall) throws -> Response {
        let upload = try store.createUpload(
            key: ObjectKey(call["key"]), contentType: call.fields[.contentType], partCount: 10_000,
            attributes: ObjectAttributes.of(call.fields))
        return S3XML.document(
            "InitiateMultipartUploadResult", ["Bucket": account.bucket, "Key": upload.key, "UploadId": upload.id])
    }

    func complete(_ call: inout SandboxCall) async throws -> Response {
        let (key, upload) = (try ObjectKey(call["key"]), call.query("uploadId") ?? "")
        let listed = try S3XML.partList(String(decoding: try await call.body.whole(), as: UTF8.self))
        let isNew = try mustBeNew(call.fields) && rules.composesOnlyNew
        let object = try store.complete(upload: upload, key: key, listed: listed, isNew: isNew)
        var etag: String? = object.etag
        if case .wrongETag = call.fault { etag = "\"\(MD5.bytes(of: object.md5.bytes).hex)-\(listed.count)\"" }
        if call.fault == .missingETag { etag = nil }
        let place = URIText.encodePath("/\(account.bucket)/\(object.key)")
        return S3XML.document(
            "CompleteMultipartUploadResult",
            ["Location": "http://\(call.host)\(place)", "Bucket": account.bucket, "Key": object.key, "ETag": etag])
    }

    func abort(_ call: inout SandboxCall) throws -> Response {
        try store.abort(upload: call.query("uploadId") ?? "", key: ObjectKey(call["key"]).text)
        return Response(status: .noContent)
    }

    func listParts(_ call: inout SandboxCall) throws -> Response {
        let (key, upload) = (call["key"], call.query("uploadId") ?? "")
        let marker = try number("part-number-marker", of: call) ?? 0
        let wanted = try pageSize("max-parts", of: call)
        let parts = try store.parts(upload: upload, key: ObjectKey(key)).filter { $0.number > marker }
        let page = parts.prefix(wanted)
        let next = page.count < parts.count ? page.last.map { String($0.number) } : nil
        return S3XML.document(
            "ListPartsResult",
            [
                "Bucket": account.bucket, "Key": key, "UploadId": upload, "PartNumberMarker": String(marker),
                "MaxParts": String(wanted), "IsTruncated": String(page.count < parts.count),
                "NextPartNumberMarker": next,
            ],
            page.map { part in
                S3XML.element(
                    "Part",
                    [
                        "PartNumber": String(part.number), "LastModified": part.modified.rfc3339,
                        "ETag": "\"\(part.etag)\"", "Size": String(part.size),
                    ])
            })
    }

    func listUploads(_ call: inout SandboxCall) throws -> Response {
        let (prefix, key, id) = (
            call.query("prefix") ?? "", call.query("key-marker") ?? "", call.query("upload-id-marker") ?? ""
        )
        let wanted = try pageSize("max-uploads", of: call)
        let all = Self.uploads(after: key, id, store.uploads().filter { $0.key.hasPrefix(prefix) })
        let page = all.prefix(wanted)
        let last = page.count < all.count ? page.last : nil
        return S3XML.document(
            "ListMultipartUploadsResult",
            [
                "Bucket": account.bucket, "KeyMarker": key, "UploadIdMarker": id, "Prefix": prefix,
                "MaxUploads": String(wanted), "IsTruncated": String(page.count < all.count),
                "NextKeyMarker": last?.key, "NextUploadIdMarker": last?.id,
            ],
            page.map { upload in
                S3XML.element(
                    "Upload",
                    [
                        "Key": upload.key, "UploadId": upload.id,
                        "StorageClass": upload.attributes["x-amz-storage-class"] ?? "STANDARD",
                        "Initiated": upload.created.rfc3339,
                    ])
            })
    }

    /// What follows the markers: with a key alone, the uploads of later keys.
    private static func uploads(after key: String, _ id: String, _ uploads: [UploadRecord]) -> [UploadRecord] {
        if key.isEmpty { return uploads }
        if let index = uploads.firstIndex(where: { $0.key == key && $0.id == id }) {
            return Array(uploads[(index + 1)...])
        }
        return uploads.filter { key.utf8.lexicographicallyPrecedes($0.key.utf8) }
    }

    private func number(_ name: String, of call: SandboxCall) throws(SandboxRefusal) -> Int? {
        guard let text = call.query(name), !text.isEmpty else { return nil }
        guard let number = Int(text), number >= 0 else {
            throw .invalidArgument("Argument \(name) must be an integer between 0 and 2147483647")
        }
        return number
    }

    /// How many entries a page may have.
    private func pageSize(_ name: String, of call: SandboxCall) throws(SandboxRefusal) -> Int {
        let limit = max(1, rules.pageSize)
        return min(try number(name, of: call) ?? limit, limit)
    }
}

/// ListObjectsV2: one page of the objects in the order of their keys' bytes.
extension S3Service {
    func listObjects(_ call: inout SandboxCall) throws -> Response {
        let (prefix, delimiter) = (call.query("prefix") ?? "", call.query("delimiter") ?? "")
        let encodes = call.query("encoding-type") == "url"
        let shown = { (text: String) in encodes ? URIText.encodePath(text) : text }
        let wanted = try pageSize("max-keys", of: call)
        let all = entries(prefix: prefix, delimiter: delimiter, after: try Self.marker(call))
        let page = all.prefix(wanted)
        let next = page.count < all.count ? page.last.map { Data($0.name.utf8).base64EncodedString() } : nil
        return S3XML.document(
            "ListBucketResult",
            [
                "Name": account.bucket, "Prefix": shown(prefix), "StartAfter": call.query("start-after").map(shown),
                "ContinuationToken": call.query("continuation-token"), "KeyCount": String(page.count),
                "MaxKeys": String(wanted), "Delimiter": delimiter.isEmpty ? nil : shown(delimiter),
                "EncodingType": encodes ? "url" : nil, "IsTruncated": String(page.count < all.count),
                "NextContinuationToken": next,
            ],
            page.map { name, object in
                guard let object else { return S3XML.element("CommonPrefixes", ["Prefix": shown(name)]) }
                return S3XML.element(
                    "Contents",
                    [
                        "Key": shown(name), "LastModified": object.modified.rfc3339, "ETag": object.etag,
                        "Size": String(object.size),
                        "StorageClass": object.attributes["x-amz-storage-class"] ?? "STANDARD",
                    ])
            })
    }

    /// Where the page begins; a token of the page before goes over `start-after`.
    private static func marker(_ call: SandboxCall) throws(SandboxRefusal) -> String? {
        guard let token = call.query("continuation-token") else { return call.query("start-after") }
        guard let data = Data(base64Encoded: token) else {
            throw .invalidArgument("The continuation token provided is incorrect")
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// Objects, and prefixes in the place of those that share one up to the delimiter.
    private func entries(prefix: String, delimiter: String, after marker: String?) -> [(
        name: String, object: StoredObject?
    )] {
        var entries: [(name: String, object: StoredObject?)] = []
        let objects = store.objects().filter { $0.key.hasPrefix(prefix) }
        for object in objects.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            let cut = delimiter.isEmpty ? nil : object.key.dropFirst(prefix.count).firstRange(of: delimiter)
            let name = cut.map { String(object.key[..<$0.upperBound]) } ?? object.key
            if let marker, !marker.utf8.lexicographicallyPrecedes(name.utf8) { continue }
            if cut != nil, entries.last?.name == name { continue }
            entries.append((name, cut == nil ? object : nil))
        }
        return entries
    }
}
