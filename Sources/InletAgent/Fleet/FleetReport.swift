internal import InletCore

/// The fleet as this agent sees it, for `status`, the page and the API. Text of other agents and of the server is
/// escaped and cut; times are RFC 3339.
package struct FleetReport: Sendable, Codable, Equatable {
    /// This agent's standing.
    package enum State: String, Sendable, Codable, CaseIterable {
        /// Not joined yet, or not connected since the start.
        case connecting
        /// PostgreSQL is away. Local folders go on.
        case away
        /// PostgreSQL was restarted: nothing is granted before all agents are back, at most for one lease.
        case confirming
        /// PostgreSQL may have lost commits: nothing is granted before all agents have reported.
        case recovering
        case live
        /// The fleet refuses this agent, and a person decides; `message` says how.
        case refused
    }

    package var state = State.connecting
    package var since: String?
    /// Why, and the remedy; nil while it is live.
    package var message: String?
    /// This agent's name, number and tag; only the name before it has joined.
    package var name: String
    package var agent: Int32?
    package var tag: String?
    /// Host and port of the server.
    package var server: String
    /// How long the session lasts without another beat.
    package var sessionSeconds: Double?
    /// The fleet's name.
    package var fleet: String?
    /// The agents that have not reported since commits were lost.
    package var waitingFor: [String] = []
    /// Whether the fleet has this agent as draining: it admits no new files.
    package var isDraining = false
    /// Whether this agent may order the others: it has an administrator's address.
    package var mayOrder = false
    /// Files of this agent that wait for their key.
    package var waitingKeys = 0
    /// Since the start: keys that were granted, keys that another had, and keys with this agent's tag.
    package var reservedKeys = 0
    package var lostKeys = 0
    package var taggedKeys = 0
    /// Receipts that are not published yet.
    package var receiptsBehind = 0
    /// This agent's parts of the fleet's limits.
    package var shares: [Share] = []
    /// The shares of the fleet, by name, and those of this agent that the fleet does not know yet.
    package var places: [Place] = []
    /// The agents of the fleet, by name; empty until they were heard of.
    package var agents: [Member] = []
    /// When they were asked for.
    package var agentsAt: String?

    package init(name: String, server: String) { (self.name, self.server) = (name, server) }

    /// The API's keys have underscores.
    private enum CodingKeys: String, CodingKey {
        case state, since, message, name, agent, tag, server, fleet, shares, places, agents
        case sessionSeconds = "session_seconds"
        case waitingFor = "waiting_for"
        case isDraining = "is_draining"
        case mayOrder = "may_order"
        case waitingKeys = "waiting_keys"
        case reservedKeys = "reserved_keys"
        case lostKeys = "lost_keys"
        case taggedKeys = "tagged_keys"
        case receiptsBehind = "receipts_behind"
        case agentsAt = "agents_at"
    }

    /// A part of a destination's limit.
    package struct Share: Sendable, Codable, Equatable {
        package var destination: String
        /// Bytes a second; nil without a limit.
        package var rate: Int64?
        package var slots: Int?
        /// Whether PostgreSQL is away, and this is a guess that keeps within the limit.
        package var isAssumed: Bool

        private enum CodingKeys: String, CodingKey {
            case destination, rate, slots
            case isAssumed = "is_assumed"
        }
    }

    /// One agent of the fleet.
    package struct Member: Sendable, Codable, Equatable {
        package enum State: String, Sendable, Codable, CaseIterable {
            case active
            case draining
            case retired
            /// Others know it, and the database does not: a restore.
            case missing
        }

        package var name: String
        package var state = State.active
        package var isSelf = false
        package var isAlive = false
        /// Whether it has reported since commits were lost.
        package var hasReported = true
        package var version: String?
        package var lastSeen: String?
        /// When it published `activity`.
        package var reportedAt: String?
        /// nil before its first report, and for one that cannot be read.
        package var activity: Activity?

        private enum CodingKeys: String, CodingKey {
            case name, state, version, activity
            case isSelf = "is_self"
            case isAlive = "is_alive"
            case hasReported = "has_reported"
            case lastSeen = "last_seen"
            case reportedAt = "reported_at"
        }
    }

    /// An agent's report about itself: at most 64 KiB, and no secrets.
    package struct Activity: Sendable, Codable, Equatable {
        /// `ok`, `degraded` or `failing`, as its health says.
        package var state = "ok"
        package var version = ""
        /// Whether it admits no new files: those below are all that it still has to send.
        package var isDraining = false
        package var waiting = 0
        package var inFlight = 0
        package var retrying = 0
        package var held = 0
        package var parked = 0
        /// When the oldest waiting file was admitted.
        package var oldest: String?
        /// Bytes a second that it sends now.
        package var rate: Int64 = 0
        /// Files delivered and failed in the last 30 days.
        package var delivered = 0
        package var failed = 0
        /// In words, the gravest first.
        package var problems: [String] = []
        package var lastError: String?
        package var destinations: [DestinationLine] = []
        /// The shares of which it touches nothing now.
        package var places: [PlaceLine] = []

        package init() {}

        private enum CodingKeys: String, CodingKey {
            case state, version, waiting, retrying, held, parked, oldest, rate, delivered, failed, problems,
                destinations, places
            case isDraining = "is_draining"
            case inFlight = "in_flight"
            case lastError = "last_error"
        }
    }

    package struct DestinationLine: Sendable, Codable, Equatable {
        package var name: String
        package var type: String
        /// `up`, `down`, `paused`, `limited to 0`, `throttled` or `trial`.
        package var state: String
        package var waiting: Int
        package var error: String?
    }
}

/// A receipt of the fleet: which machine has a file, and where it is now.
package struct FleetFinding: Sendable, Codable, Equatable {
    package var at: String
    package var agent: String
    package var destination: String?
    package var state: String
    package var root: String?
    package var path: String
    package var size: Int64?
    package var key: String?
    package var url: String?
    package var sha256: String?
}
