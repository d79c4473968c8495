import Foundation
import InletCore
import Synchronization
import SystemPackage

/// Objects and open uploads on disk, with R2's rules. Everything is found again by the next store on the same folder.
///
/// ```
/// objects/<key>                 bytes of completed objects
/// records/<sha256 of key>.json  ObjectRecord
/// uploads/<id>/upload.json      UploadRecord; part-<number>-<etag> are its parts
/// uploads/<id>/commit.json      ObjectRecord: the upload is complete, and the next start finishes moving it
/// incoming/                     temporary; emptied at start
/// ```
/// Files are written on the caller's thread: this store serves one person's demo and tests, not a network.
final class ObjectStore: Sendable {
    struct Upload: Sendable {
        var record: UploadRecord
        var parts: [Int: StoredPart] = [:]
        var isCompleting = false
    }

    struct State: Sendable {
        var uploads: [String: Upload] = [:]
        var objects: [String: ObjectRecord] = [:]
    }

    let folders: StoreFolders
    let state: Mutex<State>

    /// Opens or makes the store, and finishes what the last process had committed but not moved.
    init(directory: FilePath) throws {
        folders = try StoreFolders(root: directory)
        state = Mutex(try Self.load(folders))
    }

    /// The objects, by key.
    func objects() -> [StoredObject] {
        // One that has been deleted meanwhile is none.
        state.withLock { Array($0.objects.values) }.sorted { $0.key < $1.key }.compactMap { try? stored($0) }
    }

    func object(_ key: ObjectKey) throws(StoreError) -> StoredObject {
        guard let record = state.withLock({ $0.objects[key.text] }) else { throw .noSuchKey(key.text) }
        return try stored(record)
    }

    func openUploads() -> [String] { state.withLock { $0.uploads.keys.sorted() } }

    func stored(_ record: ObjectRecord) throws(StoreError) -> StoredObject {
        StoredObject(
            key: record.key, size: record.size, md5: record.md5, sha256: record.sha256, etag: record.etag,
            contentType: record.contentType, attributes: record.attributes ?? [:],
            modified: record.modified ?? WallTime(milliseconds: 0),
            path: folders.object(try ObjectKey(record.key)), versions: record.versions)
    }

    func createUpload(
        key: ObjectKey, contentType: String, partCount: Int, attributes: [String: String]? = nil
    ) throws -> UploadRecord {
        guard (1...10_000).contains(partCount) else {
            throw StoreError.badRequest("An upload has 1 to 10,000 parts, not \(partCount).")
        }
        let id = UUID().uuidString.lowercased()
        let record = UploadRecord(
            id: id, key: key.text, contentType: contentType, partCount: partCount, attributes: attributes, created: .now
        )
        let draft = folders.incoming.appending(id)
        try FileManager.default.createDirectory(atPath: draft.string, withIntermediateDirectories: false)
        try FileMove.write(JSONEncoder().encode(record), to: draft.appending("upload.json"))
        try FileMove.rename(draft, to: folders.upload(id))
        state.withLock { $0.uploads[id] = Upload(record: record) }
        return record
    }

    /// Refuses a part before its body is read: the upload must be open, for this key, and the number one of its own.
    func checkPart(_ number: Int, upload id: String, key: ObjectKey) throws(StoreError) {
        let upload = state.withLock { $0.uploads[id] }
        guard let upload, upload.record.key == key.text, !upload.isCompleting else { throw .noSuchUpload(id) }
        guard (1...upload.record.partCount).contains(number) else {
            throw .badRequest("Part \(number) of an upload with \(upload.record.partCount) parts.")
        }
    }

    /// Takes a whole part; a part of the same number that was there before is replaced.
    func keepPart(_ number: Int, upload id: String, etag: String, _ file: borrowing IncomingFile) throws {
        let place = folders.upload(id).appending("part-\(number)-\(etag)")
        let part = StoredPart(number: number, etag: etag, size: file.hash.size, modified: .now, file: place)
        let replaced = try state.withLock { state -> StoredPart? in
            guard let upload = state.uploads[id], !upload.isCompleting else { throw StoreError.noSuchUpload(id) }
            try file.move(to: place)
            state.uploads[id]?.parts[number] = part
            return upload.parts[number]
        }
        if let replaced, replaced.file != place { unlink(replaced.file.string) }
    }

    func abort(upload id: String, key: String) throws {
        try state.withLock { state in
            guard let upload = state.uploads[id], upload.record.key == key else { throw StoreError.noSuchUpload(id) }
            guard !upload.isCompleting else { throw StoreError.conflict("Upload \(id) is being completed.") }
            state.uploads[id] = nil
            try FileManager.default.removeItem(atPath: folders.upload(id).string)
        }
    }

    /// Keeps a body that came in one piece.
    ///
    /// - Parameter isNew: The key must have no object yet (`If-None-Match: *`); judged in the same step as it is kept.
    func keepSingle(
        _ key: ObjectKey, contentType: String, attributes: [String: String]? = nil, isNew: Bool = false,
        _ file: borrowing IncomingFile
    ) throws -> StoredObject {
        let (md5, sha256) = file.hash.finish()
        let size = file.hash.size
        return try state.withLock { state in
            let versions = try Self.nextVersion(of: key, in: state, isNew: isNew)
            let record = ObjectRecord(
                key: key.text, size: size, md5: Digest(.md5, md5), sha256: Digest(.sha256, sha256),
                etag: "\"\(md5.hex)\"", contentType: contentType, versions: versions,
                attributes: attributes, modified: .now)
            let place = try folders.makePlace(for: key)
            try file.move(to: place)
            try folders.save(record, key)
            state.objects[key.text] = record
            return try stored(record)
        }
    }

    static func nextVersion(of key: ObjectKey, in state: State, isNew: Bool) throws(StoreError) -> Int {
        let present = state.objects[key.text]
        guard present == nil || !isNew else { throw .preconditionFailed("If-None-Match") }
        return (present?.versions ?? 0) + 1
    }
}
