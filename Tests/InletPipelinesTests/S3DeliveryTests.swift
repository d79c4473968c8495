import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Deliveries to an S3 store that behaves, and to one that does not.
@Suite(.timeLimit(.minutes(8))) struct S3DeliveryTests {
    private static let part = Place.part

    @Test func `files up to the threshold go in one request, larger ones in parts`() async throws {
        try await withS3Place { place in
            for (count, key) in [(0, "empty"), (1, "one"), (Self.part, "limit")] {
                let (path, order) = try place.file(count, key: key)
                let proof = try await place.deliver(path, order).get()
                #expect(proof.method == .md5Parts)
                #expect(proof.content?.partSize == nil)
                #expect(proof.content?.digest == place.s3?.objects().first { $0.key == key }?.md5)
            }
            #expect(place.count(.single) == 3)
            #expect(place.count(.create) == 0)
            let (path, order) = try place.file(Self.part + 1, key: "larger")
            let proof = try await place.deliver(path, order).get()
            #expect(proof.content?.partSize == Int64(Self.part))
            #expect(proof.etag.map { "\"\($0)\"" } == place.s3?.objects().first { $0.key == "larger" }?.etag)
            #expect(place.count(.single) == 3)
            #expect(place.count(.part) == 2)
            // No other request by default.
            #expect(place.count(.read) == 0)
            #expect(place.s3?.traffic.counts[.listObjects] == nil)
        }
    }

    @Test(arguments: [Implementation.s3("md5"), .r2("v1"), .r2("r2"), .r2("seed")])
    func `a file over the store's limit is refused before the first byte`(_ store: Implementation) async throws {
        let limits: [Int64?] = store.type == "s3" ? [nil, 1000] : [nil]
        for limit in limits {
            let settings = limit.map { ["max_object_size": ConfigValue.bytes($0)] } ?? [:]
            try await withPlace(store, settings: settings) { place in
                let (path, _) = try place.file(1001)
                // A file of holes: nothing of it is read either.
                if limit == nil { try truncate(path, to: (5 << 40) + 1) }
                let error = try await place.failure(path, try place.order(path, key: "reel.mov"))
                #expect(error?.verdict == .giveUp)
                #expect(error?.code == .tooLarge)
                #expect(error?.reason.hasPrefix("'reel.mov' has ") == true)
                #expect(place.count(.create) + place.count(.single) + place.count(.presign) == 0)
            }
        }
    }

    @Test func `objects have their type, time and configured fields`() async throws {
        let settings: [String: ConfigValue] = [
            "cache_control": .string("max-age=60"), "storage_class": .string("STANDARD_IA"),
            "metadata": .map(["origin": "nas"]),
        ]
        try await withS3Place(settings) { place in
            for count in [10, Self.part + 1] {
                let (path, order) = try place.file(count, key: "\(count)")
                _ = try await place.deliver(path, order).get()
                let object = try #require(place.s3?.objects().first { $0.key == order.key })
                #expect(object.contentType == "video/mp4")
                #expect(object.attributes["cache-control"] == "max-age=60")
                #expect(object.attributes["x-amz-storage-class"] == "STANDARD_IA")
                #expect(object.attributes["x-amz-meta-origin"] == "nas")
                #expect(object.attributes["x-amz-acl"] == nil)
                let time = try #require(object.attributes["x-amz-meta-mtime"])
                #expect(time.split(separator: ".").last?.count == 9)
                let seconds = Double(order.source.modified) / 1e9
                #expect(Double(time).map { abs($0 - seconds) < 0.001 } == true)
            }
        }
    }

    @Test(arguments: ["crc32c", "sha256"])
    func `a checksum that the store confirms is the proof`(_ verify: String) async throws {
        try await withS3Place(["verify": .string(verify)]) { place in
            for count in [0, 100_000, Self.part + 7] {
                let (path, order) = try place.file(count, key: "\(count)")
                let proof = try await place.deliver(path, order).get()
                #expect(proof.method == .checksum)
                #expect((proof.content == nil) == (verify == "crc32c"))
                let object = try #require(place.s3?.objects().first { $0.key == order.key })
                if verify == "sha256", count <= Self.part { #expect(proof.content?.digest == object.sha256) }
            }
        }
    }

    /// The faults that one more try gets over.
    static let passing: [FaultAction] = [
        .status(500), .reply(.slowDown()), .reply(.s3(500, "InternalError")), .reply(.s3(400, "BadDigest")),
        .reply(.s3(400, "RequestTimeout")), .reset(afterBytes: 100), .missingETag, .loseAnswer, .wrongETag(.random),
        .status(429, retryAfter: 1),
    ]

    @Test(arguments: passing)
    func `what passes is got over by sending again`(_ action: FaultAction) async throws {
        try await withS3Place { place in
            for count in [1000, Self.part + 1] {
                place.misbehave(action, at: count == 1000 ? .single : .part)
                let (path, order) = try place.file(count, key: "\(count)")
                let attempt = Notes().attempt()
                _ = try await place.deliver(path, order, attempt).get()
                #expect(attempt.bytesSent == Int64(count))
                #expect(try place.visible()[order.key] == content(count))
            }
            #expect(place.count(.single) == 2)
            #expect(place.count(.part) == 3)
            #expect(place.count(.create) == 1)
        }
    }

    @Test func `a tag that is another one each time is damage, the same wrong one is a store without MD5`() async throws
    {
        try await withS3Place { place in
            let (path, order) = try place.file(Self.part + 1)
            place.misbehave(.wrongETag(.random), at: .part, times: nil)
            #expect(try await place.failure(path, order)?.code == .corrupted)
            #expect(try place.leftovers() == [])
            place.behave()
            place.misbehave(.wrongETag(.constant), at: .part, times: nil)
            #expect(try await place.failure(path, order)?.code == .foreignETag)
        }
        try await withS3Place(["verify": .string("crc32c")]) { place in
            place.misbehave(.wrongETag(.constant), at: .part, times: nil)
            let (path, order) = try place.file(Self.part + 1)
            #expect(try await place.deliver(path, order).get().method == .checksum)
        }
    }

    @Test(arguments: ["md5", "crc32c", "size"])
    func `a file that is written to while it is sent never becomes an object`(_ verify: String) async throws {
        // More than the kernel's buffers take, so that its end is still to be read when the change comes.
        let size = 24 << 20
        let settings: [String: ConfigValue] = ["verify": .string(verify), "multipart_threshold": .bytes(32 << 20)]
        try await withS3Place(settings) { place in
            let gate = RequestGate()
            place.misbehave(.hold(gate), at: .single)
            let (path, order) = try place.file(size)
            async let written: Void = {
                defer { gate.open() }
                try await eventually("the object is under way") { place.count(.single) == 1 }
                // Neither length nor the part already read tell of it.
                try touch(path, at: Int64(size) - 2)
            }()
            let error = try await place.failure(path, order)
            try await written
            #expect(error?.verdict == .sourceChanged)
            #expect(try place.visible() == [:])
        }
    }

    static let refusals: [(FaultReply, DeliveryError.Verdict, ErrorCode)] = [
        (.s3(403, "SignatureDoesNotMatch"), .credentials, .unauthorized),
        (.s3(404, "NoSuchBucket"), .outage(after: nil), .notFound),
        (.s3(301, "PermanentRedirect"), .outage(after: nil), .redirected),
        (.s3(400, "EntityTooLarge"), .giveUp, .tooLarge),
        (.s3(403, "QuotaExceeded"), .outage(after: nil), .destinationFull),
        (.slowDown(retryAfter: 600), .outage(after: .seconds(600)), .throttled),
    ]

    @Test(arguments: refusals)
    func `what the store refuses for good is not sent again and again`(
        _ reply: FaultReply, _ verdict: DeliveryError.Verdict, _ code: ErrorCode
    ) async throws {
        try await withS3Place { place in
            place.misbehave(.reply(reply), at: .single, .create, times: nil)
            let (path, order) = try place.file(1000)
            let error = try await place.failure(path, order)
            #expect(error?.verdict == verdict)
            #expect(error?.code == code)
            #expect(place.count(.single) == 1)
            let (large, second) = try place.file(Self.part + 1)
            #expect(try await place.failure(large, second)?.code == code)
            #expect(place.count(.part) == 0)
        }
    }

    @Test func `a wrong secret is a matter of credentials, and is never printed`() async throws {
        let wrong: [String: ConfigValue] = ["secret_key": .secret(Secret("wrong-canary"))]
        try await withS3Place(wrong) { place in
            for count in [1000, Self.part + 1] {
                let (path, order) = try place.file(count)
                let error = try await place.failure(path, order)
                #expect(error?.verdict == .credentials)
                #expect(error?.reason.contains("canary") == false)
            }
            let error = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            #expect(error?.verdict == .credentials)
            #expect(try place.visible() == [:])
        }
    }

    @Test(arguments: [Duration.seconds(3600), .seconds(-3600)])
    func `a clock that is an hour off is named`(_ offset: Duration) async throws {
        try await withS3Place(rules: S3Sandbox.Rules(clockOffset: offset)) { place in
            let (path, order) = try place.file(1000)
            let error = try await place.failure(path, order)
            #expect(error?.verdict == .outage(after: nil))
            #expect(error?.code == .clockSkewed)
            #expect(error?.reason.contains("RequestTimeTooSkewed") == true)
        }
    }

    @Test func `a probe of keys that may not list says so`() async throws {
        try await withS3Place { place in
            place.s3?.faults.add(S3Fault(.reply(.s3(403, "AccessDenied")), at: .listObjects))
            let refused = try await place.pipeline.probe()
            #expect(refused.contains("does not let these keys list"))
            let said = try await place.pipeline.probe()
            #expect(said.hasSuffix(" answers"))
        }
    }

    @Test func `a listing has every object of its prefix, page by page`() async throws {
        try await withS3Place { place in
            let keys = ["a/1 +%.bin", "a/ü.bin", "a/3.bin", "a/4.bin", "a/5.bin", "b/1.bin"]
            for key in keys {
                let (path, order) = try place.file(3, key: key)
                _ = try await place.deliver(path, order).get()
            }
            let listing = try #require(place.pipeline as? any ObjectListing)
            let listed = Listed()
            try await listing.list(prefix: "a/") { listed.add($0) }
            #expect(listed.keys.sorted() == keys.filter { $0.hasPrefix("a/") }.sorted())
            #expect(place.s3?.traffic.counts[.listObjects] == 3)
        }
    }
}
