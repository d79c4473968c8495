import Foundation
import InletCore
import SystemPackage

/// Where things are below the store's root, and the moves between those places.
struct StoreFolders: Sendable {
    let root: FilePath
    var objects: FilePath { root.appending("objects") }
    var records: FilePath { root.appending("records") }
    var uploads: FilePath { root.appending("uploads") }
    var incoming: FilePath { root.appending("incoming") }

    /// Makes the folders, and empties `incoming`.
    init(root: FilePath) throws {
        self.root = root
        // Mostly there is none; one that stays is in nobody's way.
        try? FileManager.default.removeItem(atPath: root.appending("incoming").string)
        for folder in [objects, records, uploads, incoming] {
            try FileMove.makeFolder(folder)
        }
    }

    func upload(_ id: String) -> FilePath { uploads.appending(id) }

    /// The file of `key`. Its components hold no `..`, so it is below `objects`.
    func object(_ key: ObjectKey) -> FilePath { objects.appending(key.relativePath) }

    /// The file of `key`, with the folders above it made. A bucket may hold both `a` and `a/b`; a folder cannot.
    func makePlace(for key: ObjectKey) throws -> FilePath {
        let place = object(key)
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

    func save(_ record: StoredObject, _ key: ObjectKey) throws {
        try FileMove.save(record, to: records.appending(key.recordName))
    }

    /// Brings a committed upload to its end; may be repeated after any part of it was done.
    func finish(_ record: StoredObject, _ key: ObjectKey, upload id: String) throws {
        let composed = upload(id).appending("object")
        if FileManager.default.fileExists(atPath: composed.string) {
            try FileMove.rename(composed, to: makePlace(for: key))
        }
        try save(record, key)
        try FileManager.default.removeItem(atPath: upload(id).string)
    }
}

extension ObjectStore {
    /// What is on disk after the last process ended, however it ended.
    static func load(_ folders: StoreFolders) throws -> State {
        var state = State()
        for id in try FileManager.default.contentsOfDirectory(atPath: folders.uploads.string) {
            let folder = folders.upload(id)
            if let record = try FileMove.load(StoredObject.self, from: folder.appending("commit.json")) {
                try folders.finish(record, ObjectKey(record.key), upload: id)
            } else if let record = try FileMove.load(UploadRecord.self, from: folder.appending("upload.json")) {
                state.uploads[id] = Upload(record: record, parts: try parts(in: folder))
            } else {
                // Killed while the folder of a finished upload was being removed.
                try FileManager.default.removeItem(atPath: folder.string)
            }
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: folders.records.string) {
            guard let record = try FileMove.load(StoredObject.self, from: folders.records.appending(name)) else {
                continue
            }
            state.objects[record.key] = record
        }
        return state
    }

    /// Parts by number; of two files for one number (killed between the two steps of replacing it) the newer.
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
