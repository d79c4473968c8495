import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard
@testable import InletPipelines

/// What `/metrics` says of a real journal, and of an agent on it.
@Suite struct MetricsPageTests {
    /// Each series with its value, as `name{label="value"}`.
    private static func series(_ agent: AgentControl, _ tally: MetricsCollector? = nil) async throws -> [String: Double]
    {
        let text = try await MetricsPage(agent, tally: tally).text()
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        let pairs = lines.compactMap { line in
            line.lastIndex(of: " ").map { (String(line[..<$0]), Double(line[line.index(after: $0)...]) ?? .nan) }
        }
        #expect(Set(pairs.map(\.0)).count == pairs.count, "no series is there twice")
        #expect(pairs.count == lines.count && !pairs.contains { $0.1.isNaN })
        return Dictionary(pairs) { first, _ in first }
    }

    @Test func `gauges are the journal's sums, with or without an agent`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        for name in ["a", "b", "c"] { try await place.admit(name) }
        try await place.settle(.ended(.failed, code: .badRequest, reason: "no"))
        let page = try await Self.series(AgentControl(journal: place.journal))
        #expect(page["inlet_files{state=\"failed\"}"] == 1 && page["inlet_files{state=\"pending\"}"] == 2)
        #expect(page["inlet_file_bytes{state=\"pending\"}"] == 18 && page["inlet_files{state=\"delivered\"}"] == 0)
        #expect(page["inlet_queue_waiting"] == 2)
        #expect(page["inlet_deliveries_open{destination=\"here\",state=\"waiting\"}"] == 2)
        #expect(try #require(page["inlet_oldest_waiting_seconds"]) >= 3599)
        #expect(try #require(page["inlet_journal_write_seconds_count"]) >= 4)
        #expect(page["inlet_info{version=\"test\"}"] == nil, "no agent runs")
    }

    @Test func `a fleet has its series, and an agent alone has none of them`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        let agent = AgentControl(journal: place.journal)
        let tally = MetricsCollector(destinations: [], routes: [])
        let alone = try await Self.series(agent, tally)
        #expect(!alone.keys.contains { $0.hasPrefix("inlet_fleet") })
        tally.addFleet {
            var figures = FleetFigures()
            (figures.isConnected, figures.sessionLeft, figures.lost) = (true, .milliseconds(1500), 3)
            (figures.placesHeld, figures.places) = (1, ["media": true, "audio": false])
            figures.count("v1_beat", nil, took: .milliseconds(2))
            figures.count("v1_beat", .sessionOver, took: .milliseconds(2))
            return figures
        }
        let page = try await Self.series(agent, tally)
        #expect(page["inlet_fleet_connected"] == 1 && page["inlet_fleet_session_seconds_left"] == 1.5)
        #expect(page["inlet_fleet_keys_lost_total"] == 3 && page["inlet_fleet_recovering"] == 0)
        #expect(page["inlet_fleet_calls_total{code=\"ok\",function=\"v1_beat\"}"] == 1)
        #expect(page["inlet_fleet_calls_total{code=\"IN003\",function=\"v1_beat\"}"] == 1)
        #expect(page["inlet_fleet_call_seconds_count{function=\"v1_beat\"}"] == 2)
        #expect(page["inlet_fleet_places_held"] == 1)
        #expect(page["inlet_fleet_place_listed{place=\"media\"}"] == 1)
        #expect(page["inlet_fleet_place_listed{place=\"audio\"}"] == 0)
    }

    @Test func `an open delivery is in one place only`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        for name in ["a", "b", "c", "d"] { try await place.admit(name) }
        let later = WallTime.now + .seconds(3600)
        try await place.settle(.again(at: later, countsAttempt: true, code: .timedOut, reason: "busy"))
        try await place.settle(.waiting(until: later, saying: "it works on it"))
        let page = try await Self.series(AgentControl(journal: place.journal))
        let open = ["waiting", "retrying", "held", "parked", "sending", "working"].map {
            page["inlet_deliveries_open{destination=\"here\",state=\"\($0)\"}"]
        }
        #expect(open == [2, 1, 0, 0, 0, 1])
    }

    @Test func `the counters are those of the tally, and series are there before their first event`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        let tally = MetricsCollector(destinations: ["here", "there"], routes: ["all"])
        let ref = AgentEvent.JobRef(job: 1, delivery: 1, path: "/in/a", route: "all", destination: "here")
        let proof = Proof(key: "k", size: 1 << 40, method: .size)
        tally.count(.jobDelivered(ref, proof, duration: .seconds(90)))
        tally.count(.jobFinished(job: 1, path: "/in/a", state: .delivered, disposition: "kept", route: "all"))
        let page = try await Self.series(AgentControl(journal: place.journal), tally)
        #expect(page["inlet_deliveries_total{destination=\"here\",result=\"delivered\"}"] == 1)
        #expect(page["inlet_deliveries_total{destination=\"there\",result=\"failed\"}"] == 0)
        #expect(page["inlet_delivered_bytes_total{destination=\"here\"}"] == Double(1 << 40))
        #expect(page["inlet_delivery_duration_seconds_bucket{destination=\"here\",le=\"60\"}"] == 0)
        #expect(page["inlet_delivery_duration_seconds_bucket{destination=\"here\",le=\"120\"}"] == 1)
        #expect(page["inlet_delivery_duration_seconds_sum{destination=\"here\"}"] == 90)
        #expect(page["inlet_files_ended_total{route=\"all\",state=\"delivered\"}"] == 1)
        #expect(page["inlet_files_ended_total{route=\"all\",state=\"failed\"}"] == 0)
        #expect(!page.keys.contains { $0.contains("other") }, "nothing was counted there")
    }

    @Test(
        arguments: [
            (RootStatus.State.starting, nil, 0), (.starting, .inotify, 1), (.watching, .poll, 1),
            (.missing, .inotify, 0),
            (.guarded("empty at once"), .inotify, 0), (.failing("no room"), nil, 0),
        ] as [(RootStatus.State, WatchMode?, Double)])
    func `a folder is up once it is listed, for as long as it is what it was`(
        _ state: RootStatus.State, _ mode: WatchMode?, _ expected: Double
    ) async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        var status = RootStatus(root: "/in", state: state)
        (status.mode, status.watches) = (mode, 3)
        var page = PrometheusText()
        MetricsPage(AgentControl(journal: place.journal)).addRoots([status], to: &page)
        #expect(page.text.contains("inlet_root_up{root=\"/in\"} \(Int(expected))\n"), "\(page.text)")
        #expect(page.text.contains("inlet_watches{root=\"/in\"} 3\n"))
    }

    @Test func `an agent's page says how its destinations, folders and process are`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        let log = try EventLog(nil)
        let agent = try await place.agent(log)
        let page = try await Self.series(agent.control)
        let root = PrometheusText.escape(place.root.display, quotes: true)
        #expect(page["inlet_info{version=\"test\"}"] == 1 && page["inlet_journal_failing"] == 0)
        #expect(try #require(page["inlet_start_time_seconds"]) > 1.7e9)
        #expect(page["inlet_destination_up{destination=\"here\"}"] == 1)
        #expect(page["inlet_destination_paused{destination=\"here\"}"] == 0)
        let states = page.filter { $0.key.hasPrefix("inlet_destination_state{destination=\"here\"") }
        #expect(states.count == 6 && states.values.reduce(0, +) == 1)
        #expect(page["inlet_destination_state{destination=\"here\",state=\"up\"}"] == 1)
        #expect(page["inlet_root_up{root=\"\(root)\"}"] == 0, "nobody has looked yet")
        #expect(page["inlet_limit_bytes_per_second{destination=\"*\"}"] == 1_000_000)
        #expect(page["inlet_resuming_files"] == 0 && page["inlet_transfer_bytes_in_flight"] == 0)
        for name in ["process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"] {
            #expect(try #require(page[name]) > 0)
        }
        log.emit(.watchOverflow(root: place.root))
        #expect(try await Self.series(agent.control)["inlet_watch_overflows_total"] == 1)
    }

    @Test func `what an earlier process left is in the metrics from the start, and what has become of it`() async throws
    {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        let jobs = try await [place.admit("a"), place.admit("b"), place.admit("c")]
        // That process ends with one of them in its hands.
        let wish = ClaimRequest(lane: .big, room: MetricsPlace.room, most: 1)
        #expect(try await place.journal.exchange([], for: wish, at: .now).claims.count == 1)
        let log = try EventLog(nil)
        let agent = try await place.agent(log)
        let recovery = [
            "inlet_resuming_files", "inlet_resumed_files{result=\"delivered\"}",
            "inlet_resumed_files{result=\"failed\"}", "inlet_resumed_files{result=\"waiting\"}",
        ]
        func figures() async throws -> [Double?] {
            let page = try await Self.series(agent.control)
            #expect(page["inlet_recovered_deliveries_total"] == 1)
            return recovery.map { page[$0] }
        }
        #expect(try await figures() == [3, 0, 0, 0])
        let path: FilePath = "/in/a"
        log.emit(.jobFinished(job: jobs[0], path: path, state: .delivered, disposition: "kept", route: "all"))
        #expect(try await figures() == [2, 1, 0, 0])
        let ref = AgentEvent.JobRef(job: jobs[1], delivery: 2, path: path, route: "all", destination: "here")
        log.emit(.jobStarted(ref, key: "k", attempt: 2, size: 9, isResumed: true))
        log.emit(.jobRetry(ref, DeliveryError(.outage(after: nil), .timedOut, "away"), attempt: 2, wait: .zero))
        #expect(try await figures() == [1, 1, 0, 1])
        log.emit(.jobFinished(job: jobs[2], path: path, state: .failed, disposition: "kept", route: "all"))
        #expect(try await figures() == [0, 1, 1, 1], "it is still said once all have been tried")
        #expect(try await Self.series(agent.control)["inlet_delivery_resumes_total{destination=\"here\"}"] == 1)
    }

    @Test func `every metric is on the page of an agent, with the labels that the documents name`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        let agent = try await place.agent(EventLog(nil))
        // As if a file had come: some metrics have no line before.
        let arrivals = try #require(agent.control.live).shared.arrivals
        _ = arrivals.follow([place.root], at: .now)
        arrivals.note(Arrival(job: 1, path: place.root.appending("a"), at: .now), in: place.root)
        try #require(agent.control.live).tally.addFleet {
            var figures = FleetFigures()
            (figures.sessionLeft, figures.places) = (.seconds(1), ["media": true])
            figures.count("v1_beat", nil, took: .zero)
            return figures
        }
        let text = try await MetricsPage(agent.control).text()
        for metric in Metric.allCases {
            let name = metric.kind == .histogram ? metric.rawValue + "_count" : metric.rawValue
            let lines = text.split(separator: "\n").filter { $0.hasPrefix(name + "{") || $0.hasPrefix(name + " ") }
            #expect(!lines.isEmpty, "\(name)")
            for line in lines {
                #expect(line.matches(of: /(\w+)="/).map { String($0.1) } == metric.labels, "\(line)")
            }
        }
    }

    @Test(.enabled(if: Promtool.isThere, "needs promtool, of Debian's package prometheus"))
    func `promtool finds nothing to object to`() async throws {
        let place = try MetricsPlace()
        defer { place.journal.close() }
        try await place.admit("a")
        let log = try EventLog(nil)
        let agent = try await place.agent(log)
        let path: FilePath = "/in/a"
        for route in ["all", "unknown"] {
            log.emit(.jobFinished(job: 9, path: path, state: .rejected, disposition: "kept", route: route))
        }
        let ref = AgentEvent.JobRef(job: 9, delivery: 9, path: path, route: "all", destination: "here")
        log.emit(.jobDelivered(ref, Proof(key: "k", size: 7, method: .size), duration: .milliseconds(20)))
        let answer = try Promtool.check(try await MetricsPage(agent.control).text())
        #expect(answer.code == 0 && answer.said.isEmpty, "\(answer.said)")
    }

    @Test(.enabled(if: Promtool.isThere, "needs promtool, of Debian's package prometheus"))
    func `promtool would have found a broken page`() throws {
        #expect(try Promtool.check("inlet_files{state=\"a\n\"} 1\n").code != 0)
    }
}

/// A journal in a folder of its own, one destination `here`, and agents on it that are made and not run.
struct MetricsPlace: Sendable {
    private let directory: TemporaryDirectory
    let root: FilePath
    let journal: Journal

    static let room = ClaimCapacity(destination: "here", limits: [.big: 9])

    init() throws {
        directory = try TemporaryDirectory()
        // A name that must be escaped twice: for people, and in a label.
        root = try directory.makeDirectory("drop \"1\"\n")
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
    }

    /// Takes a file of 9 bytes, an hour ago. - Returns: its job.
    @discardableResult
    func admit(_ name: String) async throws -> Int64 {
        try await journal.take(name, in: root, for: "here", at: .now + .seconds(-3600))
    }

    /// Ends the delivery whose turn it is.
    func settle(_ settlement: ClaimOutcome) async throws {
        try await journal.settle(settlement, for: "here")
    }

    func agent(_ log: EventLog) async throws -> Agent {
        var watch = WatchSettings(path: root)
        watch.expect = .seconds(86_400)
        var settings = Settings(
            stateDirectory: directory.path, watch: [watch],
            routes: [Route(name: "all", key: try KeyTemplate("{name}"), to: ["here"])])
        settings.bandwidth.all = Timetable(1_000_000)
        let here = Destination(
            name: "here", type: "test", pipeline: Nowhere(), smallLimit: 0, connections: 1, maxInFlight: nil)
        return try await Agent(
            settings: settings, destinations: [here], journal: journal, log: log,
            label: ("test", "test", nil))
    }
}

/// What the makers of Prometheus check pages and rules with.
enum Promtool {
    private static let path = "/usr/bin/promtool"

    static var isThere: Bool { FileManager.default.isExecutableFile(atPath: path) }

    /// `promtool check metrics`: its exit code, and what it says of a page.
    static func check(_ page: String) throws -> (code: Int32, said: String) {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Array(page.utf8), to: "page")
        return try run(["check", "metrics"], input: Foundation.FileHandle(forReadingAtPath: file.string))
    }

    static func run(_ arguments: [String], input: Foundation.FileHandle?) throws -> (code: Int32, said: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let output = Pipe()
        process.standardInput = input ?? Foundation.FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, said)
    }
}
