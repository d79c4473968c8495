import Foundation
import InletCore
import InletFleet
import InletJournal
import InletLinux
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletPipelines

/// A fleet's database of a test's own, and stations that share one store in memory: it takes whatever it gets, so that
/// two files under one key would be seen.
final class FleetScene: Sendable {
    static let secret = "a-secret-of-the-test"
    static let address = "store.example/bucket"

    let cluster: PostgresCluster
    private let folder: TemporaryDirectory?
    private let database: String
    /// For a file that waits for PostgreSQL: long, unless a test stops that.
    private let patience: Duration
    let store = ScriptedPipeline()
    /// Tests look many times a second, and a connection costs more than a look.
    private let connection = Mutex<PostgresConnection?>(nil)

    /// Roles belong to the whole cluster: two tests that make them would meet.
    private static let making = Mutex(0)

    /// - Parameters:
    ///   - ttl: of the leases. A busy machine must not let them end by itself.
    ///   - isAlone: with a server of its own, which may be stopped.
    init(ttl: String? = nil, isAlone: Bool = false) throws {
        patience = isAlone ? .milliseconds(200) : .seconds(60)
        let folder = isAlone ? try TemporaryDirectory() : nil
        let cluster = try folder.map { try PostgresCluster(in: $0.path) } ?? PostgresCluster.shared()
        (self.folder, self.cluster) = (folder, cluster)
        database = try Self.making.withLock { count in
            count += 1
            let name = "stations_\(count)"
            try cluster.createDatabase(name)
            var administration = FleetAdministration(
                try PostgresConnection(
                    try PostgresAddress(cluster.url(user: "postgres", database: name), allowsUnverified: false),
                    application: "test"))
            _ = try administration.initialise()
            try cluster.run(
                """
                DO $$ BEGIN
                    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'inlet_station') THEN
                        CREATE ROLE inlet_station LOGIN IN ROLE inlet_agent;
                    END IF;
                END $$
                """)
            return name
        }
        try run("SELECT inlet.v1_admin_secret('\(Self.secret)'::bytea)")
        try run("UPDATE inlet.fleet SET ttl = '\(ttl ?? "12 s")'")
    }

    /// As the superuser.
    @discardableResult
    func run(_ sql: String) throws -> [[String?]] {
        // A server of its own may have been stopped since.
        if folder != nil { return try cluster.run(sql, database: database) }
        let address = try PostgresAddress(url(user: "postgres"), allowsUnverified: false)
        let answer = try connection.withLock { (connection) throws(FleetError) -> PostgresRows? in
            if !(connection?.isUsable ?? false) { connection = try PostgresConnection(address, application: "test") }
            return try connection?.run(sql)
        }
        guard let rows = answer else { return [] }
        return (0..<rows.count).map { row in rows.columns.indices.map { rows[row, $0] } }
    }

    /// The first column of the first row, as a number.
    func number(_ sql: String) throws -> Int { try run(sql).first?[0].flatMap { Int($0) } ?? -1 }

    func url(user: String) -> String { cluster.url(user: user, database: database) }

    /// As a backup from before `agent` had anything would be, put back under the running fleet.
    func loseCommits(of agent: String) throws {
        try run("DELETE FROM inlet.key")
        try run("DELETE FROM inlet.receipt")
        try run(
            """
            UPDATE inlet.beat SET mark = 0, receipts = 0
            WHERE agent = (SELECT id FROM inlet.agent WHERE name = '\(agent)')
            """)
    }

    /// A station that has not begun.
    ///
    /// - Parameters:
    ///   - directory: that of an earlier process.
    ///   - seat: of the process: the same for all processes of one station.
    func station(
        _ name: String, in directory: TemporaryDirectory? = nil, seat: UInt8? = nil,
        _ change: (inout FleetSettings) -> Void = { _ in }
    ) throws -> Scene {
        var scene = try Scene(in: directory)
        scene.here = store
        var destination = Destination.scripted("here", store)
        destination.address = Self.address
        scene.destinations = [destination]
        var settings = FleetSettings(url: .text(Secret("unused")), name: name, patience: patience)
        change(&settings)
        scene.fleet = FleetSetup(
            settings: settings,
            address: try PostgresAddress(url(user: "inlet_station"), allowsUnverified: false), name: name,
            secret: Array(Self.secret.utf8), version: "test", about: [:], seat: [seat ?? 1])
        return scene
    }
}

/// A folder that several stations watch together. It is not empty, as one under a missing mount would be.
struct Share: Sendable {
    static let name = "media"
    let directory: TemporaryDirectory
    let root: FilePath
    var marker: FilePath { root.appending(".inlet").appending("place") }

    init() throws {
        directory = try TemporaryDirectory()
        root = try directory.makeDirectory("share")
        try directory.makeDirectory("share/in")
    }

    @discardableResult
    func drop(_ name: FilePath, _ content: String = "content") throws -> FilePath {
        try directory.write(Array(content.utf8), to: FilePath("share").pushing(name))
    }

    /// What the file of its marker holds; nil where there is none.
    var held: String? { if case .found(let marker) = PlaceMarker.read(in: root) { marker } else { nil } }

    /// Puts a file in the place of its marker.
    func mark(_ id: String) throws { try DurableFile.write(Array(id.utf8), to: marker, mode: 0o644) }
    func unmark() throws { try DurableFile.remove(marker) }
}

extension FleetScene {
    /// A station that watches a share with others.
    func placed(
        _ name: String, _ share: Share, in directory: TemporaryDirectory? = nil, seat: UInt8? = nil,
        _ change: (inout WatchSettings) -> Void = { _ in }
    ) throws -> Scene {
        var scene = try station(name, in: directory, seat: seat)
        (scene.watch[0].path, scene.watch[0].place) = (share.root, Share.name)
        scene.route.onSuccess = .keep
        change(&scene.watch[0])
        return scene
    }

    /// Runs two stations beside each other that watch one share; the first one lists it.
    func whileSharing(_ share: Share, _ body: (Stage, Stage) async throws -> Void) async throws {
        try await placed("one", share).run { one in
            try await one.lists()
            try await placed("two", share, seat: 2).run { two in
                try await two.isLive()
                try await two.standsBy()
                try await body(one, two)
            }
        }
    }

    /// How many versions the fleet has admitted.
    var admitted: Int { get throws { try number("SELECT count(*) FROM inlet.file") } }
}

extension Stage {
    var member: FleetMember? { agent.control.live?.fleet?.member }

    func isLive() async throws {
        try await eventually("the station is in the fleet") { member?.grants == true }
    }

    var places: FleetPlaces? { agent.control.live?.fleet?.places }
    /// Why the share is not read; nil while it may be.
    var trouble: String? { places?.share(root)?.trouble }

    func lists() async throws {
        try await eventually("the station lists the share") { places?.holds(root) == true }
    }

    func standsBy() async throws {
        try await eventually("another station lists the share") {
            if case .standby = rootStatus?.state { true } else { false }
        }
    }

    /// What is known of its fleet when `condition` holds.
    func fleet(_ what: String, _ condition: (FleetReport) -> Bool) async throws -> FleetReport {
        var found: FleetReport?
        try await eventually("the fleet is \(what)") {
            found = await agent.control.fleet
            return found.map(condition) ?? false
        }
        return try #require(found)
    }
}

/// Runs two stations beside each other.
func whileRunning(
    _ first: Scene, _ second: Scene, _ body: (Stage, Stage) async throws -> Void
) async throws {
    try await first.run { one in
        try await second.run { two in
            try await one.isLive()
            try await two.isLive()
            try await body(one, two)
        }
    }
}

extension Scene {
    /// The destination `here`, with what the fleet has a part in.
    fileprivate func section(_ values: [String: ConfigValue]) -> ConfigSection {
        ConfigSection(values: values, positions: [:], position: SourcePosition(line: 0, column: 0))
    }

    /// As the configuration would have it.
    var shared: DestinationSettings {
        var values: [String: ConfigValue] = [:]
        if let prefix = fleetShare.prefix { values["prefix"] = .string(prefix) }
        if let bandwidth = fleetShare.bandwidth {
            values["fleet"] = .section(section(["bandwidth": .rate(bandwidth)]))
        }
        return DestinationSettings(name: "here", type: "scripted", values: section(values))
    }
}
