import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Uploads by tus that are interrupted.
@Suite(.timeLimit(.minutes(15))) struct GigHiveResumeTests {
    private static let chunk = GigHivePlace.chunk
    private static let size = 3 * chunk + 12_345

    /// Stops the agent once `count` chunks are in the notes.
    private static func stopping(_ notes: Notes, after count: Int) -> Attempt {
        notes.attempt(isStopping: { notes.puts.count { $0.contains("offset") } >= count })
    }

    // MARK: - Going on

    @Test func `a restart goes on after the last chunk, and still knows the whole file's hash`() async throws {
        try await withGigHive("tus", file: Self.size) { place, path, order, notes in
            expectError(try await place.failure(path, order, Self.stopping(notes, after: 2)), .cancelled)
            let attempt = notes.attempt()
            let proof = try await place.attempt(path, order, attempt).get().proof()
            #expect(proof.method == .sha256 && attempt.bytesSent == Int64(Self.size))
            #expect(place.count(.tusCreate) == 1 && place.count(.tusPatch) == 4 && place.count(.tusHead) == 1)
            #expect(try place.library() == [content(Self.size)])
        }
    }

    @Test func `a chunk that was cut costs that chunk, whatever the server kept of it`() async throws {
        for holdsBack in [true, false] {
            let rules = GigHiveRules(holdsBackPatches: holdsBack, hookWait: .zero)
            let cut = GigHiveFault(.reset(afterBytes: 2 << 20), at: .tusPatch, times: 2)
            try await withGigHive("tus", faults: cut, rules: rules, file: Self.size) { place, path, order, _ in
                let attempt = Notes().attempt()
                try await place.attempt(path, order, attempt).get().proof()
                #expect(attempt.bytesSent == Int64(Self.size) && place.count(.tusCreate) == 1)
                #expect(place.sandbox.traffic.bytesReceived <= Int64(Self.size + 2 * Self.chunk))
                #expect(try place.library() == [content(Self.size)])
            }
        }
    }

    static let breaks: [FaultAction] = [
        .loseAnswer, .reply(.tus(409, "ERR_MISMATCHED_OFFSET: mismatched offset")),
        .reply(.tus(423, "ERR_UPLOAD_LOCKED: file currently locked")),
        .reply(.tus(400, "ERR_UPLOAD_INTERRUPTED: interrupted by another request")), .reply(.page(408, "Timeout")),
        .reply(.page(503, "Service Unavailable")), .reply(.page(500, "Internal Server Error")),
        .replyAfterWork(.page(504, "Gateway Timeout")),
    ]

    @Test(arguments: breaks.indices)
    func `after any break the server is asked where it stands`(_ index: Int) async throws {
        try await withGigHive("tus", faults: GigHiveFault(Self.breaks[index], at: .tusPatch)) { place in
            let (path, order) = try place.file(2 * Self.chunk)
            let attempt = Notes().attempt()
            try await place.attempt(path, order, attempt).get().proof()
            #expect(attempt.bytesSent == Int64(2 * Self.chunk))
            #expect(place.count(.tusHead) == 1 && place.count(.tusCreate) == 1)
            #expect(try place.library() == [content(2 * Self.chunk)])
        }
    }

    @Test func `an upload that the server does not know any more is begun anew`() async throws {
        try await withGigHive("tus", file: Self.size) { place, path, order, notes in
            _ = try await place.failure(path, order, Self.stopping(notes, after: 1))
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(place.sandbox.openUploads() == [])
            let attempt = notes.attempt()
            _ = try await place.attempt(path, order, attempt).get()
            #expect(attempt.bytesSent == Int64(Self.size) && place.count(.tusCreate) == 2)
            #expect(try place.library() == [content(Self.size)])
        }
    }

    @Test func `an upload that was finalized unheard is found, not sent again`() async throws {
        try await withGigHive("tus", file: Self.size) { place, path, order, notes in
            let first = try await place.deliver(path, order, notes)
            // Killed at any later point: what was in the journal then.
            for kept in [["upload", "offset"], ["upload", "offset", "sent", "completing"]] {
                let earlier = Notes(notes.entries.filter { kept.contains($0.key) })
                let again = try await place.deliver(path, order, earlier)
                #expect(again.content == first.content && again.details?["asset_id"] == first.details?["asset_id"])
            }
            let patches = place.count(.tusPatch)
            #expect(patches == 4 && place.count(.tusCreate) == 1 && place.sandbox.assets().count == 1)
            // With the answer in the journal nothing is asked at all, and the token is still there.
            let requests = place.sandbox.traffic.counts.values.reduce(0, +)
            let last = try await place.deliver(path, order, notes)
            #expect(last == first && last.secrets?.reveal("delete_token") != nil)
            #expect(place.sandbox.traffic.counts.values.reduce(0, +) == requests)
        }
    }

    @Test(arguments: ["multipart", "tus"])
    func `the answer is in the notes before anything else`(_ transport: String) async throws {
        try await withGigHive(transport, file: 3000) { place, path, order, notes in
            let proof = try await place.deliver(path, order, notes)
            #expect(notes.puts.last == ["answer"])
            let token = try #require(proof.secrets?.reveal("delete_token"))
            #expect(String(decoding: notes.entries["answer"] ?? [], as: UTF8.self).contains(token))
            #expect(proof.details?.values.contains { $0.contains(token) } == false)
        }
    }
}

/// Having an upload filed, which takes its time and may be asked for again and again.
@Suite(.timeLimit(.minutes(15))) struct GigHiveFinalizeTests {
    private static let chunk = GigHivePlace.chunk

    @Test func `a hook that is late makes the delivery wait without a worker, and sends nothing again`() async throws {
        let rules = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)
        try await withGigHive("tus", rules: rules, file: Self.chunk) { place, path, order, notes in
            for _ in 1...3 {
                let before = WallTime.now
                let until = try await place.attempt(path, order, notes.attempt()).get().wait().until
                #expect(until > before)
            }
            #expect(place.count(.finalize) == 3)
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            _ = try await place.deliver(path, order, notes)
            #expect(place.count(.tusPatch) == 1 && place.count(.tusCreate) == 1)
        }
    }

    @Test func `a hook that never runs is given up on in time, and its upload kept for a retry`() async throws {
        let rules = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)
        try await withGigHive("tus", rules: rules, settings: ["finalize_for": .duration(.milliseconds(1))]) { place in
            let (path, order) = try place.file(Self.chunk)
            let notes = Notes()
            try await place.attempt(path, order, notes.attempt()).get().wait()
            let error = try #require(try await place.failure(path, order, notes.attempt()))
            #expect(error.verdict == .giveUp && error.reason.contains("server hook not running"))
            let upload = try #require(place.sandbox.openUploads().first)
            #expect(error.reason.contains(upload))
            await #expect(throws: DeliveryError.self) {
                try await place.pipeline.abandon(order, checkpoint: notes.entries)
            }
            #expect(place.sandbox.openUploads() == [upload])
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            _ = try await place.deliver(path, order, notes)
            #expect(place.count(.tusPatch) == 1)
        }
    }

    @Test func `an upload that was kept for a retry is dropped when that is cancelled`() async throws {
        let rules = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)
        try await withGigHive("tus", rules: rules, settings: ["finalize_for": .duration(.milliseconds(1))]) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            _ = try await place.attempt(path, order, notes.attempt())
            #expect(try await place.failure(path, order, notes.attempt())?.verdict == .giveUp)
            try await place.attempt(path, order, notes.attempt()).get().wait()
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(place.sandbox.openUploads() == [])
        }
    }

    static let passing: [FaultAction] = [
        .reply(.gigHive(500, error: "Server Error", message: "Failed to move file (rename)")),
        .reply(.gigHive(500, error: "Server Error", message: "SQLSTATE[23000]: 1062 Duplicate entry 'x'")),
        .reply(.gigHive(500, error: "Server Error", message: "Upload data missing on disk")),
        .replyAfterWork(.gigHive(500, error: "Server Error", message: "Failed to move file (rename)")),
    ]

    @Test(arguments: passing.indices) func `races that pass are waited out`(_ index: Int) async throws {
        try await withGigHive("tus", faults: GigHiveFault(Self.passing[index], at: .finalize)) { place in
            let (path, order) = try place.file(3000)
            let notes = Notes()
            try await place.attempt(path, order, notes.attempt()).get().wait()
            _ = try await place.deliver(path, order, notes)
            #expect(place.count(.finalize) == 2 && place.count(.tusCreate) == 1 && place.sandbox.assets().count == 1)
        }
    }

    @Test func `bytes that the server has lost are sent once more, and only once`() async throws {
        let lost = FaultAction.reply(.gigHive(500, error: "Server Error", message: "Upload not found: no data"))
        try await withGigHive("tus", faults: GigHiveFault(lost, at: .finalize, times: 2), file: 3000) {
            place, path, order, _ in
            _ = try await place.deliver(path, order)
            #expect(place.count(.tusCreate) == 2 && place.sandbox.assets().count == 1)
        }
        try await withGigHive("tus", faults: GigHiveFault(lost, at: .finalize, times: nil)) { place in
            let (path, order) = try place.file(3000)
            let error = await #expect(throws: DeliveryError.self) { try await place.deliver(path, order) }
            #expect(error?.verdict == .giveUp && error?.code == .uploadGone)
            #expect(place.count(.tusCreate) == 2)
        }
    }

    @Test(arguments: [FaultAction.loseAnswer, .reply(.page(503, "Service Unavailable"))])
    func `an answer to finalize that is lost costs no second upload`(_ action: FaultAction) async throws {
        try await withGigHive("tus", faults: GigHiveFault(action, at: .finalize)) { place in
            let (path, order) = try place.file(Self.chunk)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .outage(after: nil))
            _ = try await place.deliver(path, order, notes)
            #expect(place.count(.tusPatch) == 1 && place.sandbox.assets().count == 1)
        }
    }

    @Test func `pages in the place of answers never break anything`() async throws {
        let table: [(Int, DeliveryError.Verdict)] = [
            (401, .credentials), (408, .retry(after: nil)), (413, .giveUp), (415, .giveUp), (500, .retry(after: nil)),
            (503, .outage(after: nil)),
        ]
        for (status, verdict) in table {
            for (transport, operation) in [
                ("multipart", GigHiveOperation.upload), ("tus", .finalize), ("tus", .tusCreate),
            ] {
                let fault = GigHiveFault(.reply(.page(status, "Sorry")), at: operation)
                try await withGigHive(transport, faults: fault, file: 3000) { place, path, order, notes in
                    let result = try await place.attempt(path, order, notes.attempt())
                    if operation == .finalize, status == 408 || status == 500 {
                        guard case .success(.waiting) = result else {
                            Issue.record("\(status) at \(operation): \(result)")
                            return
                        }
                    } else if case .failure(let error) = result {
                        #expect(error.verdict == verdict, "\(status) at \(operation): \(error)")
                        #expect(!error.reason.contains("<") && error.reason.contains("\(status)"))
                    } else {
                        Issue.record("\(status) at \(operation) is no error")
                    }
                    _ = try await place.deliver(path, order, notes)
                }
            }
        }
    }
}
