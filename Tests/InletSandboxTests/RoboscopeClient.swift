import Foundation
import InletCore
import InletSandbox
import InletTestSupport

/// Runs a Roboscope sandbox while `body` talks to it over real sockets.
func withRoboscope(
    token: Secret? = nil, rules: RoboscopeRules = RoboscopeRules(), faults: RoboscopeFault...,
    clock: TestClock = TestClock(),
    _ body: @Sendable @escaping (RoboscopeSandbox, RoboscopeClient) async throws -> Void
) async throws {
    let sandbox = RoboscopeSandbox(token: token, rules: rules, faults: FaultPlan(faults), clock: { clock.now })
    try await whileServing({ try await sandbox.run() }) {
        try await body(
            sandbox, RoboscopeClient(http: SandboxClient(port: try await sandbox.port()), token: token?.reveal()))
    }
}

/// What a small, honest client of Roboscope does.
struct RoboscopeClient: Sendable {
    typealias Answer = SandboxClient.Answer

    let http: SandboxClient
    var token: String?

    func send(_ method: String, _ path: String, _ body: SandboxJSON? = nil) async throws -> Answer {
        var fields: [String: String] = [:]
        if let token { fields["Authorization"] = "Bearer \(token)" }
        if body != nil { fields["Content-Type"] = "application/json" }
        let data = try body.map { try JSONEncoder().encode($0) }
        return try await http.send(method, http.origin + "/api/v1" + path, data, headers: fields)
    }

    func get(_ path: String) async throws -> Answer { try await send("GET", path) }

    /// POSTs; the id of what was made.
    func make(_ path: String, _ body: SandboxJSON) async throws -> String {
        let answer = try await send("POST", path, body)
        guard answer.status == 201, let id = answer.value["id"]?.text else { throw Refused(answer: answer.text) }
        return id
    }

    /// A session in a space of its own.
    func session() async throws -> String {
        let space = try await make("/spaces", ["key": "hall", "name": "Hall"])
        return try await make("/work-sessions", ["space_id": .string(space), "session_type": "inspection"])
    }

    /// The body of one marker, with an ingest id.
    static func marker(_ session: String, _ number: Int = 0) -> SandboxJSON {
        [
            "work_session_id": .string(session), "label": .string("m\(number)"), "p1": [0, 0, 0], "p2": [1, 0, 0],
            "p3": [1, 0, 2], "p4": [0, 0, 2], "color": "#00ff7F",
            "custom_props": ["ingest_id": .string("abc#\(number)"), "severity": "high"],
        ]
    }
}

extension SandboxJSON {
    /// The same object with other fields.
    func with(_ fields: [String: SandboxJSON]) -> SandboxJSON {
        .object((self.fields ?? [:]).merging(fields) { $1 })
    }
}
