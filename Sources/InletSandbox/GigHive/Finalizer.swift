import Foundation
import InletCore
import SystemPackage

/// Turns a finished tus upload into an entry of the library. `finalized/<id>.json` keeps the answer for those who ask
/// again, without its delete token.
struct Finalizer: Sendable {
    let library: GigHiveLibrary
    let store: TusStore
    let markers: FilePath

    init(root: FilePath, library: GigHiveLibrary, store: TusStore) throws {
        self.library = library
        self.store = store
        markers = root.appending("finalized")
        try FileManager.default.createDirectory(atPath: markers.string, withIntermediateDirectories: true)
    }

    /// - Parameter guest: Whose event the upload goes to, whatever the message says.
    func finalize(_ message: FinalizeMessage, guest: GigHiveRules.GuestToken?, _ rules: GigHiveRules) async throws
        -> UploadAnswer
    {
        if guest != nil { try message.checkGuest() }
        guard let id = message.uploadID else { throw GigHiveRefusal.badRequest("Missing or invalid upload_id") }
        if let answer = try marker(id) { return answer }
        let upload = try await finished(id, rules)
        let isMine = store.beginFinalizing(id)
        if rules.finalizeTime > .zero { try await Task.sleep(for: rules.finalizeTime) }
        guard isMine else { throw GigHiveRefusal.serverError("Failed to move file (rename)") }
        defer { store.endFinalizing(id) }
        var answer = try file(upload, message, guest, rules)
        if guest != nil {
            let noted = try library.addGuest()
            (answer.status_nonce, answer.upload_job_id) = (noted.nonce, noted.id)
        }
        var kept = answer
        kept.delete_token = nil
        try FileMove.write(JSONEncoder().encode(kept), to: markers.appending(id + ".json"))
        return answer
    }

    private func marker(_ id: String) throws -> UploadAnswer? {
        let path = markers.appending(id + ".json").string
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        return try JSONDecoder().decode(UploadAnswer.self, from: Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// Waits a while for the note that the last byte has come, in ten steps like the application.
    private func finished(_ id: String, _ rules: GigHiveRules) async throws -> TusStore.Upload {
        for attempt in 0...10 {
            if attempt > 0 { try await Task.sleep(for: rules.hookWait / 10) }
            if let upload = store.known(id), let finished = upload.finished,
                finished.advanced(by: rules.hookDelay) <= .now
            {
                guard !upload.isGone else { throw GigHiveRefusal.serverError("Upload data missing on disk") }
                return upload
            }
        }
        guard store.known(id) != nil else {
            throw GigHiveRefusal.serverError("Upload not found: no data or hook record for upload_id=\(id)")
        }
        throw GigHiveRefusal.serverError(
            "Upload data exists on disk but post-finish hook output has not been written yet (upload_id=\(id)). "
                + "The server may still be processing; retry in a moment.")
    }

    private func file(
        _ upload: TusStore.Upload, _ message: FinalizeMessage, _ guest: GigHiveRules.GuestToken?,
        _ rules: GigHiveRules
    ) throws -> UploadAnswer {
        let path = store.path(of: upload.info.id)
        var (hash, head) = (ContentHash(), [UInt8]())
        do {
            try FileDescriptor.forEachChunk(of: path) { chunk in
                hash.update(chunk)
                if head.isEmpty { head = Array(chunk.prefix(512)) }
            }
        } catch Errno.noSuchFileOrDirectory {
            throw GigHiveRefusal.serverError("Upload data missing on disk")
        }
        guard hash.size > 0 else { throw GigHiveRefusal.serverError("Uploaded file is empty") }
        guard hash.size <= rules.maximumBytes else {
            throw GigHiveRefusal.badRequest("File too large (exceeds application limit)")
        }
        let metadata = TusMetadata.decode(upload.info.metadata)
        let detected = MediaKind.detect(head)
        let fileExtension = FormCall.fileExtension(metadata["filename"] ?? "upload.bin")
        let media = ReceivedMedia(
            sha256: hash.finish().sha256.hex, size: hash.size, fileExtension: fileExtension,
            kind: try MediaKind.of(detected: detected, declared: detected, fileExtension: fileExtension),
            mimeType: detected)
        let fields = try GigFields(message.fields(metadata, guest), today: FormCall.today)
        do {
            return try library.take(media, fields) { try FileMove.rename(path, to: $0) }
        } catch let refusal as GigHiveRefusal {
            if case .duplicate = refusal { try FileManager.default.removeItem(atPath: path.string) }
            throw refusal
        }
    }
}
