import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import Synchronization

/// Runs a VOPI sandbox on a folder of its own while `body` talks to it over real sockets, logged in as its user.
func withVOPI(
    rules: VOPIRules = VOPIRules(), credits: Int = 5, faults: VOPIFault..., clock: TestClock = TestClock(),
    _ body: @Sendable @escaping (VOPISandbox, VOPIClient) async throws -> Void
) async throws {
    let folder = try TemporaryDirectory()
    let sandbox = try VOPISandbox(
        directory: folder.path, apiKey: Secret(VOPIClient.apiKey), credits: credits, rules: rules,
        faults: FaultPlan(faults), clock: { clock.now })
    try await whileServing({ try await sandbox.run() }) {
        var client = VOPIClient(http: SandboxClient(port: try await sandbox.port()))
        switch rules.generation {
        case .apiKey: client.key = VOPIClient.apiKey
        case .bearer: client.token = sandbox.signIn().accessToken.reveal()
        }
        try await body(sandbox, client)
    }
}

/// A clock that a test moves.
final class TestClock: Sendable {
    private let time = Mutex(WallTime(milliseconds: 1_800_000_000_000))

    var now: WallTime { time.withLock { $0 } }
    func pass(_ duration: Duration) { time.withLock { $0 = $0 + duration } }
}

/// What a small, honest client of VOPI does.
struct VOPIClient: Sendable {
    typealias Answer = SandboxClient.Answer

    static let apiKey = "canary-key"
    static let api = "/api/v1"

    let http: SandboxClient
    var token: String?
    var key: String?

    func send(
        _ method: String, _ path: String, _ body: SandboxJSON? = nil, headers: [String: String] = [:]
    ) async throws -> Answer {
        var fields = headers
        if let token { fields["Authorization"] = "Bearer \(token)" }
        if let key { fields["x-api-key"] = key }
        if body != nil { fields["Content-Type"] = "application/json" }
        let data = try body.map { try JSONEncoder().encode($0) }
        return try await http.send(method, http.origin + path, data, headers: fields)
    }

    func get(_ path: String) async throws -> Answer { try await send("GET", Self.api + path) }

    /// Refresh needs no login.
    func refresh(_ token: String) async throws -> Answer {
        var nobody = self
        (nobody.token, nobody.key) = (nil, nil)
        return try await nobody.send("POST", Self.api + "/auth/refresh", ["refreshToken": .string(token)])
    }

    func presign(_ body: SandboxJSON = ["filename": "clip.MOV", "contentType": "video/quicktime"]) async throws
        -> Answer
    {
        try await send("POST", Self.api + "/uploads/presign", body)
    }

    /// Sends `video`; its `publicUrl`.
    func upload(_ video: Data) async throws -> String {
        let answer = try await presign().value
        guard let target = answer["uploadUrl"]?.text, let url = answer["publicUrl"]?.text else {
            throw Refused(answer: "presign: \(answer)")
        }
        let put = try await http.send("PUT", target, video, headers: ["Content-Type": "video/quicktime"])
        guard put.status == 200 else { throw Refused(answer: put.text) }
        return url
    }

    func create(_ body: SandboxJSON) async throws -> Answer { try await send("POST", Self.api + "/jobs", body) }

    /// Sends `video` and makes a job of it; the job's id.
    func job(_ video: Data, config: SandboxJSON? = nil) async throws -> String {
        var body: [String: SandboxJSON] = ["videoUrl": .string(try await upload(video))]
        body["config"] = config
        let answer = try await create(.object(body))
        guard answer.status == 201, let id = answer.value["id"]?.text else { throw Refused(answer: answer.text) }
        return id
    }

    /// The status at each of so many questions.
    func statuses(of id: String, _ count: Int) async throws -> [String] {
        var seen: [String] = []
        for _ in 0..<count { seen.append(try await get("/jobs/\(id)/status").value["status"]?.text ?? "") }
        return seen
    }

    func cancel(_ id: String) async throws -> Answer { try await send("POST", Self.api + "/jobs/\(id)/cancel") }
    func delete(_ id: String) async throws -> Answer { try await send("DELETE", Self.api + "/jobs/\(id)") }
}

extension SandboxClient.Answer {
    var value: SandboxJSON { (try? JSONDecoder().decode(SandboxJSON.self, from: body)) ?? .null }

    /// The status and VOPI's code, e.g. `400 VALIDATION_ERROR`.
    var coded: String { "\(status) \(value["error"]?.text ?? "")" }
}

extension VOPIRules {
    /// A job is at its end at the first question.
    static let quick = VOPIRules(pace: .polls(steps: 7))
}
