import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Servers that are away, lie, or have answered unheard: nothing is lost, and nothing is left behind.
@Suite(.timeLimit(.minutes(8))) struct GigHiveOutageTests {
    private static let chunk = GigHivePlace.chunk
    private static let database = FaultAction.reply(
        .gigHive(500, error: "Server error", message: "DB connection failed: SQLSTATE[HY000] [2002] refused"))
    private static let damaged = FaultAction.reply(
        FaultReply(
            201, type: "application/json",
            body: #"{"id":7,"asset_id":7,"checksum_sha256":"00ff","delete_token":"t"}"#))

    @Test(arguments: ["multipart", "tus"]) func `a database that is away stops the destination, not the file`(
        _ transport: String
    ) async throws {
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
            #expect(notes.entries[CheckpointNote.mayBeVisible] != nil)
            _ = try await place.deliver(path, order, notes)
            #expect(place.sandbox.assets().first?.entries.count == 1)
        }
    }

    @Test func `that a broken form may be visible outlives the upload that came after it`() async throws {
        let cut = GigHiveFault(.reset(afterBytes: 1 << 20), at: .upload, times: nil)
        try await withGigHive(faults: cut) { place in
            let (path, order) = try place.file(Self.chunk + 1)
            let notes = Notes()
            let attempt = notes.attempt { names in
                if names.contains("upload") { try? touch(path, at: 10) }
            }
            #expect(try await place.failure(path, order, attempt)?.verdict == .sourceChanged)
            #expect(place.count(.tusCreate) == 1 && place.sandbox.openUploads() == [])
            #expect(notes.entries[CheckpointNote.mayBeVisible] != nil)
        }
    }

    @Test func `an answer that came just before a kill still drops the bytes that it left`() async throws {
        try await withGigHive("tus") { place in
            let (path, order) = try place.file(3000)
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

    @Test(arguments: [0, Int64(2 * chunk)]) func `a server that acknowledges what was not sent ends the attempt`(
        _ offset: Int64
    ) async throws {
        let fields = ["Tus-Resumable": "1.0.0", "Upload-Offset": "\(offset)"]
        let lie = GigHiveFault(.reply(FaultReply(204, fields: fields, body: "")), at: .tusPatch, times: nil)
        try await withGigHive("tus", faults: lie) { place in
            let (path, order) = try place.file(2 * Self.chunk)
            let attempt = Notes().attempt()
            let error = try #require(try await place.failure(path, order, attempt))
            #expect(error.code == .badAnswer && error.verdict == .retry(after: nil))
            #expect(attempt.bytesSent == 0 && place.count(.finalize) == 0)
        }
    }

    @Test(arguments: ["multipart", "tus"]) func `a damaged asset is not forgotten before it is deleted`(
        _ transport: String
    ) async throws {
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
