import Foundation
import Hummingbird
import InletCore

/// ListObjectsV2: one page of the objects in the order of their keys' bytes.
struct S3Listing {
    private enum Entry {
        case object(StoredObject)
        case prefix(String)

        var name: String {
            switch self {
            case .object(let object): object.key
            case .prefix(let prefix): prefix
            }
        }
    }

    private let request: SignableRequest
    private let prefix: String
    private let delimiter: String
    private let pageSize: Int
    private let encodes: Bool

    init(_ request: SignableRequest, pageSize: Int) throws(StoreError) {
        self.request = request
        prefix = request.value("prefix") ?? ""
        delimiter = request.value("delimiter") ?? ""
        encodes = request.value("encoding-type") == "url"
        self.pageSize = try S3Page.size("max-keys", of: request, atMost: pageSize)
    }

    func response(bucket: String, _ objects: [StoredObject]) throws(StoreError) -> Response {
        let entries = entries(of: objects, after: try marker())
        let page = entries.prefix(pageSize)
        return S3XML.document("ListBucketResult") { xml in
            xml.element("Name", bucket)
            xml.element("Prefix", shown(prefix))
            xml.element("StartAfter", request.value("start-after").map(shown))
            xml.element("ContinuationToken", request.value("continuation-token"))
            xml.element("KeyCount", String(page.count))
            xml.element("MaxKeys", String(pageSize))
            xml.element("Delimiter", delimiter.isEmpty ? nil : shown(delimiter))
            xml.element("EncodingType", encodes ? "url" : nil)
            xml.element("IsTruncated", String(page.count < entries.count))
            if page.count < entries.count, let last = page.last {
                xml.element("NextContinuationToken", Data(last.name.utf8).base64EncodedString())
            }
            for entry in page { write(entry, to: &xml) }
        }
    }

    private func write(_ entry: Entry, to xml: inout S3XML) {
        switch entry {
        case .prefix(let prefix):
            xml.element("CommonPrefixes") { $0.element("Prefix", shown(prefix)) }
        case .object(let object):
            xml.element("Contents") { xml in
                xml.element("Key", shown(object.key))
                xml.element("LastModified", object.modified.rfc3339)
                xml.element("ETag", object.etag)
                xml.element("Size", String(object.size))
                xml.element("StorageClass", object.attributes["x-amz-storage-class"] ?? "STANDARD")
            }
        }
    }

    /// Where the page begins; a token of the page before goes over `start-after`.
    private func marker() throws(StoreError) -> String? {
        guard let token = request.value("continuation-token") else { return request.value("start-after") }
        guard let data = Data(base64Encoded: token) else {
            throw .invalidArgument("The continuation token provided is incorrect")
        }
        return String(decoding: data, as: UTF8.self)
    }

    private func entries(of objects: [StoredObject], after marker: String?) -> [Entry] {
        var entries: [Entry] = []
        let wanted = objects.filter { $0.key.hasPrefix(prefix) }
        for object in wanted.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            let entry = entry(of: object)
            if let marker, !marker.utf8.lexicographicallyPrecedes(entry.name.utf8) { continue }
            if case .prefix(let prefix) = entry, entries.last?.name == prefix { continue }
            entries.append(entry)
        }
        return entries
    }

    private func entry(of object: StoredObject) -> Entry {
        guard !delimiter.isEmpty, let cut = object.key.dropFirst(prefix.count).firstRange(of: delimiter) else {
            return .object(object)
        }
        return .prefix(String(object.key[..<cut.upperBound]))
    }

    private func shown(_ text: String) -> String { encodes ? URIText.encodePath(text) : text }
}
