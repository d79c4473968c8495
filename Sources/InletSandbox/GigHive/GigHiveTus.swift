import Foundation
import HTTPTypes
import Hummingbird
import InletCore
import InletLinux
import Synchronization
import SystemPackage

/// The calls of tus 1.0.0: creation, creation-with-upload, termination.
extension GigHiveService {
    private static let version = "1.0.0"
    private static let contentType = "application/offset+octet-stream"

    func options(_ call: inout SandboxCall) -> Response {
        Self.answer(
            .ok, ["Tus-Version": Self.version, "Tus-Extension": "creation,creation-with-upload,termination"])
    }

    func create(_ call: inout SandboxCall) async throws -> Response {
        let rules = rules.withLock { $0 }
        try Self.checkVersion(call)
        guard let length = call.fields["Upload-Length"].flatMap(Int64.init), length >= 0 else {
            throw SandboxReply.tus(400, "ERR_INVALID_UPLOAD_LENGTH: missing or invalid Upload-Length header")
        }
        let upload = try TusUpload(length: length, metadata: call.fields["Upload-Metadata"] ?? "", in: root)
        uploads.withLock { $0[upload.id] = upload }
        var fields = ["Location": "http://\(call.host)/files/\(upload.id)"]
        if call.fields[.contentType] == Self.contentType {
            fields["Upload-Offset"] = String(try await receive(upload.id, at: 0, &call.body, rules))
        }
        return Self.answer(.created, fields)
    }

    func patch(_ call: inout SandboxCall) async throws -> Response {
        let rules = rules.withLock { $0 }
        try Self.checkVersion(call)
        guard call.fields[.contentType] == Self.contentType else {
            throw SandboxReply.tus(400, "ERR_INVALID_CONTENT_TYPE: missing or invalid Content-Type header")
        }
        guard let offset = call.fields["Upload-Offset"].flatMap(Int64.init), offset >= 0 else {
            throw SandboxReply.tus(400, "ERR_INVALID_OFFSET: missing or invalid Upload-Offset header")
        }
        let reached = try await receive(call["id"], at: offset, &call.body, rules)
        return Self.answer(.noContent, ["Upload-Offset": String(reached)])
    }

    func head(_ call: inout SandboxCall) throws -> Response {
        try Self.checkVersion(call)
        let upload = try uploads.withLock { try $0.present(call["id"]) }
        let length = String(upload.length)
        return Self.answer(
            .ok,
            [
                "Upload-Offset": String(upload.offset), "Upload-Length": length,
                "Upload-Metadata": upload.metadata.isEmpty ? nil : upload.metadata, "Cache-Control": "no-store",
                // The server behind announces the length of the data, and no body follows.
                "Content-Length": length,
            ])
    }

    func terminate(_ call: inout SandboxCall) throws -> Response {
        try Self.checkVersion(call)
        let id = call["id"]
        try uploads.withLock { uploads in
            guard try uploads.present(id).isReceiving == false else { throw SandboxReply.tusLocked }
            uploads[id] = nil
            try FileManager.default.removeItem(atPath: TusUpload.path(id + ".info", in: root).string)
            try FileManager.default.removeItem(atPath: TusUpload.path(id, in: root).string)
        }
        return Self.answer(.noContent)
    }

    private static func checkVersion(_ call: SandboxCall) throws(SandboxReply) {
        guard call.fields["Tus-Resumable"] == version else {
            throw .tus(412, "ERR_UNSUPPORTED_VERSION: missing, invalid or unsupported Tus-Resumable header")
        }
    }

    private static func answer(_ status: HTTPResponse.Status, _ fields: [String: String?] = [:]) -> Response {
        var headers = HTTPFields()
        headers["Tus-Resumable"] = version
        for (name, value) in fields { headers[name] = value }
        return Response(status: status, headers: headers)
    }

    /// Appends the body. Returns the new offset.
    private func receive(
        _ id: String, at start: Int64, _ body: inout BodyReader, _ rules: GigHiveRules
    ) async throws -> Int64 {
        let rest = try uploads.withLock { uploads in
            let upload = try uploads.present(id)
            guard !upload.isReceiving, !upload.isFinalizing else { throw SandboxReply.tusLocked }
            guard upload.offset == start else {
                throw SandboxReply.tus(409, "ERR_MISMATCHED_OFFSET: mismatched offset")
            }
            uploads[id]?.isReceiving = true
            return upload.length - start
        }
        var offset = start
        defer {
            uploads.withLock { uploads in
                uploads[id]?.isReceiving = false
                uploads[id]?.offset = offset
                if uploads[id]?.finished == nil, offset == uploads[id]?.length { uploads[id]?.finished = .now }
            }
        }
        let tooMuch = SandboxReply.tus(413, "ERR_UPLOAD_SIZE_EXCEEDED: upload's size exceeded")
        guard Int64(body.expected ?? 0) <= rest else { throw tooMuch }
        let file = try FileDescriptor.open(TusUpload.path(id, in: root), .writeOnly, options: .closeOnExec)
        // The file's length is the offset, not this value.
        defer { try? file.close() }
        do {
            while let chunk = try await body.next() {
                guard offset - start + Int64(chunk.readableBytes) <= rest else { throw tooMuch }
                try chunk.withUnsafeReadableBytes { _ = try file.writeAll(toAbsoluteOffset: offset, $0) }
                offset += Int64(chunk.readableBytes)
            }
        } catch {
            if rules.holdsBackPatches {
                try file.resize(to: start)
                offset = start
            }
            throw error
        }
        return offset
    }
}

// MARK: - Finalize

/// Turns a finished tus upload into an entry of the library.
extension GigHiveService {
    func finalize(_ call: inout SandboxCall) async throws -> SandboxReply {
        let rules = rules.withLock { $0 }
        let guest = try guest(call.fields["X-Upload-Token"], rules)
        let message = Self.message(try await call.body.whole(), call.fields[.contentType])
        if guest != nil { try Self.checkGuest(message) }
        guard let id = message["upload_id"]?.fieldText?.trimmed, id.wholeMatch(of: /[A-Za-z0-9_-]+/) != nil else {
            throw SandboxReply.badRequest("Missing or invalid upload_id")
        }
        // Keeps the answer for repeated calls.
        let marker = root.appending("finalized").appending(id + ".json")
        if let kept = try FileMove.load(SandboxJSON.self, from: marker) { return try .json(kept, status: 201) }
        let metadata = try await finished(id, rules).metadataValues
        let isMine = uploads.withLock { uploads in
            guard uploads[id]?.isFinalizing == false else { return false }
            uploads[id]?.isFinalizing = true
            return true
        }
        if rules.finalizeTime > .zero { try await Task.sleep(for: rules.finalizeTime) }
        guard isMine else { throw SandboxReply.serverError("Failed to move file (rename)") }
        let path = TusUpload.path(id, in: root)
        defer {
            let isGone = !FileManager.default.fileExists(atPath: path.string)
            uploads.withLock { uploads in
                uploads[id]?.isFinalizing = false
                uploads[id]?.isGone = isGone
            }
        }
        let answer = try file(path, Self.fields(message, metadata, guest), metadata["filename"], guest != nil, rules)
        try FileMove.save(answer.filter { $0.key != "delete_token" }, to: marker)
        return try .json(answer, status: 201)
    }

    /// `upload_id` and the fields of an upload, as JSON or as a web form. An unreadable body counts as one without
    /// fields.
    private static func message(_ body: Data, _ contentType: String?) -> [String: SandboxJSON] {
        guard contentType?.hasPrefix("application/x-www-form-urlencoded") == true else {
            // As the real server reads it.
            return (try? JSON.decode(body, as: [String: SandboxJSON].self)) ?? [:]
        }
        let pairs = URIText.decodeQuery(String(decoding: body, as: UTF8.self).replacing("+", with: " ")) ?? []
        return Dictionary(pairs.map { ($0.name, .string($0.value)) }) { $1 }
    }

    /// A guest's required fields.
    private static func checkGuest(_ message: [String: SandboxJSON]) throws(SandboxReply) {
        guard (1...255).contains(message["label"]?.fieldText?.utf8.count ?? 0) else {
            throw .badRequest("label must have 1 to 255 bytes")
        }
        guard message["tos_accepted"] == true else { throw .badRequest("tos_accepted must be true") }
        guard (message["display_name"]?.fieldText?.utf8.count ?? 0) <= 100 else {
            throw .badRequest("display_name has at most 100 bytes")
        }
    }

    /// Waits a while for the last byte to be noted, in ten steps like the application.
    private func finished(_ id: String, _ rules: GigHiveRules) async throws -> TusUpload {
        for attempt in 0...10 {
            if attempt > 0 { try await Task.sleep(for: rules.hookWait / 10) }
            if let upload = uploads.withLock({ $0[id] }), let finished = upload.finished,
                finished.advanced(by: rules.hookDelay) <= .now
            {
                guard !upload.isGone else { throw SandboxReply.serverError("Upload data missing on disk") }
                return upload
            }
        }
        guard uploads.withLock({ $0[id] }) != nil else {
            throw SandboxReply.serverError("Upload not found: no data or hook record for upload_id=\(id)")
        }
        throw SandboxReply.serverError(
            "Upload data exists on disk but post-finish hook output has not been written yet (upload_id=\(id)). "
                + "The server may still be processing; retry in a moment.")
    }

    /// - Parameter guest: The guest whose event the upload goes to, whatever the message names.
    private static func fields(
        _ message: [String: SandboxJSON], _ metadata: [String: String], _ guest: GigHiveRules.UploadToken?
    ) -> [String: String] {
        var fields = message.compactMapValues(\.fieldText)
        for (name, value) in metadata where fields[name]?.trimmed.isEmpty ?? true {
            fields[name] = GigHiveAsset.Entry.normalized(value)
        }
        guard let guest else { return fields }
        return fields.merging(
            ["event_date": guest.eventDate, "org_name": guest.orgName, "event_type": guest.eventType]) { $1 }
    }

    private func file(
        _ path: FilePath, _ fields: [String: String], _ name: String?, _ isGuest: Bool, _ rules: GigHiveRules
    ) throws -> [String: SandboxJSON] {
        var (hash, head) = (ContentHash(), [UInt8]())
        do {
            try FileDescriptor.forEachChunk(of: path) { chunk in
                hash.update(chunk)
                if head.isEmpty { head = Array(chunk.prefix(512)) }
            }
        } catch Errno.noSuchFileOrDirectory {
            throw SandboxReply.serverError("Upload data missing on disk")
        }
        guard hash.size > 0 else { throw SandboxReply.serverError("Uploaded file is empty") }
        let asset = try library.asset(
            hash, head: head, declared: nil, name: name ?? "upload.bin", limit: rules.maximumBytes)
        do {
            let entry = try GigHiveAsset.Entry(fields)
            return try library.take(asset, entry, asGuest: isGuest) { try FileMove.rename(path, to: $0) }
        } catch let refusal as SandboxReply {
            // A duplicate.
            if refusal.status == 409 { try FileManager.default.removeItem(atPath: path.string) }
            throw refusal
        }
    }
}

extension SandboxJSON {
    /// A field that a client may give as a text or as a whole number.
    fileprivate var fieldText: String? { text ?? number.flatMap(Int.init(exactly:)).map(String.init) }
}

// MARK: - What has come

/// An upload by tus: `tus/<id>` holds the bytes so far, `tus/<id>.info` the rest.
struct TusUpload: Codable, Sendable {
    let id: String
    let length: Int64
    /// `Upload-Metadata`, unchanged.
    let metadata: String
    var offset: Int64 = 0
    /// When the last byte came; nil before.
    var finished: ContinuousClock.Instant?
    /// The bytes are in the library, or were discarded as a duplicate.
    var isGone = false
    var isReceiving = false
    var isFinalizing = false

    static func path(_ name: String, in root: FilePath) -> FilePath { root.appending("tus").appending(name) }

    init(length: Int64, metadata: String, in root: FilePath) throws {
        id = UUID().uuidString.lowercased().filter { $0 != "-" }
        (self.length, self.metadata) = (length, metadata)
        try FileMove.write(Data(), to: Self.path(id, in: root))
        try FileMove.save(self, to: Self.path(id + ".info", in: root))
        if length == 0 { finished = .now }
    }

    /// Uploads of an earlier sandbox, each at the length of its file.
    static func load(from root: FilePath) throws -> [String: TusUpload] {
        var uploads: [String: TusUpload] = [:]
        let names = try FileManager.default.contentsOfDirectory(atPath: root.appending("tus").string)
        for name in names where name.hasSuffix(".info") {
            guard var upload = try FileMove.load(TusUpload.self, from: path(name, in: root)) else { continue }
            let size = try FileLook.look(at: path(upload.id, in: root)).identity?.size
            (upload.offset, upload.isGone) = (size ?? upload.length, size == nil)
            upload.finished = upload.offset == upload.length ? .now : nil
            uploads[upload.id] = upload
        }
        return uploads
    }

    /// Pairs of a key and a base 64 value (tus 1.0.0, "Creation").
    var metadataValues: [String: String] {
        var values: [String: String] = [:]
        for item in metadata.split(separator: ",") {
            let halves = item.split(separator: " ")
            guard let key = halves.first else { continue }
            let data = halves.count > 1 ? Data(base64Encoded: String(halves[1])) : Data()
            values[String(key)] = data.map { String(decoding: $0, as: UTF8.self) }
        }
        return values
    }
}

extension [String: TusUpload] {
    fileprivate func present(_ id: String) throws -> TusUpload {
        guard let upload = self[id], !upload.isGone else {
            throw SandboxReply.tus(404, "ERR_UPLOAD_NOT_FOUND: upload not found")
        }
        return upload
    }
}

extension SandboxReply {
    fileprivate static let tusLocked = Self.tus(423, "ERR_UPLOAD_LOCKED: file currently locked")
}
