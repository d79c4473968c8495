import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletFleet

/// The parts of a fleet's agent that need no server.
@Suite struct FleetValueTests {
    @Test func `an agent alone has no service of a fleet`() async throws {
        try await Scene().run { stage in
            #expect(!stage.agent.services.contains { $0 is FleetStage })
            #expect(await stage.agent.control.fleet == nil && stage.agent.control.live?.fleet == nil)
            try await stage.process("a")
            #expect(try await stage.journal.keyRequests(limit: 1).isEmpty)
        }
    }

    @Test func `text of other agents is escaped and cut`() throws {
        let body = #"""
            {"status": {"name": "studio\u001b[31m"}, "agents": [
                {"id": 7, "name": "a\u202eb", "tag": "abcdef", "journal": "j", "state": "draining", "alive": false,
                 "last_seen": "2026-11-27T12:00:00.123456+00:00", "reported": true,
                 "report": {"state": "degraded", "waiting": 3, "problems": ["\#(String(repeating: "x", count: 900))"],
                            "destinations": [{"name": "r2\u0007", "type": "r2", "state": "up", "waiting": 1}]}},
                {"id": 9, "name": "self", "alive": true, "last_seen": "-infinity", "report": 5}, {"tag": "nobody"}]}
            """#
        let found = try #require(FleetMembers(Array(body.utf8), own: "self"))
        #expect(found.fleet == "studio\\x1B[31m" && found.members.count == 2)
        let member = found.members[0]
        #expect(member.name == "a\\xE2\\x80\\xAEb" && member.state == .draining && !member.isAlive)
        let activity = try #require(member.activity)
        #expect(activity.waiting == 3 && activity.problems[0].count == 300)
        #expect(activity.destinations.map(\.name) == ["r2\\x07"])
        #expect(found.members[1].isSelf && found.members[1].activity == nil && found.members[1].lastSeen == nil)
        #expect(found.roster.map(\.journal) == ["j"])
    }

    @Test func `of the living agents the one with the lowest number speaks of those that are silent`() throws {
        func members(own: String) throws -> FleetMembers {
            let body = """
                {"agents": [{"id": 1, "name": "gone", "alive": false, "last_seen": "2026-11-27T12:00:00Z"},
                {"id": 2, "name": "b", "alive": true}, {"id": 3, "name": "a", "alive": true},
                {"id": 4, "name": "old", "state": "retired", "alive": false, "last_seen": "2026-01-01T00:00:00Z"}]}
                """
            return try #require(FleetMembers(Array(body.utf8), own: own))
        }
        #expect(try members(own: "b").speaks)
        #expect(try !members(own: "a").speaks)
        let last = try #require(WallTime(rfc3339: "2026-11-27T12:00:00Z"))
        #expect(try members(own: "b").silent(for: .seconds(300), at: last + .seconds(299)).isEmpty)
        #expect(try members(own: "b").silent(for: .seconds(300), at: last + .seconds(301)) == ["gone"])
    }

    @Test func `receivers hear once of each silence of an agent, also from another process`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let settings = NotifySettings(name: "ops", receiver: .exec(["/bin/true"]), events: [.agentSilent])
        let receiver = NotificationReceiver(settings, pool: BlockingPool(name: "hook", threads: 1))
        func waiting(after name: String, since: String) async throws -> Int {
            let sender = try await NotificationSender([receiver], journal: journal, log: log, listens: false)
            sender.hear(.fleetSilent(name: name, since: since))
            #expect(await sender.flush())
            return try await journal.outboxBacklog().waiting
        }
        let (first, second) = ("2026-11-27T12:00:00Z", "2026-11-27T13:00:00Z")
        #expect(try await waiting(after: "nas2", since: first) == 1)
        #expect(try await waiting(after: "nas2", since: first) == 1)
        #expect(try await waiting(after: "nas4", since: first) == 2)
        #expect(try await waiting(after: "nas2", since: second) == 3)
    }

    @Test func `a text for PostgreSQL has no NUL`() {
        #expect("https://a\0b".withoutNUL == "https://a\u{FFFD}b")
    }

    @Test func `an old schema is said with what it lacks`() {
        var news = FleetNews()
        let error = FleetError(.schema, "it has no v1_limit, and is older than this agent needs")
        let standing = FleetStanding(
            state: .refused(.schema), since: .now, error: error, server: "db", ttl: .seconds(15), phase: .open,
            epoch: 1,
            owesReport: false, reportFrom: 0, seen: 0, waitingFor: [], hasCommands: false, receipts: 0,
            figures: FleetFigures())
        let events = news.take(standing, named: "one", at: .now)
        #expect(events.map(\.line.name) == ["fleet.schema_old"])
        let reason = events.first?.line.fields.first { $0.0 == "reason" }.map { "\($0.1)" } ?? ""
        #expect(reason.contains("v1_limit"))
    }

    @Test func `a report has at most 64 KiB`() {
        var activity = FleetReport.Activity()
        activity.destinations = (0..<500).map {
            .init(
                name: "destination-\($0)", type: "s3", state: "down", waiting: 1,
                error: String(repeating: "e", count: 300))
        }
        let body = FleetReporter.body(activity)
        #expect(body.count <= 64 << 10)
        #expect(JSON.value(body)?["destinations"]?.array?.isEmpty == false)
    }

    @Test func `a bound of the fleet holds where no limit of the agent's own is lower`() {
        var policy = BandwidthPolicy(BandwidthLimits(), destinations: ["r2"])
        let now = WallTime(milliseconds: 0)
        let answers = [policy.bound("r2", to: 100), policy.bound("r2", to: 100), policy.bound("other", to: 100)]
        #expect(answers == [true, nil, nil])
        var changed = policy.changes(at: now).map(\.rate)
        #expect(changed == [100])
        #expect(policy.statuses(at: now).last?.cause == .fleet)
        _ = policy.take(.rate(40), for: "r2")
        changed = policy.changes(at: now).map(\.rate)
        #expect(changed == [40] && policy.statuses(at: now).last?.cause == .command)
        _ = (policy.take(.auto, for: "r2"), policy.bound("r2", to: nil))
        changed = policy.changes(at: now).map(\.rate)
        #expect(changed == [nil])
    }
}
