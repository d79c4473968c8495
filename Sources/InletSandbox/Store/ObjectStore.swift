import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// Objects and open uploads on disk, with R2's rules. They survive for the next store on the same folder.
///
/// ```
/// objects/<key>                 bytes of completed objects
/// records/<sha256 of key>.json  StoredObject
/// uploads/<id>/upload.json      UploadRecord; part-<number>-<etag> are its parts
/// uploads/<id>/commit.json      StoredObject: the upload is complete, and the next start finishes moving it
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
        var objects: [ObjectKey: StoredObject] = [:]
    }

    private let root: FilePath
    private var objectsFolder: FilePath { root.appending("objects") }
    private var records: FilePath { root.appending("records") }
    private var uploadsFolder: FilePath { root.appending("uploads") }
    var incoming: FilePath { root.appending("incoming") }
    private let state: Mutex<State>

    /// Opens or makes the store, and moves the uploads that the last process had committed.
    init(directory: FilePath) throws {
        root = directory
        state = Mutex(State())
        // Usually there is none; a leftover does no harm.
        try? FileManager.default.removeItem(atPath: incoming.string)
        for folder in [objectsFolder, records, uploadsFolder, incoming] { try FileMove.makeFolder(folder) }
        let found = try load()
        state.withLock { $0 = found }
    }

    /// The objects, by key.
    func objects() -> [StoredObject] {
        state.withLock { Array($0.objects.values) }.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
    }

    func object(_ key: ObjectKey) throws(SandboxRefusal) -> StoredObject {
        guard let object = state.withLock({ $0.objects[key] }) else { throw .noSuchKey(key.text) }
        return object
    }

    /// The requested object or range (RFC 9110, section 14).
    ///
    /// If `If-Range` names another version, the answer is the whole object.
    func read(_ key: String, _ fields: HTTPFields) throws -> Response {
        let object = try object(ObjectKey(key))
        var headers: HTTPFields = [
            .contentType: object.contentType, .eTag: object.etag, .acceptRanges: "bytes",
        ]
        let isSame = fields[.ifRange].map { $0 == object.etag } ?? true
        guard let range = ByteRange(header: isSame ? fields[.range] : nil, size: object.size) else {
            headers[.contentRange] = "bytes */\(object.size)"
            return Response(status: .rangeNotSatisfiable, headers: headers)
        }
        if range.isPartial { headers[.contentRange] = "bytes \(range.first)-\(range.end - 1)/\(object.size)" }
        return Response(
            status: range.isPartial ? .partialContent : .ok, headers: headers,
            body: range.count > 0 ? ResponseBody(range, of: object.path) : ResponseBody())
    }

    /// Stores a body that came in one piece.
    ///
    /// - Parameter isNew: The key must have no object yet (`If-None-Match: *`); checked in the same step as it is
    ///   stored.
    func keepSingle(
        _ key: ObjectKey, contentType: String, attributes: [String: String] = [:], isNew: Bool = false,
        _ file: borrowing ReceivedFile
    ) throws -> StoredObject {
        let etag = "\"\(file.hash.finish().md5.hex)\""
        return try state.withLock { state in
            let object = try object(
                key, file.hash, etag: etag, contentType: contentType, attributes, isNew: isNew, in: state)
            try file.move(to: try makePlace(for: key))
            try save(object, key)
            state.objects[key] = object
            return object
        }
    }

    private func object(
        _ key: ObjectKey, _ hash: ContentHash, etag: String, contentType: String, _ attributes: [String: String],
        isNew: Bool, in state: State
    ) throws(SandboxRefusal) -> StoredObject {
        let present = state.objects[key]
        guard present == nil || !isNew else { throw .keyIsPresent }
        let (md5, sha256) = hash.finish()
        return StoredObject(
            key: key.text, size: hash.size, md5: Digest(.md5, md5), sha256: Digest(.sha256, sha256), etag: etag,
            contentType: contentType, attributes: attributes, modified: .now, place: place(of: key).string,
            versions: (present?.versions ?? 0) + 1)
    }

    /// Refuses a body for a key that has an object, before it is read.
    func checkNew(_ key: ObjectKey) throws(SandboxRefusal) {
        guard state.withLock({ $0.objects[key] }) == nil else { throw .keyIsPresent }
    }

    /// Removes an object; a missing one is no error, as in S3.
    func delete(_ key: ObjectKey) throws {
        try state.withLock { state in
            guard state.objects.removeValue(forKey: key) != nil else { return }
            try FileManager.default.removeItem(atPath: records.appending(key.recordName).string)
            try FileManager.default.removeItem(atPath: place(of: key).string)
        }
    }
}

// MARK: - Uploads in parts

extension ObjectStore {
    /// All parts but the last have at least this many bytes (R2, "Multipart upload limits").
    private static let minimumPart: Int64 = 5 << 20

    func openUploads() -> [String] { state.withLock { $0.uploads.keys.sorted() } }

    /// The parts of an open upload, by number.
    func parts(upload id: String, key: ObjectKey) throws(SandboxRefusal) -> [StoredPart] {
        let upload = state.withLock { $0.uploads[id] }
        guard let upload, upload.record.key == key.text else { throw .noSuchUpload(id) }
        return upload.parts.values.sorted { $0.number < $1.number }
    }

    func createUpload(
        key: ObjectKey, contentType: String?, partCount: Int, attributes: [String: String] = [:]
    ) throws -> UploadRecord {
        guard (1...10_000).contains(partCount) else {
            throw SandboxRefusal.badRequest("An upload has 1 to 10,000 parts, not \(partCount).")
        }
        let id = UUID().uuidString.lowercased()
        let record = UploadRecord(
            id: id, key: key.text, contentType: contentType ?? "application/octet-stream", partCount: partCount,
            attributes: attributes, created: .now)
        let draft = incoming.appending(id)
        try FileMove.makeFolder(draft)
        try FileMove.save(record, to: draft.appending("upload.json"))
        try FileMove.rename(draft, to: folder(ofUpload: id))
        state.withLock { $0.uploads[id] = Upload(record: record) }
        return record
    }

    /// Refuses a part before its body is read: the upload must be open, for this key, and the number valid.
    @discardableResult
    func checkPart(_ number: Int, upload id: String, key: ObjectKey) throws(SandboxRefusal) -> UploadRecord {
        let upload = state.withLock { $0.uploads[id] }
        guard let upload, upload.record.key == key.text, !upload.isCompleting else { throw .noSuchUpload(id) }
        guard (1...upload.record.partCount).contains(number) else {
            throw .badRequest("Part \(number) of an upload with \(upload.record.partCount) parts.")
        }
        return upload.record
    }

    /// Stores a whole part, and replaces an earlier one of the same number.
    func keepPart(_ number: Int, upload id: String, etag: String, _ file: borrowing ReceivedFile) throws {
        let place = folder(ofUpload: id).appending("part-\(number)-\(etag)")
        let part = StoredPart(number: number, etag: etag, size: file.hash.size, modified: .now, file: place)
        let replaced = try state.withLock { state -> StoredPart? in
            guard let upload = state.uploads[id], !upload.isCompleting else { throw SandboxRefusal.noSuchUpload(id) }
            try file.move(to: place)
            state.uploads[id]?.parts[number] = part
            return upload.parts[number]
        }
        if let replaced, replaced.file != place { unlink(replaced.file.string) }
    }

    func abort(upload id: String, key: String) throws {
        try state.withLock { state in
            guard let upload = state.uploads[id], upload.record.key == key else {
                throw SandboxRefusal.noSuchUpload(id)
            }
            guard !upload.isCompleting else { throw SandboxRefusal.conflict("Upload \(id) is being completed.") }
            state.uploads[id] = nil
            try FileManager.default.removeItem(atPath: folder(ofUpload: id).string)
        }
    }

    /// Checks the list of parts, composes the object and makes it visible; afterwards the upload id is gone.
    ///
    /// A killed process leaves either the open upload or the whole object: `commit.json` is the point between them.
    ///
    /// - Parameters:
    ///   - isNew: The key must have no object yet (`If-None-Match: *`).
    ///   - check: refuses the composed content; it has the CRC with which the upload was opened.
    func complete(
        upload id: String, key: ObjectKey, listed: [ListedPart], isNew: Bool = false,
        check: (ContentHash) throws(SandboxRefusal) -> Void = { _ in }
    ) throws -> StoredObject {
        let upload = try beginCompleting(id, key: key)
        do {
            let parts = try Self.check(listed, against: upload.parts)
            var record = upload.record
            let algorithm = record.attributes["x-amz-checksum-algorithm"].flatMap {
                Digest.Algorithm(rawValue: $0.lowercased())
            }
            var file = try ReceivedFile(in: incoming, crcs: algorithm.map { [$0] } ?? [])
            let (etag, sha256) = try Self.compose(parts, into: &file)
            try check(file.hash)
            if let algorithm, let bytes = algorithm == .sha256 ? SHA256.bytes(of: sha256) : file.hash[algorithm] {
                let count = algorithm == .sha256 ? "-\(parts.count)" : ""
                record.attributes[BodyChecks.field(algorithm)] = Data(bytes).base64EncodedString() + count
            }
            return try commit(record, key, etag: etag, isNew: isNew, file)
        } catch {
            state.withLock { $0.uploads[id]?.isCompleting = false }
            throw error
        }
    }

    private func beginCompleting(_ id: String, key: ObjectKey) throws(SandboxRefusal) -> Upload {
        let found = state.withLock { state -> Upload? in
            guard let upload = state.uploads[id], upload.record.key == key.text else { return nil }
            state.uploads[id]?.isCompleting = true
            return upload
        }
        guard let found else { throw .noSuchUpload(id) }
        guard !found.isCompleting else { throw .conflict("Upload \(id) is being completed already.") }
        return found
    }

    /// The stored parts that `listed` names, in order. Like S3, accepts a list that leaves parts out.
    private static func check(_ listed: [ListedPart], against stored: [Int: StoredPart]) throws(SandboxRefusal)
        -> [StoredPart]
    {
        guard !listed.isEmpty else { throw .badRequest("The list of parts is empty.") }
        var parts: [StoredPart] = []
        for item in listed {
            if let last = parts.last, item.number <= last.number {
                throw SandboxRefusal(
                    400, "InvalidPartOrder", "Part \(item.number) stands after \(last.number).")
            }
            guard let part = stored[item.number] else { throw .invalidPart("Part \(item.number) was never received.") }
            guard part.etag == item.bareETag else {
                throw .invalidPart("The ETag of part \(item.number) is not the one that was given for it.")
            }
            parts.append(part)
        }
        let equal = parts.dropLast()
        if let small = equal.first(where: { $0.size < minimumPart }) {
            throw SandboxRefusal(
                400, "EntityTooSmall",
                "Part \(small.number) has \(small.size) bytes; all but the last need \(minimumPart).")
        }
        if let first = equal.first, let other = equal.first(where: { $0.size != first.size }) {
            throw .invalidPart(
                "Part \(other.number) has \(other.size) bytes where part \(first.number) has \(first.size).")
        }
        return parts
    }

    /// Writes the parts one after the other. - Returns: the object's ETag (MD5 of the binary part MD5s, `-`, count), and
    /// the binary SHA-256s of its parts.
    private static func compose(
        _ parts: [StoredPart], into file: inout ReceivedFile
    ) throws -> (etag: String, sha256: [UInt8]) {
        var (partSums, sha256): ([UInt8], [UInt8]) = ([], [])
        for part in parts {
            var hash = ContentHash()
            try FileDescriptor.forEachChunk(of: part.file) { chunk in
                hash.update(chunk)
                try file.write(chunk)
            }
            let sums = hash.finish()
            partSums += sums.md5
            sha256 += sums.sha256
        }
        return ("\"\(MD5.bytes(of: partSums).hex)-\(parts.count)\"", sha256)
    }

    private func commit(
        _ upload: UploadRecord, _ key: ObjectKey, etag: String, isNew: Bool, _ file: borrowing ReceivedFile
    ) throws -> StoredObject {
        try state.withLock { state in
            let object = try object(
                key, file.hash, etag: etag, contentType: upload.contentType, upload.attributes, isNew: isNew, in: state)
            _ = try makePlace(for: key)
            let folder = folder(ofUpload: upload.id)
            try file.move(to: folder.appending("object"))
            try FileMove.save(object, to: folder.appending("commit.json"))
            state.uploads[upload.id] = nil
            state.objects[key] = object
            try finish(object, key, upload: upload.id)
            return object
        }
    }
}

// MARK: - On disk

/// The layout below the root, and the moves between its places.
extension ObjectStore {
    private func folder(ofUpload id: String) -> FilePath { uploadsFolder.appending(id) }

    /// The file of `key`. Its components hold no `..`, so it is below `objects`.
    private func place(of key: ObjectKey) -> FilePath { objectsFolder.appending(key.relativePath) }

    /// The file of `key`, with the folders above it made. A bucket may hold both `a` and `a/b`; a folder cannot.
    private func makePlace(for key: ObjectKey) throws -> FilePath {
        let place = place(of: key)
        do {
            try FileMove.makeFolder(place.removingLastComponent())
        } catch {
            throw SandboxRefusal.conflict(
                "Another object's key is a folder of \(key.text); the sandbox keeps keys as paths.")
        }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: place.string, isDirectory: &isFolder), isFolder.boolValue {
            throw SandboxRefusal.conflict("\(key.text) is a folder of other objects; the sandbox keeps keys as paths.")
        }
        return place
    }

    private func save(_ record: StoredObject, _ key: ObjectKey) throws {
        try FileMove.save(record, to: records.appending(key.recordName))
    }

    /// Finishes a committed upload; may be repeated after any part of it was done.
    private func finish(_ record: StoredObject, _ key: ObjectKey, upload id: String) throws {
        let composed = folder(ofUpload: id).appending("object")
        if FileManager.default.fileExists(atPath: composed.string) {
            try FileMove.rename(composed, to: makePlace(for: key))
        }
        try save(record, key)
        try FileManager.default.removeItem(atPath: folder(ofUpload: id).string)
    }

    /// The state on disk after the last process ended in any way.
    private func load() throws -> State {
        var state = State()
        for id in try FileManager.default.contentsOfDirectory(atPath: uploadsFolder.string) {
            let folder = folder(ofUpload: id)
            if let record = try FileMove.load(StoredObject.self, from: folder.appending("commit.json")) {
                try finish(record, ObjectKey(record.key), upload: id)
            } else if let record = try FileMove.load(UploadRecord.self, from: folder.appending("upload.json")) {
                state.uploads[id] = Upload(record: record, parts: try Self.parts(in: folder))
            } else {
                // Killed while it removed the folder of a finished upload.
                try FileManager.default.removeItem(atPath: folder.string)
            }
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: records.string) {
            guard var record = try FileMove.load(StoredObject.self, from: records.appending(name)) else {
                continue
            }
            // Its folder may have been moved.
            let key = try ObjectKey(record.key)
            record.place = place(of: key).string
            state.objects[key] = record
        }
        return state
    }

    /// Parts by number. Of two files for one number (killed between the two steps of replacing it) the newer counts.
    private static func parts(in folder: FilePath) throws -> [Int: StoredPart] {
        var found: [(part: StoredPart, modified: Date)] = []
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.string) {
            let fields = name.split(separator: "-", maxSplits: 2)
            guard fields.count == 3, fields[0] == "part", let number = Int(fields[1]) else { continue }
            let file = folder.appending(name)
            let attributes = try FileManager.default.attributesOfItem(atPath: file.string)
            let modified = attributes[.modificationDate] as? Date ?? .distantPast
            let part = StoredPart(
                number: number, etag: String(fields[2]), size: (attributes[.size] as? NSNumber)?.int64Value ?? 0,
                modified: WallTime(milliseconds: Int64(modified.timeIntervalSince1970 * 1000)), file: file)
            found.append((part, modified))
        }
        found.sort { $0.modified < $1.modified }
        return Dictionary(found.map { ($0.part.number, $0.part) }, uniquingKeysWith: { $1 })
    }
}
