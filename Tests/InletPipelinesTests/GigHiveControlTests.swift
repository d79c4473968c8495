import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Credentials, cancelling, sources that change, and taking back what was sent.
@Suite(.timeLimit(.minutes(8))) struct GigHiveControlTests {
    private static let chunk = GigHivePlace.chunk

    // MARK: - Credentials

    @Test(arguments: ["multipart", "tus"]) func `wrong credentials stop the destination, not the file`(
        _ transport: String
    )
        async throws
    {
        for (user, password) in [("uploader", "wrong-canary"), ("viewer", "viewer-canary"), ("nobody", "x")] {
            let settings: [String: ConfigValue?] = ["user": .string(user), "password": .secret(Secret(password))]
            try await withGigHive(transport, settings: settings) { place in
                let (path, order) = try place.file(3000)
                let error = try #require(try await place.failure(path, order))
                #expect(error.verdict == .credentials && error.code == .unauthorized)
                #expect(!error.reason.contains(password) || password == "x")
                let probe = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
                #expect(probe?.verdict == .credentials)
                #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
            }
        }
    }

    @Test(arguments: ["auto", "multipart", "tus"]) func `a probe says what answers and leaves nothing`(
        _ transport: String
    )
        async throws
    {
        try await withGigHive(transport) { place in
            let said = try await place.pipeline.probe()
            #expect(said.contains("127.0.0.1"))
            #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
            #expect(try await place.destination.serverPin?() == nil)
        }
    }

    @Test func `a guest sends by token, to the event of the token`() async throws {
        let token = Secret(GigHivePlace.token)
        let guest = GigHiveRules.GuestToken(token, eventDate: "2025-05-05", orgName: "Smith")
        let settings: [String: ConfigValue?] = [
            "user": nil, "password": nil, "upload_token": .secret(token), "tos_accepted": .boolean(true),
            "display_name": .string("Ann \"A\""),
        ]
        let rules = GigHiveRules(hookWait: .zero, guestTokens: [guest])
        try await withGigHive(rules: rules, settings: settings) { place in
            _ = try await place.pipeline.probe()
            let (path, order) = try place.file(3000)
            let proof = try await place.deliver(path, order)
            #expect(proof.keepsakes?.reveal("status_nonce") != nil)
            let entry = try #require(place.sandbox.assets().first?.entries.first)
            #expect(entry.eventDate == "2025-05-05" && entry.orgName == "Smith" && entry.label == "One")
            #expect(place.count(.upload) == 0)
            // Revoked: that is about us, not about the file.
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            let (second, next) = try place.file(3001, "b.mp4", seed: 2)
            let error = try #require(try await place.failure(second, next))
            #expect(error.verdict == .credentials && !error.reason.contains(GigHivePlace.token))
            let probe = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            #expect(probe?.verdict == .credentials && probe?.reason.contains(GigHivePlace.token) == false)
        }
    }

    // MARK: - Cancelling

    static let stalls: [(String, GigHiveOperation)] = [
        ("multipart", .upload), ("tus", .tusCreate), ("tus", .tusPatch), ("tus", .finalize),
    ]

    @Test(arguments: stalls.indices) func `cancelling ends any step at once, and abandoning removes what is there`(
        _ index: Int
    ) async throws {
        let (transport, operation) = Self.stalls[index]
        try await withGigHive(transport, faults: GigHiveFault(.stall, at: operation, times: nil)) { place in
            let (path, order) = try place.file(Self.chunk + 1)
            let notes = Notes()
            let task = Task {
                (try await place.failure(path, order, notes.attempt()), ContinuousClock.now)
            }
            try await eventually("the step is under way") { place.count(operation) > 0 }
            let start = ContinuousClock.now
            task.cancel()
            let (error, end) = try await task.value
            #expect(error?.verdict == .cancelled)
            // Far below what would end it otherwise: no byte moving for a minute.
            #expect(end - start < .seconds(45), "took \(end - start)")
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: notes.entries) }
            #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
        }
    }

    // MARK: - Sources

    enum Change: CaseIterable {
        case overwritten
        case grown
        case cut
        case removed

        func make(_ path: FilePath, _ size: Int64) throws {
            switch self {
            case .overwritten: try touch(path, at: size - 2)
            case .grown: try truncate(path, to: size + 1)
            case .cut: try truncate(path, to: size / 2)
            case .removed: try FileManager.default.removeItem(atPath: path.string)
            }
        }
    }

    @Test(arguments: Change.allCases) func `a source that changes between chunks leaves nothing`(_ change: Change)
        async throws
    {
        try await withGigHive("tus") { place in
            let size = 2 * Self.chunk + 1
            let (path, order) = try place.file(size)
            let notes = Notes()
            let attempt = notes.attempt { names in
                if names.contains("offset") { try? change.make(path, Int64(size)) }
            }
            let error = try await place.failure(path, order, attempt)
            #expect(error?.verdict == (change == .removed ? .sourceGone : .sourceChanged))
            #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
            #expect(notes.entries.isEmpty)
        }
    }

    @Test(arguments: ["multipart", "tus"]) func `a source that is not what was admitted stays out`(_ transport: String)
        async throws
    {
        try await withGigHive(transport) { place in
            let (path, order) = try place.file(3000)
            try touch(path, at: 10)
            #expect(try await place.failure(path, order)?.verdict == .sourceChanged)
            #expect(place.sandbox.traffic.counts.isEmpty)
        }
    }

    @Test func `what was sent whole is filed, whatever becomes of the source then`() async throws {
        let rules = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)
        try await withGigHive("tus", rules: rules) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            guard case .waiting = try await place.attempt(path, order, notes.attempt()).get() else {
                Issue.record("does not wait")
                return
            }
            try touch(path, at: 10)
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            _ = try await place.deliver(path, order, notes)
            #expect(try place.library() == [content(3000)])
        }
    }

    // MARK: - Taking back

    @Test(arguments: ["uploader", "admin"]) func `an upload is deleted with its token, once`(_ user: String)
        async throws
    {
        try await withGigHive("multipart", settings: ["user": .string(user)]) { place in
            let undo = try #require(place.destination.undo)
            let (path, order) = try place.file(3000)
            let proof = try await place.deliver(path, order)
            let copy = try await place.deliver(path, order)
            // What was there before is not ours to delete.
            let refused = await #expect(throws: DeliveryError.self) { try await undo(copy) }
            #expect(refused?.reason.contains("no token") == true)
            #expect(place.sandbox.assets().count == 1)
            let said = try await undo(proof)
            #expect(said.contains("deleted"))
            #expect(place.sandbox.assets() == [])
            let token = try #require(proof.keepsakes?.reveal("delete_token"))
            let again = await #expect(throws: DeliveryError.self) { try await undo(proof) }
            #expect(again?.verdict == .giveUp && again?.reason.contains(token) == false)
        }
    }
}
