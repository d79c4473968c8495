/// Keeps what only we may know out of the journal and of its copies: it is written sealed, with a key that is in neither.
package protocol Sealing: Sendable {
    /// The notes of a delivery as they may be written.
    func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]]
    /// The notes that those were made of. What cannot be opened is left out, as if it had never been known; what was written
    /// before there were seals is as it was.
    func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]]
    func closed(_ keepsakes: Keepsakes) -> Keepsakes
    /// nil when none of them can be opened.
    func opened(_ keepsakes: Keepsakes) -> Keepsakes?
}

extension Sealing {
    package func closed(_ proof: Proof) -> Proof {
        var proof = proof
        proof.keepsakes = proof.keepsakes.map(closed)
        return proof
    }

    package func opened(_ proof: Proof) -> Proof {
        var proof = proof
        proof.keepsakes = proof.keepsakes.flatMap(opened)
        return proof
    }
}

/// Writes everything as it is.
package struct NoSeal: Sealing {
    package init() {}

    package func closed(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
    package func opened(_ notes: [String: [UInt8]]) -> [String: [UInt8]] { notes }
    package func closed(_ keepsakes: Keepsakes) -> Keepsakes { keepsakes }
    package func opened(_ keepsakes: Keepsakes) -> Keepsakes? { keepsakes }
}
