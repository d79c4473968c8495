import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What a second attempt makes of the notes of the first.
@Suite(.timeLimit(.minutes(8))) struct R2ResumeTests {
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
            let error = try await place.failure(path, order, notes.attempt())
            #expect(error?.code == .unauthorized)
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
            let first = try await place.failure(path, order, notes.attempt())
            #expect(first?.code == .urlExpired)
            #expect(first?.verdict == .retry(after: nil))
            let second = try await place.failure(path, order, notes.attempt())
            #expect(second?.code == .uplinkTooSlow)
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
            let notes = Notes([CheckpointNote.mayBeVisible: []])
            place.sandbox?.faults.add(Fault(.status(404), at: .part, part: 2, times: nil))
            #expect(try await place.failure(path, order, notes.attempt())?.code == .uploadGone)
            #expect(notes.entries.keys.sorted() == [CheckpointNote.mayBeVisible])
        }
    }

    @Test func `an upload that the store has dropped is begun anew`() async throws {
        try await withPlace(.r2("v1")) { place in
            place.sandbox?.faults.add(Fault(.status(404), at: .part, part: 2))
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            let error = try await place.failure(path, order, notes.attempt())
            #expect(error?.code == .uploadGone)
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
