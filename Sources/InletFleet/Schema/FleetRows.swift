internal import InletCore

// The views of the schema, as their JSON. Texts come from other agents: escape and cut them where they are shown. Times are
// RFC 3339.

/// The fleet itself.
package struct FleetStatus: Sendable, Equatable, Codable {
    /// The fleet's UUID.
    package var id: String
    package var name: String
    /// `open`, `confirming` after a restart, or `recovering` after lost commits: then nothing is granted.
    package var state: String
    package var why: String?
    /// When `state` began.
    package var since: String
    /// Grows when commits were lost.
    package var epoch: Int
    /// How long a session lasts without a beat.
    package var ttlMilliseconds: Int64
    /// How long receipts are kept.
    package var receiptsDays: Int
    /// Whether there is a join secret.
    package var isJoinable: Bool
    /// The schema's.
    package var version: Int
    /// The agents that have not reported, while it is recovering.
    package var waitingFor: [String]

    private enum CodingKeys: String, CodingKey {
        case id, name, state, why, since, epoch, version
        case ttlMilliseconds = "ttl_ms"
        case receiptsDays = "receipts_days"
        case isJoinable = "joinable"
        case waitingFor = "waiting_for"
    }
}

/// One agent.
package struct FleetAgentRow: Sendable, Equatable, Codable {
    package var id: Int32
    package var name: String
    package var tag: String
    /// `active`, `draining`, `retired`, or `missing`: others know it, and the database does not.
    package var state: String
    package var version: String?
    /// Whether it has a session now.
    package var isAlive: Bool
    /// Whether it has reported since commits were lost.
    package var hasReported: Bool
    package var lastSeen: String?
    /// When it published `report`.
    package var reportedAt: String?
    /// JSON of the agent's own making.
    package var report: String?

    private enum CodingKeys: String, CodingKey {
        case id, name, tag, state, version, report
        case isAlive = "alive"
        case hasReported = "reported"
        case lastSeen = "last_seen"
        case reportedAt = "report_at"
    }

    package init(from decoder: any Decoder) throws {
        let row = try decoder.container(keyedBy: CodingKeys.self)
        id = try row.decode(Int32.self, forKey: .id)
        name = try row.decode(String.self, forKey: .name)
        tag = try row.decode(String.self, forKey: .tag)
        state = try row.decode(String.self, forKey: .state)
        version = try row.decodeIfPresent(String.self, forKey: .version)
        isAlive = try row.decode(Bool.self, forKey: .isAlive)
        hasReported = try row.decode(Bool.self, forKey: .hasReported)
        lastSeen = try row.decodeIfPresent(String.self, forKey: .lastSeen)
        reportedAt = try row.decodeIfPresent(String.self, forKey: .reportedAt)
        // An object in the view, a text where this row was encoded.
        let report = try row.decodeIfPresent(JSONValue.self, forKey: .report)
        self.report = report?.string ?? report?.text
    }
}

/// A share that several agents watch.
package struct FleetPlaceRow: Sendable, Equatable, Codable {
    package var id: Int32
    package var name: String
    package var fence: Int64
    /// The agent that lists it, or did last.
    package var holder: String?
    /// Whether the holder has a session now.
    package var held: Bool
    package var heldSince: String?
    package var members: [String]
    /// Work that is due or waits for its time, and work that agents have; nil from an older schema.
    package var waiting: Int?
    package var claimed: Int?

    private enum CodingKeys: String, CodingKey {
        case id, name, fence, holder, held, members, waiting, claimed
        case heldSince = "held_since"
    }
}

/// A destination, with the limit for all agents together.
package struct FleetDestinationRow: Sendable, Equatable, Codable {
    package var id: Int32
    package var type: String
    package var label: String
    /// In bytes a second; nil without a limit.
    package var bandwidth: Int64?
    package var slots: Int?
    /// The agent whose configuration names the limit, or `an administrator`.
    package var limitedBy: String?

    private enum CodingKeys: String, CodingKey {
        case id, type, label, bandwidth, slots
        case limitedBy = "limited_by"
    }
}

/// A receipt: which machine has a file, and where it was delivered.
package struct FleetReceiptRow: Sendable, Equatable, Codable {
    /// When the fleet heard of it.
    package var at: String
    package var agent: String
    package var destination: String?
    package var state: String
    package var root: String?
    package var path: String
    package var name: String
    package var size: Int64?
    /// In nanoseconds since 1970.
    package var mtime: Int64?
    package var key: String?
    package var url: String?
    /// In hexadecimal digits.
    package var sha256: String?
    package var labels: [String: String]?
}

/// The answer of `v1_overview`: the fleet as the page shows it.
package struct FleetOverview: Sendable, Equatable, Codable {
    package var status: FleetStatus
    package var agents: [FleetAgentRow]
    package var places: [FleetPlaceRow]
}
