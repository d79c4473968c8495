import Foundation
import HTTPTypes
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletDashboard

/// The document against the real answers.
@Suite(.serialized) struct OpenAPITests {
    /// A request for each endpoint of the table, with what it needs.
    private static let requests: [(method: String, path: String, query: String, body: String?)] = [
        ("GET", "/api/v1/status", "", nil), ("GET", "/api/v1/home", "", nil),
        ("GET", "/api/v1/jobs", "?state=pending,failed&q=FILM&label=a=b&before=99&limit=5&path=*.mp4", nil),
        ("GET", "/api/v1/jobs/{id}", "", nil), ("GET", "/api/v1/jobs/{id}/story", "", nil),
        ("GET", "/api/v1/receipts", "?limit=3", nil),
        ("POST", "/api/v1/route", "", #"{"path": "gigs/a.mp4", "size": 5}"#),
        ("GET", "/api/v1/batches", "", nil), ("GET", "/api/v1/batches/{id}/offload", "", nil),
        ("POST", "/api/v1/report", "", #"{"since": "1h"}"#),
        ("GET", "/api/v1/rates", "", nil), ("GET", "/api/v1/log", "?level=debug", nil),
        ("POST", "/api/v1/jobs/{id}/retry", "", "{}"), ("POST", "/api/v1/jobs/{id}/cancel", "", "{}"),
        ("POST", "/api/v1/jobs/{id}/forget", "", "{}"), ("POST", "/api/v1/jobs/{id}/first", "", "{}"),
        ("POST", "/api/v1/jobs/{id}/leave", "", "{}"), ("POST", "/api/v1/jobs/{id}/aside", "", "{}"),
        ("POST", "/api/v1/jobs/{id}/remove", "", "{}"), ("POST", "/api/v1/queue/first", "?dry_run=1", "{}"),
        ("POST", "/api/v1/queue/leave", "?dry_run=1", #"{"unanswered": true, "text": "a"}"#),
        ("POST", "/api/v1/queue/aside", "?dry_run=1", #"{"since": "2026-11-27T18:30:00Z"}"#),
        ("POST", "/api/v1/queue/remove", "?dry_run=1", #"{"states": ["duplicate"]}"#),
        ("POST", "/api/v1/queue/retry", "?dry_run=1", "{}"),
        ("POST", "/api/v1/queue/cancel", "?dry_run=1", #"{"upto": 5, "ended_until": "2026-11-27T18:30:00Z"}"#),
        ("POST", "/api/v1/queue/forget", "?dry_run=1", #"{"states": ["failed"], "older_ms": 5}"#),
        ("POST", "/api/v1/queue/clear", "", "{}"), ("POST", "/api/v1/queue/list", "", #"{"limit": 2}"#),
        ("POST", "/api/v1/pause", "?destination=disk", "{}"), ("POST", "/api/v1/resume", "", "{}"),
        ("GET", "/api/v1/limits", "", nil), ("POST", "/api/v1/limits", "", #"{"limit": "5MiB"}"#),
        ("POST", "/api/v1/roots/resume", "", #"{"text": "/nowhere"}"#),
        ("GET", "/api/v1/session", "", nil), ("POST", "/api/v1/login", "", #"{"secret": "the-token"}"#),
        ("POST", "/api/v1/logout", "", "{}"), ("GET", "/readyz", "", nil),
        ("POST", "/api/v1/jobs/{id}/undo/{type}", "", nil), ("POST", "/api/v1/tokens/{destination}", "", nil),
        ("POST", "/api/v1/queue/backup", "", "{}"), ("POST", "/api/v1/login-links", "", nil),
        ("POST", "/api/v1/send", "", #"{"paths": ["L2Zvbw=="]}"#),
        ("POST", "/api/v1/follow", "", "[1, 99]"), ("POST", "/api/v1/proofs", "", #"{"jobs": [], "after": 0}"#),
        ("GET", "/api/v1/config", "", nil), ("GET", "/api/v1/receivers", "", nil), ("POST", "/api/v1/reload", "", "{}"),
        ("GET", "/api/v1/cards", "", nil), ("GET", "/api/v1/cards/history", "?limit=3", nil),
        ("POST", "/api/v1/cards/{card}/label", "", #"{"roll": "A001"}"#),
        ("POST", "/api/v1/cards/{card}/leave", "", "{}"),
        ("POST", "/api/v1/cards/{card}/resend", "", "{}"), ("POST", "/api/v1/cards/{card}/eject", "", "{}"),
        ("POST", "/api/v1/log/level", "", #"{"level": "debug"}"#), ("GET", "/api/v1/openapi.json", "", nil),
    ]

    private static func filled(_ path: String) -> String {
        path.replacing("{id}", with: "1")
            .replacing("{type}", with: "gighive").replacing("{destination}", with: "disk")
            .replacing("{card}", with: "EOS")
    }

    /// An admitted file of a batch that is complete, and another one.
    private static func fill(_ scene: DashboardScene) async throws {
        try await scene.journal.take("A001/film.mp4", for: "disk") { $0.unit = "A001" }
        try await scene.journal.take("other.mp4", for: "disk")
        _ = try await scene.journal.closeUnit(
            "A001", root: "/in", routes: ["all"], marker: nil, uptimes: [:], at: .now)
        scene.log.emit(.jobAdmitted(job: 1, path: "/in/A001/film.mp4", route: "all", size: 9, deliveries: ["disk"]))
    }

    private static func check(
        _ answer: RawAnswer, _ method: String, _ path: String, _ document: JSONValue
    ) throws {
        let operation = try #require(document["paths"]?[path]?[method.lowercased()], "\(method) \(path)")
        let described = try #require(
            operation["responses"]?[String(answer.status)]?["content"]?["application/json"]?["schema"],
            "\(method) \(path): \(answer.status) \(answer.body)")
        let faults = SchemaCheck(document).faults(try JSONValue(parsing: answer.body.utf8), described)
        #expect(faults.isEmpty, "\(method) \(path): \(faults)\n\(answer.body)")
    }

    @Test func `every answer of the port is as the document says`() async throws {
        let document = Endpoints.openAPI(version: "1")
        let scene = try DashboardScene(token: "the-token")
        try await scene.serving { port in
            try await Self.fill(scene)
            let client = try RawClient(port: port)
            for (method, path, query, body) in Self.requests {
                let endpoint = try #require(Endpoints.all.first { $0.path == path && $0.method.rawValue == method })
                let answer = try await client.request(
                    method, Self.filled(path) + query, headers: DashboardScene.bearer("the-token"), body: body)
                if endpoint.need == .socket {
                    #expect(answer.status == 404, "\(path)")
                } else {
                    try Self.check(answer, method, path, document)
                }
            }
            let health = try await client.request("GET", "/healthz")
            #expect(health.status == 200 && health.headers["content-type"]?.hasPrefix("text/plain") == true)
        }
    }

    @Test func `every answer of the control socket is as the document says`() async throws {
        let document = Endpoints.openAPI(version: "1")
        let scene = try DashboardScene()
        defer { scene.journal.close() }
        try await Self.fill(scene)
        let socket = scene.directory.path.appending("control.sock")
        let server = ControlServer(path: socket, control: scene.control, feed: scene.feed)
        try await whileServing({ try await server.run() }) {
            try await eventually("it listens") { (try? RawClient(unixSocket: socket)) != nil }
            let client = try RawClient(unixSocket: socket)
            for (method, path, query, body) in Self.requests {
                // As the command line asks: neither marks nor tokens.
                let answer = try await client.request(method, Self.filled(path) + query, body: body)
                try Self.check(answer, method, path, document)
            }
        }
    }

    /// What has no JSON answer, needs a fleet (`FleetEndpointTests`), a digest that only a journal knows, a log that is
    /// being written, a watched folder (`IgnoredFileTests`), or a configuration file.
    private static let unasked: Set<String> = [
        "GET /healthz", "GET /metrics", "GET /api/v1/events", "POST /api/v1/contents", "GET /api/v1/log/level",
        "GET /api/v1/config/form", "GET /api/v1/config/schema", "POST /api/v1/config/try", "POST /api/v1/config/apply",
        "GET /api/v1/report/{form}", "GET /api/v1/ignored", "GET /api/v1/jobs/{id}/thumbnail",
        "GET /api/v1/fleet", "GET /api/v1/fleet/search", "POST /api/v1/fleet/order",
    ]

    @Test func `the log's level is answered as the document says`() throws {
        let report = LogLevelReport(level: "debug", configured: "info")
        let check = SchemaCheck(Endpoints.openAPI(version: "1"))
        let answer = try JSONValue(parsing: JSON.answer(report))
        let faults = check.faults(answer, LogLevelReport.schema.json)
        #expect(faults.isEmpty, "\(faults)")
    }

    @Test func `every endpoint is in the document and is asked here, and nothing else is`() throws {
        let document = Endpoints.openAPI(version: "1")
        let table = Endpoints.all.map { "\($0.method.rawValue) \($0.path)" }
        let described = (document["paths"]?.object ?? [:]).flatMap { path, operations in
            (operations.object ?? [:]).keys.map { "\($0.uppercased()) \(path)" }
        }
        #expect(Set(table) == Set(described) && Set(table).count == table.count)
        #expect(Set(table) == Set(Self.requests.map { "\($0.method) \($0.path)" }).union(Self.unasked))
    }

    @Test func `the document says what the port asks of each order, and what its numbers are`() throws {
        let document = Endpoints.openAPI(version: "1")
        for endpoint in Endpoints.all {
            let name = "\(endpoint.method.rawValue) \(endpoint.path)"
            let operation = try #require(document["paths"]?[endpoint.path]?[endpoint.method.rawValue.lowercased()])
            var parameters: [String: JSONValue] = [:]
            for one in operation["parameters"]?.array ?? [] {
                if let key = one["name"]?.string { parameters[key] = one }
            }
            let isOrder = endpoint.method == .post
            #expect((parameters["X-Inlet"] != nil) == (isOrder && endpoint.need != .socket), "\(name)")
            #expect((operation["requestBody"]?["content"]?["application/json"] != nil) == isOrder, "\(name)")
            for place in endpoint.describedPlaces {
                let schema = parameters[place.name]?["schema"]
                #expect(schema != nil && parameters[place.name]?["in"] == .string("path"), "\(name)")
                guard place.name == "id" else { continue }
                #expect(schema?["minimum"] == JSONValue(1) || schema?["pattern"] != nil, "\(name)")
            }
        }
    }

    @Test func `the document has the members of every type that it names, and notes of no others`() {
        var types: [String: any NamedSchema.Type] = [:]
        for endpoint in Endpoints.all {
            endpoint.body?.schema.collect(&types)
            endpoint.answer.collect(&types)
        }
        #expect(types.count > 40)
        for (name, type) in types {
            guard case .object(let fields, _) = type.schema else {
                Issue.record("\(name) does not tell its members")
                continue
            }
            #expect(!fields.isEmpty && type.notes.keys.allSatisfy { fields.map(\.name).contains($0) }, "\(name)")
        }
    }

    /// Without them, a key that is misspelt in an order would be passed over.
    @Test func `the keys of every body are known, except of a list`() throws {
        for endpoint in Endpoints.all {
            guard let body = endpoint.body else { continue }
            #expect((body.names?.isEmpty ?? true) == (endpoint.path == Endpoints.follow.row.path), "\(endpoint.path)")
        }
        #expect(try #require(Endpoints.send.row.body?.names) == ["paths", "to", "again"])
    }

    @Test func `members are required unless their type is an optional, and nested types are described whole`() {
        struct Inner: Codable { var flag: Bool }
        struct Sample: Codable, NamedSchema {
            var name: String
            var when: String?
            var inner: Inner
            var parts: [Inner]
            var counts: [String: Int]?
            static let notes: [String: SchemaDescription] = ["name": "A name.", "when": .time("At last.")]
        }
        guard case .object(let fields, nil) = Sample.schema else {
            Issue.record("\(Sample.schema)")
            return
        }
        #expect(fields.filter(\.isRequired).map(\.name) == ["name", "inner", "parts"])
        let flag = JSONValue.object(["type": .string("boolean")])
        let json = Sample.schema.json["properties"]
        #expect(json?["name"]?["description"] == .string("A name."))
        #expect(
            json?["when"]?["format"] == .string("date-time") && json?["when"]?["description"] == .string("At last."))
        #expect(json?["inner"]?["properties"]?["flag"] == flag)
        #expect(json?["parts"]?["items"]?["properties"]?["flag"] == flag)
        #expect(json?["counts"]?["additionalProperties"]?["type"] == .string("integer"))
    }

    @Test func `every reference in the document leads somewhere`() throws {
        let text = String(
            decoding: try JSON.answer(Endpoints.openAPI(version: "1")), as: UTF8.self)
        let named = Set(text.matches(of: /#\/components\/schemas\/(\w+)/).map { String($0.1) })
        let known = SchemaCheck(try JSONValue(parsing: text.utf8)).schemas
        #expect(!named.isEmpty && named.allSatisfy { known[$0] != nil })
    }

    @Test func `what is wrong is said with its code`() async throws {
        let scene = try DashboardScene()
        try await scene.serving { port in
            let client = try RawClient(port: port)
            let cases: [(method: String, path: String, body: String?, status: Int, code: String)] = [
                ("GET", "/api/v1/jobs?state=odd", nil, 400, "bad_request"),
                ("GET", "/api/v1/jobs?before=x", nil, 400, "bad_request"),
                ("GET", "/api/v1/jobs?label=x", nil, 400, "bad_request"),
                ("GET", "/api/v1/jobs/17", nil, 404, "not_found"), ("GET", "/api/v1/jobs/x", nil, 404, "not_found"),
                ("GET", "/api/v1/jobs/17/story", nil, 404, "not_found"),
                ("GET", "/api/v1/nothing", nil, 404, "not_found"), ("POST", "/api/v1/status", "{}", 405, "method"),
                ("POST", "/api/v1/limits", "{", 400, "bad_request"),
                ("POST", "/api/v1/limits", "{}", 400, "bad_request"),
                ("POST", "/api/v1/queue/cancel", #"{"jobz": [1]}"#, 400, "bad_request"),
                ("POST", "/api/v1/queue/cancel", #"{"states": ["odd"]}"#, 400, "bad_request"),
                ("POST", "/api/v1/route", #"{"path": ""}"#, 400, "bad_request"),
                ("GET", "/api/v1/log?level=loud", nil, 400, "bad_request"),
            ]
            for (method, path, body, status, code) in cases {
                let answer = try await client.request(method, path, headers: DashboardScene.marks, body: body)
                #expect(answer.status == status && answer.error == code, "\(method) \(path): \(answer)")
                #expect((answer.object["message"] as? String)?.isEmpty == false)
            }
        }
    }

    @Test func `a dry run is one in every word for it, and what is not understood changes nothing`() async throws {
        let scene = try DashboardScene()
        try await scene.serving { port in
            let job = try await scene.admit("a.mp4")
            let client = try RawClient(port: port)
            func cancel(_ query: String) async throws -> RawAnswer {
                try await client.post("queue/cancel\(query)")
            }
            for word in ["1", "true", "yes", "True", "YES"] {
                let answer = try await cancel("?dry_run=\(word)")
                #expect(answer.status == 200 && answer.object["dry_run"] as? Bool == true, "\(word): \(answer)")
            }
            for query in ["?dry_run", "?dry_run=", "?dry_run=on", "?dry_run=2", "?dryrun=1", "?dry_run=1&dry_run=0"] {
                let answer = try await cancel(query)
                #expect(answer.status == 400 && answer.error == "bad_request", "\(query): \(answer)")
                #expect(answer.body.contains("dry_run"), "\(answer)")
            }
            #expect(try await scene.journal.job(job)?.file.state == .pending)
            let done = try await cancel("?dry_run=No")
            #expect(done.object["done"] as? Int == 1 && done.object["dry_run"] as? Bool == false, "\(done)")
        }
    }

    @Test func `a key that a body does not have is refused before anything is done`() async throws {
        let scene = try DashboardScene()
        try await scene.serving { port in
            let client = try RawClient(port: port)
            // As if all destinations had been meant, each time.
            for (path, body, known) in [
                ("pause", #"{"destination": "disk"}"#, "it takes no keys"), ("pause", "[]", "a JSON object"),
                ("limits", #"{"limit": "1MiB", "destinations": "disk"}"#, "limit, destination"),
                ("queue/clear", #"{"states": ["failed"]}"#, "it takes no keys"),
                ("queue/cancel", #"{"state": ["failed"]}"#, "states"), ("route", #"{"path": "a", "sise": 5}"#, "size"),
            ] {
                let answer = try await client.post(path, body)
                #expect(answer.status == 400 && answer.body.contains(known), "\(path) \(body): \(answer)")
            }
            for body in ["", "{}", " {} "] {
                let answer = try await client.post("resume", body)
                #expect(answer.status == 200, "\(answer)")
            }
        }
    }

    @Test func `no endpoint passes over what a query asks for`() throws {
        for endpoint in Endpoints.all {
            #expect(endpoint.fault(in: []) == nil)
            for item in endpoint.query {
                let fine = item.example
                #expect(endpoint.fault(in: [(item.name, fine)]) == nil, "\(endpoint.path) \(item.name)")
                let twice = endpoint.fault(in: [(item.name, fine), (item.name, fine)])
                #expect((twice == nil) == item.isRepeated, "\(endpoint.path) \(item.name)")
            }
            let fault = endpoint.fault(in: [("no_such", "1")])
            #expect(fault?.status == 400)
            for item in endpoint.query { #expect(fault?.message.contains(item.name) == true, "\(endpoint.path)") }
        }
    }

    @Test func `lists go on where the page before ended, and a route says what it assumed`() async throws {
        let scene = try DashboardScene()
        try await scene.serving { port in
            for name in ["a.mp4", "b.mp4", "Gig/c.mp4"] { try await scene.admit(name) }
            let client = try RawClient(port: port)
            let page = try await client.get("jobs?limit=2").list
            #expect(page.compactMap { $0["job"] as? Int } == [3, 2])
            #expect(try await client.get("jobs?before=2").list.count == 1)
            #expect(
                try await client.get("jobs?q=gig%2FC").list.compactMap { $0["job"] as? Int } == [3])
            let trial = try await client.post("route", #"{"path": "gigs/a.mp4"}"#)
            #expect(trial.object["matched"] as? Bool == true && trial.object["route"] as? String == "all")
            let assumed = trial.object["assumed"] as? [String]
            #expect(assumed == ["the file is not there: size 0 and the time now were assumed"])
            let deliveries = trial.object["deliveries"] as? [[String: Any]]
            #expect(deliveries?.compactMap { $0["destination"] as? String } == ["disk"])
        }
    }
}

extension Parameter {
    /// A value that is as the document describes it.
    fileprivate var example: String {
        schema.json["enum"]?.array?.first?.string ?? "1"
    }
}

/// Holds a value against a schema of the document. Stricter than JSON Schema: a key that the document does not name is a fault
/// too, unless it says that there may be more.
struct SchemaCheck {
    let schemas: [String: JSONValue]

    init(_ document: JSONValue) {
        schemas = document["components"]?["schemas"]?.object ?? [:]
    }

    func faults(_ value: JSONValue, _ schema: JSONValue, at place: String = "$") -> [String] {
        if let reference = schema["$ref"]?.string {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let named = schemas[name] else { return ["\(place): no schema \(name)"] }
            return faults(value, named, at: place)
        }
        if let words = schema["enum"]?.array, !words.contains(value) {
            return ["\(place): \(value) is no word of it"]
        }
        guard let type = schema["type"]?.string else { return [] }
        if value == .null, schema["nullable"] == .boolean(true) { return [] }
        switch (type, value) {
        case ("string", .string(let text)):
            let isTime = schema["format"] == .string("date-time")
            return isTime && text.firstMatch(of: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/) == nil ? ["\(place): no time"] : []
        case ("integer", .number) where value.integer != nil: return []
        case ("number", .number), ("boolean", .boolean): return []
        case ("array", .array(let items)):
            let item = schema["items"] ?? .object([:])
            return items.enumerated().flatMap { faults($1, item, at: "\(place)[\($0)]") }
        case ("object", .object(let object)): return faults(object, schema, at: place)
        default: return ["\(place): \(value) is no \(type)"]
        }
    }

    private func faults(_ object: [String: JSONValue], _ schema: JSONValue, at place: String) -> [String] {
        let properties = schema["properties"]?.object ?? [:]
        var found: [String] = []
        for name in (schema["required"]?.array ?? []).compactMap(\.string) where object[name] == nil {
            found.append("\(place): no \(name)")
        }
        for (name, value) in object {
            if let property = properties[name] ?? schema["additionalProperties"] {
                found += faults(value, property, at: "\(place).\(name)")
            } else {
                found.append("\(place): \(name) is not described")
            }
        }
        return found
    }
}
