package import InletCore

/// A share that this agent holds: it lists the share's files and admits them.
package struct FleetHold: Sendable, Equatable {
    /// The fleet's number of the share.
    package var place: Int32
    package var fence: Int64
    /// Whether it has just become this agent's.
    package var isTaken: Bool
}

/// A delivery of a file in a share, as `v1_admit` and `v1_again_admitted` take it.
package struct FleetWorkRow: Sendable, Equatable {
    package var version: PlaceVersion
    /// The path below the share.
    package var name: [UInt8]
    package var size: Int64
    /// 0 is first.
    package var priority: Int
    package var destination: Int32
    package var ref: Int64
    package var key: String
    /// JSON: what an agent needs to deliver the file and to dispose of it.
    package var plan: [UInt8]

    package init(
        version: PlaceVersion, name: [UInt8], size: Int64, priority: Int, destination: Int32, ref: Int64, key: String,
        plan: [UInt8]
    ) {
        (self.version, self.name, self.size, self.priority) = (version, name, size, priority)
        (self.destination, self.ref, self.key, self.plan) = (destination, ref, key, plan)
    }
}

/// Work of a share that is this agent's until its session ends: a delivery, or the finishing of a source.
package struct FleetClaim: Sendable, Equatable {
    package var work: Int64
    package var fence: Int64
    package var place: Int32
    /// All deliveries of the version have ended: this work disposes of its source.
    package var isFinishing: Bool
    /// Of a finishing: a delivery of the version has failed.
    package var hasFailed: Bool
    package var version: PlaceVersion
    /// nil for a finishing.
    package var destination: Int32?
    package var key: String?
    package var name: [UInt8]
    package var size: Int64
    package var plan: [UInt8]
    /// JSON that its last agent left (`note`).
    package var notes: [UInt8]?
    /// The agent that had it, and is gone.
    package var takenFrom: Int32?
}

/// How a claim ends.
package struct FleetSettlement: Sendable, Equatable {
    package enum Outcome: String, Sendable {
        case delivered, failed, superseded, finished, retry
    }

    package var work: Int64
    package var fence: Int64
    package var outcome: Outcome
    /// Of `retry`: when others may claim it.
    package var after: Duration
    package var code: String?
    package var reason: String?

    package init(
        work: Int64, fence: Int64, _ outcome: Outcome, after: Duration = .zero, code: String? = nil,
        reason: String? = nil
    ) {
        (self.work, self.fence, self.outcome) = (work, fence, outcome)
        (self.after, self.code, self.reason) = (after, code, reason)
    }
}

/// The answer to a settlement.
package struct FleetSettled: Sendable, Equatable {
    /// nil where it is done; `.fenced` where another has the work.
    package var refused: FleetError.Code?
    /// The work of finishing the source, which is this agent's now, with fence 1; nil while other deliveries are open.
    package var finish: Int64?
    /// With `finish`: a delivery of the version has failed, perhaps at another agent.
    package var hasFailed: Bool
}
