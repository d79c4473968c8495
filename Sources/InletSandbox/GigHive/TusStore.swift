import Foundation
import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// Uploads by tus: `tus/<id>` holds the bytes so far, `tus/<id>.info` the rest. The next store on the same folder finds
/// them again, each at the offset that its bytes have.
final class TusStore: Sendable {
    struct Upload: Sendable {
        var info: Info
        var offset: Int64
        /// When the last byte came; nil before.
        var finished: ContinuousClock.Instant?
        /// The bytes are in the library, or were thrown away as a duplicate.
        var isGone = false
        var isReceiving = false
        var isFinalizing = false
    }

    struct Info: Codable, Sendable {
        var id: String
        var length: Int64
        /// `Upload-Metadata` as it was given.
        var metadata: String
    }

    private let folder: FilePath
    private let uploads: Mutex<[String: Upload]>

    init(root: FilePath) throws {
        folder = root.appending("tus")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        uploads = Mutex(try Self.load(folder))
    }

    private static func load(_ folder: FilePath) throws -> [String: Upload] {
        var uploads: [String: Upload] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.string) where name.hasSuffix(".info") {
            let data = try Data(contentsOf: URL(fileURLWithPath: folder.appending(name).string))
            let info = try JSONDecoder().decode(Info.self, from: data)
            let size = try FileLook.look(at: folder.appending(info.id)).identity?.size
            let isWhole = size == nil || size == info.length
            uploads[info.id] = Upload(
                info: info, offset: size ?? info.length, finished: isWhole ? .now : nil, isGone: size == nil)
        }
        return uploads
    }

    /// Ids of uploads whose bytes are still here, sorted.
    func open() -> [String] { uploads.withLock { $0.values.filter { !$0.isGone }.map(\.info.id) }.sorted() }

    func path(of id: String) -> FilePath { folder.appending(id) }

    func create(length: Int64, metadata: String) throws -> Upload {
        let id = UUID().uuidString.lowercased().filter { $0 != "-" }
        let info = Info(id: id, length: length, metadata: metadata)
        try FileMove.write(Data(), to: path(of: id))
        try FileMove.write(JSONEncoder().encode(info), to: folder.appending(id + ".info"))
        let upload = Upload(info: info, offset: 0, finished: length == 0 ? .now : nil)
        uploads.withLock { $0[id] = upload }
        return upload
    }

    /// nil when there is none, or its bytes are gone.
    func upload(_ id: String) -> Upload? {
        uploads.withLock { $0[id] }.flatMap { $0.isGone ? nil : $0 }
    }

    /// Also one whose bytes are gone.
    func known(_ id: String) -> Upload? { uploads.withLock { $0[id] } }

    /// Keeps others from sending to the upload until `endReceiving`.
    func beginReceiving(_ id: String, at offset: Int64) throws(GigHiveRefusal) -> Upload {
        try uploads.withLock { uploads throws(GigHiveRefusal) in
            guard var upload = uploads[id], !upload.isGone else { throw .tusNotFound }
            guard !upload.isReceiving, !upload.isFinalizing else {
                throw .tus(423, "ERR_UPLOAD_LOCKED: file currently locked")
            }
            guard upload.offset == offset else { throw .tus(409, "ERR_MISMATCHED_OFFSET: mismatched offset") }
            upload.isReceiving = true
            uploads[id] = upload
            return upload
        }
    }

    func endReceiving(_ id: String, at offset: Int64) {
        uploads.withLock { uploads in
            uploads[id]?.isReceiving = false
            uploads[id]?.offset = offset
            if uploads[id]?.finished == nil, offset == uploads[id]?.info.length { uploads[id]?.finished = .now }
        }
    }

    func remove(_ id: String) throws {
        try uploads.withLock { uploads in
            guard let upload = uploads[id], !upload.isGone else { throw GigHiveRefusal.tusNotFound }
            guard !upload.isReceiving else { throw GigHiveRefusal.tus(423, "ERR_UPLOAD_LOCKED: file currently locked") }
            uploads[id] = nil
            try FileManager.default.removeItem(atPath: folder.appending(id + ".info").string)
            try FileManager.default.removeItem(atPath: path(of: id).string)
        }
    }

    /// - Returns: false while another finalize of the same upload is under way.
    func beginFinalizing(_ id: String) -> Bool {
        uploads.withLock { uploads in
            guard uploads[id]?.isFinalizing == false else { return false }
            uploads[id]?.isFinalizing = true
            return true
        }
    }

    /// Looks whether the bytes were moved away.
    func endFinalizing(_ id: String) {
        let isGone = !FileManager.default.fileExists(atPath: path(of: id).string)
        uploads.withLock { uploads in
            uploads[id]?.isFinalizing = false
            uploads[id]?.isGone = isGone
        }
    }
}

/// `Upload-Metadata`: pairs of a key and a base 64 value (tus 1.0.0, "Creation").
enum TusMetadata {
    static func decode(_ text: String) -> [String: String] {
        var values: [String: String] = [:]
        for item in text.split(separator: ",") {
            let halves = item.split(separator: " ")
            guard let key = halves.first else { continue }
            let data = halves.count > 1 ? Data(base64Encoded: String(halves[1])) : Data()
            values[String(key)] = data.map { String(decoding: $0, as: UTF8.self) }
        }
        return values
    }
}
