internal import InletCore
internal import SystemPackage

private let rows = EventTable.rows

/// Events of an agent that shares a PostgreSQL with others.
extension AgentEvent {
    static func fleetJoined(name: String, server: String) -> Self { say(rows.fleetJoined, name, server) }

    static func fleetConnected(server: String, agent: Int32, session: Int64) -> Self {
        say(rows.fleetConnected, server, Int(agent), session)
    }

    /// PostgreSQL cannot be reached. Logged once, then each hour.
    ///
    /// - Parameter paused: shares that pause meanwhile.
    static func fleetAway(server: String, reason: String, since: WallTime, paused: [String]) -> Self {
        say(rows.fleetAway, server, reason, since, paused.map { DisplayText.escape($0) })
    }

    static func fleetBack(server: String, away: Duration) -> Self { say(rows.fleetBack, server, away) }
    static func fleetSessionLost(reason: String) -> Self { say(rows.fleetSessionLost, reason) }

    static func fleetKeyTagged(job: Int64, path: FilePath, destination: String, key: String) -> Self {
        say(rows.fleetKeyTagged, job, path, destination, key)
    }

    /// Two agents have one key, which was given again after commits were lost.
    static func fleetKeyClash(destination: String, key: String, owner: String) -> Self {
        say(rows.fleetKeyClash, destination, key, owner)
    }

    static func fleetIdentityTwice(name: String, reason: String) -> Self { say(rows.fleetIdentityTwice, name, reason) }
    static func fleetJournalWentBack(reason: String) -> Self { say(rows.fleetJournalWentBack, reason) }

    /// PostgreSQL lost commits and grants nothing until the agents `waiting` have reported.
    static func fleetRecovering(reason: String, waiting: [String]) -> Self {
        say(rows.fleetRecovering, reason, waiting.map { DisplayText.escape($0) })
    }

    static func fleetReported(keys: Int, files: Int) -> Self { say(rows.fleetReported, keys, files) }
    static var fleetOpen: Self { say(rows.fleetOpen) }
    static func fleetCommand(verb: String, by: String) -> Self { say(rows.fleetCommand, verb, by) }

    /// This agent takes no new files. `left` files of its own folders are still to be sent.
    static func fleetDrained(left: Int) -> Self {
        .said(rows.fleetDrained.line(left, level: left > 0 ? .warning : .info))
    }

    /// - Parameter reason: the difference that the link has found.
    static func fleetSchemaOld(reason: String, needed: Int) -> Self { say(rows.fleetSchemaOld, reason, needed) }

    static func fleetPlaceHeld(place: String, fence: Int64) -> Self { say(rows.fleetPlaceHeld, place, fence) }
    static func fleetPlaceLost(place: String, reason: String) -> Self { say(rows.fleetPlaceLost, place, reason) }

    /// Another agent held the share before.
    static func fleetPlaceTaken(place: String, from: String) -> Self { say(rows.fleetPlaceTaken, place, from) }

    static func fleetTookOver(place: String, path: FilePath, from: String) -> Self {
        say(rows.fleetTookOver, place, path, from)
    }

    /// The first source of a share that looked replaced by its inode, and was not disposed of.
    static func fleetSourceLeft(place: String, path: FilePath) -> Self { say(rows.fleetSourceLeft, place, path) }

    /// This agent was late: another has the work, and this one's change was refused.
    static func fleetFenced(path: FilePath, destination: String) -> Self { say(rows.fleetFenced, path, destination) }
}
