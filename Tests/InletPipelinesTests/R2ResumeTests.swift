import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What a second attempt makes of the notes of the first.
@Suite(.timeLimit(.minutes(15))) struct R2ResumeTests {
    private static let part = Place.part
    private static let whole = 4 * Place.part + 77

    @Test func `parts are equal, and really sent side by side`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.delay(.milliseconds(100)), at: .part, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            let proof = try await place.deliver(path, order).get()
            #expect(place.sandbox?.traffic.peakParallelParts ?? 0 > 1)
            #expect(place.sandbox?.traffic.partOrder.sorted() == [1, 2, 3, 4, 5])
            // The sandbox refuses parts of unequal length, so that the tag tells of five equal ones.
            #expect(place.sandbox?.objects().first?.etag == proof.etag.map { "\"\($0)\"" })
            #expect(proof.etag?.hasSuffix("-5") == true)
            #expect(proof.content?.partSize == Int64(Self.part))
        }
    }

    @Test func `every step is noted before it is relied upon`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            let attempt = notes.attempt { names in
                if names == ["upload"] { #expect(place.count(.part) == 0) }
                if names == ["completing"] { #expect(place.count(.complete) == 0) }
            }
            _ = try await place.deliver(path, order, attempt).get()
            #expect(notes.puts == [["upload"], ["part:1"], ["part:2"], ["completing"]])
        }
    }

    @Test func `the next attempt sends only what is not proved`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(2)]) { place in
            place.sandbox?.faults.add(Fault(.status(403), at: .part, part: 4, times: nil))
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), code: .unauthorized)
            let proved = notes.provedParts
            #expect(proved >= 2)
            place.sandbox?.faults.clear()
            let before = place.count(.part)
            let attempt = notes.attempt()
            _ = try await place.deliver(path, order, attempt).get()
            #expect(place.count(.part) - before == 5 - proved)
            #expect(place.count(.create) == 1)
            #expect(attempt.bytesSent == Int64(Self.whole))
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test func `a stopping agent lets running parts end and keeps them`() async throws {
        try await withPlace(.r2("r2"), settings: ["parallel_parts": .integer(2)]) { place in
            let (path, order) = try place.file(Self.whole)
            let (notes, isStopping) = (Notes(), Switch())
            let attempt = notes.attempt(
                noted: { if $0 != ["upload"] { isStopping.turnOn() } }, isStopping: { isStopping.isOn })
            #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
            #expect(place.count(.part) == 2)
            #expect(notes.provedParts == 2)
            #expect(try place.leftovers().count == 1)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.part) == 5)
            #expect(place.count(.create) == 1)
        }
    }

    @Test func `an agent that stops after the last part does not complete`() async throws {
        try await withPlace(.r2("r2")) { place in
            let (path, order) = try place.file(10)
            let (notes, isStopping) = (Notes(), Switch())
            let attempt = notes.attempt(
                noted: { if $0 == ["part:1"] { isStopping.turnOn() } }, isStopping: { isStopping.isOn })
            #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
            #expect(place.count(.complete) == 0)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.part) == 1)
        }
    }

    @Test func `URLs that expire under way cost an attempt and a new upload, and twice name the cause`() async throws {
        try await withPlace(.r2("v1")) { place in
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            place.sandbox?.faults.add(Fault(.expiredURLs, at: .create, times: 2))
            // Their account is not believed before the store refuses them.
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .urlExpired)
            let second = expectError(try await place.failure(path, order, notes.attempt()), code: .uplinkTooSlow)
            #expect(second?.reason.contains("uplink is too slow") == true)
            #expect(try place.leftovers() == [])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.create) == 3)
        }
    }

    /// The notes of an upload that stopped after its first part, and whose URLs have expired since.
    private static func aged(
        _ place: Place, _ path: FilePath, _ order: DeliveryOrder
    ) async throws -> [String: [UInt8]] {
        let (notes, isStopping) = (Notes(), Switch())
        let attempt = notes.attempt(
            noted: { if $0 == ["part:1"] { isStopping.turnOn() } }, isStopping: { isStopping.isOn })
        #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
        var aged = notes.entries
        let opening = String(decoding: aged["upload"] ?? [], as: UTF8.self)
        aged["upload"] = Array(opening.replacing("X-Amz-Date=2", with: "X-Amz-Date=1").utf8)
        return aged
    }

    @Test func `URLs that expired while the agent was away cost nothing`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(2 * Self.part)
            let aged = try await Self.aged(place, path, order)
            let later = Notes(aged)
            _ = try await place.deliver(path, order, later.attempt()).get()
            #expect(later.entries["expired"] == nil)
            #expect(place.count(.create) == 2)
            #expect(place.count(.part) == 3)
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `an upload that cannot be dropped now is not forgotten for a new one`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(2 * Self.part)
            let aged = try await Self.aged(place, path, order)
            let later = Notes(aged)
            place.sandbox?.faults.add(Fault(.status(503), at: .abort))
            #expect(try await place.failure(path, order, later.attempt())?.verdict == .outage(after: nil))
            #expect(later.entries["upload"] == aged["upload"])
            _ = try await place.deliver(path, order, later.attempt()).get()
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `an upload that the store refuses to drop does not hold up the file, and is not forgotten`() async throws
    {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(2 * Self.part)
            let aged = try await Self.aged(place, path, order)
            let (later, isStoppingAgain) = (Notes(aged), Switch())
            place.sandbox?.faults.add(Fault(.status(500), at: .abort))
            let second = later.attempt(
                noted: { if $0 == ["part:1"] { isStoppingAgain.turnOn() } }, isStopping: { isStoppingAgain.isOn })
            #expect(try await place.failure(path, order, second)?.verdict == .cancelled)
            #expect(try place.leftovers().count == 2)
            try await place.pipeline.abandon(order, checkpoint: later.entries)
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `an upload that was refused to be dropped is remembered when the one after it fails too`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes(try await Self.aged(place, path, order))
            place.sandbox?.faults.add(Fault(.status(500), at: .abort))
            place.sandbox?.faults.add(Fault(.status(404), at: .part))
            #expect(try await place.failure(path, order, notes.attempt())?.code == .uploadGone)
            #expect(notes.entries.keys.filter { $0.hasPrefix("refused:") }.count == 1)
            #expect(try place.leftovers().count == 1)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `that something may be visible is remembered over every later upload`() async throws {
        try await withPlace(.r2("v1")) { place in
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes([CheckpointName.mayBeVisible: []])
            place.sandbox?.faults.add(Fault(.status(404), at: .part, part: 2, times: nil))
            #expect(try await place.failure(path, order, notes.attempt())?.code == .uploadGone)
            #expect(notes.entries.keys.sorted() == [CheckpointName.mayBeVisible])
        }
    }

    @Test func `an upload that the store has dropped is begun anew`() async throws {
        try await withPlace(.r2("v1")) { place in
            place.sandbox?.faults.add(Fault(.status(404), at: .part, part: 2))
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), code: .uploadGone)
            #expect(notes.entries == [:])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.create) == 2)
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `an upload that cannot be dropped now stays noted, and does not go on`() async throws {
        try await withPlace(.r2("v1")) { place in
            place.sandbox?.faults.add(
                Fault(.expiredURLs, at: .create), Fault(.status(500), at: .abort))
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt())?.code == .urlExpired)
            #expect(try place.leftovers().count == 1)
            #expect(notes.entries["upload"] != nil)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.leftovers() == [])
            #expect(place.count(.create) == 2)
        }
    }

    @Test func `notes of a file of another size, or no notes at all, are no upload`() async throws {
        try await withPlace(.r2("v1")) { place in
            let (path, order) = try place.file(Self.part + 1)
            for garbage in [Array("{}".utf8), [], Array("not json".utf8)] {
                let notes = Notes(["upload": garbage, "part:1": garbage])
                _ = try await place.deliver(path, order, notes.attempt()).get()
            }
            #expect(try place.visible() == [order.key: content(Self.part + 1)])
        }
    }
}

/// One part that goes wrong, in an upload of two.
@Suite(.timeLimit(.minutes(15))) struct R2PartTests {
    private static let whole = Place.part + 1

    /// The faults that one more try of the part gets over.
    static let passing: [FaultAction] = [
        .status(500), .status(503), .status(429, retryAfter: 1), .status(408), .reset(afterBytes: 100_000),
        .reset(afterBytes: 0), .missingETag, .loseAnswer, .wrongETag(.random), .wrongETag(.constant),
    ]

    @Test(arguments: passing)
    func `what passes is got over by sending the part again`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .part, part: 1)) { place in
            let (path, order) = try place.file(Self.whole)
            let attempt = Notes().attempt()
            let start = ContinuousClock.now
            _ = try await place.deliver(path, order, attempt).get()
            #expect(place.count(.part) == 3)
            #expect(place.count(.create) == 1)
            #expect(attempt.bytesSent == Int64(Self.whole))
            #expect(try place.visible() == [order.key: content(Self.whole)])
            if action == .status(429, retryAfter: 1) { #expect(ContinuousClock.now - start >= .seconds(1)) }
        }
    }

    @Test func `a part has five tries, then the destination's own verdict counts`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(503), at: .part, part: 1, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            expectError(try await place.failure(path, order), .outage(after: nil))
            #expect(place.sandbox?.traffic.partOrder.count { $0 == 1 } == 5)
            #expect(place.count(.create) == 1)
        }
    }

    @Test func `a long Retry-After gives the worker back`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(429, retryAfter: 600), at: .part, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            expectError(try await place.failure(path, order), .retry(after: .seconds(600)), code: .throttled)
            #expect(place.count(.part) <= 2)
        }
    }

    @Test func `a tag that is another one each time is damage`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.wrongETag(.random), at: .part, part: 1, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .corrupted)
            #expect(place.sandbox?.traffic.partOrder.count { $0 == 1 } == 2)
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
            #expect(notes.entries == [:])
        }
    }

    @Test func `a tag that is always the same wrong one is a store without MD5`() async throws {
        let fault = Fault(.wrongETag(.constant), at: .part, times: nil)
        try await withPlace(.r2("v1"), faults: fault) { place in
            let (path, order) = try place.file(Self.whole)
            let error = expectError(try await place.failure(path, order), .giveUp, code: .foreignETag)
            #expect(error?.reason.contains("verify: size") == true)
        }
        try await withPlace(.r2("v1", verify: "size"), faults: fault) { place in
            let (path, order) = try place.file(Self.whole)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.method == .size)
            #expect(proof.content == nil)
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test(arguments: [Implementation.r2("v1"), .r2("v1", verify: "size")])
    func `a part without a tag is never taken`(_ implementation: Implementation) async throws {
        try await withPlace(implementation, faults: Fault(.missingETag, at: .part, part: 2, times: nil)) { place in
            let (path, order) = try place.file(Self.whole)
            #expect(try await place.failure(path, order)?.code == .missingETag)
            #expect(try place.visible() == [:])
        }
    }

    @Test func `a redirect of a part is never followed`() async throws {
        let fault = Fault(.redirect(to: "http://127.0.0.1:1/elsewhere"), at: .part, part: 1)
        try await withPlace(.r2("v1"), faults: fault) { place in
            let (path, order) = try place.file(Self.whole)
            expectError(try await place.failure(path, order), .giveUp, code: .redirected)
        }
    }

    @Test(arguments: [FaultAction.endlessAnswer, .html, .garbage])
    func `an answer that is no store's is not believed`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .part, part: 1)) { place in
            let (path, order) = try place.file(Self.whole)
            _ = try await place.deliver(path, order).get()
            #expect(place.sandbox?.traffic.partOrder.count { $0 == 1 } == 2)
        }
    }

    @Test func `a source that changes after its first part is dropped with its upload`() async throws {
        try await withPlace(.r2("v1"), settings: ["parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(3 * Place.part)
            let notes = Notes()
            let attempt = notes.attempt { if $0 == ["part:1"] { try? truncate(path, to: 20_000_000) } }
            #expect(try await place.failure(path, order, attempt)?.verdict == .sourceChanged)
            #expect(place.count(.part) <= 2)
            #expect(try place.leftovers() == [])
            #expect(notes.entries == [:])
        }
    }
}

/// Small files in one request (dialect v1), which is visible the moment its last byte is there.
@Suite(.timeLimit(.minutes(15))) struct R2SinglePutTests {
    @Test func `files up to 5 MiB go in one request, larger ones in parts`() async throws {
        try await withPlace(.r2("v1")) { place in
            for (count, key) in [(0, "empty"), (1, "one"), (5 << 20, "limit")] {
                let (path, order) = try place.file(count, key: key)
                let proof = try await place.deliver(path, order).get()
                #expect(proof.method == .md5Parts)
                #expect(proof.content?.partSize == nil)
                #expect(proof.content?.digest == place.sandbox?.objects().first { $0.key == key }?.md5)
            }
            #expect(place.count(.single) == 3)
            #expect(place.count(.create) == 0)
            let (path, order) = try place.file((5 << 20) + 1, key: "larger")
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.single) == 3)
            #expect(place.count(.part) == 2)
            #expect(place.sandbox?.objects().allSatisfy { $0.contentType == "video/mp4" } == true)
        }
    }

    @Test(arguments: ["seed", "r2"])
    func `the older dialects send an empty file as one empty part`(_ dialect: String) async throws {
        try await withPlace(.r2(dialect)) { place in
            let (path, order) = try place.file(0)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.part) == 1)
            #expect(place.sandbox?.objects().map(\.size) == [0])
        }
    }

    @Test(arguments: [FaultAction.status(500), .reset(afterBytes: 5), .missingETag, .wrongETag(.random), .loseAnswer])
    func `what passes is got over, and leaves one object`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .single)) { place in
            let (path, order) = try place.file(1000)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.single) == 2)
            #expect(place.count(.presign) == 1)
            #expect(try place.visible() == [order.key: content(1000)])
        }
    }

    @Test func `an answer that is lost for good leaves a note that the object may be there`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.loseAnswer, at: .single, times: nil)) { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt()) != nil)
            #expect(try place.visible() == [order.key: content(1000)])
            #expect(notes.entries.keys.sorted() == [CheckpointName.mayBeVisible])
        }
    }

    @Test func `tags tell damage from a store without MD5 here too`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.wrongETag(.constant), at: .single, times: nil)) { place in
            let (path, order) = try place.file(1000)
            #expect(try await place.failure(path, order)?.code == .foreignETag)
        }
        try await withPlace(.r2("v1"), faults: Fault(.wrongETag(.random), at: .single, times: nil)) { place in
            let (path, order) = try place.file(1000)
            #expect(try await place.failure(path, order)?.code == .corrupted)
        }
    }

    @Test func `a URL that has expired is asked for again by the next attempt`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.expiredURLs, at: .presign)) { place in
            let (path, order) = try place.file(1000)
            expectError(try await place.failure(path, order), .retry(after: nil), code: .urlExpired)
            #expect(place.count(.single) == 1)
            _ = try await place.deliver(path, order).get()
        }
    }
}
