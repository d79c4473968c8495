import Foundation
import InletCore
import Synchronization
import SystemPackage

extension ObjectStore {
    /// Refuses a body for a key that has an object, before the body is read.
    func checkNew(_ key: ObjectKey) throws(StoreError) {
        guard state.withLock({ $0.objects[key.text] }) == nil else { throw .preconditionFailed("If-None-Match") }
    }

    /// Removes an object; one that is not there is no error, as in S3.
    func delete(_ key: ObjectKey) throws {
        try state.withLock { state in
            guard state.objects.removeValue(forKey: key.text) != nil else { return }
            try FileManager.default.removeItem(atPath: folders.records.appending(key.recordName).string)
            try FileManager.default.removeItem(atPath: folders.object(key).string)
        }
    }

    /// Open uploads by key and, within a key, by the time they were made.
    func uploads() -> [UploadRecord] {
        state.withLock { $0.uploads.values.map(\.record) }.sorted { left, right in
            left.key == right.key
                ? (left.created?.milliseconds ?? 0, left.id) < (right.created?.milliseconds ?? 0, right.id)
                : left.key.utf8.lexicographicallyPrecedes(right.key.utf8)
        }
    }

    /// The parts that an open upload has, by number.
    func parts(upload id: String, key: ObjectKey) throws(StoreError) -> [StoredPart] {
        let upload = state.withLock { $0.uploads[id] }
        guard let upload, upload.record.key == key.text else { throw .noSuchUpload(id) }
        return upload.parts.values.sorted { $0.number < $1.number }
    }
}
