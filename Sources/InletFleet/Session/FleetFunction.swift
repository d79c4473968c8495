internal import InletCore

/// A function of the schema that agents call, with the types of its arguments after agent, token and session.
///
/// The statement is made of these constants alone. Values are parameters with explicit casts.
struct FleetFunction: Sendable {
    let name: String
    let statement: String

    /// The arguments with which each call of an agent begins.
    private enum Lead {
        case nothing
        /// Agent, token, session.
        case session
        /// These, and the highest mark that was heard.
        case seen

        var types: [String] {
            switch self {
            case .nothing: []
            case .session: ["int", "bytea", "bigint"]
            case .seen: ["int", "bytea", "bigint", "bigint"]
            }
        }
    }

    private let lead: Lead

    /// - Parameter answer: the column list of the statement.
    private init(_ name: String, _ lead: Lead, _ types: [String], answer: String = "*") {
        let arguments = (lead.types + types).enumerated().map { "$\($0.offset + 1)::\($0.element)" }
        (self.name, self.lead) = (name, lead)
        statement = "SELECT \(answer) FROM inlet.\(name)(\(arguments.joined(separator: ", "))) AS answer"
    }

    /// All arguments of a call.
    func values(_ caller: FleetCaller, _ others: [PostgresValue]) -> [PostgresValue] {
        let session =
            [.integer(Int64(caller.identity.agent)), .bytes(caller.identity.token), .integer(caller.session)]
            as [PostgresValue]
        return switch lead {
        case .nothing: others
        case .session: session + others
        case .seen: session + [.integer(caller.seen)] + others
        }
    }

    static let join = FleetFunction(
        "v1_join", .nothing, ["bytea", "text", "text", "uuid", "bytea", "bigint", "jsonb"], answer: "agent, fleet, tag")
    static let leave = FleetFunction("v1_leave", .nothing, ["int", "bytea"])
    static let hello = FleetFunction(
        "v1_hello", .nothing, ["int", "bytea", "bigint", "uuid", "bytea", "bigint", "text", "jsonb"],
        answer: "session, ttl_ms, mark, epoch, my_epoch, state, wait_ms, receipts")
    static let beat = FleetFunction(
        "v1_beat", .seen, ["boolean"], answer: "left_ms, mark, epoch, state, agent_state, commands")
    static let bye = FleetFunction("v1_bye", .session, [])
    static let report = FleetFunction("v1_report", .session, ["jsonb"])
    static let againKeys = FleetFunction("v1_again_keys", .session, ["int", "text[]", "bigint[]", "int"])
    static let againDone = FleetFunction("v1_again_done", .session, ["bigint", "jsonb"], answer: "mark, state")
    static let againAdmitted = FleetFunction("v1_again_admitted", .session, ["int", "jsonb"])
    static let againFinished = FleetFunction("v1_again_finished", .session, ["int", "uuid[]", "uuid[]"])
    static let destination = FleetFunction("v1_destination", .session, ["bytea", "text", "text", "boolean"])
    static let reserve = FleetFunction(
        "v1_reserve", .seen, ["int", "text[]", "bigint[]", "int"], answer: "mark, granted")
    static let unreserve = FleetFunction("v1_unreserve", .seen, ["int", "text[]", "bigint[]"])
    static let ownPrefix = FleetFunction("v1_own_prefix", .seen, ["int", "text"])
    static let content = FleetFunction(
        "v1_content", .seen, ["int", "bytea", "bigint", "bigint", "bigint"],
        answer: "mark, standing, by_agent, key, url")
    static let contentThere = FleetFunction(
        "v1_content_there", .seen, ["int", "bytea", "bigint", "bigint", "bigint", "text", "text"])
    static let limit = FleetFunction("v1_limit", .session, ["int", "bigint", "int"])
    static let share = FleetFunction(
        "v1_share", .session, ["int", "bigint", "int", "int"], answer: "rate, slots, left_ms")
    static let receipts = FleetFunction("v1_receipts", .session, ["jsonb"])
    static let commands = FleetFunction("v1_commands", .session, [], answer: "id, verb, args, asked_by")
    static let commandEnded = FleetFunction("v1_command_ended", .session, ["uuid", "boolean", "jsonb"])
    static let upkeep = FleetFunction("v1_upkeep", .session, [])
    static let place = FleetFunction("v1_place", .session, ["text", "uuid"], answer: "place, marker, is_new")
    static let hold = FleetFunction("v1_hold", .seen, ["int[]"], answer: "place, fence, taken")
    static let release = FleetFunction("v1_release", .session, ["int[]"])
    static let known = FleetFunction("v1_known", .session, ["int", "uuid[]", "uuid[]"])
    static let ownVersions = FleetFunction(
        "v1_own_versions", .seen, ["int", "uuid[]", "uuid[]", "boolean"], answer: "mark, own")
    static let admit = FleetFunction("v1_admit", .seen, ["int", "bigint", "jsonb"], answer: "mark, admitted")
    static let claim = FleetFunction(
        "v1_claim", .seen, ["int[]", "int"],
        answer: "work, fence, place, kind, path, version, destination, key, name, size, plan, notes, taken_from, code")
    static let note = FleetFunction("v1_note_many", .seen, ["jsonb"], answer: "mark, code")
    static let settle = FleetFunction("v1_settle_many", .seen, ["jsonb"], answer: "mark, refused, finish, failed")
    static let rename = FleetFunction("v1_rename", .seen, ["bigint", "bigint", "text"], answer: "mark, granted")
    static let overview = FleetFunction("v1_overview", .session, [])
    static let search = FleetFunction("v1_search", .session, ["text", "int"], answer: "to_jsonb(answer)")

    static let all = [
        join, leave, hello, beat, bye, report, againKeys, againAdmitted, againFinished, againDone, destination, reserve,
        unreserve, ownPrefix, content, contentThere, limit, share, receipts, commands, commandEnded, upkeep, place,
        hold, release, known, ownVersions, admit, claim, note, settle, rename, overview, search,
    ]

    /// The names in `$1` of functions that the database does not have.
    static let missing = """
        SELECT wanted.name FROM unnest($1::text[]) AS wanted(name)
        WHERE to_regproc('inlet.' || wanted.name) IS NULL ORDER BY 1
        """
}

/// In whose name a call is made.
struct FleetCaller: Sendable {
    var identity: FleetIdentity
    var session: Int64
    /// The highest mark that was heard.
    var seen: Int64
}

/// The first row of an answer.
struct FleetAnswer: Sendable {
    let rows: PostgresRows
    let function: FleetFunction

    /// - Throws: where the schema answers otherwise than it promises.
    func integer(_ column: Int) throws(FleetError) -> Int64 {
        guard rows.count > 0, let value = rows.integer(0, column) else { throw unfit("a number", column) }
        return value
    }

    func text(_ column: Int) throws(FleetError) -> String {
        guard let value = optionalText(column) else { throw unfit("a text", column) }
        return value
    }

    func optionalText(_ column: Int) -> String? { rows.count > 0 ? rows[0, column] : nil }

    func milliseconds(_ column: Int) throws(FleetError) -> Duration { .milliseconds(try integer(column)) }

    func number(_ column: Int) throws(FleetError) -> Int32 { Int32(truncatingIfNeeded: try integer(column)) }

    func phase(_ column: Int) throws(FleetError) -> FleetPhase {
        guard let phase = FleetPhase(rawValue: try text(column)) else { throw unfit("a state of the fleet", column) }
        return phase
    }

    func unfit(_ wanted: String, _ column: Int) -> FleetError {
        FleetError(
            .fault, "\(function.name) answered without \(wanted) in column \(column + 1); update Inlet",
            function: function.name)
    }
}
