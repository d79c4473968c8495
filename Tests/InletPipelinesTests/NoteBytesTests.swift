import InletCore
import Testing

@testable import InletPipelines

/// Notes as the version before has left them in journals: they are read, and written with the same bytes, so that a step back
/// finds them too. Those of VOPI are in `VOPINotesTests`.
struct NoteBytesTests {
    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `an upload and its parts`() throws {
        let opening =
            #"{"plan":{"fileSize":20,"partSize":8388608},"upload":{"id":"u","key":"k/ü","partURLs":["https://s.example/k?sig=a"]}}"#
        let part = #"{"etag":"\"e\"","md5":"900150983cd24fb0d6963f7d28e17f72"}"#
        let notes = ["upload": opening, "part:1": part].mapValues(Self.bytes)
        let record = try #require(UploadRecord(notes, fileSize: 20))
        #expect(record.upload == OpenUpload(id: "u", key: "k/ü", partURLs: ["https://s.example/k?sig=a"]))
        #expect(record.parts[1]?.etag == "\"e\"" && record.composite != nil)
        #expect(record.openingNote == notes["upload"])
        #expect(try UploadRecord.notes(of: #require(record.parts[1]), 1) == ["part:1": Self.bytes(part)])
        let confirmed = #"{"checksum":{"algorithm":"crc32c","bytes":[0,1,127,255]},"etag":"e"}"#
        let other = UploadRecord.ProvedPart(etag: "e", checksum: Digest(.crc32c, [0, 1, 127, 255]))
        #expect(JSON.note(Self.bytes(confirmed)) == other && JSON.note(of: other) == Self.bytes(confirmed))
    }

    @Test func `what GigHive has filed, and how long it was asked`() throws {
        let answer =
            #"{"assetID":7,"checksum":"0f","deleteToken":"ab","head":"{}","isDuplicate":false,"#
            + #""request":"POST https://h.example/api/uploads","status":201}"#
        let progress = #"{"missing":1,"stuckSince":9,"tries":2,"waited":5}"#
        let entries = [GigHiveReply.noteName: answer, "finalize": progress].mapValues(Self.bytes)
        let notes = GigHiveNotes(entries)
        let reply = try #require(notes.reply)
        #expect(reply.assetID == 7 && reply.deleteToken == "ab" && reply.statusNonce == nil)
        #expect(JSON.note(of: reply) == entries[GigHiveReply.noteName])
        #expect(notes.waited == 5 && notes.tries == 2 && notes.missing == 1)
        #expect(notes.stuckSince == WallTime(milliseconds: 9) && notes.finalizeNote["finalize"] == entries["finalize"])
    }

    @Test func `a later version's members are passed over, and another kind of note is none`() {
        let later = #"{"etag":"e","later":{"a":[1]}}"#
        #expect(JSON.note(Self.bytes(later)) == UploadRecord.ProvedPart(etag: "e"))
        for text in ["", "{", "[]", #"{"etag":1}"#, #"{"md5":"x"}"#] {
            #expect(JSON.note(Self.bytes(text), as: UploadRecord.ProvedPart.self) == nil, "\(text)")
        }
    }
}
