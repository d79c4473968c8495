import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Having an upload filed, which takes its time and may be asked for again and again.
@Suite(.timeLimit(.minutes(8))) struct GigHiveFinalizeTests {
    private static let chunk = GigHivePlace.chunk

    @Test func `a hook that is late makes the delivery wait without a worker, and sends nothing again`() async throws {
        let rules = GigHiveRules(hookDelay: .seconds(3600), hookWait: .zero)
        try await withGigHive("tus", rules: rules) { place in
            let (path, order) = try place.file(Self.chunk)
            let notes = Notes()
            for _ in 1...3 {
                let before = WallTime.now
                guard case .waiting(let until, _) = try await place.attempt(path, order, notes.attempt()).get() else {
                    Issue.record("does not wait")
                    return
                }
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
            guard case .waiting = try await place.attempt(path, order, notes.attempt()).get() else {
                Issue.record("does not wait")
                return
            }
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
            guard case .waiting = try await place.attempt(path, order, notes.attempt()).get() else {
                Issue.record("does not wait")
                return
            }
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
            guard case .waiting = try await place.attempt(path, order, notes.attempt()).get() else {
                Issue.record("does not wait")
                return
            }
            _ = try await place.deliver(path, order, notes)
            #expect(place.count(.finalize) == 2 && place.count(.tusCreate) == 1 && place.sandbox.assets().count == 1)
        }
    }

    @Test func `bytes that the server has lost are sent once more, and only once`() async throws {
        let lost = FaultAction.reply(.gigHive(500, error: "Server Error", message: "Upload not found: no data"))
        try await withGigHive("tus", faults: GigHiveFault(lost, at: .finalize, times: 2)) { place in
            let (path, order) = try place.file(3000)
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
            let error = try #require(try await place.failure(path, order, notes.attempt()))
            #expect(error.verdict == .outage(after: nil))
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
                try await withGigHive(transport, faults: fault) { place in
                    let (path, order) = try place.file(3000)
                    let notes = Notes()
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
