import Foundation
import HTTPTypes
import Hummingbird
import InletCore

/// The calls around a multipart upload, except those of parts.
extension S3Service {
    func create(_ call: inout SandboxCall) throws -> Response {
        try mustBeKnown(call.fields)
        let upload = try store.createUpload(
            key: ObjectKey(call["key"]), contentType: call.fields[.contentType], partCount: 10_000,
            attributes: ObjectAttributes.of(call.fields))
        return S3XML.document(
            "InitiateMultipartUploadResult", ["Bucket": account.bucket, "Key": upload.key, "UploadId": upload.id])
    }

    /// A checksum of the whole object is a CRC.
    private func mustBeKnown(_ fields: HTTPFields) throws(SandboxRefusal) {
        guard let name = fields["x-amz-checksum-algorithm"] else { return }
        let algorithm = BodyChecks.algorithms.first { $0.rawValue == name.lowercased() }
        guard let algorithm, rules.checksums[algorithm] != .refused else {
            throw .badRequest("This store does not know the checksum algorithm \(name).")
        }
        guard algorithm != .sha256 || fields["x-amz-checksum-type"] != "FULL_OBJECT" else {
            throw .badRequest("The FULL_OBJECT checksum type cannot be used with the SHA256 checksum algorithm.")
        }
    }

    func complete(_ call: inout SandboxCall) async throws -> Response {
        let (key, upload) = (try ObjectKey(call["key"]), call.query("uploadId") ?? "")
        let listed = try S3XML.partList(String(decoding: try await call.body.whole(), as: UTF8.self))
        let isNew = try mustBeNew(call.fields) && rules.composesOnlyNew
        let checks = try BodyChecks(call.fields, rules)
        let object = try store.complete(upload: upload, key: key, listed: listed, isNew: isNew) {
            hash throws(SandboxRefusal) in
            try checks.checkSums(hash)
        }
        var etag: String? = object.etag
        if case .wrongETag = call.fault { etag = "\"\(MD5.bytes(of: object.md5.bytes).hex)-\(listed.count)\"" }
        if call.fault == .missingETag { etag = nil }
        let place = URIText.encodePath("/\(account.bucket)/\(object.key)")
        return S3XML.document(
            "CompleteMultipartUploadResult",
            ["Location": "http://\(call.host)\(place)", "Bucket": account.bucket, "Key": object.key, "ETag": etag],
            checksums(of: object))
    }

    private func checksums(of object: StoredObject) -> [String] {
        BodyChecks.algorithms.filter { rules.checksums[$0] != .ignored }.compactMap { algorithm in
            object.attributes[BodyChecks.field(algorithm)].map {
                S3XML.element("Checksum\(algorithm.rawValue.uppercased())", text: $0)
            }
        }
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
        let prefix = call.query("prefix") ?? ""
        let encodes = call.query("encoding-type") == "url"
        let shown = { (text: String) in encodes ? URIText.encodePath(text) : text }
        let wanted = try pageSize("max-keys", of: call)
        let marker = try Self.marker(call)
        let all = store.objects().filter { object in
            object.key.hasPrefix(prefix) && marker.map { $0.utf8.lexicographicallyPrecedes(object.key.utf8) } ?? true
        }.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let page = all.prefix(wanted)
        let next = page.count < all.count ? page.last.map { Data($0.key.utf8).base64EncodedString() } : nil
        return S3XML.document(
            "ListBucketResult",
            [
                "Name": account.bucket, "Prefix": shown(prefix),
                "ContinuationToken": call.query("continuation-token"), "KeyCount": String(page.count),
                "MaxKeys": String(wanted), "EncodingType": encodes ? "url" : nil,
                "IsTruncated": String(page.count < all.count),
                "NextContinuationToken": next,
            ],
            page.map { object in
                S3XML.element(
                    "Contents",
                    [
                        "Key": shown(object.key), "LastModified": object.modified.rfc3339, "ETag": object.etag,
                        "Size": String(object.size),
                        "StorageClass": object.attributes["x-amz-storage-class"] ?? "STANDARD",
                    ])
            })
    }

    /// The key before the page, which the previous page gave as its token.
    private static func marker(_ call: SandboxCall) throws(SandboxRefusal) -> String? {
        guard let token = call.query("continuation-token") else { return nil }
        guard let data = Data(base64Encoded: token) else {
            throw .invalidArgument("The continuation token provided is incorrect")
        }
        return String(decoding: data, as: UTF8.self)
    }
}

/// The XML documents between S3 and its clients.
enum S3XML {
    /// Empty for no value.
    private static func elements(_ values: KeyValuePairs<String, String?>) -> String {
        values.map { name, value in value.map { "<\(name)>\($0.escapedForXML)</\(name)>" } ?? "" }.joined()
    }

    static func element(_ name: String, text: String) -> String { elements([name: text]) }

    static func element(_ name: String, _ values: KeyValuePairs<String, String?>) -> String {
        "<\(name)>\(elements(values))</\(name)>"
    }

    /// The whole document: `root` as its outermost element, in it `values`, then `items`.
    static func document(
        _ root: String, _ values: KeyValuePairs<String, String?>, _ items: [String] = []
    ) -> Response {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <\(root) xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\(elements(values))\(items.joined())</\(root)>
            """
        return Response(SandboxReply(200, type: "application/xml", body: text))
    }

    /// The parts in the body of CompleteMultipartUpload, the only XML that a client sends.
    ///
    /// - Throws: `MalformedXML`.
    static func partList(_ body: String) throws(SandboxRefusal) -> [ListedPart] {
        guard let list = inner("CompleteMultipartUpload", of: body[...]) else { throw malformed }
        var parts: [ListedPart] = []
        var rest = list
        while let start = rest.firstRange(of: "<Part>") {
            guard let end = rest[start.upperBound...].firstRange(of: "</Part>") else { throw malformed }
            let item = rest[start.upperBound..<end.lowerBound]
            guard let number = inner("PartNumber", of: item).flatMap({ Int($0.filter { !$0.isWhitespace }) }),
                let etag = inner("ETag", of: item)
            else { throw malformed }
            parts.append(ListedPart(number: number, etag: unescaped(etag).filter { !$0.isWhitespace }))
            rest = rest[end.upperBound...]
        }
        guard !parts.isEmpty else { throw malformed }
        return parts
    }

    /// The text between the tags of the first element `name`, whose start tag may have attributes.
    private static func inner(_ name: String, of text: Substring) -> Substring? {
        guard let open = text.firstRange(of: "<" + name),
            let start = text[open.upperBound...].firstIndex(of: ">"),
            let end = text[start...].firstRange(of: "</\(name)>")
        else { return nil }
        return text[text.index(after: start)..<end.lowerBound]
    }

    private static func unescaped(_ text: Substring) -> String {
        var text = String(text)
        for (name, value) in [("quot", "\""), ("#34", "\""), ("#x22", "\""), ("lt", "<"), ("gt", ">"), ("amp", "&")] {
            text = text.replacing("&\(name);", with: value)
        }
        return text
    }

    private static let malformed = SandboxRefusal(
        400, "MalformedXML", "The body is not a list of parts as CompleteMultipartUpload has it.")
}
