import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Uploads that were sent whole and whose source is gone, or that nobody asks for any more.
@Suite(.timeLimit(.minutes(8))) struct GigHiveConcludeTests {
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
            guard case .waiting = try await place.pipeline.conclude(path, order, notes.attempt()) else {
                Issue.record("does not go on waiting")
                return
            }
            place.sandbox.rules = GigHiveRules(hookWait: .zero)
            let ended = try await place.pipeline.conclude(path, order, notes.attempt())
            guard case .delivered(let proof) = ended else {
                Issue.record("\(String(describing: ended))")
                return
            }
            #expect(proof.method == .sha256 && proof.keepsakes?.reveal("delete_token") != nil)
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
            guard case .waiting = try await place.pipeline.conclude(path, order, notes.attempt()) else {
                Issue.record("does not ask twice")
                return
            }
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
            await #expect(throws: DeliveryError.self) {
                try await place.pipeline.abandon(order, checkpoint: entries)
            }
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
