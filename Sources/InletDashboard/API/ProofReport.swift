package import InletCore
internal import InletJournal

/// Which proofs are asked for.
package struct ProofWish: Codable, Sendable, Equatable {
    /// Numbers of files; empty = all.
    package var jobs: [Int64]
    /// Milliseconds since 1970; only what arrived then or later.
    package var since: Int64?
    package var destination: String?
    package var batch: Int64?
    /// The delivery that the last page ended with; 0 for the first.
    package var after: Int64

    package init(
        jobs: [Int64] = [], since: WallTime? = nil, destination: String? = nil, batch: Int64? = nil, after: Int64 = 0
    ) {
        self.jobs = jobs
        self.since = since?.milliseconds
        self.destination = destination
        self.batch = batch
        self.after = after
    }

    var filter: DeliveredFilter {
        DeliveredFilter(
            jobs: jobs, since: since.map { WallTime(milliseconds: $0) }, destination: destination, batch: batch)
    }
}

/// One page of proofs.
package struct ProofPage: Codable, Sendable {
    package var proofs: [ProofReport]
    /// What the next page begins after; nil when this is the last one.
    package var next: Int64?

    /// Deliveries of one page.
    static let size = 200
}

/// What the journal knows of something that was delivered, for whoever looks whether it still is there.
package struct ProofReport: Codable, Sendable {
    package var job: Int64
    package var delivery: Int64
    package var path: String
    package var destination: String
    /// Without what is for the journal alone; nil for one that cannot be read.
    package var proof: Proof?
    /// Checksums of the whole file, as it was read at admission.
    package var digests: [Digest]

    init(_ delivered: Delivered) {
        var proof = delivered.delivery.proof
        proof?.keepsakes = nil
        job = delivered.file.id
        delivery = delivered.delivery.id
        path = delivered.file.fullPath.display
        destination = delivered.delivery.destination
        self.proof = proof
        digests = delivered.file.digests
    }
}
