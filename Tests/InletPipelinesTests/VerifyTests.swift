import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Whether destinations still have what was delivered to them.
@Suite(.timeLimit(.minutes(15))) struct VerifyTests {
    static let stores: [Implementation] = [
        .r2("v1"), .r2("v1", verify: "size"), .r2("r2"), .r2("seed"), .s3("md5"), .s3("sha256"), .s3("crc32c"),
        .s3("crc64nvme"), .s3("size"),
        .folder("read-back"), .folder("size"),
    ]
    private static let sizes = [0, 1000, Place.part + 1, 11 << 20]

    @Test(arguments: stores)
    func `what is there as it was delivered is the same, looked at and read`(_ store: Implementation) async throws {
        try await withPlace(store, isPublic: true) { place in
            for size in Self.sizes {
                let (path, order) = try place.file(size, key: "videos/\(size).mp4")
                let proof = try await place.deliver(path, order).get()
                for reads in [false, true] {
                    let found = try await place.verify(proof, reads, [Self.digest(content(size))])
                    #expect(
                        found.text.hasPrefix("same") && found.text.contains("xxh64") == reads, "\(size) bytes, \(reads)"
                    )
                }
            }
        }
    }

    @Test(arguments: stores)
    func `bytes that were damaged in the store show when they are read`(_ store: Implementation) async throws {
        try await withPlace(store, isPublic: true) { place in
            for size in [1000, 11 << 20] {
                let (path, order) = try place.file(size)
                let proof = try await place.deliver(path, order).get()
                try place.damage(order.key)
                #expect(try await place.verify(proof, false).text.hasPrefix("same"), "looking sees lengths")
                let read = try await place.verify(proof, true, [Self.digest(content(size))]).text
                #expect(read.hasPrefix("differs: ") && read.contains("not "), "\(size) bytes")
                try place.clear()
            }
        }
    }

    @Test(arguments: stores) func `another object under the key is another one`(_ store: Implementation) async throws {
        try await withPlace(store, isPublic: true) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            try await place.replace(order.key, with: content(999, seed: 9))
            for reads in [false, true] {
                let found = try await place.verify(proof, reads)
                #expect(found == .differs("it has 999 bytes, not 1000"))
            }
            try await place.replace(order.key, with: content(1000, seed: 9))
            guard !place.isFolder else { return }
            let tagged = try await place.verify(proof, false).text
            #expect(tagged.hasPrefix("differs: ") && tagged.contains("tag"), "a new tag is another object")
        }
    }

    @Test func `a store that gives composed objects a tag of its own is told by reading, not called another's`()
        async throws
    {
        try await withPlace(.s3("md5")) { place in
            let (path, order) = try place.file(Place.part + 1)
            // One that says it at once is taken at its word.
            place.misbehave(.wrongETag(.constant), at: .complete)
            let said = try await place.deliver(path, order).get()
            #expect(said.etag?.hasSuffix("-2") == true && said.etag != place.s3?.objects().first?.etag)
            #expect(try await place.verify(said, false) == .same("length, tag", ofContent: true))
            let proof = try await place.deliver(path, order).get()
            let whole = FaultReply(
                200, fields: ["ETag": "\"\(Checksum.md5(content(Place.part + 1)).hex)\""],
                body: String(repeating: "x", count: Place.part + 1))
            place.s3?.faults.add(S3Fault(.reply(whole), at: .headObject, times: 2))
            let looked = try await place.verify(proof, false).text
            #expect(looked.hasPrefix("cannot tell: this store changed its tag") && looked.contains("--read"))
            #expect(try await place.verify(proof, true).text.hasPrefix("same"), "all bytes are there")
        }
    }

    @Test(arguments: stores) func `what was removed is missing`(_ store: Implementation) async throws {
        try await withPlace(store, isPublic: true) { place in
            let (path, order) = try place.file(1000)
            var proof = try await place.deliver(path, order).get()
            proof.key = "videos/never.mp4"
            for reads in [false, true] {
                #expect(try await place.verify(proof, reads).text.hasPrefix("missing"))
            }
        }
    }

    @Test(arguments: [Implementation.r2("v1"), .r2("r2"), .r2("seed"), .s3("md5")])
    func `a server that is out of order tells nothing`(_ store: Implementation) async throws {
        try await withPlace(store, isPublic: true) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            place.misbehave(.status(503), at: .objectURL, .read, times: nil)
            let error = await #expect(throws: DeliveryError.self) { _ = try await place.verify(proof, false) }
            #expect(error?.verdict != .giveUp)
        }
    }

    @Test(arguments: ["r2", "seed"])
    func `without a public address a store with no call for reading cannot be asked`(_ dialect: String) async throws {
        try await withPlace(.r2(dialect)) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            let said = try await place.verify(proof, true).text
            #expect(said.hasPrefix("cannot tell: ") && said.contains("public_url"), "nobody was asked")
        }
    }

    /// A cache in front of the store may have what the store has lost.
    @Test(arguments: ["r2", "seed"])
    func `what is read at the public address is no proof for a removal`(_ dialect: String) async throws {
        try await withPlace(.r2(dialect), isPublic: true) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            for reads in [false, true] {
                #expect(try await place.verify(proof, reads).text.hasPrefix("same"))
                let said = try await verifier.verify(VerifyOrder(proof: proof, readsBytes: reads, isForRemoval: true))
                #expect(said.text.hasPrefix("cannot tell"))
            }
        }
    }

    @Test func `a folder that is not mounted tells nothing`() async throws {
        try await withPlace(.folder("size")) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            try FileManager.default.removeItem(atPath: place.target.string)
            let error = await #expect(throws: DeliveryError.self) { _ = try await place.verify(proof, false) }
            #expect(error?.code == .destinationUnwritable)
        }
    }

    @Test(arguments: 0..<20) func `bytes in any pieces give the checksum over parts`(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let bytes = Array(content(Int.random(in: 0...5000, using: &random), seed: seed))
        let partSize = Int.random(in: 1...1500, using: &random)
        var sums: [UInt8] = []
        var start = 0
        repeat {
            let part = Array(bytes[start..<min(start + partSize, bytes.count)])
            sums += Checksum.md5(part).bytes
            start += partSize
        } while start < bytes.count
        let content = ContentHash(digest: Checksum.md5(sums), partSize: Int64(partSize))
        let proof = Proof(key: "k", size: Int64(bytes.count), method: .md5Parts, content: content)
        var check = ContentCheck(VerifyOrder(proof: proof, digests: [Checksum.sha256(bytes)], readsBytes: true))
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...700, using: &random))
            piece.withUnsafeBytes { check.update($0) }
            rest = rest.dropFirst(piece.count)
        }
        #expect(check.finish() == .same("all bytes read: length, sha256, md5 over parts", ofContent: true))
    }

    @Test func `bytes that were read without a checksum prove no content`() {
        var check = ContentCheck(
            VerifyOrder(proof: Proof(key: "k", size: 3, method: .size), digests: [], readsBytes: true))
        [1, 2, 3].withUnsafeBytes { check.update(UnsafeRawBufferPointer(rebasing: $0.prefix(3))) }
        #expect(check.finish() == .same("all bytes read: length", ofContent: false))
    }

    private static func digest(_ bytes: Data) -> Digest {
        SliceHasher.sums([.xxh64], of: Array(bytes))[.xxh64] ?? Digest(.xxh64, [])
    }
}

extension Verification {
    /// The case and its words, for one expectation of both.
    var text: String {
        switch self {
        case .same(let how, _): "same: \(how)"
        case .missing(let why): "missing: \(why)"
        case .differs(let why): "differs: \(why)"
        case .cannotTell(let why): "cannot tell: \(why)"
        }
    }
}

extension Place {
    func verify(
        _ proof: Proof, _ reads: Bool, _ digests: [Digest] = []
    ) async throws -> Verification {
        let verifier = try #require(pipeline as? any DeliveryVerifying)
        return try await verifier.verify(VerifyOrder(proof: proof, digests: digests, readsBytes: reads))
    }

    /// The file that holds what is under a key.
    private func stored(_ key: String) throws -> FilePath {
        if isFolder { return target.pushing(FilePath(key)) }
        return try #require((sandbox?.objects() ?? s3?.objects())?.first { $0.key == key }).path
    }

    /// Turns one bit in the middle of what is there.
    fileprivate func damage(_ key: String) throws {
        let file = URL(fileURLWithPath: try stored(key).string)
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: file)
    }

    /// Frees the keys of a folder, where nothing is overwritten.
    fileprivate func clear() throws {
        guard isFolder else { return }
        try FileManager.default.removeItem(atPath: target.appending("videos").string)
    }

    /// Somebody else writes under a key.
    fileprivate func replace(_ key: String, with bytes: Data) async throws {
        if isFolder { return try bytes.write(to: URL(fileURLWithPath: try stored(key).string)) }
        let path = try write(bytes, "other.bin")
        _ = try await deliver(path, try order(path, key: key)).get()
    }
}

/// Whether services still have what was delivered to them.
@Suite(.timeLimit(.minutes(15))) struct ServiceVerifyTests {
    @Test func `an asset is compared with the server's record of it`() async throws {
        try await withGigHive(file: 1000) { place, path, order, _ in
            var proof = try await place.deliver(path, order)
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            let same = try await verifier.verify(VerifyOrder(proof: proof, readsBytes: true)).text
            #expect(same.hasPrefix("same: ") && same.contains("sha256"))
            let id = try #require(proof.details?["asset_id"])
            proof.content = ContentHash(digest: Digest(.sha256, [UInt8](repeating: 7, count: 32)), partSize: nil)
            #expect(try await verifier.verify(VerifyOrder(proof: proof)).text.hasPrefix("differs"))
            proof.size = 1001
            #expect(
                try await verifier.verify(VerifyOrder(proof: proof)) == .differs("asset \(id) has 1000 bytes, not 1001")
            )
            proof.details?["asset_id"] = "4711"
            #expect(try await verifier.verify(VerifyOrder(proof: proof)) == .missing("asset 4711 is not there"))
            proof.details = nil
            // Without an id there is nothing to ask for.
            #expect(try await verifier.verify(VerifyOrder(proof: proof)).text.hasPrefix("cannot tell"))
        }
    }

    @Test func `a space must still have the URLs that were registered`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/model.glb", stored: "https://cdn.example/1")
            var proof = try await place.deliver(order)
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            #expect(try await verifier.verify(VerifyOrder(proof: proof)).text.hasPrefix("same"))
            _ = try await place.deliver(try place.order("atrium/model.glb", stored: "https://cdn.example/2"))
            let other = try await verifier.verify(VerifyOrder(proof: proof)).text
            #expect(other.hasPrefix("differs: ") && other.contains("https://cdn.example/2"))
            #expect(other.contains("model_glb_url"))
            let id = UUID().uuidString.lowercased()
            proof.details?["space_id"] = id
            #expect(try await verifier.verify(VerifyOrder(proof: proof)) == .missing("space \(id) is not there"))
        }
    }

    @Test func `results are compared with what is on the disk`() async throws {
        try await withVOPI { place, path, order, _ in
            let proof = try await place.deliver(path, order)
            let job = try #require(proof.details?["job_id"])
            let asked = place.count(.job)
            for reads in [false, true] {
                let found = try await place.pipeline.verify(VerifyOrder(proof: proof, readsBytes: reads)).text
                #expect(found.hasPrefix("same: ") && found.contains(job))
            }
            #expect(place.count(.status) == 2 && place.count(.job) == asked, "whether it is there is all that is asked")
            let name = try #require(try place.files(of: job).keys.sorted().first { $0 != "product.json" })
            let picture = place.results.appending(job).pushing(FilePath(name))
            var bytes = try Data(contentsOf: URL(fileURLWithPath: picture.string))
            bytes[bytes.count / 2] ^= 1
            try bytes.write(to: URL(fileURLWithPath: picture.string))
            let looked = try await place.pipeline.verify(VerifyOrder(proof: proof)).text
            #expect(looked.hasPrefix("same"), "looking sees lengths")
            let read = try await place.pipeline.verify(VerifyOrder(proof: proof, readsBytes: true)).text
            #expect(read.hasPrefix("differs"))
            try FileManager.default.removeItem(atPath: picture.string)
            #expect(
                try await place.pipeline.verify(VerifyOrder(proof: proof)) == .missing("\(picture.string) is not there")
            )
        }
    }

    @Test func `results that never came are missing, whatever else is there`() async throws {
        try await withVOPI { place, path, order, _ in
            let proof = try await place.deliver(path, order)
            let job = try #require(proof.details?["job_id"])
            place.sandbox.rules.droppedLinks = 2
            let folder = place.results.appending(job).string
            try FileManager.default.removeItem(atPath: folder)
            let results = VOPIResults(api: place.api, client: place.client, pool: place.pool)
            #expect(try await results.fetch(job: job, into: place.results.appending(job)).absent == 2)
            for reads in [false, true] {
                let why = try await place.pipeline.verify(VerifyOrder(proof: proof, readsBytes: reads)).text
                let all = place.sandbox.pictures(of: job).count
                #expect(why.hasPrefix("missing: 2 of \(all) results never came"))
                #expect(why.contains("inlet vopi download \(job)"))
            }
            place.sandbox.rules.droppedLinks = 0
            #expect(try await results.fetch(job: job, into: place.results.appending(job)).absent == 0)
            #expect(
                try await place.pipeline.verify(VerifyOrder(proof: proof)).text.hasPrefix("same"), "all are there now")
            try FileManager.default.removeItem(atPath: folder + "/product.json")
            let bare = try await place.pipeline.verify(VerifyOrder(proof: proof)).text
            #expect(bare.hasPrefix("missing"), "nothing says what there is")
        }
    }
}

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
        let other = UploadRecord.VerifiedPart(etag: "e", checksum: Digest(.crc32c, [0, 1, 127, 255]))
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
        #expect(JSON.note(Self.bytes(later)) == UploadRecord.VerifiedPart(etag: "e"))
        for text in ["", "{", "[]", #"{"etag":1}"#, #"{"md5":"x"}"#] {
            #expect(JSON.note(Self.bytes(text), as: UploadRecord.VerifiedPart.self) == nil, "\(text)")
        }
    }
}
