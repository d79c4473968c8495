package import SystemPackage

/// A delivery as pipelines see it, frozen at admission.
package struct DeliveryOrder: Sendable, Equatable {
    /// The journal's id of the delivery.
    package var id: Int64
    package var destination: String
    /// The frozen key; the same in all attempts.
    package var key: String
    package var mediaType: String
    /// Rendered `with:` fields.
    package var fields: [String: String]
    /// The source's identity at admission.
    package var source: FileIdentity
    /// The source's path below `root`.
    package var path: FilePath
    /// The watched folder; empty for a file that a person sent (`inlet send`), whose `path` is absolute.
    package var root: FilePath
    /// The proofs of the deliveries that this one waited for: first the file's own in its storage, then those of its
    /// companions. Companions that could not be stored are missing.
    package var upstream: [UpstreamDelivery] = []
    /// The file's unit; nil for a single file.
    package var batch: OrderBatch?

    package init(
        id: Int64, destination: String, key: String, mediaType: String, fields: [String: String], source: FileIdentity,
        path: FilePath = "", root: FilePath = ""
    ) {
        self.id = id
        self.destination = destination
        self.key = key
        self.mediaType = mediaType
        self.fields = fields
        self.source = source
        self.path = path
        self.root = root
    }
}

/// A proved delivery that another delivery of the same file waited for.
package struct UpstreamDelivery: Sendable, Equatable {
    package var destination: String
    /// The stored file below its root: the delivery's own source, or one of its companions.
    package var path: FilePath
    package var mediaType: String
    package var proof: Proof

    package init(destination: String, path: FilePath, mediaType: String, proof: Proof) {
        self.destination = destination
        self.path = path
        self.mediaType = mediaType
        self.proof = proof
    }
}

/// The unit of a delivery: a folder whose files are delivered as one.
package struct OrderBatch: Sendable, Equatable {
    /// The journal's id; permanent and never reused.
    package var id: Int64
    /// The unit's folder below its root; permanent, but a later unit may have the same.
    package var name: String
    /// The folder, relative to its root.
    package var folder: FilePath
    /// Whether this closes the unit: it comes once, after all members' deliveries to the destination have ended, and
    /// has no bytes. Otherwise it is one of the unit's files.
    package var isClosing: Bool
    /// For a closing delivery: the number of members with a proof at the destination, and of the others.
    package var files: Int
    package var failed: Int
    /// For a closing delivery: the earliest and latest modification time of the unit's files.
    package var firstCaptured: WallTime?
    package var lastCaptured: WallTime?

    package init(
        id: Int64, name: String, folder: FilePath = "", isClosing: Bool = false, files: Int = 0, failed: Int = 0,
        firstCaptured: WallTime? = nil, lastCaptured: WallTime? = nil
    ) {
        self.id = id
        self.name = name
        self.folder = folder
        self.isClosing = isClosing
        self.files = files
        self.failed = failed
        self.firstCaptured = firstCaptured
        self.lastCaptured = lastCaptured
    }
}
