import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

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

    @Test(arguments: unclear.indices) func `nothing is deleted or cancelled where the generation is unclear`(
        _ index: Int
    ) async throws {
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
