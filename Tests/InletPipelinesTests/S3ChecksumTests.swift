import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

@testable import InletPipelines

/// `verify: auto`: which checksum proves a delivery, and how it is learned.
@Suite(.timeLimit(.minutes(15))) struct S3ChecksumTests {
    private static let part = Place.part
    private typealias Rules = [Digest.Algorithm: S3Sandbox.ChecksumRule]

    private static func withAuto(
        _ rules: Rules = [:], memory: StoreNotes = StoreNotes(), settings values: [String: ConfigValue] = [:],
        before proxy: @Sendable (Int) throws -> Int = { $0 }, comparesPayload: Bool = true,
        _ body: @Sendable (Place) async throws -> Void
    ) async throws {
        var sandbox = S3Sandbox.Rules(pageSize: 2)
        sandbox.checksums = rules
        sandbox.comparesPayload = comparesPayload
        let settings = ["verify": ConfigValue.string("auto")].merging(values) { $1 }
        try await withS3Place(settings, rules: sandbox, memory: memory, before: proxy, body)
    }

    /// Delivers `count` bytes under a key of their own.
    @discardableResult
    private static func deliver(_ count: Int, key: String? = nil, _ place: Place) async throws -> Proof {
        let (path, order) = try place.file(count, key: key ?? "\(count)")
        let proof = try await place.deliver(path, order).get()
        #expect(try place.visible()[order.key] == content(count))
        return proof
    }

    private static func isTried(_ key: String) -> Bool { key.hasPrefix(S3ChecksumTrial.folder) }

    // MARK: - What is learned

    static let stores: [([Digest.Algorithm: S3Sandbox.ChecksumRule], Digest.Algorithm, [Digest.Algorithm])] = [
        ([:], .crc64nvme, []), ([.crc64nvme: .refused], .crc32c, []), ([.crc64nvme: .repeated], .crc32c, [.crc64nvme]),
        ([.crc64nvme: .ignored, .crc32c: .refused], .sha256, []),
        ([.crc64nvme: .repeated, .crc32c: .repeated], .sha256, [.crc64nvme, .crc32c]),
        ([.crc64nvme: .repeated, .crc32c: .ignored, .sha256: .refused], .md5, [.crc64nvme]),
    ]

    @Test(arguments: stores)
    func `the cheapest checksum that the store compares proves small and large files`(
        _ rules: [Digest.Algorithm: S3Sandbox.ChecksumRule], _ expected: Digest.Algorithm,
        _ uncompared: [Digest.Algorithm]
    ) async throws {
        let memory = StoreNotes()
        try await Self.withAuto(rules, memory: memory) { place in
            for count in [1000, 2 * Self.part + 9] {
                let proof = try await Self.deliver(count, place)
                #expect(proof.method == (expected == .md5 ? .md5Parts : .checksum))
                let named = proof.content?.digest.description ?? proof.details?["checksum"]
                #expect(named?.hasPrefix("\(expected.rawValue):") == true)
            }
            #expect(memory.kept.map(\.algorithm) == [expected] && memory.kept.map(\.uncompared) == [uncompared])
            // Nothing of the question stays.
            #expect(try place.visible().keys.sorted() == ["1000", "\(2 * Self.part + 9)"])
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `the checksum of a large file is the whole content's`() async throws {
        try await Self.withAuto { place in
            let count = 2 * Self.part + 9
            let proof = try await Self.deliver(count, place)
            let sums = SliceHasher.sums([.crc64nvme], of: Array(content(count)))
            #expect(proof.content == sums[.crc64nvme].map { ContentHash(digest: $0, partSize: nil) })
            let object = try #require(place.s3?.objects().first)
            #expect(object.attributes["x-amz-checksum-type"] == "FULL_OBJECT")
            #expect(
                object.attributes["x-amz-checksum-crc64nvme"]
                    == sums[.crc64nvme].map { Data($0.bytes).base64EncodedString() })
        }
    }

    @Test func `deliveries that begin together ask once, and later ones do not ask`() async throws {
        let memory = StoreNotes()
        try await Self.withAuto(memory: memory) { place in
            let files = try (1...8).map { number in
                let path = try place.write(content(100), FilePath("\(number).bin"))
                return (path, try place.order(path, key: "\(number)"))
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (path, order) in files { group.addTask { _ = try await place.deliver(path, order).get() } }
                try await group.waitForAll()
            }
            try await Self.deliver(1000, place)
            #expect(memory.kept.count == 1)
            #expect(place.count(.create) == 1)
        }
    }

    @Test func `check says what the store does, and a store that confirms anything is named`() async throws {
        try await Self.withAuto([.crc64nvme: .repeated]) { place in
            let pipeline = try #require(place.pipeline as? S3Pipeline)
            let findings = try await pipeline.askAgain()
            #expect(findings.map(\.isFine) == [true, true])
            #expect(findings[0].text.contains("confirms a wrong CRC-64/NVME: it does not compare it"))
            #expect(findings[1].text.hasPrefix("verify: auto uses crc32c"))
            #expect(try place.visible().isEmpty)
        }
    }

    @Test func `a store that refuses a wrong checksum and keeps the object does not compare it`() async throws {
        let memory = StoreNotes()
        try await Self.withAuto([.crc64nvme: .repeated], memory: memory) { place in
            // The object with the right one goes its way; the wrong one is stored, and refused after that.
            place.s3?.faults.add(
                S3Fault(.delay(.zero), at: .putObject),
                S3Fault(.replyAfterWork(.s3(400, "BadDigest")), at: .putObject))
            try await Self.deliver(1000, place)
            #expect(memory.kept.map(\.algorithm) == [.crc32c])
            #expect(try place.visible().keys.sorted() == ["1000"])
        }
    }

    // MARK: - Where it cannot be learned

    @Test func `keys that may not delete leave nothing behind, and the MD5 of ETags counts`() async throws {
        let memory = StoreNotes()
        try await Self.withAuto(memory: memory) { place in
            place.s3?.faults.add(S3Fault(.reply(.s3(403, "AccessDenied")), at: .deleteObject, times: nil))
            #expect(try await Self.deliver(1000, place).method == .md5Parts)
            #expect(place.count(.single) == 1)
            // The next process may have other keys.
            #expect(memory.kept.isEmpty)
            let pipeline = try #require(place.pipeline as? S3Pipeline)
            let words = "may not put, read and delete objects below"
            #expect(try await pipeline.askAgain().first?.text.contains(words) == true)
        }
    }

    @Test func `keys that may not read cannot tell what a store compares, and the MD5 of ETags counts`() async throws {
        let memory = StoreNotes()
        try await Self.withAuto(memory: memory) { place in
            place.s3?.faults.add(S3Fault(.reply(.s3(403, "AccessDenied")), at: .headObject, times: nil))
            #expect(try await Self.deliver(1000, place).method == .md5Parts)
            // They may be allowed to until the next process asks.
            #expect(memory.kept.isEmpty)
            let pipeline = try #require(place.pipeline as? S3Pipeline)
            #expect(try await pipeline.askAgain().first?.text.contains("may not put, read and delete") == true)
            #expect(try place.visible().keys.sorted() == ["1000"])
        }
    }

    @Test func `keys that may not write there get MD5, and where that proves nothing the remedy is said`() async throws
    {
        try await Self.withAuto { place in
            place.s3?.faults.add(S3Fault(.reply(.s3(403, "AccessDenied")), at: .putObject))
            place.s3?.faults.add(S3Fault(.wrongETag(.constant), at: .putObject, times: nil))
            let (path, order) = try place.file(1000)
            let error = expectError(try await place.failure(path, order), .giveUp, code: .foreignETag)
            #expect(error?.reason.contains("let these keys put, read and delete objects below .inlet-check/") == true)
        }
    }

    @Test func `a store that proves nothing is refused before a byte of the file, never taken by length`() async throws
    {
        let rules: Rules = [.crc64nvme: .ignored, .crc32c: .repeated, .sha256: .refused]
        try await Self.withAuto(rules) { place in
            place.s3?.faults.add(S3Fault(.wrongETag(.constant), at: .putObject, times: nil))
            let (path, order) = try place.file(1000)
            let attempt = Notes().attempt()
            let error = expectError(try await place.failure(path, order, attempt), .giveUp, code: .foreignETag)
            #expect(error?.reason.contains("compares no checksum") == true && attempt.bytesSent == 0)
            #expect(try place.visible().isEmpty)
        }
    }

    @Test func `an object that may not be removed is named, and what it showed counts`() async throws {
        try await Self.withAuto { place in
            let pipeline = try #require(place.pipeline as? S3Pipeline)
            // The first deletion shows that the keys may; then object lock holds what is there.
            place.s3?.faults.add(
                S3Fault(.delay(.zero), at: .deleteObject),
                S3Fault(.reply(.s3(400, "InvalidRequest")), at: .deleteObject, times: nil))
            let findings = try await pipeline.askAgain()
            #expect(findings.map(\.isFine) == [true, false, false])
            #expect(findings[1].text.contains("stays in the bucket"))
            #expect(try await Self.deliver(1000, place).content?.digest.algorithm == .crc64nvme)
            #expect(try place.visible().keys.filter(Self.isTried).count == 2)
        }
    }

    @Test func `an outage while the store is asked teaches nothing`() async throws {
        let memory = StoreNotes()
        try await Self.withAuto(memory: memory) { place in
            place.misbehave(.reply(.slowDown()), at: .single)
            let (path, order) = try place.file(1000)
            expectError(try await place.failure(path, order), .outage(after: nil), code: .throttled)
            #expect(memory.kept.isEmpty)
            #expect(try place.visible().isEmpty)
            #expect(try await Self.deliver(1000, place).content?.digest.algorithm == .crc64nvme)
        }
    }

    // MARK: - When it is asked again

    @Test(arguments: [364, 366]) func `what was learned holds for a year`(_ days: Int64) async throws {
        let memory = StoreNotes(StoreChecksum(.sha256, learnedAt: .now + .seconds(-days * 86_400)))
        try await Self.withAuto(memory: memory) { place in
            let proof = try await Self.deliver(1000, place)
            #expect(proof.content?.digest.algorithm == (days < 365 ? .sha256 : .crc64nvme))
            #expect(memory.kept.count == (days < 365 ? 0 : 1))
        }
    }

    @Test(arguments: [1000, Place.part + 1])
    func `a store that refuses the checksum is asked again by the next attempt`(_ count: Int) async throws {
        let memory = StoreNotes(StoreChecksum(.crc64nvme, learnedAt: .now))
        try await Self.withAuto([.crc64nvme: .refused], memory: memory) { place in
            let (path, order) = try place.file(count)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .uploadGone)
            #expect(try place.leftovers() == [])
            let proof = try await place.deliver(path, order, notes.attempt()).get()
            #expect(proof.details?["checksum"]?.hasPrefix("crc32c:") == true)
            #expect(memory.kept.map(\.algorithm) == [.crc32c])
        }
    }

    @Test func `files that were refused together fail for a checksum that the store no longer takes`() async throws {
        let rules: Rules = [.crc64nvme: .refused, .crc32c: .refused, .sha256: .refused]
        try await Self.withAuto(rules) { place in
            let knowledge = try #require(place.pipeline as? S3Pipeline).api.knowledge
            let learned = StoreChecksum(.crc64nvme, learnedAt: .now)
            await knowledge.checksums.keep(S3ChecksumTrial.Result(checksum: learned), at: knowledge.address)
            // The first makes Inlet ask the store again, before the second is judged.
            for (path, order, first) in try await Self.sentTogether(2, place) {
                let notes = Notes()
                let answered = notes.attempt(continuing: first)
                expectError(try await place.failure(path, order, answered), .retry(after: nil), code: .uploadGone)
                #expect(try await place.deliver(path, order, notes.attempt()).get().method == .md5Parts)
            }
        }
    }

    @Test func `the words of a store that refuses files sent together do not show its keys`() async throws {
        try await withS3Place { place in
            let words = "<Error><Code>Odd</Code><Message>\(S3Account.accessKey) may not</Message></Error>"
            place.misbehave(.reply(FaultReply(400, type: "application/xml", body: words)), at: .single)
            for (path, order, first) in try await Self.sentTogether(1, place) {
                let error = try await place.failure(path, order, Notes().attempt(continuing: first))
                #expect(error?.reason.contains("400 Odd: *** may not") == true)
            }
        }
    }

    /// Sends files that do not arrive at once. - Returns: each with the answer that its attempt continues from.
    private static func sentTogether(
        _ count: Int, _ place: Place
    ) async throws -> [(FilePath, DeliveryOrder, FirstAnswer)] {
        let files = try (1...count).map { number in
            let path = try place.write(content(1000 * number), FilePath("\(number).bin"))
            return (path, try place.order(path, key: "\(number)"), Array(content(1000 * number)))
        }
        let ends = Listing<(index: Int, end: BurstEnd)>()
        try #require(place.pipeline as? S3Pipeline).burst(files.map { BurstFile($0.1, content: $0.2) }) { told in
            told.forEach { ends.add($0) }
        }.start()
        try await eventually("all are answered") { ends.all.count == count }
        return try ends.all.map { index, end in
            let first: FirstAnswer? = if case .continues(let first) = end { first } else { nil }
            return (files[index].0, files[index].1, try #require(first))
        }
    }

    @Test func `a confirmation that is missing costs no proof, and the store is asked again`() async throws {
        let memory = StoreNotes(StoreChecksum(.crc64nvme, learnedAt: .now))
        try await Self.withAuto([.crc64nvme: .ignored], memory: memory) { place in
            let first = try await Self.deliver(1000, place)
            #expect(first.method == .md5Parts && memory.kept.isEmpty)
            let second = try await Self.deliver(1001, place)
            #expect(second.details?["checksum"]?.hasPrefix("crc32c:") == true)
            #expect(memory.kept.map(\.algorithm) == [.crc32c])
        }
    }

    // MARK: - Open uploads

    @Test(arguments: [("md5", "auto"), ("crc64nvme", "md5"), ("sha256", "auto")])
    func `an upload goes on with the checksum that it was opened with`(_ before: String, _ after: String) async throws {
        try await withS3Place(["verify": .string(before), "parallel_parts": .integer(1)]) { place in
            let (path, order) = try place.file(3 * Self.part)
            let (notes, isStopping) = (Notes(), Switch())
            let attempt = notes.attempt(
                noted: { if $0.contains("part:1") { isStopping.turnOn() } }, isStopping: { isStopping.isOn })
            #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
            let factory = PipelineFactory(pool: BlockingPool(name: "later", threads: 2), userAgent: "inlet-tests/1")
            // Before the server ends.
            defer { factory.shutdown() }
            let later = try factory.place(
                "s3",
                [
                    "endpoint": .string("http://127.0.0.1:\(try await #require(place.s3).port())"),
                    "bucket": .string("sandbox"), "access_key": .secret(Secret(S3Account.accessKey)),
                    "secret_key": .secret(S3Account.secretKey), "verify": .string(after),
                    "parallel_parts": .integer(1),
                ])
            let proof = try await later.deliver(SourceFile(opening: path), order, notes.attempt()).proof()
            #expect(proof.content?.digest.algorithm.rawValue == before)
            #expect(place.s3?.traffic.partOrder == [1, 2, 3] && place.count(.create) == 1)
            #expect(try place.visible() == [order.key: content(3 * Self.part)])
        }
    }

    @Test func `an upload that is gone leaves no checksum to go on with, where the store now refuses it`() async throws
    {
        let memory = StoreNotes(StoreChecksum(.crc64nvme, learnedAt: .now))
        try await Self.withAuto(memory: memory) { place in
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            place.misbehave(.reply(.s3(403, "AccessDenied")), at: .part, times: nil)
            expectError(try await place.failure(path, order, notes.attempt()), .credentials, code: .unauthorized)
            #expect(UploadRecord.upload(notes.entries)?.checksum?.algorithm == .crc64nvme)
            place.behave()
            place.s3?.faults.add(
                S3Fault(.reply(.s3(404, "NoSuchUpload")), at: .listParts),
                S3Fault(.reply(.s3(400, "UnknownChecksum")), at: .createMultipartUpload))
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .uploadGone)
            #expect(notes.entries.isEmpty && memory.kept.isEmpty)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(memory.kept.map(\.algorithm) == [.crc64nvme])
        }
    }

    @Test func `an answer that names another checksum than the parts have is no proof`() async throws {
        try await withS3Place(["verify": .string("crc64nvme")]) { place in
            let body = """
                <CompleteMultipartUploadResult><ETag>"e-2"</ETag><ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME>\
                </CompleteMultipartUploadResult>
                """
            place.misbehave(.replyAfterWork(FaultReply(200, type: "application/xml", body: body)), at: .complete)
            // The object is looked at, and has what was sent.
            let proof = try await Self.deliver(Self.part + 1, place)
            #expect(proof.content?.digest.algorithm == .crc64nvme)
            #expect(place.s3?.traffic.counts[.headObject] == 1)
        }
    }

    @Test func `a store whose tags are no MD5 knows a file's own object by its checksum`() async throws {
        try await withS3Place(["verify": .string("crc64nvme"), "if_exists": .string("skip-same")]) { place in
            place.misbehave(.wrongETag(.constant), at: .single, times: nil)
            for sent in [1000, 0] as [Int64] {
                let (path, order) = try place.file(1000)
                let attempt = Notes().attempt()
                #expect(try await place.deliver(path, order, attempt).get().method == .checksum)
                #expect(attempt.bytesSent == sent)
            }
        }
    }

    // MARK: - Damage on the way

    @Test(arguments: ["auto", "crc64nvme", "crc32c", "sha256", "md5", "size"])
    func `a byte that changes on the way is caught in every mode but size`(_ verify: String) async throws {
        let lines = Listing<ChaosProxy>()
        let proxy: @Sendable (Int) throws -> Int = { port in
            let line = try ChaosProxy(to: port)
            lines.add(line)
            return Int(line.port)
        }
        // The signature's SHA-256 would catch it first.
        try await Self.withAuto(settings: ["verify": .string(verify)], before: proxy, comparesPayload: false) { place in
            let line = try #require(lines.all.first)
            try await Self.deliver(10, place)
            for (number, count) in [1_000_000, Self.part + 1_000_000].enumerated() {
                line.hangUp()
                line.add(.flip(.request, at: 500_000))
                let (path, order) = try place.file(count, key: "\(count)")
                _ = try await place.deliver(path, order).get()
                #expect(line.injected == number + 1)
                let isWhole = try place.visible()[order.key] == content(count)
                #expect(isWhole == (verify != "size"))
            }
            line.close()
        }
    }
}

/// What other processes learned, and what this one keeps.
private final class StoreNotes: StoreChecksumMemory {
    private let state: Mutex<(known: StoreChecksum?, kept: [StoreChecksum])>

    init(_ known: StoreChecksum? = nil) { state = Mutex((known, [])) }

    var kept: [StoreChecksum] { state.withLock { $0.kept } }

    func storeChecksum(at address: String) async -> StoreChecksum? { state.withLock { $0.known } }

    func keep(_ checksum: StoreChecksum, at address: String) async { state.withLock { $0.kept.append(checksum) } }
}
