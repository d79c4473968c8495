import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// What only we may know is written sealed, and read again with the same key only.
struct JournalSealTests {
    private let folder: TemporaryDirectory
    private let seal: JournalSeal

    private static let canary = "canary-7731"
    private static let plan = PartPlan(fileSize: 11 << 20, configured: 5 << 20)

    init() throws {
        folder = try TemporaryDirectory()
        seal = try JournalSeal(keptIn: folder.path)
    }

    /// One that has another key.
    private func stranger() throws -> JournalSeal { try JournalSeal(keptIn: folder.makeDirectory("elsewhere")) }

    private func upload(_ canary: String = canary) throws -> [UInt8] {
        let urls = (1...Self.plan.count).map { "https://r2.example/k?partNumber=\($0)&X-Amz-Signature=\(canary)" }
        let upload = OpenUpload(id: "one", key: "k", partURLs: urls)
        return UploadRecord(upload: upload, plan: Self.plan).openingNote
    }

    private func video(publicURL: String) -> VOPIRecord {
        var record = VOPIRecord()
        record.upload = VOPIRecord.Upload(
            url: "https://store.example/up?sig=\(Self.canary)", publicURL: publicURL,
            expires: WallTime.now.milliseconds + 3_600_000, contentType: "video/mp4")
        return record
    }

    private func reply() throws -> [String: [UInt8]] {
        let body =
            #"{"asset_id":7,"checksum_sha256":"00","delete_token":"\#(Self.canary)","status_nonce":"\#(Self.canary)2"}"#
        let response = HTTPResponse(
            status: 201, headers: [("Content-Type", "application/json")], body: Array(body.utf8))
        return [GigHiveReply.noteName: JSON.note(of: GigHiveReply(response, request: "POST"))]
    }

    private func holdsCanary(_ notes: [String: [UInt8]]) -> Bool {
        notes.contains { Data($0.value).range(of: Data(Self.canary.utf8)) != nil }
    }

    @Test func `what another program has sealed by the standard is opened, and nothing that was changed`() throws {
        let elsewhere = try folder.makeDirectory("known")
        try folder.write(Array(0..<32), to: "known/journal.key")
        let seal = try JournalSeal(keptIn: elsewhere)
        // AES-256-GCM of "the secret" with the nonce 0…11 and "token", a zero byte and nothing beside it.
        let sealed = "AAECAwQFBgcICQoLM2qzO7aAoWnoNZdZqXVNTES/tCmlSBUhEFI="
        #expect(seal.opened(ProofSecrets(["token": "sealed:" + sealed]))?.all == ["token": "the secret"])
        #expect(seal.opened(ProofSecrets(["other": "sealed:" + sealed])) == nil)
        for index in [0, 12, 37] {
            var bytes = try #require(Data(base64Encoded: sealed))
            bytes[index] ^= 1
            #expect(seal.opened(ProofSecrets(["token": "sealed:" + bytes.base64EncodedString()])) == nil)
        }
        for count in [0, 12, 27] {
            let short = try #require(Data(base64Encoded: sealed)).prefix(count)
            #expect(seal.opened(ProofSecrets(["token": "sealed:" + short.base64EncodedString()])) == nil)
        }
    }

    @Test func `the URLs of parts are sealed; without the key the upload can be dropped, not gone on with`() throws {
        let notes = ["upload": try upload(), "part:1": JSON.note(of: UploadRecord.VerifiedPart(etag: "e"))]
        let closed = seal.closed(notes)
        #expect(holdsCanary(notes) && !holdsCanary(closed))
        #expect(seal.opened(closed) == notes)
        let lost = try stranger().opened(closed)
        let record = try #require(UploadRecord(lost, fileSize: Self.plan.fileSize))
        #expect(record.upload == OpenUpload(id: "one", key: "k") && record.parts.count == 1)
        #expect(UploadRecord.identity(lost)?.id == "one")
    }

    @Test(arguments: ["https://store.example/up", "https://store.example/up?sig=\(canary)"])
    func `where a video is sent to is sealed; without the key another place is asked for`(publicURL: String) throws {
        let record = video(publicURL: publicURL)
        let closed = seal.closed(record.entries)
        #expect(holdsCanary(record.entries) && !holdsCanary(closed))
        #expect(VOPIRecord(seal.opened(closed)) == record)
        let limits = VOPIChain.Limits(poll: .seconds(3), soft: .seconds(3600), hard: .seconds(21_600))
        let lost = VOPIChain(record: VOPIRecord(try stranger().opened(closed)), limits: limits)
        #expect(lost.next(size: 1000, now: .now) == .presign)
        // The bytes are there: nothing is secret any more, and nothing is asked for anew.
        var sent = video(publicURL: "https://store.example/up")
        sent.upload?.url = ""
        sent.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: false)
        #expect(seal.closed(sent.entries) == sent.entries)
    }

    @Test func `a token for deleting is sealed; without the key the answer is there without it`() throws {
        let notes = try reply()
        let closed = seal.closed(notes)
        #expect(holdsCanary(notes) && !holdsCanary(closed))
        #expect(GigHiveNotes(seal.opened(closed)).reply?.deleteToken == Self.canary)
        let lost = try #require(GigHiveNotes(try stranger().opened(closed)).reply)
        #expect(lost.assetID == 7 && lost.deleteToken == nil && lost.statusNonce == nil)
    }

    @Test func `what was written before there were seals is as it was, and what has no secret is written as it is`()
        throws
    {
        let plain = try reply().merging(["upload": try upload()]) { $1 }
        #expect(seal.opened(plain) == plain)
        let signed = UploadRecord(upload: OpenUpload(id: "one", key: "k"), plan: Self.plan).openingNote
        for notes in [["upload": signed, "completing": []], ["upload": Array("tus-id".utf8), "offset": [0x37]], [:]] {
            #expect(seal.closed(notes) == notes)
        }
        let secrets = ProofSecrets(["delete_token": "old"])
        #expect(seal.opened(secrets) == secrets)
    }

    @Test func `a seal is good for its own note only`() throws {
        let first = seal.closed(["upload": try upload()])
        // A later note of that name took its place, and has no secret.
        var later = first
        later["upload"] = Array("tus-id".utf8)
        #expect(seal.opened(later) == ["upload": Array("tus-id".utf8)])
        var damaged = first
        damaged["sealed:upload"]?[20] ^= 1
        #expect(seal.opened(damaged)["upload"] == first["upload"])
        damaged["sealed:upload"] = [1]
        #expect(seal.opened(damaged)["upload"] == first["upload"])
    }

    @Test func `secrets are sealed, and none is left where the key is another`() throws {
        let secrets = ProofSecrets(["delete_token": Self.canary, "status_nonce": "ü"])
        let closed = seal.closed(secrets)
        #expect(closed.all.keys.sorted() == ["delete_token", "status_nonce"])
        #expect(!closed.all.values.contains { $0.contains(Self.canary) })
        #expect(seal.opened(closed) == secrets)
        #expect(try stranger().opened(closed) == nil)
    }

    @Test func `a key that cannot be read for the moment is not replaced`() throws {
        let note = try upload()
        let closed = seal.closed(["upload": note])
        let plan = KernelFaultPlan(below: [folder.path.appending("journal.key")], seed: 1, count: 1, every: 1)
        let number = KernelFaults.begin(plan)
        #expect(throws: SystemError.self) { try JournalSeal(keptIn: folder.path) }
        #expect(KernelFaults.end(number)?.isSpent == true)
        #expect(try JournalSeal(keptIn: folder.path).opened(closed) == ["upload": note])
    }

    @Test func `the key is made once, for its owner only, and anew where it is damaged`() throws {
        let path = folder.path.appending(JournalSeal.fileName)
        let key = try DurableFile.read(path, limit: 64)
        let mode = try FileManager.default.attributesOfItem(atPath: path.string)[.posixPermissions] as? NSNumber
        #expect(key.count == 32 && mode?.intValue == 0o600)
        // Its fields may stand in another order each time it is written.
        let note = try upload()
        let closed = seal.closed(["upload": note])
        #expect(try JournalSeal(keptIn: folder.path).opened(closed) == ["upload": note])
        try folder.write([1, 2, 3], to: "journal.key")
        #expect(try holdsCanary(JournalSeal(keptIn: folder.path).opened(closed)) == false)
        #expect(try DurableFile.read(path, limit: 64).count == 32)
        // Where none can be kept.
        let nowhere = try JournalSeal(keptIn: folder.path.appending("none"))
        #expect(nowhere.opened(nowhere.closed(["upload": note])) == ["upload": note])
    }
}
