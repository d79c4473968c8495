import Foundation
import InletCore
import Synchronization
import SystemPackage

extension ObjectStore {
    /// Parts but the last have at least this many bytes (R2, "Multipart upload limits").
    static let minimumPart: Int64 = 5 << 20

    /// Checks the list of parts, puts the object together and makes it visible; the upload id is gone afterwards.
    ///
    /// A killed process leaves either the open upload or the whole object: `commit.json` is the point between them.
    ///
    /// - Parameter isNew: The key must have no object yet (`If-None-Match: *`).
    func complete(
        upload id: String, key: ObjectKey, listed: [ListedPart], isNew: Bool = false
    ) throws -> StoredObject {
        let upload = try beginCompleting(id, key: key)
        do {
            let parts = try Self.check(listed, against: upload.parts)
            var file = try IncomingFile(in: folders.incoming)
            let etag = try Self.compose(parts, into: &file)
            return try commit(upload.record, key, etag: etag, isNew: isNew, file)
        } catch {
            state.withLock { $0.uploads[id]?.isCompleting = false }
            throw error
        }
    }

    private func beginCompleting(_ id: String, key: ObjectKey) throws(StoreError) -> Upload {
        let found = state.withLock { state -> Upload? in
            guard let upload = state.uploads[id], upload.record.key == key.text else { return nil }
            state.uploads[id]?.isCompleting = true
            return upload
        }
        guard let found else { throw .noSuchUpload(id) }
        guard !found.isCompleting else { throw .conflict("Upload \(id) is being completed already.") }
        return found
    }

    /// The stored parts that `listed` names, in order. Like S3, takes a list that leaves parts out.
    static func check(_ listed: [ListedPart], against stored: [Int: StoredPart]) throws(StoreError) -> [StoredPart] {
        guard !listed.isEmpty else { throw .badRequest("The list of parts is empty.") }
        var parts: [StoredPart] = []
        for item in listed {
            if let last = parts.last, item.number <= last.number {
                throw StoreError(
                    status: 400, code: "InvalidPartOrder", message: "Part \(item.number) stands after \(last.number).")
            }
            guard let part = stored[item.number] else { throw .invalidPart("Part \(item.number) was never received.") }
            guard part.etag == item.bareETag else {
                throw .invalidPart("The ETag of part \(item.number) is not the one that was given for it.")
            }
            parts.append(part)
        }
        try checkSizes(parts.dropLast())
        return parts
    }

    private static func checkSizes(_ parts: ArraySlice<StoredPart>) throws(StoreError) {
        guard let first = parts.first else { return }
        if let small = parts.first(where: { $0.size < minimumPart }) {
            throw StoreError(
                status: 400, code: "EntityTooSmall",
                message: "Part \(small.number) has \(small.size) bytes; all but the last need \(minimumPart).")
        }
        if let other = parts.first(where: { $0.size != first.size }) {
            throw .invalidPart(
                "Part \(other.number) has \(other.size) bytes where part \(first.number) has \(first.size).")
        }
    }

    /// Writes the parts one after the other, and returns the object's ETag: MD5 of the binary part MD5s, `-`, count.
    private static func compose(_ parts: [StoredPart], into file: inout IncomingFile) throws -> String {
        var partSums: [UInt8] = []
        for part in parts {
            var hash = PartHash()
            try FileDescriptor.forEachChunk(of: part.file) { chunk in
                hash.update(chunk)
                try file.write(chunk)
            }
            partSums += hash.finish()
        }
        return "\"\(ContentHash.md5(partSums).hex)-\(parts.count)\""
    }

    private func commit(
        _ upload: UploadRecord, _ key: ObjectKey, etag: String, isNew: Bool, _ file: borrowing IncomingFile
    ) throws -> StoredObject {
        let (md5, sha256) = file.hash.finish()
        let size = file.hash.size
        return try state.withLock { state in
            let versions = try Self.nextVersion(of: key, in: state, isNew: isNew)
            let record = ObjectRecord(
                key: key.text, size: size, md5: Digest(.md5, md5), sha256: Digest(.sha256, sha256), etag: etag,
                contentType: upload.contentType, versions: versions, attributes: upload.attributes, modified: .now)
            _ = try folders.makePlace(for: key)
            try file.move(to: folders.upload(upload.id).appending("object"))
            try FileMove.write(JSONEncoder().encode(record), to: folders.upload(upload.id).appending("commit.json"))
            state.uploads[upload.id] = nil
            state.objects[key.text] = record
            try folders.finish(record, key, upload: upload.id)
            return try stored(record)
        }
    }
}
