package import InletCore

/// A content of a route with `dedupe`.
package struct FleetContent: Sendable, Equatable {
    /// SHA-256.
    package var digest: [UInt8]
    package var size: Int64
    /// A hash of the fields that make two deliveries of one content differ.
    package var purpose: Int64
    package var ref: Int64

    package init(digest: [UInt8], size: Int64, purpose: Int64, ref: Int64) {
        (self.digest, self.size, self.purpose, self.ref) = (digest, size, purpose, ref)
    }
}

/// The agent that brings a content to a destination.
package enum FleetContentStanding: Sendable, Equatable {
    /// This agent, which says so afterwards (`contentThere`).
    case own
    /// It is there. `key` and `url` are as that agent wrote them: escape them for display.
    case there(key: String, url: String?, by: String)
    /// Another agent is bringing it.
    case wait(by: String)
}

/// This agent's part of a destination's limits; nil for a limit that is not set.
package struct FleetShare: Sendable, Equatable {
    /// Bytes a second.
    package var rate: Int64?
    package var slots: Int?
    /// Counted from before the question, less a margin.
    package var until: ContinuousClock.Instant

    package init(rate: Int64?, slots: Int?, until: ContinuousClock.Instant) {
        (self.rate, self.slots, self.until) = (rate, slots, until)
    }
}

/// A row of `v1_receipts`.
package struct FleetReceipt: Sendable, Equatable, Codable {
    /// The journal's number of the receipt.
    package var seq: Int64
    package var destination: Int32?
    package var size: Int64?
    package var state: String
    package var root: String?
    package var path: String
    /// In nanoseconds since 1970.
    package var mtime: Int64?
    package var key: String?
    /// Without secrets.
    package var url: String?
    /// In hexadecimal digits.
    package var sha256: String?
    package var labels: [String: String]?

    package init(
        seq: Int64, destination: Int32?, size: Int64?, state: String, root: String?, path: String, mtime: Int64?,
        key: String?, url: String?, sha256: String?, labels: [String: String]?
    ) {
        (self.seq, self.destination, self.size, self.state) = (seq, destination, size, state)
        (self.root, self.path, self.mtime, self.key) = (root, path, mtime, key)
        (self.url, self.sha256, self.labels) = (url, sha256, labels)
    }
}

/// An order from the fleet. Its text comes from outside.
package struct FleetCommand: Sendable, Equatable {
    /// A UUID, which the agent journals in the transaction of the effect.
    package var id: String
    package var verb: String
    package var args: JSONObject
    /// The role that gave it, escaped.
    package var askedBy: String

    package init(id: String, verb: String, args: JSONObject, askedBy: String) {
        (self.id, self.verb, self.args, self.askedBy) = (id, verb, args, askedBy)
    }
}
