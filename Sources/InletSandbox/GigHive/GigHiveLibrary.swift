import Foundation
package import InletCore
import InletLinux
import Synchronization
package import SystemPackage

/// A file of the library, for tests and the demo.
package struct GigHiveAsset: Codable, Sendable, Hashable {
    /// A place in an event; the same bytes may be in several.
    package struct Entry: Codable, Sendable, Hashable {
        /// `YYYY-MM-DD`.
        package var eventDate: String
        package var orgName: String
        package var eventType: String
        package var label: String
        package var participants: String
        package var keywords: String
        package var location: String
        package var rating: Int?
        package var notes: String
        // The catalog assigns these.
        var id = 0
        var event = 0
        var position = 0
    }

    package var id = 0
    /// Of the content, computed by the sandbox from the bytes it stored.
    package var sha256: Digest
    /// Length in bytes.
    package var size: Int64
    /// As declared by a form, as detected after tus.
    package var mimeType: String
    /// `audio` or `video`.
    package var kind: String
    var place: String
    /// SHA-256 of the delete token.
    var tokenHash = ""
    package var entries: [Entry] = []

    /// The file that holds the bytes.
    package var path: FilePath { FilePath(place) }

    /// Its fields in every answer.
    var told: [String: SandboxJSON] {
        [
            "id": .init(id), "asset_id": .init(id), "file_name": .string(path.lastComponent?.string ?? ""),
            "file_type": .string(kind), "mime_type": .string(mimeType), "size_bytes": .init(Int(size)),
            "checksum_sha256": .string(sha256.hex),
            // This server does not inspect media.
            "duration_seconds": .null,
        ]
    }
}

/// The application's database.
private struct GigHiveCatalog: Codable, Sendable {
    var assets: [GigHiveAsset] = []
    /// By id; label and participants belong to the entries.
    var events: [Int: GigHiveAsset.Entry] = [:]
    private var lastID = 0

    mutating func nextID() -> Int {
        lastID += 1
        return lastID
    }

    /// The event of this date and organisation, made when it is new.
    private mutating func event(_ fields: GigHiveAsset.Entry) throws(SandboxReply) -> Int {
        let known = events.first { $0.value.eventDate == fields.eventDate && $0.value.orgName == fields.orgName }?.key
        try fields.checkEvent(isNew: known == nil)
        if let known {
            if !fields.keywords.isEmpty { events[known]?.keywords = fields.keywords }
            return known
        }
        let id = nextID()
        events[id] = fields
        return id
    }

    /// Files a received upload under its event. The steps, and the leftovers of a refusal between them, are the
    /// application's.
    mutating func file(
        _ received: GigHiveAsset, _ fields: GigHiveAsset.Entry, move: (FilePath) throws -> Void
    ) throws -> [String: SandboxJSON] {
        let event = try event(fields)
        var (asset, token) = (received, String?.none)
        let known = assets.firstIndex { $0.sha256 == received.sha256 }
        if let known {
            (asset.id, asset.kind) = (assets[known].id, assets[known].kind)
            guard !assets[known].entries.contains(where: { $0.event == event }) else { throw try Self.duplicate(asset) }
        } else {
            let new = [UInt8].unforeseeable(32).hex
            (asset.id, asset.tokenHash, token) = (nextID(), SHA256.digest(of: new.utf8).hex, new)
            try move(asset.path)
            assets.append(asset)
        }
        // Refusals that the database makes only now.
        try GigHiveAsset.Entry.check("label", fields.label, atMost: 255)
        let last = assets.flatMap(\.entries).filter { $0.event == event }.map(\.position).max() ?? 0
        var entry = fields
        (entry.id, entry.event, entry.position) = (nextID(), event, last + 1)
        assets[known ?? assets.count - 1].entries.append(entry)
        var told = asset.told.merging(entry.told) { $1 }
        // For a new asset only, and shown once.
        told["delete_token"] = token.map(SandboxJSON.string)
        return told
    }

    /// 409: the same bytes are in the same event.
    private static func duplicate(_ asset: GigHiveAsset) throws -> SandboxReply {
        try .json(
            [
                "error": "Duplicate Upload",
                "message": "A file with the same checksum_sha256 already exists on the server.",
                "existing_asset_id": .init(asset.id), "checksum_sha256": .string(asset.sha256.hex),
            ] as SandboxJSON, status: 409)
    }
}

/// The media files and the catalog on disk: `media/<kind>/<sha256>.<ext>`, `catalog.json` (rewritten at each change),
/// `incoming/` (emptied at start).
final class GigHiveLibrary: Sendable {
    let incoming: FilePath
    private let root: FilePath
    private let catalog: Mutex<GigHiveCatalog>

    init(root: FilePath) throws {
        self.root = root
        incoming = root.appending("incoming")
        // Usually there is none; a leftover does no harm.
        try? FileManager.default.removeItem(atPath: incoming.string)
        for folder in ["incoming", "media/audio", "media/video"] {
            try FileMove.makeFolder(root.pushing(FilePath(folder)))
        }
        var kept = try FileMove.load(from: root.appending("catalog.json")) ?? GigHiveCatalog()
        // The folder may have been moved.
        for index in kept.assets.indices {
            guard let name = kept.assets[index].path.lastComponent else { continue }
            kept.assets[index].place = root.pushing(FilePath("media/\(kept.assets[index].kind)")).appending(name).string
        }
        catalog = Mutex(kept)
    }

    /// The assets, with the current data of their entries' events.
    func assets() -> [GigHiveAsset] {
        catalog.withLock { catalog in
            catalog.assets.map { asset in
                var asset = asset
                asset.entries = asset.entries.compactMap { entry in
                    guard var shown = catalog.events[entry.event] else { return nil }
                    (shown.label, shown.participants) = (entry.label, entry.participants)
                    return shown
                }
                return asset
            }
        }
    }

    func asset(_ id: Int) -> GigHiveAsset? { catalog.withLock { $0.assets.first { $0.id == id } } }

    /// Files a received upload under its event.
    ///
    /// - Parameters:
    ///   - isGuest: Answers as for an upload that waits for approval.
    ///   - move: Moves the bytes to their place; called only for new bytes.
    /// - Throws: `SandboxReply`; 409 for bytes that are in this event already.
    func take(
        _ received: GigHiveAsset, _ fields: GigHiveAsset.Entry, asGuest isGuest: Bool = false,
        move: (FilePath) throws -> Void
    ) throws -> [String: SandboxJSON] {
        try catalog.withLock { catalog in
            let answer = Result {
                var answer = try catalog.file(received, fields, move: move)
                if isGuest {
                    let nonce = SandboxJSON.string([UInt8].unforeseeable(16).hex)
                    answer.merge(["status_nonce": nonce, "upload_job_id": .init(catalog.nextID())]) { $1 }
                }
                return answer
            }
            // Leftovers of a refusal are kept too.
            try save(catalog)
            return try answer.get()
        }
    }

    /// Whether `token` is the asset's.
    func isToken(_ token: String, of id: Int) -> Bool {
        guard let asset = asset(id) else { return false }
        return SigningSecret.areEqual(asset.tokenHash, SHA256.digest(of: token.utf8).hex)
    }

    /// - Returns: Whether there was such an asset.
    func delete(_ id: Int) throws -> Bool {
        try catalog.withLock { catalog in
            guard let index = catalog.assets.firstIndex(where: { $0.id == id }) else { return false }
            let asset = catalog.assets.remove(at: index)
            try save(catalog)
            try FileManager.default.removeItem(atPath: asset.place)
            return true
        }
    }

    private func save(_ catalog: GigHiveCatalog) throws {
        try FileMove.save(catalog, to: root.appending("catalog.json"))
    }
}

// MARK: - Fields

extension GigHiveAsset.Entry {
    private static let eventTypes: Set<String> = ["band", "wedding", "other"]

    /// The fields of an upload as the application reads them: trimmed, with its defaults and its limits.
    ///
    /// - Parameter given: Absent fields get the defaults; empty ones do not.
    /// - Throws: 400 for a malformed date and for a missing label.
    init(_ given: [String: String]) throws(SandboxReply) {
        func text(_ name: String, or fallback: String = "") -> String { (given[name] ?? fallback).trimmed }
        let today = String(WallTime.now.rfc3339.prefix(10))
        let digits = text("rating")
        self.init(
            eventDate: text("event_date", or: today), orgName: Self.normalized(text("org_name", or: "Band")),
            eventType: text("event_type", or: "band"), label: text("label"), participants: text("participants"),
            keywords: text("keywords"), location: text("location"),
            rating: digits.wholeMatch(of: /[0-9]+/) == nil ? nil : Int(digits), notes: text("notes"))
        guard eventDate.wholeMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/) != nil else {
            throw .badRequest("Invalid event_date format; expected YYYY-MM-DD")
        }
        guard !label.isEmpty else { throw .badRequest("Label is required") }
    }

    /// The database's refusals when it looks up or makes the event.
    fileprivate func checkEvent(isNew: Bool) throws(SandboxReply) {
        guard !eventDate.hasPrefix("0000"), WallTime(rfc3339: eventDate + "T00:00:00Z") != nil else {
            throw .sql("22007", "Invalid datetime format: 1292 Incorrect date value: '\(eventDate)'")
        }
        try Self.check("org_name", orgName, atMost: 128)
        guard isNew else { return }
        guard Self.eventTypes.contains(eventType) else {
            throw .sql("01000", "Warning: 1265 Data truncated for column 'event_type' at row 1")
        }
        try Self.check("location", location, atMost: 255)
        guard rating ?? 0 < 10 else {
            throw .sql("22003", "Numeric value out of range: 1264 Out of range value for column 'rating' at row 1")
        }
    }

    fileprivate static func check(_ column: String, _ text: String, atMost count: Int) throws(SandboxReply) {
        guard text.count <= count else {
            throw .sql("22001", "String data, right truncated: 1406 Data too long for column '\(column)' at row 1")
        }
    }

    /// NFC, with runs of blanks as one.
    static func normalized(_ text: String) -> String {
        text.precomposedStringWithCanonicalMapping.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// Its fields in the answer to its upload.
    fileprivate var told: [String: SandboxJSON] {
        [
            "event_id": .init(event), "event_item_id": .init(id), "position": .init(position),
            "event_date": .string(eventDate), "org_name": .string(orgName), "event_type": .string(eventType),
            "label": .string(label), "participants": .string(participants), "keywords": .string(keywords),
        ]
    }
}

extension String {
    var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}

// MARK: - Types of media

extension GigHiveLibrary {
    private static let audioExtensions: Set<String> = [
        "mp3", "wav", "flac", "aac", "m4a", "m4p", "aif", "aifc", "aiff", "ogg", "oga", "au", "m2a", "wma",
    ]
    private static let videoExtensions: Set<String> = [
        "mp4", "mov", "mkv", "webm", "m4v", "avi", "mpg", "mpeg", "ts", "m2t", "m2ts", "ogv", "mxf", "flv", "rm",
        "rmvb", "rv", "wmv", "vob", "m2v", "bup", "ifo",
    ]

    /// The asset that a received file would become.
    ///
    /// - Parameters:
    ///   - head: The first bytes.
    ///   - declared: The client's type; nil = the type that the bytes show.
    /// - Throws: 400 for a file over the limit, and for a file that is neither audio nor video by type or extension.
    func asset(
        _ hash: ContentHash, head: [UInt8], declared: String?, name: String, limit: Int64
    ) throws(SandboxReply) -> GigHiveAsset {
        guard hash.size <= limit else { throw .badRequest("File too large (exceeds application limit)") }
        let detected = Self.type(of: head)
        let type = declared ?? detected
        let suffix = name.lowercased().firstMatch(of: /\.([a-z0-9]{1,16})$/).map { String($0.1) } ?? ""
        let byName =
            Self.audioExtensions.contains(suffix) ? "audio" : Self.videoExtensions.contains(suffix) ? "video" : nil
        let byType = ["audio", "video"].first { type.lowercased().hasPrefix($0 + "/") }
        let isMedia = ["audio/", "video/", "application/ogg"].contains { detected.hasPrefix($0) }
        guard byName != nil || isMedia, let kind = byType ?? byName else { throw .badRequest("Unsupported media type") }
        let sha256 = Digest(.sha256, hash.finish().sha256)
        let folder = root.appending("media").appending(kind)
        return GigHiveAsset(
            sha256: sha256, size: hash.size, mimeType: type, kind: kind,
            place: folder.appending(suffix.isEmpty ? sha256.hex : "\(sha256.hex).\(suffix)").string)
    }

    /// The type that a file's first bytes show; enough for the formats of watch folders.
    private static func type(of head: [UInt8]) -> String {
        func holds(_ text: String, at offset: Int) -> Bool { head.dropFirst(offset).starts(with: text.utf8) }
        if holds("ftyp", at: 4) {
            if holds("qt  ", at: 8) { return "video/quicktime" }
            return holds("M4A ", at: 8) ? "audio/mp4" : "video/mp4"
        }
        if holds("RIFF", at: 0) { return holds("WAVE", at: 8) ? "audio/x-wav" : "video/x-msvideo" }
        if holds("ID3", at: 0) || head.starts(with: [0xFF, 0xFB]) { return "audio/mpeg" }
        if holds("fLaC", at: 0) { return "audio/flac" }
        if holds("OggS", at: 0) { return "application/ogg" }
        if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return "video/x-matroska" }
        let isText = !head.isEmpty && head.allSatisfy { $0 >= 0x20 && $0 < 0x7F || (9...13).contains($0) }
        return isText ? "text/plain" : "application/octet-stream"
    }
}
