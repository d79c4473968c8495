import Foundation
import InletCore
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Captured exchanges of both generations, each served to our client once.
@Suite struct VOPIReplayTests {
    private static let refreshPath = "/api/v1/auth/refresh"

    @Test func `there are vectors of both generations`() {
        for generation in VOPIGeneration.allCases {
            #expect(VOPIVector.all.count { $0.generation == generation && $0.concluded != nil } >= 7)
        }
    }

    @Test(arguments: VOPIVector.all)
    func `a captured exchange is concluded as it should be`(_ vector: VOPIVector) async throws {
        let place = try VOPIClientPlace { asked, _ in Self.reply(to: asked, vector) }
        let key = vector.headers["authorization"] == nil ? vector.headers["x-api-key"] : nil
        let isLogin = vector.path == Self.refreshPath
        if isLogin {
            try place.folder.write((vector.body["refreshToken"].text ?? "").utf8, to: "seed")
        } else if key == nil {
            try await place.keep()
        }
        let concluded = await VOPIReplay(vector: vector, api: try place.api(key: key)).conclude()
        if let expected = vector.concluded {
            #expect(concluded == expected)
        } else {
            #expect(Self.isPlausible(concluded, vector))
        }
        let asked = place.server.asked
        for one in asked { Self.check(one) }
        try Self.checkDeletes(asked, vector)
        if !isLogin {
            #expect(place.server.refreshes.count <= 1)
            // Whatever was answered, nobody is logged out.
            #expect(try await place.store().pair()?.refreshToken.isEmpty == (key == nil ? false : nil))
        }
        guard vector.isAsWeSendIt else { return }
        let sent = try #require(asked.last { $0.method == vector.method && $0.path == vector.path })
        #expect(sent.target == vector.target)
        #expect(sent.json == vector.body)
    }

    /// The vector's answer to its own request, and what such a server says to the others.
    private static func reply(to asked: VOPIServer.Asked, _ vector: VOPIVector) -> VOPIServer.Reply {
        if asked.method == vector.method, asked.path == vector.path {
            return VOPIServer.Reply(status: vector.status, headers: vector.answerHeaders, body: vector.answer)
        }
        if asked.path == refreshPath {
            return .json(200, #"{"accessToken":"access-1","refreshToken":"refresh-1","expiresIn":900}"#)
        }
        return VOPIAnswers.generation(vector.generation, asked)
    }

    /// What holds for every answer, judged or not.
    private static func isPlausible(_ concluded: String, _ vector: VOPIVector) -> Bool {
        let isError = ["retry ", "outage ", "giveUp ", "credentials "].contains { concluded.hasPrefix($0) }
        switch vector.status {
        case 200..<300: return !isError
        case 401: return concluded.hasPrefix("credentials ") || concluded.hasPrefix("outage ")
        case 404: return !concluded.hasPrefix("credentials ")
        case 429, 500...: return concluded.hasPrefix("retry ") || concluded.hasPrefix("outage ") || !isError
        default: return isError
        }
    }

    private static func check(_ asked: VOPIServer.Asked) {
        let isOpen = asked.path == "/ready" || asked.path == refreshPath
        let credentials = ["authorization", "x-api-key"].filter { asked.headers[$0] != nil }
        #expect(credentials.count == (isOpen ? 0 : 1), "\(asked.method) \(asked.target)")
        #expect(asked.headers["authorization"]?.hasPrefix("Bearer ") ?? true)
        #expect((asked.headers["content-type"] == "application/json") == !asked.body.isEmpty)
        #expect(asked.headers["content-type"] == nil || !asked.body.isEmpty)
        for name in ["transfer-encoding", "origin", "expect"] { #expect(asked.headers[name] == nil) }
    }

    /// Before a DELETE the server has said which generation it is.
    private static func checkDeletes(_ asked: [VOPIServer.Asked], _ vector: VOPIVector) throws {
        guard let delete = asked.firstIndex(where: { $0.method == "DELETE" }) else { return }
        let probe = try #require(asked.firstIndex { $0.path.hasSuffix("/cancel") && $0.path != vector.path })
        #expect(probe < delete)
    }
}

/// Answers that more than one test needs.
enum VOPIAnswers {
    static let missingJob = #"{"error":"NOT_FOUND","message":"Job x not found","statusCode":404}"#

    static func missingRoute(_ asked: VOPIServer.Asked) -> String {
        #"{"message":"Route \#(asked.method):\#(asked.path) not found","error":"Not Found","statusCode":404}"#
    }

    /// How a server of `generation` answers the cancelling of a job that does not exist, and everything else.
    static func generation(_ generation: VOPIGeneration, _ asked: VOPIServer.Asked) -> VOPIServer.Reply {
        let isCancel = asked.method == "POST" && asked.path.hasSuffix("/cancel")
        return .json(404, isCancel && generation == .newer ? missingJob : missingRoute(asked))
    }
}

/// Plays one vector: makes the call that asks for it, and says in a few words what our client concluded.
struct VOPIReplay: Sendable {
    let vector: VOPIVector
    let api: VOPIAPI

    func conclude() async -> String {
        do throws(DeliveryError) {
            return try await call()
        } catch {
            let verdict =
                switch error.verdict {
                case .retry: "retry"
                case .outage: "outage"
                case .giveUp: "giveUp"
                case .credentials: "credentials"
                case .sourceChanged, .sourceGone, .cancelled: "\(error.verdict)"
                }
            return "\(verdict) \(error.code.rawValue)"
        }
    }

    private func call() async throws(DeliveryError) -> String {
        let parts = vector.path.split(separator: "/").map { String($0) }
        switch (vector.method, parts.count > 2 ? parts[2] : parts.last ?? "", parts.count) {
        case ("GET", "ready", _): return try await api.isReady() ? "ready" : "not ready"
        case ("POST", "uploads", 4): return try await presign()
        case ("POST", "jobs", 3): return said(try await api.createJob(newJob))
        case ("GET", "jobs", 3): return try await list()
        case ("POST", "auth", 4) where parts[3] == "refresh":
            _ = try await api.accessToken()
            return "token"
        case ("GET", "credits", 4) where parts[3] == "balance":
            return try await api.balance().map { "\(Int($0)) credits" } ?? "nothing"
        case (_, "jobs", 4...): return try await aboutJob(parts[3], Array(parts.dropFirst(4)))
        default: return try await other()
        }
    }

    private func aboutJob(_ id: String, _ rest: [String]) async throws(DeliveryError) -> String {
        switch (vector.method, rest.joined(separator: "/")) {
        case ("GET", ""): return said(try await api.job(id))
        case ("GET", "status"): return said(try await api.status(id))
        case ("GET", "download-urls"): return try await downloads(id)
        case ("GET", "metadata"): return try await api.metadata(id) == nil ? "nothing" : "metadata"
        case ("GET", "frames"): return "\(try await api.frames(id).count) frames"
        case ("GET", "frames/final"): return "\(try await api.frames(id, final: true).count) frames"
        case ("GET", "images/grouped"): return said(try await api.groupedImages(id))
        case ("POST", "cancel"): try await api.cancel(id)
        case ("DELETE", "") where vector.generation == .older: try await api.cancel(id)
        case ("DELETE", ""): try await api.delete(id)
        case ("DELETE", _) where rest.count == 3:
            return said(try await api.deleteImage(id, frame: rest[1], version: rest[2]))
        default: return try await other()
        }
        return "done"
    }

    // MARK: - Calls

    private func presign() async throws(DeliveryError) -> String {
        let body = vector.body
        let place = try await api.presign(
            filename: body["filename"].text, contentType: body["contentType"].text ?? "video/mp4",
            life: .seconds(body["expiresIn"].integer ?? 3600))
        let key = place.publicURL.split(separator: "/").suffix(2).joined(separator: "/")
        return "place \(key) for \(place.expiresIn.components.seconds) s"
    }

    private var newJob: VOPINewJob {
        let body = vector.body
        var config = VOPIJobConfig()
        config.fps = body["config"]["fps"].number
        config.batchSize = body["config"]["batchSize"].integer
        let versions = body["config"]["commercialVersions"].list.compactMap(\.text)
        config.commercialVersions = versions.isEmpty ? nil : versions
        config.aiCleanup = body["config"]["aiCleanup"].boolean
        config.geminiModel = body["config"]["geminiModel"].text
        config.stackID = body["config"]["stack"]["stackId"].text
        return VOPINewJob(
            videoURL: body["videoUrl"].text ?? "", config: config, callbackURL: body["callbackUrl"].text,
            estimatedDuration: body["estimatedDurationSeconds"].number)
    }

    private func list() async throws(DeliveryError) -> String {
        let page = try await api.jobs(
            status: vector.query("status"), limit: vector.query("limit").flatMap { Int($0) } ?? 100,
            offset: vector.query("offset").flatMap { Int($0) } ?? 0)
        return "\(page.jobs.count) jobs of \(page.total ?? -1)"
    }

    private func downloads(_ id: String) async throws(DeliveryError) -> String {
        let life = vector.query("expiresIn").flatMap { Double($0) } ?? 3600
        let downloads = try await api.downloadURLs(id, life: .seconds(life))
        let images = downloads.images.values.reduce(0) { $0 + $1.count }
        let metadata = downloads.productMetadata == nil ? "" : ", metadata"
        return "\(downloads.frames.count) frames, \(images) images" + metadata
    }

    /// What nobody calls is at least sent and judged like the rest.
    private func other() async throws(DeliveryError) -> String {
        let request = api.request(
            vector.method, String(vector.path.dropFirst()), body: vector.body == .null ? nil : vector.body.plain)
        _ = try await api.send(request, .read, "asking")
        return "done"
    }

    // MARK: - Words

    private func said(_ job: VOPIJob) -> String {
        let error = job.error.map { ", error: \($0)" } ?? ""
        let result = job.result.map { ", \($0.count) files" } ?? ""
        return "job \(job.status.text)" + error + result
    }

    private func said(_ links: [String: [String: String]]) -> String {
        "\(links.count) variants, \(links.values.reduce(0) { $0 + $1.count }) images"
    }
}

/// A request and the answer that a VOPI server of one generation gave to it, as it was captured. Files of such vectors in
/// `Tests/Fixtures/VOPI` are all replayed.
struct VOPIVector: Sendable, CustomTestStringConvertible {
    var name: String
    var generation: VOPIGeneration
    var method: String
    /// With its query.
    var target: String
    var headers: [String: String]
    var body: VOPIValue
    var status: Int
    var answerHeaders: [(String, String)]
    /// Empty for an answer without a body.
    var answer: String
    /// What our client makes of it; nil for a vector that nobody has judged.
    var concluded: String?
    /// Whether our client puts the very same request on the wire, rather than one that the server takes better.
    var isAsWeSendIt: Bool

    var testDescription: String { "\(generation.rawValue): \(name)" }

    var path: String { String(target.prefix { $0 != "?" }) }

    /// The last value of a query item; nil without one.
    func query(_ name: String) -> String? {
        let items = target.drop { $0 != "?" }.dropFirst().split(separator: "&")
        return items.last { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    init?(_ value: VOPIValue, _ generation: VOPIGeneration) {
        let (request, response) = (value["request"], value["response"])
        guard let name = value["name"].text, let method = request["method"].text, let target = request["path"].text,
            let status = response["status"].integer
        else { return nil }
        self.name = name
        self.generation = generation
        self.method = method
        self.target = target
        headers = request["headers"].members.compactMapValues(\.text)
        body = request["body"]
        self.status = status
        answerHeaders = response["headers"].members.compactMapValues(\.text).map { ($0.key, $0.value) }
        answer = response["body"] == .null ? "" : response["body"].plain.text
        concluded = value["concluded"].text
        isAsWeSendIt = value["asWeSendIt"].boolean ?? false
    }

    /// By the server's commit, where the file does not say it for all of its vectors.
    private static func generation(_ value: VOPIValue) -> VOPIGeneration {
        value["server_commit"].text == "e8baab9" ? .older : .newer
    }

    static let all: [VOPIVector] = {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Fixtures/VOPI")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().flatMap { name in
            let file = (try? Data(contentsOf: folder.appendingPathComponent(name))) ?? Data()
            let value = VOPIValue(Array(file)) ?? .null
            let common = value["generation"].text.flatMap { VOPIGeneration(rawValue: $0) }
            return value["vectors"].list.compactMap { VOPIVector($0, common ?? generation($0)) }
        }
    }()
}
