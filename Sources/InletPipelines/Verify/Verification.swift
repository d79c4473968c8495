package import InletCore
internal import InletLinux
internal import SystemPackage

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

extension Verification {
    /// What an error says that came with one file, while the folder itself is there: nothing about the other files.
    init(_ error: SystemError) throws(DeliveryError) {
        // A bad sector loses what is on it, and no more.
        if error.isDeviceFault {
            self = .differs("cannot be read: \(error)")
        } else if error.isPermission || error.isLinked {
            // What a symlink leads to is not what was delivered, nor does it say that this is gone.
            self = .cannotTell("\(error)")
        } else if error.isMissing {
            // It went between the look and the read.
            self = .missing("\(error)")
        } else if error.isNotRegular {
            self = .differs("\(error)")
        } else {
            if error.code == .canceled { throw DeliveryError(.cancelled, .cancelled, "\(error)") }
            throw DeliveryError(
                .retry(after: nil), error.isShortage ? .outOfResources : .destinationUnwritable, "\(error)")
        }
    }
}
