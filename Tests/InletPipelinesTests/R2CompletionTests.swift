import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The call that makes the object, and everything that can happen to its answer.
@Suite(.timeLimit(.minutes(8))) struct R2CompletionTests {
    private static let whole = Place.part + 1

    @Test(arguments: [("v1", false), ("r2", true), ("seed", true)])
    func `an answer that is lost is found out without sending a part again`(
        _ dialect: String, _ isPublic: Bool
    ) async throws {
        try await withPlace(.r2(dialect), faults: Fault(.loseAnswer, at: .complete), isPublic: isPublic) { place in
            let (path, order) = try place.file(Self.whole, key: "a b/100%+ü.bin")
            let proof = try await place.deliver(path, order).get()
            #expect(proof.method == .md5Parts)
            #expect(place.count(.part) == 2)
            #expect(place.count(.create) == 1)
            #expect(place.sandbox?.objects().map(\.versions) == [1])
            #expect(place.count(.read) == 1)
        }
    }

    @Test(arguments: [true, false]) func `what was composed counts, although the source is gone since`(
        _ isComposed: Bool
    ) async throws {
        try await withPlace(.r2("v1"), faults: Fault(.loseAnswer, at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            #expect(try await place.pipeline.conclude(path, order, notes.attempt()) == nil)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            try FileManager.default.removeItem(atPath: path.string)
            var entries = notes.entries
            // Without it the store was never asked.
            if !isComposed { entries[CheckpointNote.mayBeVisible] = nil }
            let ended = try await place.pipeline.conclude(path, order, Notes(entries).attempt())
            if case .delivered(let proof) = ended {
                #expect(isComposed && proof.method == .md5Parts)
            } else {
                #expect(!isComposed && ended == nil)
            }
        }
    }

    @Test func `where nothing tells, the same key is sent once more`() async throws {
        try await withPlace(.r2("r2"), faults: Fault(.loseAnswer, at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            let error = try await place.failure(path, order, notes.attempt())
            #expect(error?.code == .uploadGone)
            #expect(notes.entries.keys.sorted() == [CheckpointNote.mayBeVisible])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test func `an upload that is gone without an object is sent again`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(404), at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            let error = try await place.failure(path, order, notes.attempt())
            #expect(error?.code == .uploadGone)
            #expect(error?.verdict == .retry(after: nil))
            #expect(notes.entries.keys.sorted() == [CheckpointNote.mayBeVisible])
            _ = try await place.deliver(path, order, notes.attempt()).get()
        }
    }

    @Test func `another object under the key is not taken for ours`() async throws {
        try await withPlace(.r2("v1")) { place in
            let old = try place.write(content(Self.whole, seed: 2), "old.bin")
            _ = try await place.deliver(old, try place.order(old, key: "same")).get()
            place.sandbox?.faults.add(Fault(.status(404), at: .complete))
            let (path, order) = try place.file(Self.whole, key: "same")
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt())?.code == .uploadGone)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == ["same": content(Self.whole)])
        }
    }

    @Test(arguments: [FaultAction.html, .garbage, .status(500), .status(409), .endlessAnswer, .reset(afterBytes: 0)])
    func `an answer that proves nothing is asked for again`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.complete) == 2)
            #expect(place.count(.part) == 2)
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test(arguments: [FaultAction.html, .garbage, .status(500), .status(409)])
    func `an answer that never proves anything ends the attempt, and the parts stay`(_ action: FaultAction) async throws
    {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .complete, times: 3)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            let error = try await place.failure(path, order, notes.attempt())
            #expect(error?.verdict == .retry(after: nil))
            #expect(notes.provedParts == 2)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.part) == 2)
        }
    }

    @Test func `a store that refuses bare tags gets them as it sent them`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(400), at: .complete)) { place in
            let (path, order) = try place.file(Self.whole)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.complete) == 2)
        }
        try await withPlace(.r2("v1"), faults: Fault(.status(400), at: .complete, times: 2)) { place in
            let (path, order) = try place.file(Self.whole)
            let error = try await place.failure(path, order)
            #expect(error?.code == .badRequest)
            #expect(error?.verdict == .giveUp)
        }
    }

    @Test func `what was composed counts, although the source has changed since`() async throws {
        try await withPlace(.r2("v1")) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            // The object is there; the process died before its journal heard of it.
            _ = try await place.deliver(path, order, notes.attempt()).get()
            try touch(path, at: 3)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == [order.key: content(Self.whole)])
        }
    }

    @Test func `what was not composed is not, once the source has changed`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(500), at: .complete, times: 3)) { place in
            let (path, order) = try place.file(Self.whole)
            let notes = Notes()
            _ = try await place.failure(path, order, notes.attempt())
            try touch(path, at: 3)
            #expect(try await place.failure(path, order, notes.attempt())?.verdict == .sourceChanged)
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(try place.visible() == [:])
            #expect(try place.leftovers() == [])
        }
    }
}
