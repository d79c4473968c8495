import InletCore
import SystemPackage
import Testing

@testable import InletAgent

extension EventLineTests {
    private static let words = "a\n\u{1B}[2J\"\\\u{202E}\u{7F}"
    private static let file = FilePath(bytes: Array("/in/".utf8) + [0xFF, 0x0A, 0x22, 0x5C, 0x1B])

    /// Those of a fleet, whose words come from other agents and from the server.
    static let fleetEvents: [(AgentEvent, String)] = [
        (.fleetJoined(name: words, server: words), "fleet.joined"),
        (.fleetConnected(server: words, agent: 3, session: 7), "fleet.connected"),
        (
            .fleetAway(server: words, reason: words, since: WallTime(milliseconds: 0), paused: [words]),
            "fleet.away"
        ),
        (.fleetBack(server: words, away: .seconds(90)), "fleet.back"),
        (.fleetSessionLost(reason: words), "fleet.session_lost"),
        (.fleetKeyTagged(job: 1, path: file, destination: "d", key: words), "fleet.key_tagged"),
        (.fleetKeyClash(destination: "d", key: words, owner: words), "fleet.key_clash"),
        (.fleetIdentityTwice(name: words, reason: words), "fleet.identity_twice"),
        (.fleetJournalWentBack(reason: words), "fleet.journal_went_back"),
        (.fleetRecovering(reason: words, waiting: [words]), "fleet.recovering"),
        (.fleetReported(keys: 3, files: 4), "fleet.reported"), (.fleetOpen, "fleet.open"),
        (.fleetCommand(verb: words, by: words), "fleet.command"), (.fleetDrained(left: 2), "fleet.drained"),
        (.fleetSilent(name: words, since: words), "fleet.silent"),
        (.fleetSchemaOld(reason: words, needed: 2), "fleet.schema_old"),
        (.fleetPlaceHeld(place: words, fence: 4), "fleet.place_held"),
        (.fleetPlaceLost(place: words, reason: words), "fleet.place_lost"),
        (.fleetPlaceTaken(place: words, from: words), "fleet.place_taken"),
        (.fleetTookOver(place: words, path: file, from: words), "fleet.took_over"),
        (.fleetFenced(path: file, destination: "d"), "fleet.fenced"),
        (.fleetSourceLeft(place: words, path: file), "fleet.source_left"),
    ]

    @Test func `the hourly line about PostgreSQL that is away is never left out as a repeat`() {
        let line = AgentEvent.fleetAway(server: "db", reason: "no", since: WallTime(milliseconds: 0), paused: []).line
        #expect(line.level == .warning && line.cause == nil)
    }

    @Test func `a drained agent warns only while files are left that nobody else can read`() {
        #expect(AgentEvent.fleetDrained(left: 1).line.level == .warning)
        #expect(AgentEvent.fleetDrained(left: 0).line.level == .info)
    }
}
