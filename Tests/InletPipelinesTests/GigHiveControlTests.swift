import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Credentials, cancelling, sources that change, and taking back what was sent.
@Suite(.timeLimit(.minutes(15))) struct GigHiveControlTests {
    private static let chunk = GigHivePlace.chunk

    // MARK: - Credentials

    @Test(arguments: ["multipart", "tus"])
    func `wrong credentials stop the destination, not the file`(_ transport: String) async throws {
        for (user, password) in [("uploader", "wrong-canary"), ("viewer", "viewer-canary"), ("nobody", "x")] {
            let settings: [String: ConfigValue?] = ["user": .string(user), "password": .secret(Secret(password))]
            try await withGigHive(transport, settings: settings, file: 3000) { place, path, order, _ in
                let error = try #require(try await place.failure(path, order))
                #expect(error.verdict == .credentials && error.code == .unauthorized)
                #expect(!error.reason.contains(password) || password == "x")
                let probe = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
                #expect(probe?.verdict == .credentials)
                #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
            }
        }
    }

    @Test(arguments: ["auto", "multipart", "tus"])
    func `a probe says what answers and leaves nothing`(_ transport: String) async throws {
        try await withGigHive(transport) { place in
            let said = try await place.pipeline.probe()
            #expect(said.contains("127.0.0.1"))
            #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
            #expect(try await place.destination.serverPin?() == nil)
        }
    }

    @Test func `a guest sends by token, to the event of the token`() async throws {
        let token = Secret(GigHivePlace.token)
        let guest = GigHiveRules.UploadToken(token, eventDate: "2025-05-05", orgName: "Smith")
        let settings: [String: ConfigValue?] = [
            "user": nil, "password": nil, "upload_token": .secret(token), "tos_accepted": .boolean(true),
            "display_name": .string("Ann \"A\""),
        ]
        let rules = GigHiveRules(hookWait: .zero, guestTokens: [guest])
        try await withGigHive(rules: rules, settings: settings, file: 3000) { place, path, order, _ in
            _ = try await place.pipeline.probe()
            let proof = try await place.deliver(path, order)
            #expect(proof.secrets?.reveal("status_nonce") != nil)
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

    @Test(arguments: stalls.indices)
    func `cancelling ends any step at once, and abandoning removes what is there`(_ index: Int) async throws {
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

    @Test(arguments: PipelineContractTests.Change.allCases)
    func `a source that changes between chunks leaves nothing`(_ change: PipelineContractTests.Change) async throws {
        try await withGigHive("tus") { place in
            let size = 2 * Self.chunk + 1
            let (path, order) = try place.file(size)
            let notes = Notes()
            let attempt = notes.attempt { names in
                if names.contains("offset") { try? change.make(path, Int64(size)) }
            }
            expectError(
                try await place.failure(path, order, attempt), change == .removed ? .sourceGone : .sourceChanged)
            #expect(place.sandbox.assets() == [] && place.sandbox.openUploads() == [])
            #expect(notes.entries.isEmpty)
        }
    }

    @Test(arguments: ["multipart", "tus"])
    func `a source that is not what was admitted stays out`(_ transport: String) async throws {
        try await withGigHive(transport, file: 3000) { place, path, order, _ in
            try touch(path, at: 10)
            #expect(try await place.failure(path, order)?.verdict == .sourceChanged)
            #expect(place.sandbox.traffic.counts.isEmpty)
        }
    }

    @Test func `what was sent whole is filed, whatever becomes of the source then`() async throws {
        let rules = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)
        try await withGigHive("tus", rules: rules, file: 3000) { place, path, order, notes in
            try await place.attempt(path, order, notes.attempt()).get().wait()
            try touch(path, at: 10)
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            _ = try await place.deliver(path, order, notes)
            #expect(try place.library() == [content(3000)])
        }
    }

    // MARK: - Taking back

    @Test(arguments: ["uploader", "admin"])
    func `an upload is deleted with its token, once`(_ user: String) async throws {
        try await withGigHive("multipart", settings: ["user": .string(user)], file: 3000) { place, path, order, _ in
            let undo = try #require(place.destination.undo)
            let proof = try await place.deliver(path, order)
            let copy = try await place.deliver(path, order)
            // What was there before is not ours to delete.
            let refused = await #expect(throws: DeliveryError.self) { try await undo(copy) }
            #expect(refused?.reason.contains("no token") == true)
            #expect(place.sandbox.assets().count == 1)
            let said = try await undo(proof)
            #expect(said.contains("deleted"))
            #expect(place.sandbox.assets() == [])
            let token = try #require(proof.secrets?.reveal("delete_token"))
            let again = await #expect(throws: DeliveryError.self) { try await undo(proof) }
            #expect(again?.verdict == .giveUp && again?.reason.contains(token) == false)
        }
    }
}

/// Uploads that were sent whole and whose source is gone, or that nobody asks for any more.
@Suite(.timeLimit(.minutes(15))) struct GigHiveConcludeTests {
    private static let slow = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)

    /// Sends a file whole to a server that is not ready to file it, and removes it.
    private func sentAndGone(_ place: GigHivePlace, _ notes: Notes) async throws -> (FilePath, DeliveryOrder) {
        let (path, order) = try place.file(3000)
        guard case .waiting = try await place.attempt(path, order, notes.attempt()).get() else {
            throw DeliveryError(.giveUp, .internalFault, "does not wait")
        }
        try FileManager.default.removeItem(atPath: path.string)
        return (path, order)
    }

    @Test func `what was sent whole is filed without its source`() async throws {
        try await withGigHive("tus", rules: Self.slow) { place in
            let notes = Notes()
            let (path, order) = try await sentAndGone(place, notes)
            try #require(try await place.pipeline.conclude(path, order, notes.attempt())).wait()
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            let proof = try #require(try await place.pipeline.conclude(path, order, notes.attempt())).proof()
            #expect(proof.method == .sha256 && proof.secrets?.reveal("delete_token") != nil)
            #expect(try place.library() == [content(3000)])
            #expect(place.count(.tusPatch) == 1 && place.count(.tusDelete) == 0)
            // With the answer in the journal nothing is asked again.
            let requests = place.sandbox.traffic.counts.values.reduce(0, +)
            #expect(try await place.pipeline.conclude(path, order, notes.attempt()) == .delivered(proof))
            #expect(place.sandbox.traffic.counts.values.reduce(0, +) == requests)
        }
    }

    @Test func `what was not sent whole, or was lost, cannot go on without its source`() async throws {
        try await withGigHive("tus", rules: Self.slow) { place in
            let notes = Notes()
            let (path, order) = try await sentAndGone(place, notes)
            let part = Notes(notes.entries.filter { ["upload", "offset"].contains($0.key) })
            #expect(try await place.pipeline.conclude(path, order, part.attempt()) == nil)
            #expect(try await place.pipeline.conclude(path, order, Notes().attempt()) == nil)
            #expect(place.count(.finalize) == 1)
            let lost = FaultAction.reply(.gigHive(500, error: "Server Error", message: "Upload not found: no data"))
            place.sandbox.faults.add(GigHiveFault(lost, at: .finalize, times: nil))
            try #require(try await place.pipeline.conclude(path, order, notes.attempt())).wait()
            #expect(try await place.pipeline.conclude(path, order, notes.attempt()) == nil)
            #expect(place.sandbox.assets() == [])
        }
    }

    @Test func `an asset that is not what was sent is deleted, and the file is gone`() async throws {
        try await withGigHive("tus", rules: Self.slow) { place in
            let notes = Notes()
            let (path, order) = try await sentAndGone(place, notes)
            let body = #"{"id":7,"asset_id":7,"checksum_sha256":"00ff","delete_token":"t"}"#
            let damaged = FaultReply(201, type: "application/json", body: body)
            place.sandbox.faults.add(GigHiveFault(.reply(damaged), at: .finalize))
            let error = await #expect(throws: DeliveryError.self) {
                try await place.pipeline.conclude(path, order, notes.attempt())
            }
            #expect(error?.verdict == .sourceGone && place.count(.delete) == 1)
            #expect(place.sandbox.openUploads() == [] && notes.entries["answer"] == nil)
        }
    }

    @Test func `an upload that was given up on is kept for a while, and then dropped`() async throws {
        let settings: [String: ConfigValue?] = ["finalize_for": .duration(.milliseconds(1))]
        try await withGigHive("tus", rules: Self.slow, settings: settings) { place in
            let notes = Notes()
            let (path, order) = try await sentAndGone(place, notes)
            let error = await #expect(throws: DeliveryError.self) {
                try await place.pipeline.conclude(path, order, notes.attempt())
            }
            #expect(error?.verdict == .giveUp && error?.reason.contains("within 40m sends nothing again") == true)
            var entries = notes.entries
            await #expect(throws: DeliveryError.self) { try await place.pipeline.abandon(order, checkpoint: entries) }
            #expect(place.sandbox.openUploads().count == 1)
            // The same notes, an hour old.
            let long = WallTime.now + .seconds(-3600)
            entries["finalize"] = Array(
                #"{"missing":0,"stuckSince":\#(long.milliseconds),"tries":0,"waited":0}"#.utf8)
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: entries) }
            #expect(place.sandbox.openUploads() == [])
        }
    }
}

/// Servers that are away, lie, or have answered unheard: nothing is lost, and nothing is left behind.
@Suite(.timeLimit(.minutes(15))) struct GigHiveOutageTests {
    private static let chunk = GigHivePlace.chunk
    private static let database = FaultAction.reply(
        .gigHive(500, error: "Server error", message: "DB connection failed: SQLSTATE[HY000] [2002] refused"))
    private static let damaged = FaultAction.reply(
        FaultReply(
            201, type: "application/json",
            body: #"{"id":7,"asset_id":7,"checksum_sha256":"00ff","delete_token":"t"}"#))

    @Test(arguments: ["multipart", "tus"])
    func `a database that is away stops the destination, not the file`(_ transport: String) async throws {
        let operation: GigHiveOperation = transport == "tus" ? .finalize : .upload
        try await withGigHive(transport, faults: GigHiveFault(Self.database, at: operation, times: 2)) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            for _ in 1...2 {
                let error = try #require(try await place.failure(path, order, notes.attempt()))
                #expect(error.verdict == .outage(after: nil), "\(error)")
            }
            _ = try await place.deliver(path, order, notes)
            // What was sent whole stayed there meanwhile.
            #expect(place.count(.tusPatch) == (transport == "tus" ? 1 : 0))
            #expect(try place.library() == [content(3000)])
        }
    }

    // MARK: - Answers that were lost

    static let silences: [FaultAction] = [
        .replyAfterWork(.page(502, "Bad Gateway")), .replyAfterWork(.page(504, "Gateway Timeout")),
        .replyAfterWork(.page(524, "A timeout occurred")), .reply(.page(408, "Request Timeout")),
    ]

    @Test(arguments: silences.indices) func `a form whose answer was lost may be visible`(_ index: Int) async throws {
        try await withGigHive("multipart", faults: GigHiveFault(Self.silences[index], at: .upload)) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt()) != nil)
            #expect(notes.entries[CheckpointName.mayBeVisible] != nil)
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.assets().first?.entries.count == 1)
        }
    }

    @Test func `that a broken form may be visible outlives the upload that came after it`() async throws {
        let cut = GigHiveFault(.reset(afterBytes: 1 << 20), at: .upload, times: nil)
        try await withGigHive(faults: cut, file: Self.chunk + 1) { place, path, order, notes async throws in
            let attempt = notes.attempt { names in
                if names.contains("upload") { try? touch(path, at: 10) }
            }
            #expect(try await place.failure(path, order, attempt)?.verdict == .sourceChanged)
            #expect(place.count(.tusCreate) == 1 && place.sandbox.openUploads() == [])
            #expect(notes.entries[CheckpointName.mayBeVisible] != nil)
        }
    }

    @Test func `an answer that came just before a kill still drops the bytes that it left`() async throws {
        try await withGigHive("tus", file: 3000) { place, path, order, _ in
            _ = try await place.deliver(path, order)
            var other = order
            other.fields["event_date"] = "2026-11-22"
            let notes = Notes()
            let gone = GigHiveFault(.reply(.page(503, "Service Unavailable")), at: .tusDelete, times: 1)
            place.sandbox.faults.add(gone)
            let first = try await place.deliver(path, other, notes)
            // As after a kill: the answer is in the notes, and the upload is still there.
            #expect(place.sandbox.openUploads().count == 1)
            #expect(try await place.deliver(path, other, notes) == first)
            #expect(place.sandbox.openUploads() == [])
            // The same when nobody wants it any more.
            place.sandbox.faults.add(gone)
            other.fields["event_date"] = "2026-11-23"
            let last = Notes()
            _ = try await place.deliver(path, other, last)
            try await place.pipeline.abandon(other, checkpoint: last.entries)
            #expect(place.sandbox.openUploads() == [] && place.sandbox.assets().first?.entries.count == 3)
        }
    }

    // MARK: - Answers that are wrong

    @Test(arguments: [0, Int64(2 * chunk)])
    func `a server that acknowledges what was not sent ends the attempt`(_ offset: Int64) async throws {
        let fields = ["Tus-Resumable": "1.0.0", "Upload-Offset": "\(offset)"]
        let lie = GigHiveFault(.reply(FaultReply(204, fields: fields, body: "")), at: .tusPatch, times: nil)
        try await withGigHive("tus", faults: lie, file: 2 * Self.chunk) { place, path, order, _ in
            let attempt = Notes().attempt()
            let error = try #require(try await place.failure(path, order, attempt))
            #expect(error.code == .badAnswer && error.verdict == .retry(after: nil))
            #expect(attempt.bytesSent == 0 && place.count(.finalize) == 0)
        }
    }

    @Test(arguments: ["multipart", "tus"])
    func `a damaged asset is not forgotten before it is deleted`(_ transport: String) async throws {
        let operation: GigHiveOperation = transport == "tus" ? .finalize : .upload
        let down = GigHiveFault(.reply(.page(503, "Service Unavailable")), at: .delete)
        try await withGigHive(transport, faults: GigHiveFault(Self.damaged, at: operation), down) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt())?.verdict == .outage(after: nil))
            #expect(notes.entries["answer"] != nil && notes.entries["sent"] != nil)
            #expect(try await place.failure(path, order, notes.attempt())?.code == .corrupted)
            #expect(place.count(.delete) == 2 && notes.entries["answer"] == nil)
            _ = try await place.deliver(path, order, notes)
            #expect(try place.library() == [content(3000)])
        }
    }
}
