internal import InletCore

/// A delivery to GigHive as its checkpoint remembers it.
struct GigHiveNotes: Sendable, Equatable {
    /// The tus upload that is under way; its URL follows from the destination's.
    var upload: String?
    /// Bytes of it that the server has acknowledged.
    var offset: Int64 = 0
    /// The file's checksum, once all its bytes were sent: from then on the server may have filed it.
    var sent: Digest?
    /// How long finalizing has been put off because the server was not ready, in milliseconds.
    var waited: Int64 = 0
    var tries = 0
    /// How often in a row the server said that the sent bytes are not there.
    var missing = 0
    /// Set when the bytes were sent a second time for that.
    var isSecond = false
    /// `transport: auto` found that a form is too large.
    var needsTus = false
    /// A request went out that may have filed the file.
    var mayBeVisible = false
    /// When a server that never got ready was given up on: the upload stays for `keptWhenStuck`, so that a retry in that
    /// time need not send it again.
    var stuckSince: WallTime?
    /// The server's word; the file is there.
    var reply: GigHiveReply?

    private struct Progress: Codable {
        var waited: Int64
        var tries: Int
        var missing: Int
        /// Milliseconds since 1970.
        var stuckSince: Int64?
    }

    /// Less than the tries to drop what was given up go on for: the server itself never forgets an upload.
    static let keptWhenStuck = Duration.seconds(40 * 60)

    init(_ entries: [String: [UInt8]]) {
        upload = entries["upload"].flatMap(Self.text)
        offset = entries["offset"].flatMap(Self.text).flatMap { Int64($0) } ?? 0
        sent = entries["sent"].flatMap(Self.text).flatMap { Digest(.sha256, hex: $0) }
        isSecond = entries["second"] != nil
        needsTus = entries["transport"] != nil
        mayBeVisible = entries[CheckpointNote.mayBeVisible] != nil
        reply = JSON.note(entries[GigHiveReply.noteName])
        guard let progress: Progress = JSON.note(entries["finalize"]) else { return }
        (waited, tries, missing) = (progress.waited, progress.tries, progress.missing)
        stuckSince = progress.stuckSince.map { WallTime(milliseconds: $0) }
    }

    var uploadNote: [String: [UInt8]] { ["upload": Array((upload ?? "").utf8)] }
    var offsetNote: [String: [UInt8]] { ["offset": Array(String(offset).utf8)] }
    /// From here on the server may file it.
    var sentNote: [String: [UInt8]] {
        ["sent": Array((sent?.hex ?? "").utf8), CheckpointNote.mayBeVisible: []]
    }

    var finalizeNote: [String: [UInt8]] {
        let progress = Progress(waited: waited, tries: tries, missing: missing, stuckSince: stuckSince?.milliseconds)
        return ["finalize": JSON.note(of: progress)]
    }

    /// What outlives an upload that is begun anew.
    var lasting: [String: [UInt8]] {
        var notes: [String: [UInt8]] = [:]
        if isSecond { notes["second"] = [] }
        if needsTus { notes["transport"] = Array("tus".utf8) }
        if mayBeVisible { notes[CheckpointNote.mayBeVisible] = [] }
        return notes
    }

    /// Begins anew: nothing of the upload is known any more.
    mutating func forgetUpload() { self = GigHiveNotes(lasting) }

    private static func text(_ bytes: [UInt8]) -> String? { String(validating: bytes, as: UTF8.self) }
}
