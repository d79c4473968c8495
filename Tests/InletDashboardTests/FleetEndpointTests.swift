import InletCore
import InletTestSupport
import Testing

@testable import InletAgent
@testable import InletDashboard

/// The fleet in the API, in the status and in the health.
@Suite struct FleetEndpointTests {
    /// All that a report can have.
    static func report(_ state: FleetReport.State = .live) -> FleetReport {
        var report = FleetReport(name: "station-1", server: "db.example:5432")
        (report.state, report.since, report.fleet) = (state, "2026-11-27T12:04:00.000Z", "studio")
        (report.agent, report.tag, report.sessionSeconds) = (3, "k3f9q2", 11.5)
        (report.message, report.waitingFor, report.agentsAt) = ("start nas4", ["nas4"], "2026-11-27T12:04:09.000Z")
        report.shares = [.init(destination: "r2", rate: 1 << 20, slots: 4, isAssumed: true)]
        var activity = FleetReport.Activity()
        (activity.oldest, activity.lastError, activity.problems) = (
            "2026-11-27T12:00:00.000Z", "refused", ["r2 is down"]
        )
        activity.places = [.init(name: "media", problem: "not mounted?")]
        activity.destinations = [.init(name: "r2", type: "r2", state: "down", waiting: 3, error: "refused")]
        var other = FleetReport.Member(name: "nas4", state: .missing)
        (other.version, other.lastSeen, other.reportedAt) = ("1.2.3", report.since, report.since)
        other.activity = activity
        var place = FleetReport.Place(name: "media")
        (place.root, place.holder, place.isHeld, place.heldSince) = ("/mnt/media", "nas2", true, report.since)
        (place.members, place.waiting, place.claimed) = (["nas2", "station-1"], 7, 2)
        place.problems = ["nas4: not mounted?"]
        report.places = [place]
        report.agents = [other, FleetReport.Member(name: "station-1", isSelf: true)]
        return report
    }

    private static func faults(_ value: some Encodable, _ schema: Schema) throws -> [String] {
        let check = SchemaCheck(Endpoints.openAPI(version: "1"))
        return check.faults(try JSONValue(parsing: JSON.answer(value)), schema.json).map { "\($0)" }
    }

    @Test func `the fleet and what its search finds are answered as the document says`() throws {
        #expect(try Self.faults(Self.report(), FleetReport.schema) == [])
        let finding = FleetFinding(
            at: "2026-11-27T12:04:00.000Z", agent: "nas4", destination: "r2", state: "delivered", root: "/srv/drop",
            path: "a.mov", size: 5, key: "a.mov", url: "https://store.example/a.mov", sha256: "00")
        #expect(try Self.faults([finding], .list(FleetFinding.schema)) == [])
    }

    /// A member without a coding key would be left out silently.
    @Test func `every member of a fleet's report is in its JSON, with underscores`() throws {
        let report = Self.report()
        let values: [(any Encodable, Mirror)] = [
            (report, Mirror(reflecting: report)), (report.shares[0], Mirror(reflecting: report.shares[0])),
            (report.places[0], Mirror(reflecting: report.places[0])),
            (report.agents[0], Mirror(reflecting: report.agents[0])),
            (report.agents[0].activity, Mirror(reflecting: try #require(report.agents[0].activity))),
        ]
        for (value, mirror) in values {
            let keys = Set(try #require(JSONValue(parsing: JSON.encode(value)).object).keys)
            #expect(keys.count == mirror.children.count, "\(mirror.subjectType): \(keys.sorted())")
            #expect(keys.allSatisfy { $0 == $0.lowercased() }, "\(keys.sorted())")
        }
    }

    @Test func `without a fleet all are 404 with the remedy, and the status has no member for it`() async throws {
        let scene = try DashboardScene(token: "the-token", reader: "a-reader")
        try await scene.serving { port in
            let client = try RawClient(port: port)
            for path in ["fleet", "fleet/search?q=a.mov"] {
                let answer = try await client.get(path, DashboardScene.bearer("a-reader"))
                #expect(answer.status == 404 && answer.error == "not_found", "\(answer.body)")
                #expect(answer.body.contains("add 'fleet:' to its configuration"), "\(answer.body)")
            }
            let status = try await client.get("status", DashboardScene.bearer("a-reader"))
            #expect(status.status == 200 && status.object["fleet"] == nil)
            for (secret, code) in [("the-token", 404), ("a-reader", 403)] {
                let order = #"{"agent": "nas4", "order": "drain"}"#
                let headers = DashboardScene.bearer(secret).merging(DashboardScene.marks) { $1 }
                let answer = try await client.post("fleet/order", order, headers)
                #expect(answer.status == code, "\(secret): \(answer.body)")
            }
        }
    }

    @Test func `an error of the fleet is an answer with its words, and an argument is the asker's fault`() {
        let away = APIFault(FleetError(.away, "db.example:5432 refuses connections\u{1B}[2J") as any Error)
        #expect(away.status == 503 && away.code == "fleet" && !away.message.contains("\u{1B}"))
        #expect(APIFault(FleetError(.argument, "too long") as any Error).status == 400)
    }

    /// A state of a share's folder, the grade of its finding (nil: none), and its remedy.
    static let folders: [(String, Health.State?, String)] = [
        ("watching", nil, ""), ("standby: nas2 lists it (fleet)", nil, ""),
        ("paused: waits: nas4 has not reported", .attention, "continues automatically (waits: nas4 has not reported)"),
        ("paused: not mounted? mount it", .trouble, "not mounted? mount it"),
        ("missing", .attention, "mount or create it"),
    ]

    @Test(arguments: folders.indices)
    func `a share that is not listed here needs a person only where something is wrong`(index: Int) throws {
        let (state, grade, remedy) = Self.folders[index]
        let report = try SampleStatus.report { report in
            report.roots = [
                .init(
                    path: "/mnt/media", state: state, place: "media", directories: 1, polled: 0, settling: 0,
                    ignored: 0, unsettled: [])
            ]
        }
        let found = Health.findings(report).filter { $0.about == .root }
        #expect(found.map(\.state) == [grade].compactMap(\.self))
        for finding in found {
            #expect(finding.remedy.contains(remedy) && !finding.remedy.contains("resume"), "\(finding.remedy)")
        }
    }

    @Test func `a share that waits for its fleet makes no agent unready, one without its marker does`() {
        let waits = ReadyReport.reasons(
            journal: nil, roots: [("/mnt/media", .guarded("waits: PostgreSQL is away"))], destinations: [])
        #expect(waits == [])
        let paused = ReadyReport.reasons(
            journal: nil, roots: [("/mnt/media", .guarded("not mounted?"))], destinations: [])
        #expect(paused == ["/mnt/media is paused: not mounted?"])
    }

    /// A state of the fleet, the grade of its finding (nil: none), and words of it.
    static let grades: [(FleetReport.State, Health.State?, String)] = [
        (.live, nil, ""), (.confirming, nil, ""), (.connecting, .attention, "is not reached yet"),
        (.away, .attention, "PostgreSQL (db.example:5432) is away since "),
        (.recovering, .attention, "gives no keys until all agents have reported"),
        (.refused, .trouble, "refuses this agent"),
    ]

    @Test(arguments: grades.indices)
    func `a fleet that needs a person is a finding with the remedy, and a healthy one is not`(index: Int) throws {
        let (state, grade, words) = Self.grades[index]
        let found = Health.findings(try SampleStatus.report { $0.fleet = Self.report(state) })
            .filter { $0.about == .fleet }
        #expect(found.map(\.state) == [grade].compactMap(\.self))
        for finding in found {
            #expect(finding.text.contains(words), "\(finding.text)")
            #expect(finding.remedy == "start nas4")
        }
    }
}
