/// Evidence that a destination holds the bytes; without it, Inlet never touches the source.
package struct Proof: Sendable, Equatable, Codable {
    /// How the bytes were compared.
    package enum Method: String, Sendable, Codable {
        /// Every part's ETag equals the MD5 of the bytes read from the file.
        case md5Parts = "md5_parts"
        /// The store compared the CRC-64/NVME, CRC-32C or SHA-256 sent with every part, and confirmed it. `content` or the
        /// detail `checksum` names it.
        case checksum = "checksum"
        /// The destination confirmed only the length (`verify: size`).
        case size
        /// The written file was read back from the disk, and its SHA-256 compared.
        case readBack = "read_back"
        /// Nothing was compared: a sidecar or marker without a place of its own at the destination. Its content went
        /// along with its file, whose key is given.
        case carried
        /// The destination's SHA-256 of its object equals the file's.
        case sha256 = "sha256"
        /// The destination recorded the file's metadata; the bytes are proved where they are stored.
        case registered
        /// Nothing was sent: the file was there before its folder was watched, and the configuration says that the
        /// destination has it (`existing: adopt`). Never allows touching the source.
        case adopted
        /// Nothing was sent: another agent of the fleet brought the same content, and has the proof. `sameAsAgent` names
        /// it.
        case link
    }

    /// The object's key at the destination.
    package var key: String
    /// The length in bytes that the destination confirmed.
    package var size: Int64
    package var method: Method
    /// The content's checksum if one was computed; shows later whether a touched file is still the same.
    package var content: ContentHash?
    /// The destination's tag of the object.
    package var etag: String?
    /// A URL for people and programs; never a presigned one.
    package var url: String?
    /// The address of its destination at that time (`Destination.address`, hashed); nil if the destination has none,
    /// and in journals of earlier versions.
    package var address: String?
    /// Other useful answers of the destination (an id, a status, the head of its answer): for receipts.
    package var details: [String: String]?
    /// Secrets from the destination to undo the delivery: only for the journal, never for receipts and logs.
    package var secrets: ProofSecrets?

    /// The names in the journal's rows, of this and earlier versions.
    private enum CodingKeys: String, CodingKey {
        case key, size, method, content, etag, url, address, details
        case secrets = "keepsakes"
    }

    /// Limits texts from a destination: they go into the journal, receipts, lines and pages.
    package static let longestText = 2 << 10

    /// Drops a tag or URL that is too long or contains control characters; escapes and cuts other texts.
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

    /// The detail with the job whose delivery this one points to: its content was already there, so nothing was sent.
    package static let sameAsName = "same_as"
    /// The detail with the agent of the fleet whose delivery this one points to.
    package static let sameAsAgentName = "same_as_agent"
    /// The detail with a confirmed checksum that is too short for `content`.
    package static let checksumName = "checksum"
    /// The detail with the time at which a person had the object deleted.
    package static let deletedName = "deleted"

    /// The job that sent the content; nil if this delivery sent it.
    package var sameAs: Int64? { details?[Self.sameAsName].flatMap { Int64($0) } }
    /// The agent of the fleet that sent the content.
    package var sameAsAgent: String? { method == .link ? details?[Self.sameAsAgentName] ?? "another agent" : nil }
    /// Whether another delivery sent the content.
    package var isLink: Bool { sameAs != nil || method == .link }
    package var isDeleted: Bool { details?[Self.deletedName] != nil }
}

/// Named texts that are written to the journal but never shown: they print and reflect as `***`.
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

    /// All texts, only for the journal.
    package var all: [String: String] { texts }

    /// The text; use it only where it is sent.
    package func reveal(_ name: String) -> String? { texts[name] }

    package var description: String { "***" }
    package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// A checksum of a whole file that the file alone can reproduce.
package struct ContentHash: Sendable, Hashable, Codable {
    /// A checksum of the content, or the MD5 of the parts' concatenated MD5s (S3's multipart ETag).
    package var digest: Digest
    /// The size of each part but the last; nil for a digest of the whole content.
    package var partSize: Int64?

    package init(digest: Digest, partSize: Int64?) {
        self.digest = digest
        self.partSize = partSize
    }
}

/// Names of checkpoint notes shared by all pipelines and the journal.
package enum CheckpointName {
    /// Written before a request that may make something visible under the key, or after one whose answer was lost.
    /// While it exists, no other file gets the key. Its value belongs to the pipeline. It is the only note that a
    /// failed delivery keeps for `queue retry` after its leftovers were removed.
    package static let mayBeVisible = "completing"
}

/// Encrypts private notes in the journal and its copies, with a key that is stored in neither.
package protocol Sealing: Sendable {
    /// The notes of a delivery, sealed for storage.
    func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]]
    /// The original notes. Omits notes that cannot be opened, as if they had never been written; passes notes from
    /// before sealing through unchanged.
    func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]]
    func closed(_ secrets: ProofSecrets) -> ProofSecrets
    /// nil if none of them can be opened.
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

/// Seals nothing.
package struct NoSeal: Sealing {
    package init() {}

    package func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
    package func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
    package func closed(_ secrets: ProofSecrets) -> ProofSecrets { secrets }
    package func opened(_ secrets: ProofSecrets) -> ProofSecrets? { secrets }
}
