/// What shows that a destination holds the bytes: the condition for ever touching the source.
package struct Proof: Sendable, Equatable, Codable {
    /// How the bytes were compared.
    package enum Method: String, Sendable, Codable {
        /// Every part's ETag equalled the MD5 of what was read from the file.
        case md5Parts = "md5_parts"
        /// The store compared the CRC-32C or SHA-256 that every part came with, and said so.
        case checksum = "checksum"
        /// The destination confirmed the length only (`verify: size`).
        case size
        /// The written file was read back from the disk and its SHA-256 compared.
        case readBack = "read_back"
        /// Nothing was compared: it is a sidecar or a marker that has no place of its own at the destination, and what it
        /// said has gone there with its file, whose key stands here.
        case carried
        /// The destination computed the SHA-256 of what it holds, and it equalled the file's.
        case sha256 = "sha256"
        /// The destination has recorded what it was told of the file; the bytes were proved where they are stored.
        case registered
        /// Nothing was sent: the file was there before its folder was watched, and the configuration says that the destination
        /// has such files (`existing: adopt`). Never a reason to touch the source.
        case adopted
    }

    /// Where the object is: the key, as the destination knows it.
    package var key: String
    /// Length in bytes that the destination confirmed.
    package var size: Int64
    package var method: Method
    /// The checksum of the content, where one was computed; decides later whether a touched file is still the same.
    package var content: ContentHash?
    /// The destination's own tag of the object.
    package var etag: String?
    /// Where a person or a program can find it; never a presigned URL.
    package var url: String?
    /// Which address of its destination it was then (`Destination.address`, as a short sum of it); nil where the destination
    /// has none to tell, and in the journals of earlier versions.
    package var address: String?
    /// What else the destination said that is worth keeping (an id, a status, the head of its answer): for receipts.
    package var details: [String: String]?
    /// What the destination gave only us, to undo the delivery: for the journal alone, never for receipts and logs.
    package var secrets: ProofSecrets?

    /// The journal's rows of this and of earlier versions have these names.
    private enum CodingKeys: String, CodingKey {
        case key, size, method, content, etag, url, address, details
        case secrets = "keepsakes"
    }

    /// Of what a destination says: it goes into the journal, receipts, lines and pages.
    package static let longestText = 2 << 10

    /// A tag or an address that is too long, or holds control characters, counts as none; other texts are made safe and
    /// cut.
    package init(
        key: String, size: Int64, method: Method, content: ContentHash? = nil, etag: String? = nil, url: String? = nil,
        details: [String: String]? = nil, secrets: ProofSecrets? = nil
    ) {
        self.key = key
        self.size = size
        self.method = method
        self.content = content
        self.etag = etag.flatMap(Self.whole)
        self.url = url.flatMap(Self.whole)
        self.details = details?.mapValues(Self.beginning)
        self.secrets = secrets
    }
}

extension Proof {
    private static func whole(_ text: String) -> String? {
        text.utf8.count <= longestText && DisplayText.escape(text) == text ? text : nil
    }

    private static func beginning(_ text: String) -> String {
        if let text = whole(text) { return text }
        var safe = DisplayText.escape(text.utf8.prefix(longestText))
        while safe.utf8.count > longestText { safe.removeLast() }
        return safe
    }

    /// The detail that names the job whose delivery this one points to: nothing was sent, the content was there.
    package static let sameAsName = "same_as"
    /// The detail that says when a person had it deleted.
    package static let deletedName = "deleted"

    /// The job that brought the content; nil for a delivery that sent it.
    package var sameAs: Int64? { details?[Self.sameAsName].flatMap { Int64($0) } }
    package var isDeleted: Bool { details?[Self.deletedName] != nil }
}

/// Texts by name that are written into the journal and shown nowhere: it prints and reflects as `***`.
package struct ProofSecrets: Sendable, Hashable, Codable, CustomStringConvertible, CustomReflectable {
    private let texts: [String: String]

    package init(_ texts: [String: String]) { self.texts = texts }

    package init(from decoder: any Decoder) throws {
        texts = try decoder.singleValueContainer().decode([String: String].self)
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(texts)
    }

    /// All of them, for the journal alone.
    package var all: [String: String] { texts }

    /// The text itself; call it only where it goes on the wire.
    package func reveal(_ name: String) -> String? { texts[name] }

    package var description: String { "***" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A checksum of a whole file that can be recomputed from the file alone.
package struct ContentHash: Sendable, Hashable, Codable {
    /// SHA-256 of the content, or MD5 over the concatenated MD5s of parts of `partSize` bytes (S3's multipart ETag).
    package var digest: Digest
    /// Bytes of each part but the last; nil for a digest over the whole content.
    package var partSize: Int64?

    package init(digest: Digest, partSize: Int64?) {
        self.digest = digest
        self.partSize = partSize
    }
}

/// Names of checkpoint notes that mean the same to every pipeline and to the journal.
package enum CheckpointName {
    /// Written before a request that may make something visible under the key, or after one whose answer was lost. As
    /// long as it is there, nobody else gets the key. Its value is the pipeline's own, and the only one that a delivery keeps
    /// for `queue retry` once it has failed and what it left was removed.
    package static let mayBeVisible = "completing"
}

/// Keeps what only we may know out of the journal and of its copies: it is written sealed, with a key that is in neither.
package protocol Sealing: Sendable {
    /// The notes of a delivery as they may be written.
    func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]]
    /// The notes that those were made of. What cannot be opened is left out, as if it had never been known; what was written
    /// before there were seals is as it was.
    func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]]
    func closed(_ secrets: ProofSecrets) -> ProofSecrets
    /// nil when none of them can be opened.
    func opened(_ secrets: ProofSecrets) -> ProofSecrets?
}

extension Sealing {
    package func closed(_ proof: Proof) -> Proof {
        var proof = proof
        proof.secrets = proof.secrets.map(closed)
        return proof
    }

    package func opened(_ proof: Proof) -> Proof {
        var proof = proof
        proof.secrets = proof.secrets.flatMap(opened)
        return proof
    }
}

/// Writes everything as it is.
package struct NoSeal: Sealing {
    package init() {}

    package func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
    package func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
    package func closed(_ secrets: ProofSecrets) -> ProofSecrets { secrets }
    package func opened(_ secrets: ProofSecrets) -> ProofSecrets? { secrets }
}
