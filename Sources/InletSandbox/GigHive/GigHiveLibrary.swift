import Foundation
import InletCore
import Synchronization
import SystemPackage

/// A received file that is about to become part of the library.
struct ReceivedMedia: Sendable {
    var sha256: String
    var size: Int64
    /// Lower case, without its dot.
    var fileExtension: String
    var kind: MediaKind
    var mimeType: String
}

/// The media files and the catalog on disk: `media/<kind>/<sha256>.<ext>`, `catalog.json`, `incoming/` (emptied at start).
final class GigHiveLibrary: Sendable {
    let incoming: FilePath
    private let root: FilePath
    private let catalog: Mutex<GigHiveCatalog>

    init(root: FilePath) throws {
        self.root = root
        incoming = root.appending("incoming")
        // Mostly there is none; one that stays is in nobody's way.
        try? FileManager.default.removeItem(atPath: incoming.string)
        for folder in [
            incoming, root.appending("media").appending("audio"), root.appending("media").appending("video"),
        ] {
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        }
        let file = root.appending("catalog.json")
        guard FileManager.default.fileExists(atPath: file.string) else {
            catalog = Mutex(GigHiveCatalog())
            return
        }
        let data = try Data(contentsOf: URL(fileURLWithPath: file.string))
        catalog = Mutex(try JSONDecoder().decode(GigHiveCatalog.self, from: data))
    }

    func assets() -> [GigHiveAsset] {
        catalog.withLock { catalog in
            catalog.assets.map { asset in
                GigHiveAsset(
                    id: asset.id, sha256: Digest(.sha256, hex: asset.sha256) ?? Digest(.sha256, []), size: asset.size,
                    mimeType: asset.mimeType, kind: asset.kind.rawValue, path: path(of: asset),
                    entries: catalog.entries(of: asset.id))
            }
        }
    }

    func asset(_ id: Int) -> GigHiveCatalog.Asset? { catalog.withLock { $0.assets.first { $0.id == id } } }

    /// Files the media under its event. The steps, and what a refusal between them leaves behind, are the application's.
    ///
    /// - Parameter move: Brings the bytes to their place; called only for bytes that are new.
    /// - Throws: `GigHiveRefusal`; 409 for bytes that are in this event already.
    func take(
        _ media: ReceivedMedia, _ fields: GigFields, move: (FilePath) throws -> Void
    ) throws -> UploadAnswer {
        try catalog.withLock { catalog in
            let answer = Result { try file(media, fields, in: &catalog, move: move) }
            try save(catalog)
            return try answer.get()
        }
    }

    private func file(
        _ media: ReceivedMedia, _ fields: GigFields, in catalog: inout GigHiveCatalog, move: (FilePath) throws -> Void
    ) throws -> UploadAnswer {
        let event = try catalog.event(fields)
        if let present = catalog.assets.first(where: { $0.sha256 == media.sha256 }) {
            if catalog.items.contains(where: { $0.event == event.id && $0.asset == present.id }) {
                throw GigHiveRefusal.duplicate(asset: present.id, sha256: media.sha256)
            }
            let item = try catalog.add(present, to: event, fields)
            return UploadAnswer(present, media, item, fields, token: nil)
        }
        let token = [UInt8].unforeseeable(32).hex
        let asset = GigHiveCatalog.Asset(
            id: catalog.nextID(), sha256: media.sha256, fileExtension: media.fileExtension, kind: media.kind,
            mimeType: media.mimeType, size: media.size, tokenHash: Self.hash(token))
        try move(path(of: asset))
        catalog.assets.append(asset)
        let item = try catalog.add(asset, to: event, fields)
        return UploadAnswer(asset, media, item, fields, token: token)
    }

    /// Whether `token` is the one that was given for the asset.
    func isToken(_ token: String, of id: Int) -> Bool {
        guard let asset = asset(id) else { return false }
        return SigningSecret.areEqual(asset.tokenHash, Self.hash(token))
    }

    /// - Returns: Whether there was such an asset.
    func delete(_ id: Int) throws -> Bool {
        try catalog.withLock { catalog in
            guard let asset = catalog.assets.first(where: { $0.id == id }) else { return false }
            catalog.remove(id)
            try save(catalog)
            try FileManager.default.removeItem(atPath: path(of: asset).string)
            return true
        }
    }

    /// Notes an upload of a guest, which waits for somebody's approval.
    func addGuest() throws -> GigHiveCatalog.GuestUpload {
        try catalog.withLock { catalog in
            let nonce = [UInt8].unforeseeable(16).hex
            let guest = GigHiveCatalog.GuestUpload(id: catalog.nextID(), nonce: nonce)
            catalog.guests.append(guest)
            try save(catalog)
            return guest
        }
    }

    func isGuest(_ nonce: String) -> Bool { catalog.withLock { $0.guests.contains { $0.nonce == nonce } } }

    private func path(of asset: GigHiveCatalog.Asset) -> FilePath {
        root.appending("media").appending(asset.kind.rawValue).appending(asset.fileName)
    }

    private func save(_ catalog: GigHiveCatalog) throws {
        try FileMove.write(JSONEncoder().encode(catalog), to: root.appending("catalog.json"))
    }

    private static func hash(_ text: String) -> String { SHA256.digest(of: text.utf8).hex }
}
