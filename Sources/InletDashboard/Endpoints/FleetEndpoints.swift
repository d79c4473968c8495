package import InletAgent
internal import InletCore

/// The fleet, as this agent sees it, and orders to its agents.
extension Endpoints {
    package static let fleet = TypedEndpoint.get(
        "fleet", "The agents of the fleet, and this agent's standing in it; 404 without a fleet.",
        isLarge: { $0.control.agent.knownFleetSize > Endpoint.smallList }
    ) { call in try await call.control.fleet() }

    package static let fleetSearch = TypedEndpoint.get(
        "fleet/search", "Receipts of all agents of the fleet: which machine has a file, and where it is now.",
        query: [.fleetText]
    ) { call in try await call.control.searchFleet(call.text(.fleetText) ?? "") }

    static let fleetOrder = TypedEndpoint.post(
        "fleet/order", "Gives an agent of the fleet an order; needs fleet.admin_url_file.", FleetOrderRequest.self
    ) { call, request in try await call.control.orderFleet(request) }
}

/// The body of `POST fleet/order`.
struct FleetOrderRequest: Codable, Sendable, NamedSchema {
    var agent: String
    var order: FleetOrder

    static var schemaName: String { "FleetOrder" }
    static let notes: [String: SchemaDescription] = [
        "agent": "Its name in the fleet.", "order": "A pause lasts until resume, a drain until undrain.",
    ]
}

extension Parameter {
    package static let fleetText = Parameter(
        "q", .text, "A file's name, the beginning of a key, or a SHA-256 in hexadecimal digits.")
}

extension LocalControl {
    /// Longer than any name, key or hash.
    private static let longestText = 1024

    func fleet() async throws -> FleetReport {
        guard let report = await agent.fleet else { throw Self.noFleet }
        return report
    }

    func searchFleet(_ text: String) async throws -> [FleetFinding] {
        guard agent.isInFleet else { throw Self.noFleet }
        guard !text.isEmpty, text.utf8.count <= Self.longestText else {
            throw APIFault.badRequest("'q' must be a file's name, the beginning of a key, or a SHA-256")
        }
        return try await agent.searchFleet(text)
    }

    func orderFleet(_ request: FleetOrderRequest) async throws -> CommandReport {
        guard agent.isInFleet else { throw Self.noFleet }
        guard try await agent.orderFleet(request.order, to: request.agent, by: by) else {
            throw APIFault.conflict(
                "this agent may not order others; set fleet.admin_url_file in its configuration, and restart it")
        }
        let name = DisplayText.escape(request.agent)
        return .done("\(name) gets the order '\(request.order.rawValue)' with its next beat")
    }

    private static var noFleet: APIFault {
        .notFound("this agent is in no fleet; add 'fleet:' to its configuration, and restart it")
    }
}

extension FleetReport: NamedSchema {
    static let notes: [String: SchemaDescription] = [
        "since": .time("Since when the state is so."), "message": "Why, and the remedy; left out while it is live.",
        "session_seconds": "How long the session lasts without another beat.", "agents_at": .time,
        "waiting_for": "Agents that have not reported since commits were lost.",
        "may_order": "Whether POST fleet/order works here: there is an administrator's address.",
        "waiting_keys": "Files of this agent that wait for their key.",
        "is_draining": "Whether the fleet drains this agent: its new files stay in their folders.",
        "lost_keys": "Keys that another agent had: these files have another name.",
        "tagged_keys": "Keys with this agent's tag, given while PostgreSQL was away.",
        "receipts_behind": "Receipts that are not published yet.", "agents": "Empty in the answer to status.",
    ]
}

extension FleetReport.Share: NamedSchema {
    static var schemaName: String { "FleetShare" }
    static let notes: [String: SchemaDescription] = [
        "rate": "Bytes a second.", "is_assumed": "PostgreSQL is away; this guess stays within the fleet's limit.",
    ]
}

extension FleetReport.Place: NamedSchema {
    static var schemaName: String { "FleetPlace" }
    static let notes: [String: SchemaDescription] = [
        "root": "Where this agent has it; left out where it does not watch it.",
        "holder": "The agent that lists it, or did last.", "held_since": .time,
        "waiting": "Deliveries and sources to finish that no agent has; no more than 100,000 are counted.",
        "claimed": "Deliveries and sources to finish that agents have; no more than 100,000 are counted.",
        "problems": "Why nobody lists it, and which agents touch nothing of it or left sources there.",
    ]
}

extension FleetReport.PlaceLine: NamedSchema {
    static var schemaName: String { "FleetPausedPlace" }
}

extension FleetReport.Member: NamedSchema {
    static var schemaName: String { "FleetAgent" }
    static let notes: [String: SchemaDescription] = [
        "last_seen": .time, "reported_at": .time("When it published its activity."),
        "has_reported": "Whether it has reported since commits were lost.",
    ]
}

extension FleetReport.Activity: NamedSchema {
    static var schemaName: String { "FleetActivity" }
    static let notes: [String: SchemaDescription] = [
        "rate": "Bytes a second.", "oldest": .time, "delivered": "Files of the last 30 days.",
        "failed": "Files of the last 30 days.", "problems": "The gravest first.",
        "places": "The shares of which it touches nothing now.",
    ]
}

extension FleetReport.DestinationLine: NamedSchema {
    static var schemaName: String { "FleetDestination" }
}

extension FleetFinding: NamedSchema {
    static let notes: [String: SchemaDescription] = ["at": .time, "agent": "The agent that has the file."]
}

extension FleetOrder: SchemaSample {}
extension FleetReport.State: SchemaSample {}
extension FleetReport.Member.State: SchemaSample {}
extension Int32: SchemaSample {}
