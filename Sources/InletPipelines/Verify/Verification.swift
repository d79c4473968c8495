package import InletCore

/// A destination that can be asked whether it still has what it was given, for `inlet verify`.
package protocol DeliveryVerifying: Sendable {
    /// Compares what the destination has with the proof that the journal keeps. Changes nothing anywhere.
    ///
    /// - Throws: where the destination cannot be asked now; what it says of the object itself is a `Verification`.
    func verify(_ order: VerifyOrder) async throws(DeliveryError) -> Verification

    /// Whether it finds things by the key alone, whoever has sent them. A service that finds them by numbers of its own
    /// can tell nothing of what another program sent.
    var findsByKey: Bool { get }
}

extension DeliveryVerifying {
    package var findsByKey: Bool { true }
}

/// What is asked of a destination.
package struct VerifyOrder: Sendable {
    package var proof: Proof
    /// Checksums of the whole content, where any were computed besides the proof's.
    package var digests: [Digest]
    /// Whether every byte is read; otherwise the destination's word is taken.
    package var readsBytes: Bool

    package init(proof: Proof, digests: [Digest] = [], readsBytes: Bool = false) {
        self.proof = proof
        self.digests = digests
        self.readsBytes = readsBytes
    }
}

/// What became of something that was delivered.
package enum Verification: Sendable, Equatable {
    /// It is there; the text says what was compared.
    case same(String)
    /// Something else is there, or not all of it.
    case differs(String)
    /// It is not there any more.
    case missing(String)
    /// This destination has no way to tell.
    case cannotTell(String)
}
