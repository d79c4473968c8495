package import SystemPackage

/// A delivery as a pipeline sees it: what goes where, frozen at admission.
package struct DeliveryOrder: Sendable, Equatable {
    /// The journal's id of the delivery.
    package var id: Int64
    package var destination: String
    /// The frozen key; never changes between attempts.
    package var key: String
    package var mediaType: String
    /// Rendered `with:` fields.
    package var fields: [String: String]
    /// What the source was when it was admitted.
    package var source: FileIdentity
    /// The source below `root`.
    package var path: FilePath
    /// The watched folder; empty for a file that a person named (`inlet send`), whose `path` is then absolute.
    package var root: FilePath
    /// What has been proved of the deliveries that this one waited for: the file's own in the storage first, then those of
    /// its companions there. A companion that could not be stored is missing.
    package var upstream: [UpstreamDelivery] = []
    /// The unit that the file belongs to; nil for a file that stands for itself.
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

/// A delivery that had to be proved before another one of the same file could begin, with its proof.
package struct UpstreamDelivery: Sendable, Equatable {
    package var destination: String
    /// The stored file below its root: the delivery's own source, or a companion of it.
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

/// The unit (a folder whose files are delivered as one) that a delivery belongs to.
package struct OrderBatch: Sendable, Equatable {
    /// The journal's id; stable for ever, and never given to another unit.
    package var id: Int64
    /// The unit's folder below its root; stable for ever, but a later unit may have it too.
    package var name: String
    /// The folder itself, below its root.
    package var folder: FilePath
    /// Comes once, after every member's delivery to the same destination has ended, and carries no bytes of its own; otherwise it
    /// is one of the unit's files.
    package var isClosing: Bool
    /// Of a closing delivery: the members whose deliveries to the destination ended with a proof, and the others.
    package var files: Int
    package var failed: Int
    /// Of a closing delivery: the earliest and the latest modification time of the unit's files.
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
