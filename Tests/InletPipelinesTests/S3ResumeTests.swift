import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

extension Place {
    /// Bytes of parts that the store has been sent.
    fileprivate var received: Int64 { s3?.traffic.bytes[.uploadPart] ?? sandbox?.traffic.bytes[.part] ?? 0 }
}

/// Uploads that an earlier attempt began, and answers that were lost.
@Suite(.timeLimit(.minutes(15))) struct S3ResumeTests {
    private static let part = Place.part
    private static let oneByOne: [String: ConfigValue] = ["parallel_parts": .integer(1)]

    /// The notes of an attempt that was stopped once `part` was noted.
    private static func stopped(
        _ place: Place, _ path: FilePath, _ order: DeliveryOrder, after part: String = "part:3"
    ) async throws -> Notes {
        let (notes, isStopping) = (Notes(), Switch())
        let attempt = notes.attempt(
            noted: { if $0.contains(part) { isStopping.turnOn() } }, isStopping: { isStopping.isOn })
        #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
        return notes
    }

    @Test(arguments: ["md5", "crc64nvme", "crc32c", "sha256", "size"])
    func `a restart goes on from the store's list of parts`(_ verify: String) async throws {
        try await withS3Place(Self.oneByOne.merging(["verify": .string(verify)]) { $1 }) { place in
            let (path, order) = try place.file(5 * Self.part + 9)
            let notes = try await Self.stopped(place, path, order)
            let attempt = notes.attempt()
            _ = try await place.deliver(path, order, attempt).get()
            #expect(place.s3?.traffic.partOrder == [1, 2, 3, 4, 5, 6])
            #expect(place.count(.create) == 1)
            // Two to a page.
            #expect(place.s3?.traffic.counts[.listParts] == 2)
            #expect(attempt.bytesSent == Int64(5 * Self.part + 9))
            #expect(try place.visible() == [order.key: content(5 * Self.part + 9)])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: [Implementation.s3("md5"), .s3("crc32c"), .r2("v1")], [UInt64(1), 2])
    func `killed again and again, an upload sends at most the parts again that were under way`(
        _ store: Implementation, _ seed: UInt64
    ) async throws {
        let (parallel, kills) = (3, 5)
        try await withPlace(store, settings: ["parallel_parts": .integer(parallel)]) { place in
            let (path, order) = try place.file(10 * Self.part + 9)
            place.misbehave(.slowRead(bytesPerSecond: 40 << 20), at: .part, times: nil)
            var random = SeededGenerator(seed: seed)
            var notes = Notes()
            for _ in 1...kills {
                let (isDead, hasEnded) = (Switch(), Switch())
                let moment = place.received + Int64.random(in: 0...Int64(2 * Self.part), using: &random)
                let attempt = notes.attempt(isDead: { isDead.isOn })
                let process = Task {
                    defer { hasEnded.turnOn() }
                    return try await place.deliver(path, order, attempt)
                }
                try await eventually("so much is there") { place.received >= moment || hasEnded.isOn }
                isDead.turnOn()
                process.cancel()
                _ = try await process.value
                notes = Notes(notes.entries)
            }
            _ = try await place.deliver(path, order, notes.attempt()).get()
            let size = Int64(10 * Self.part + 9)
            #expect(place.received <= size + Int64(kills * parallel * Self.part), "\(place.received - size) too many")
            #expect(place.count(.part) <= 11 + kills * parallel)
            #expect(place.count(.create) == 1)
            #expect(try place.visible() == [order.key: content(10 * Self.part + 9)])
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `a part that is read to see whether it arrived is noted before the next one is read`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            let (path, order) = try place.file(3 * Self.part)
            var entries = try await Self.stopped(place, path, order, after: "part:3").entries
            for number in 1...3 { entries["part:\(number)"] = nil }
            let (notes, isDead) = (Notes(entries), Switch())
            let attempt = notes.attempt(
                noted: { if $0.contains("part:1") { isDead.turnOn() } }, isDead: { isDead.isOn })
            _ = try await place.deliver(path, order, attempt)
            #expect(notes.provedParts == 1)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.s3?.traffic.partOrder == [1, 2, 3])
        }
    }

    @Test func `a part that arrived before it was noted is not sent again, and then noted`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            let (path, order) = try place.file(3 * Self.part)
            var entries = try await Self.stopped(place, path, order, after: "part:2").entries
            // Killed between the store's answer and the journal.
            entries["part:2"] = nil
            let notes = Notes(entries)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.s3?.traffic.partOrder == [1, 2, 3])
            #expect(notes.provedParts == 3)
        }
    }

    @Test func `a part that the store has lost, or has otherwise, is sent again`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            let (path, order) = try place.file(3 * Self.part)
            var entries = try await Self.stopped(place, path, order, after: "part:2").entries
            // The journal says more than the store does.
            entries["part:3"] = entries["part:2"]
            entries["part:1"] = Array("{\"etag\":\"other\",\"md5\":\"00\"}".utf8)
            _ = try await place.deliver(path, order, Notes(entries).attempt()).get()
            #expect(place.s3?.traffic.partOrder == [1, 2, 1, 3])
            #expect(try place.visible() == [order.key: content(3 * Self.part)])
        }
    }

    @Test func `an upload that the store no longer knows is begun anew, in the same attempt`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            let (path, order) = try place.file(3 * Self.part)
            let notes = try await Self.stopped(place, path, order, after: "part:2")
            try await place.pipeline.abandon(order, checkpoint: notes.entries)
            #expect(try place.leftovers() == [])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.create) == 2)
            #expect(place.s3?.traffic.partOrder == [1, 2, 1, 2, 3])
        }
    }

    @Test func `an upload goes on as it was cut, whatever the configuration says by now`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            let (path, order) = try place.file(3 * Self.part)
            let notes = try await Self.stopped(place, path, order, after: "part:2")
            let factory = PipelineFactory(pool: BlockingPool(name: "changed", threads: 2), userAgent: "inlet-tests/1")
            // Before the server ends.
            defer { factory.shutdown() }
            let changed = try factory.place(
                "s3",
                [
                    "endpoint": .string("http://127.0.0.1:\(try await #require(place.s3).port())"),
                    "bucket": .string("sandbox"), "access_key": .secret(Secret(S3Account.accessKey)),
                    "secret_key": .secret(S3Account.secretKey), "part_size": .bytes(7 << 20),
                    "multipart_threshold": .bytes(64 << 20),
                ])
            let proof = try await changed.deliver(SourceFile(opening: path), order, notes.attempt()).proof()
            #expect(proof.content?.partSize == Int64(Self.part))
            #expect(place.count(.create) == 1 && place.count(.single) == 0)
            #expect(place.s3?.traffic.partOrder == [1, 2, 3])
            #expect(try place.visible() == [order.key: content(3 * Self.part)])
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `a store that cannot list parts is trusted with what was noted`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            let (path, order) = try place.file(3 * Self.part)
            let notes = try await Self.stopped(place, path, order, after: "part:2")
            place.s3?.faults.add(S3Fault(.reply(.s3(501, "NotImplemented")), at: .listParts))
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.s3?.traffic.partOrder == [1, 2, 3])
        }
    }

    @Test func `an upload that is gone under way is dropped, and sent anew`() async throws {
        try await withS3Place(Self.oneByOne) { place in
            place.s3?.faults.add(S3Fault(.reply(.s3(404, "NoSuchUpload")), at: .uploadPart, part: 2))
            let (path, order) = try place.file(2 * Self.part)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .retry(after: nil), code: .uploadGone)
            #expect(try place.leftovers() == [])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.create) == 2)
        }
    }

    @Test(arguments: [FaultAction.loseAnswer, .replyAfterWork(.errorIn200), .replyAfterWork(.s3(500, "InternalError"))])
    func `a completion whose answer is lost is found by looking`(_ action: FaultAction) async throws {
        try await withS3Place { place in
            place.misbehave(action, at: .complete)
            let (path, order) = try place.file(Self.part + 1)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.method == .md5Parts)
            #expect(place.count(.part) == 2)
            #expect(place.count(.read) == 1)
            #expect(place.s3?.objects().map(\.versions) == [1])
        }
    }

    @Test func `a bucket that is not there when the parts are composed costs none of them`() async throws {
        try await withS3Place { place in
            place.misbehave(.reply(.s3(404, "NoSuchBucket")), at: .complete)
            let (path, order) = try place.file(Self.part + 1)
            let notes = Notes()
            expectError(try await place.failure(path, order, notes.attempt()), .outage(after: nil), code: .notFound)
            #expect(notes.provedParts == 2)
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(place.count(.create) == 1)
            #expect(place.count(.part) == 2)
        }
    }

    static let failures: [FaultAction] = [
        .reply(.errorIn200), .html, .garbage, .reply(.s3(409, "OperationAborted")),
        .reply(FaultReply(404, body: "404 page not found\n")),
    ]

    @Test(arguments: failures) func `a completion that failed is asked for again`(_ action: FaultAction) async throws {
        try await withS3Place { place in
            place.misbehave(action, at: .complete)
            let (path, order) = try place.file(Self.part + 1)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.complete) == 2)
            #expect(place.count(.part) == 2)
        }
    }

    @Test func `an upload that misses a part is dropped, not left behind`() async throws {
        try await withS3Place { place in
            place.misbehave(.reply(.s3(400, "InvalidPart")), at: .complete)
            let (path, order) = try place.file(Self.part + 1)
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt())?.code == .uploadGone)
            #expect(try place.leftovers() == [])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.visible() == [order.key: content(Self.part + 1)])
        }
    }

    @Test func `what was composed counts, although the source is gone since`() async throws {
        try await withS3Place { place in
            let (path, order) = try place.file(Self.part + 1)
            let notes = Notes()
            #expect(try await place.pipeline.conclude(path, order, notes.attempt()) == nil)
            let proof = try await place.deliver(path, order, notes.attempt()).get()
            try FileManager.default.removeItem(atPath: path.string)
            let found = try #require(try await place.pipeline.conclude(path, order, notes.attempt())).proof()
            #expect(found.content == proof.content && found.key == order.key)
        }
    }
}
