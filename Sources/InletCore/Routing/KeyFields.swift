package import SystemPackage

/// Something a template needs that costs more than a `stat`.
package enum Fact: Hashable, Sendable {
    /// One read of the file.
    case sha256
    /// A number from the journal's counter.
    case sequence
    /// The file's own date: a few reads of its head, of a video's index too.
    case captured
    /// One read of the file, for the unit's manifest.
    case digest(Digest.Algorithm)
    /// What the file is by its content: one read of its head.
    case mediaType

    /// The checksum that it is; nil for what is no checksum.
    package var algorithm: Digest.Algorithm? {
        switch self {
        case .sha256: .sha256
        case .digest(let algorithm): algorithm
        case .sequence, .captured, .mediaType: nil
        }
    }
}

/// What is known of one file when its key is made.
package struct KeyFields: Sendable {
    /// Relative to the watched root.
    package var path: FilePath
    /// mtime in nanoseconds since the epoch.
    package var modified: Int64
    package var owner: String?
    package var category: String
    package var sha256: Digest?
    /// When the file was admitted: `epoch_ms` and `now`.
    package var admitted: WallTime
    package var sequence: Int64?
    /// nil counts as `.unknown`.
    package var captured: Captured?
    /// IANA name of the zone for dates without `@ZONE`; nil = the system's.
    package var zone: String?
    /// The label of the file system that it is on, or its UUID.
    package var volume: String?

    package init(
        path: FilePath, modified: Int64, owner: String? = nil, category: String, sha256: Digest? = nil,
        admitted: WallTime, sequence: Int64? = nil, captured: Captured? = nil, zone: String? = nil,
        volume: String? = nil
    ) {
        self.path = path
        self.modified = modified
        self.owner = owner
        self.category = category
        self.sha256 = sha256
        self.admitted = admitted
        self.sequence = sequence
        self.captured = captured
        self.zone = zone
        self.volume = volume
    }
}
