import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// What goes on the wire, and what is done about a refused token.
@Suite struct VOPICallTests {
    private static let id = "550e8400-e29b-41d4-a716-446655440001"
    private static let job = #"{"id":"x","status":"pending"}"#

    @Test func `a request without a body has no content type, and one login header`() async throws {
        let place = try VOPIClientPlace { asked, _ in VOPIAnswers.generation(.newer, asked) }
        try await place.keep()
        for api in [try place.api(), try place.api(key: "key-1")] {
            _ = await failure { () throws(DeliveryError) in try await api.cancel(Self.id) }
            _ = await failure { () throws(DeliveryError) in try await api.delete(Self.id) }
            _ = await failure { () throws(DeliveryError) in try await api.job(Self.id) }
        }
        #expect(place.server.asked.count >= 6)
        for asked in place.server.asked {
            #expect(asked.headers["content-type"] == nil && asked.headers["transfer-encoding"] == nil)
            #expect((asked.headers["authorization"] == nil) != (asked.headers["x-api-key"] == nil))
        }
    }

    @Test func `fields that are not set are left out of a body`() async throws {
        let place = try VOPIClientPlace { _, _ in .json(201, Self.job) }
        try await place.keep()
        let api = try place.api()
        _ = try await api.createJob(VOPINewJob(videoURL: "https://s3.example/v.mp4"))
        _ = await failure { () throws(DeliveryError) in
            try await api.presign(filename: nil, contentType: "video/webm", life: .seconds(1))
        }
        _ = await failure { () throws(DeliveryError) in
            try await api.presign(
                filename: String(repeating: "a", count: 300) + ".mov", contentType: "x", life: .seconds(1e6))
        }
        let bodies = place.server.asked.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies[0] == #"{"videoUrl":"https://s3.example/v.mp4"}"#)
        #expect(bodies[1] == #"{"contentType":"video/webm","expiresIn":60}"#)
        #expect(place.server.asked[2].json["filename"].text?.count == 255)
        #expect(place.server.asked[2].json["filename"].text?.hasSuffix(".mov") == true)
        #expect(place.server.asked[2].json["expiresIn"].integer == 86_400)
    }

    @Test(arguments: ["", "..", ".", "a/b", "a b", "a%2Fb", "ä", "a?b", String(repeating: "a", count: 201)])
    func `an id that would be another path is refused before it is sent`(_ id: String) async throws {
        let place = try VOPIClientPlace { _, _ in .json(200, Self.job) }
        try await place.keep()
        let api = try place.api()
        for error in [
            await failure { () throws(DeliveryError) in try await api.job(id) },
            await failure { () throws(DeliveryError) in try await api.delete(id) },
            await failure { () throws(DeliveryError) in try await api.cancel(id) },
            await failure { () throws(DeliveryError) in try await api.deleteImage(Self.id, frame: id, version: "v") },
            await failure { () throws(DeliveryError) in try await api.deleteImage(Self.id, frame: "f", version: id) },
        ] {
            #expect(error?.code == .badRequest && error?.verdict == .giveUp)
        }
        #expect(place.server.asked.isEmpty)
    }

    @Test func `lists and tables that are empty in the other's way are empty`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            .json(
                200, asked.path.hasSuffix("grouped") ? "[]" : asked.path.hasSuffix("status") ? #"{"status":"x"}"# : "{}"
            )
        }
        try await place.keep()
        let api = try place.api()
        #expect(try await api.frames(Self.id).isEmpty)
        #expect(try await api.frames(Self.id, final: true).isEmpty)
        #expect(try await api.groupedImages(Self.id).isEmpty)
        #expect(try await api.metadata(Self.id) == nil)
        #expect(try await api.status(Self.id).id == Self.id)
        #expect(await failure { () throws(DeliveryError) in try await api.jobs() }?.code == .badAnswer)
        #expect(await failure { () throws(DeliveryError) in try await api.job(Self.id) }?.code == .badAnswer)
    }

    /// The statuses of the reference (`JobStatusType`), in its order.
    static let statuses: [(String, VOPIStatus)] = [
        ("pending", .pending), ("downloading", .running("downloading")), ("extracting", .running("extracting")),
        ("scoring", .running("scoring")), ("classifying", .running("classifying")),
        ("extracting_product", .running("extracting_product")), ("generating", .running("generating")),
        ("completed", .completed), ("failed", .failed), ("cancelled", .cancelled),
    ]

    @Test(arguments: statuses) func `the light question for a job's status is asked, and every answer understood`(
        _ text: String, _ status: VOPIStatus
    ) async throws {
        let place = try VOPIClientPlace { _, _ in
            .json(
                200,
                #"{"id":"\#(Self.id)","status":"\#(text)","progress":{"step":"\#(text)","percentage":40,"message":"m","#
                    + #""totalSteps":7,"currentStep":3},"createdAt":"2026-01-30T10:00:00.000Z","#
                    + #""updatedAt":"2026-01-30T10:05:00.000Z"}"#)
        }
        try await place.keep()
        let job = try await place.api().status(Self.id)
        let asked = try #require(place.server.asked.first)
        #expect(place.server.asked.count == 1 && asked.method == "GET" && asked.body.isEmpty)
        #expect(asked.target == "/api/v1/jobs/\(Self.id)/status")
        #expect(job.id == Self.id && job.status == status && job.status.text == text)
        #expect(job.progress?.step == text && job.progress?.percentage == 40 && job.progress?.message == "m")
        #expect(job.raw["progress"]["totalSteps"].integer == 7 && job.raw["progress"]["currentStep"].integer == 3)
        #expect(job.createdAt?.rfc3339 == "2026-01-30T10:00:00.000Z")
        #expect(job.updatedAt?.rfc3339 == "2026-01-30T10:05:00.000Z")
    }

    // MARK: - Links

    @Test(arguments: [
        (1, 60), (59, 60), (60, 60), (3600, 3600), (86_400, 86_400), (86_401, 86_400), (1_000_000, 86_400),
    ])
    func `links are asked for with a life that the server takes`(_ seconds: Int, _ sent: Int) async throws {
        let place = try VOPIClientPlace { _, _ in .json(200, #"{"jobId":"x","frames":[],"commercialImages":{}}"#) }
        try await place.keep()
        let downloads = try await place.api().downloadURLs(Self.id, life: .seconds(seconds))
        #expect(place.server.asked.map(\.method) == ["GET"])
        #expect(place.server.asked.map(\.target) == ["/api/v1/jobs/\(Self.id)/download-urls?expiresIn=\(sent)"])
        #expect(downloads.entries.isEmpty)
    }

    @Test func `results are fetched by links that live for an hour`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            .json(
                200,
                asked.path.hasSuffix("/download-urls")
                    ? #"{"jobId":"x","frames":[],"commercialImages":{},"productMetadata":null}"#
                    : #"{"id":"\#(Self.id)","status":"completed","result":{"variantsDiscovered":0,"finalFrames":[]}}"#)
        }
        try await place.keep()
        let results = VOPIResults(
            api: try place.api(), client: place.client, pool: BlockingPool(name: "results", threads: 1))
        _ = try await results.fetch(job: Self.id, into: place.folder.path.appending("results"))
        #expect(
            place.server.asked.map(\.target)
                .filter { $0.contains("download-urls") } == ["/api/v1/jobs/\(Self.id)/download-urls?expiresIn=3600"])
    }

    // MARK: - Refused tokens

    @Test func `an expired token is renewed and the call repeated once`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            if asked.path.hasSuffix("/refresh") { return .json(200, #"{"accessToken":"new","refreshToken":"r"}"#) }
            return asked.headers["authorization"] == "Bearer new"
                ? .json(200, Self.job) : .json(401, #"{"error":"ACCESS_TOKEN_EXPIRED","message":"x"}"#)
        }
        try await place.keep()
        #expect(try await place.api().job(Self.id).status == .pending)
        #expect(place.server.asked.count == 3 && place.server.refreshes.count == 1)
    }

    @Test func `a token that is refused again is an outage, not a reason to log out`() async throws {
        let place = try VOPIClientPlace { asked, count in
            asked.path.hasSuffix("/refresh")
                ? .json(200, #"{"accessToken":"new-\#(count)","refreshToken":"r-\#(count)"}"#)
                : .json(401, #"{"error":"ACCESS_TOKEN_INVALID","message":"odd"}"#)
        }
        try await place.keep()
        let api = try place.api()
        let error = await failure { () throws(DeliveryError) in try await api.job(Self.id) }
        #expect(error?.verdict == .outage(after: nil) && error?.code == .unauthorized)
        #expect(place.server.asked.count == 3)
        #expect(try await place.store().pair()?.refreshToken == Secret("r-1"))
    }

    @Test func `a database that is away costs no renewal and no login`() async throws {
        let place = try VOPIClientPlace { _, _ in
            .json(401, #"{"error":"ACCESS_TOKEN_INVALID","message":"connect ECONNREFUSED 127.0.0.1:5432"}"#)
        }
        try await place.keep()
        let api = try place.api()
        let error = await failure { () throws(DeliveryError) in try await api.job(Self.id) }
        #expect(error?.verdict == .outage(after: nil) && error?.code == .serverError)
        #expect(place.server.asked.count == 1)
        #expect(try await place.store().pair()?.refreshToken == Secret("refresh-0"))
    }

    @Test func `another configured token is taken up as soon as the server refuses us`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            if asked.path.hasSuffix("/refresh") {
                return asked.json["refreshToken"].text == "seed-new"
                    ? .json(200, #"{"accessToken":"new","refreshToken":"r"}"#) : .json(500, "")
            }
            return asked.headers["authorization"] == "Bearer new"
                ? .json(200, Self.job) : .json(401, #"{"error":"USER_NOT_FOUND","message":"x"}"#)
        }
        try await place.keep()
        let api = try place.api()
        let error = await failure { () throws(DeliveryError) in try await api.job(Self.id) }
        #expect(error?.verdict == .credentials)
        try place.folder.write("seed-new".utf8, to: "seed")
        #expect(try await api.job(Self.id).status == .pending)
    }

    @Test func `a wrong way of logging in is named`() async throws {
        let newer = try VOPIClientPlace { _, _ in
            .json(401, #"{"error":"UNAUTHORIZED","message":"User authentication required. Please log in."}"#)
        }
        let key = try newer.api(key: "key-canary")
        let refused = await failure { () throws(DeliveryError) in try await key.jobs() }
        #expect(refused?.reason.contains("refresh_token_file") == true && refused?.verdict == .credentials)
        let older = try VOPIClientPlace { _, _ in .json(401, #"{"error":"UNAUTHORIZED","message":"Missing API key"}"#) }
        try await older.keep()
        let tokens = try older.api()
        let ignored = await failure { () throws(DeliveryError) in try await tokens.jobs() }
        #expect(ignored?.reason.contains("api_key") == true && ignored?.verdict == .credentials)
    }

    // MARK: - Jobs that may be there

    @Test(arguments: [
        (VOPIServer.Reply.lost, true), (.json(500, "{}"), true), (.json(502, ""), true), (.json(201, ""), true),
        (.json(201, "{}"), true), (.json(400, "{}"), false), (.json(401, "{}"), false), (.json(422, "{}"), false),
        (.json(403, #"{"error":"INSUFFICIENT_CREDITS"}"#), false), (.json(413, "{}"), false),
    ])
    func `a creation that failed says whether a job may be there`(
        _ reply: VOPIServer.Reply, _ mayBe: Bool
    ) async throws {
        let place = try VOPIClientPlace { _, _ in reply }
        try await place.keep()
        let api = try place.api()
        let error = await failure { () throws(DeliveryError) in
            try await api.createJob(VOPINewJob(videoURL: "https://s3.example/v.mp4"))
        }
        #expect(VOPIAPI.mayHaveCreated(try #require(error)) == mayBe)
        #expect(place.server.asked.count == 1)
    }

    // MARK: - The probe

    @Test func `without credits the probe keeps the destination paused`() async throws {
        let place = try VOPIClientPlace { asked, count in
            asked.path.hasSuffix("/balance")
                ? .json(200, count < 2 ? #"{"balance":0}"# : #"{"balance":4}"#) : .json(200, #"{"jobs":[],"total":0}"#)
        }
        try await place.keep()
        let api = try place.api()
        let error = await failure { () throws(DeliveryError) in try await api.probe() }
        #expect(error?.code == .outOfCredits)
        #expect(try await api.probe().contains("4 credits"))
    }

    @Test func `a server without credits or with a key is probed all the same`() async throws {
        let place = try VOPIClientPlace { asked, _ in
            asked.path.hasSuffix("/jobs")
                ? .json(200, #"{"jobs":[]}"#) : .json(404, VOPIAnswers.missingRoute(asked))
        }
        try await place.keep()
        #expect(try await place.api().probe().contains("takes this login"))
        #expect(try await place.api(key: "k").probe().contains("takes this login"))
    }
}

/// A DELETE means two things; it goes to nobody of whom we do not know which.
@Suite struct VOPIGenerationTests {
    private static let id = "550e8400-e29b-41d4-a716-446655440001"

    /// A server of `generation` that cancels and deletes whatever it is asked to.
    private static func place(
        _ generation: @escaping @Sendable (Int) -> VOPIGeneration, login: Bool = true
    ) async throws -> VOPIClientPlace {
        let place = try VOPIClientPlace { asked, count in
            let generation = generation(count)
            let isKnown = asked.path.contains(id)
            if asked.method == "POST", generation == .newer, isKnown {
                return .json(200, #"{"id":"x","status":"cancelled","message":"ok"}"#)
            }
            if asked.method == "DELETE" {
                return generation == .newer
                    ? VOPIServer.Reply(status: 204) : .json(200, #"{"id":"x","status":"cancelled"}"#)
            }
            return VOPIAnswers.generation(generation, asked)
        }
        try await place.keep()
        return place
    }

    private static func sent(_ place: VOPIClientPlace) -> [String] {
        place.server.asked.map { $0.path.contains(id) ? "\($0.method) job" : "\($0.method) nobody" }
    }

    @Test func `a newer server cancels by POST and deletes by DELETE, and is asked once`() async throws {
        let place = try await Self.place { _ in .newer }
        let api = try place.api()
        try await api.cancel(Self.id)
        try await api.delete(Self.id)
        // Another process finds the answer on the disk.
        try await place.api().delete(Self.id)
        #expect(Self.sent(place) == ["POST nobody", "POST job", "DELETE job", "DELETE job"])
    }

    @Test func `an older server cancels by DELETE and is never asked to delete`() async throws {
        let place = try await Self.place { _ in .older }
        let api = try place.api(key: "k")
        try await api.cancel(Self.id)
        let error = await failure { () throws(DeliveryError) in try await api.delete(Self.id) }
        #expect(error?.verdict == .giveUp)
        let images = await failure { () throws(DeliveryError) in
            try await api.deleteImage(Self.id, frame: "f", version: "v")
        }
        #expect(images?.verdict == .giveUp)
        #expect(Self.sent(place) == ["POST nobody", "DELETE job"])
    }

    @Test func `a server that was renewed since is not told to destroy what it should cancel`() async throws {
        let place = try await Self.place { $0 < 1 ? .older : .newer }
        #expect(try await place.api(key: "k").generation() == .older)
        // Months later, in another process.
        try await place.api(key: "k").cancel(Self.id)
        #expect(Self.sent(place) == ["POST nobody", "POST nobody", "POST job"])
    }

    @Test func `a server that became an older one is asked again`() async throws {
        let place = try await Self.place { $0 < 1 ? .newer : .older }
        let api = try place.api()
        #expect(try await api.generation() == .newer)
        let error = await failure { () throws(DeliveryError) in try await api.cancel(Self.id) }
        #expect(error?.code == .badRequest)
        try await api.cancel(Self.id)
        #expect(Self.sent(place) == ["POST nobody", "POST job", "POST nobody", "DELETE job"])
    }

    static let unclear: [(VOPIServer.Reply, DeliveryError.Verdict)] = [
        (.json(404, "<html></html>"), .retry(after: nil)), (.json(404, ""), .retry(after: nil)),
        (.json(404, #"{"error":"Not Found"}"#), .retry(after: nil)), (.json(404, "{}"), .retry(after: nil)),
        (.json(500, "{}"), .retry(after: nil)), (.json(503, ""), .outage(after: nil)),
        (.json(401, #"{"error":"UNAUTHORIZED","message":"Missing API key"}"#), .credentials),
        (.json(200, "{}"), .retry(after: nil)), (.json(204, ""), .retry(after: nil)),
    ]

    @Test(arguments: unclear.indices)
    func `nothing is deleted or cancelled where the generation is unclear`(_ index: Int) async throws {
        let (reply, verdict) = Self.unclear[index]
        let place = try VOPIClientPlace { _, _ in reply }
        try await place.keep()
        let api = try place.api()
        for _ in 0..<2 {
            let cancel = await failure { () throws(DeliveryError) in try await api.cancel(Self.id) }
            #expect(cancel?.verdict == verdict)
            #expect(await failure { () throws(DeliveryError) in try await api.delete(Self.id) } != nil)
        }
        #expect(Set(Self.sent(place)) == ["POST nobody"])
    }

    @Test func `what was found of one address says nothing of another`() async throws {
        let first = try await Self.place { _ in .newer }
        #expect(try await first.api().generation() == .newer)
        let second = try await Self.place { _ in .older }
        let page = try Data(contentsOf: URL(fileURLWithPath: first.tokens.appending("here.generation").string))
        try second.folder.write(page, to: "tokens/here.generation")
        #expect(try await second.api().generation() == .older)
    }

    @Test func `a job that is gone counts as deleted`() async throws {
        let place = try VOPIClientPlace { asked, _ in .json(404, VOPIAnswers.missingJob) }
        try await place.keep()
        try await place.api().delete(Self.id)
        #expect(Self.sent(place) == ["POST nobody", "DELETE job"])
    }
}
