import Foundation
import InletCore
import InletTestSupport
import Synchronization
import SystemPackage

@testable import InletFleet

/// A database with the schema, at the PostgreSQL that all tests share.
final class SchemaFleet: Sendable {
    private static let template = Result {
        try SchemaFleet(name: "schema_\(UInt32.random(in: .min ... .max))", from: nil)
    }
    private static let count = Atomic<Int>(0)
    static let secret = Array("a join secret of 32 bytes, or so".utf8)

    let cluster: PostgresCluster
    let name: String

    /// A copy of one that was made once.
    convenience init() throws {
        let template = try Self.template.get()
        let number = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
        try self.init(name: "\(template.name)_\(number)", from: template)
    }

    private init(name: String, from template: SchemaFleet?) throws {
        (cluster, self.name) = (try PostgresCluster.shared(), name)
        try cluster.run("CREATE DATABASE \(name)" + (template.map { " TEMPLATE \($0.name)" } ?? ""))
        guard template == nil else { return }
        var fleet = FleetAdministration(try Self.connect(cluster.url(user: "postgres", database: name)))
        _ = try fleet.initialise()
        try run("SELECT inlet.v1_admin_secret('\\x\(Self.secret.hex)')")
        // Nobody beats here, however busy the machine is. A lossless failover takes no more than this.
        try run("UPDATE inlet.fleet SET ttl = '5 min'")
        try run(
            "DO $$ BEGIN CREATE ROLE schema_station LOGIN IN ROLE inlet_agent; "
                + "EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    }

    deinit { _ = try? cluster.run("DROP DATABASE IF EXISTS \(name) WITH (FORCE)") }

    /// As the superuser.
    @discardableResult
    func run(_ sql: String) throws -> [[String?]] { try cluster.run(sql, database: name) }

    func value(_ sql: String) throws -> String? { try run(sql).first?.first ?? nil }

    func administration() throws -> FleetAdministration { FleetAdministration(try connect()) }

    func connect(user: String = "postgres") throws -> PostgresConnection {
        try Self.connect(cluster.url(user: user, database: name))
    }

    static func connect(_ url: String) throws -> PostgresConnection {
        try PostgresConnection(PostgresAddress(url, allowsUnverified: false), application: "test")
    }

    /// Joined, and with a session.
    func agent(_ name: String) throws -> SchemaAgent {
        let agent = try SchemaAgent(self, name)
        try agent.join()
        try agent.hello()
        return agent
    }

    /// What a call throws.
    static func code(_ call: () throws -> Void) -> FleetError.Code? {
        do { try call() } catch { return (error as? FleetError)?.code }
        return nil
    }
}

/// An agent as the schema sees it, with the agents' login role. Unchecked, because one thread uses it at a time.
final class SchemaAgent: @unchecked Sendable {
    private static let letters = Array("abcdefghijklmnopqrstuvwxyz234567")

    let name: String
    let tag: String
    private(set) var token = [UInt8].unforeseeable(32)
    var journal = UUID().uuidString
    var instance = UUID().uuidString
    var seat: [UInt8]
    var hellos: Int64 = 0
    var seen: Int64 = 0
    private(set) var id: Int64 = 0
    var session: Int64 = 0
    private var connection: PostgresConnection

    convenience init(_ fleet: SchemaFleet, _ name: String) throws {
        try self.init(at: fleet.cluster.url(user: "schema_station", database: fleet.name), name)
    }

    init(at url: String, _ name: String) throws {
        (self.name, seat) = (name, Array("seat of \(name)".utf8))
        tag = String((0..<6).map { _ in Self.letters.randomElement() ?? "a" })
        connection = try SchemaFleet.connect(url)
    }

    /// Takes the place of `former`, whose connection is gone.
    func goOn(_ former: SchemaAgent) {
        (id, token, journal, session) = (former.id, former.token, former.journal, former.session)
        (hellos, seen) = (former.hellos, former.seen)
    }

    func join(seen: Int64 = 0, secret: [UInt8] = SchemaFleet.secret) throws {
        let rows = try call(
            "v1_join",
            [
                .bytes(secret), .text(name), .text(tag), .text(journal), .bytes(token), .integer(seen), .text("{}"),
            ])
        id = rows.integer(0, 0) ?? 0
    }

    /// - Returns: the fleet's state.
    @discardableResult
    func hello(counted: Bool = true) throws -> String? {
        if counted { hellos += 1 }
        let rows = try call(
            "v1_hello",
            [
                .integer(id), .bytes(token), .integer(hellos), .text(instance), .bytes(seat), .integer(seen),
                .text("1.0"), .text("{}"),
            ])
        session = rows.integer(0, 0) ?? 0
        return rows[0, 5]
    }

    /// A call of this agent's session.
    @discardableResult
    func ask(_ function: String, _ values: [PostgresValue] = []) throws -> PostgresRows {
        try call(function, [.integer(id), .bytes(token), .integer(session)] + values)
    }

    /// The same with the highest mark that was heard; the answer's is the new one.
    @discardableResult
    func askMarked(_ function: String, _ values: [PostgresValue] = []) throws -> PostgresRows {
        let rows = try ask(function, [.integer(seen)] + values)
        if rows.count > 0, let column = rows.columns.firstIndex(where: { $0 == "mark" || $0 == function }),
            let mark = rows.integer(0, column)
        {
            seen = max(seen, mark)
        }
        return rows
    }

    @discardableResult
    func call(_ function: String, _ values: [PostgresValue]) throws -> PostgresRows {
        let list = values.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
        return try connection.run("SELECT * FROM inlet.\(function)(\(list))", values)
    }

    func run(_ sql: String) throws -> PostgresRows { try connection.run(sql) }

    /// A destination whose address is made of `label`.
    func destination(_ label: String = "archive") throws -> Int64 {
        try ask(
            "v1_destination",
            [.bytes(SHA256.bytes(of: label.utf8)), .text("s3"), .text(label), .boolean(false)]
        ).integer(0, 0) ?? 0
    }

    func reserve(_ destination: Int64, _ keys: [String], _ refs: [Int64]) throws -> [Bool] {
        try askMarked(
            "v1_reserve",
            [.integer(destination), .texts(keys), .integers(refs.map { $0 }), .null]
        ).booleans(0, 1)
    }
}
