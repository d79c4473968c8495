import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// `if_exists`: what becomes of the object that is there, and of the one that comes.
@Suite(.timeLimit(.minutes(15))) struct S3ExistingTests {
    private static let part = Place.part
    private static let sizes = [1000, Place.part + 1]

    private static func withPlace(
        _ ifExists: String, verify: String = "md5", _ body: @Sendable (Place) async throws -> Void
    ) async throws {
        try await withS3Place(["if_exists": .string(ifExists), "verify": .string(verify)], body)
    }

    /// An object of other content, and the file that wants its key.
    private static func occupied(_ place: Place, _ count: Int) async throws -> (FilePath, DeliveryOrder) {
        let other = try place.write(content(count, seed: 2), "other.bin")
        _ = try await place.deliver(other, try place.order(other, key: "a/b.\(count)")).get()
        return try place.file(count, key: "a/b.\(count)")
    }

    @Test func `overwrite replaces, without looking`() async throws {
        try await Self.withPlace("overwrite") { place in
            for count in Self.sizes {
                let (path, order) = try await Self.occupied(place, count)
                _ = try await place.deliver(path, order).get()
                #expect(try place.visible()[order.key] == content(count))
            }
            #expect(place.count(.read) == 0)
        }
    }

    @Test func `fail leaves the other object, and says so`() async throws {
        try await Self.withPlace("fail") { place in
            for count in Self.sizes {
                let (path, order) = try await Self.occupied(place, count)
                let notes = Notes()
                expectError(try await place.failure(path, order, notes.attempt()), .giveUp, code: .destinationExists)
                #expect(try place.visible()[order.key] == content(count, seed: 2))
                #expect(notes.entries == [:])
            }
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `version stores beside it, and a retry makes no third object`() async throws {
        try await Self.withPlace("version") { place in
            for count in Self.sizes {
                let (path, order) = try await Self.occupied(place, count)
                let notes = Notes()
                let attempt = notes.attempt()
                let proof = try await place.deliver(path, order, attempt).get()
                #expect(proof.key == "a/b_2.\(count)")
                #expect(attempt.bytesSent == Int64(count))
                // Killed before the journal heard of it.
                #expect(try await place.deliver(path, order, notes.attempt()).get().key == proof.key)
                #expect(try place.visible()[order.key] == content(count, seed: 2))
                #expect(try place.visible()[proof.key] == content(count))
            }
            #expect(try place.visible().count == 4)
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `the version is journaled before a byte goes to it`() async throws {
        try await Self.withPlace("version") { place in
            let (path, order) = try await Self.occupied(place, 1000)
            let before = place.count(.single)
            let (notes, seen) = (Notes(), Listing<Int>())
            let attempt = notes.attempt(noted: { _ in seen.add(place.count(.single)) })
            _ = try await place.deliver(path, order, attempt).get()
            #expect(notes.puts == [["key"]])
            #expect(seen.all == [before + 1])
        }
    }

    @Test func `the first free version is taken`() async throws {
        try await Self.withPlace("version") { place in
            for seed in 2...4 as ClosedRange<UInt64> {
                let path = try place.write(content(100, seed: seed), FilePath("\(seed).bin"))
                _ = try await place.deliver(path, try place.order(path, key: "k")).get()
            }
            #expect(try place.visible().keys.sorted() == ["k", "k_2", "k_3"])
        }
    }

    @Test(arguments: ["fail", "version"], ["md5", "crc64nvme"])
    func `our own object, whose answer was lost, is not another one`(_ ifExists: String, _ verify: String) async throws
    {
        try await Self.withPlace(ifExists, verify: verify) { place in
            for (count, operation) in [(1000, SpiralOperation.single), (Self.part + 1, .complete)] {
                place.misbehave(.loseAnswer, at: operation)
                let (path, order) = try place.file(count, key: "\(count)")
                let proof = try await place.deliver(path, order).get()
                #expect(proof.key == order.key)
            }
            #expect(try place.visible().count == 2)
            #expect(place.s3?.objects().allSatisfy { $0.versions == 1 } == true)
        }
    }

    @Test func `a key that is taken while the parts are sent is not overwritten`() async throws {
        try await Self.withPlace("fail") { place in
            let rival = try place.write(content(10, seed: 3), "rival.bin")
            let rivalOrder = try place.order(rival, key: "videos/clip.mp4")
            let (path, order) = try place.file(Self.part + 1)
            let notes = Notes()
            let attempt = notes.attempt { names in
                if names.contains("upload") { _ = try? await place.deliver(rival, rivalOrder) }
            }
            #expect(try await place.failure(path, order, attempt)?.code == .destinationExists)
            #expect(try place.visible() == [order.key: content(10, seed: 3)])
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `skip-same sends only what differs`() async throws {
        try await Self.withPlace("skip-same") { place in
            for count in Self.sizes {
                let (path, order) = try await Self.occupied(place, count)
                _ = try await place.deliver(path, order).get()
                let sent = place.s3?.traffic.bytesReceived
                let again = try await place.deliver(path, order).get()
                #expect(again.method == .md5Parts)
                #expect(again.content != nil)
                #expect(place.s3?.traffic.bytesReceived == sent)
                #expect(try place.visible()[order.key] == content(count))
            }
        }
    }

    @Test func `keys that may only write still never overwrite, and are not refused`() async throws {
        for ifExists in ["fail", "version"] {
            try await Self.withPlace(ifExists) { place in
                for count in Self.sizes {
                    let (path, order) = try await Self.occupied(place, count)
                    place.s3?.faults.add(S3Fault(.reply(.s3(403, "AccessDenied")), at: .headObject, times: nil))
                    switch try await place.deliver(path, order) {
                    case .success(let proof): #expect(proof.key == "a/b_2.\(count)" && ifExists == "version")
                    case .failure(let error): #expect(error.code == .destinationExists && ifExists == "fail")
                    }
                    #expect(try place.visible()[order.key] == content(count, seed: 2))
                    place.behave()
                }
                #expect(try place.leftovers() == [])
            }
        }
    }
}

/// `if_exists: version` and `fail` where it is not plain whose object stands in the way.
@Suite(.timeLimit(.minutes(15))) struct S3ConflictTests {
    private static let sizes = [1000, Place.part + 1]

    private static func withPlace(
        _ ifExists: String, verify: String = "md5", _ body: @Sendable (Place) async throws -> Void
    ) async throws {
        try await withS3Place(["if_exists": .string(ifExists), "verify": .string(verify)], body)
    }

    /// A file of `count` bytes whose time is the same as that of all others.
    private static func file(_ place: Place, _ count: Int, seed: UInt64 = 1) throws -> (FilePath, DeliveryOrder) {
        let path = try place.write(content(count, seed: seed), FilePath("\(seed).bin"))
        let time = Date(timeIntervalSince1970: 1_795_240_800)
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path.string)
        return (path, try place.order(path, key: "k.\(count)"))
    }

    @Test(arguments: [FaultAction.WrongETag.constant, .random])
    func `a store whose tags are not MD5 gets one object, not one for each try`(_ etag: FaultAction.WrongETag)
        async throws
    {
        for ifExists in ["version", "fail"] {
            try await Self.withPlace(ifExists) { place in
                place.misbehave(.wrongETag(etag), at: .single, times: nil)
                let (path, order) = try place.file(1000)
                let notes = Notes()
                expectError(try await place.failure(path, order, notes.attempt()), .giveUp, code: .foreignETag)
                #expect(place.count(.single) == 1)
                #expect(try place.visible().keys.sorted() == [order.key])
                #expect(notes.entries[CheckpointName.mayBeVisible] != nil)
            }
        }
    }

    @Test func `no version is looked for once the agent is stopping`() async throws {
        try await Self.withPlace("version") { place in
            let (other, otherOrder) = try Self.file(place, 1000, seed: 2)
            _ = try await place.deliver(other, otherOrder).get()
            let (path, order) = try Self.file(place, 1000)
            let attempt = Notes().attempt(isStopping: { place.count(.single) > 1 })
            #expect(try await place.failure(path, order, attempt)?.verdict == .cancelled)
            #expect(try place.visible() == [order.key: content(1000, seed: 2)])
        }
    }

    @Test(arguments: [("md5", false), ("crc32c", true)])
    func `with md5 the length and the time do not make another object ours`(
        _ verify: String, _ isTakenForOurs: Bool
    ) async throws {
        try await Self.withPlace("fail", verify: verify) { place in
            let (other, otherOrder) = try Self.file(place, 1000, seed: 2)
            _ = try await place.deliver(other, otherOrder).get()
            let (path, order) = try Self.file(place, 1000)
            // What HEAD says of objects that are encrypted, or were sent in other parts.
            let said = FaultReply(
                200, fields: ["ETag": "\"opaque\"", "x-amz-meta-mtime": S3Store.modifiedText(order.source.modified)],
                body: String(repeating: "x", count: 1000))
            place.s3?.faults.add(S3Fault(.reply(said), at: .headObject))
            expectError(try await place.failure(path, order), code: (isTakenForOurs ? nil : .destinationExists))
            #expect(try place.visible() == [order.key: content(1000, seed: 2)])
        }
    }

    @Test func `a retry that has lost its notes finds the version that it made`() async throws {
        try await Self.withPlace("version") { place in
            for count in Self.sizes {
                for seed in 2...3 as ClosedRange<UInt64> {
                    let (other, otherOrder) = try Self.file(place, count, seed: seed)
                    _ = try await place.deliver(other, otherOrder).get()
                }
                let (path, order) = try Self.file(place, count)
                for _ in 1...2 {
                    #expect(try await place.deliver(path, order).get().key == "k_3.\(count)")
                }
                #expect(try place.visible()["k_2.\(count)"] == content(count, seed: 3))
                #expect(try place.visible()["k_3.\(count)"] == content(count))
            }
            #expect(try place.visible().count == 6)
            #expect(place.s3?.objects().allSatisfy { $0.versions == 1 } == true)
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `a store that takes a second object under one key is known by trying`() async throws {
        for ifExists in ["fail", "version"] {
            try await Self.withPlace(ifExists) { place in
                let (path, order) = try place.file(1000)
                _ = try await place.deliver(path, order).get()
                let storage = try #require(place.pipeline as? any ObjectListing)
                let refused = try #require(try await storage.refusesSecond(order.key))
                #expect(refused == (true, true))
                #expect(try place.visible() == [order.key: content(1000)])
                #expect(try place.leftovers() == [])
                place.misbehave(.reply(FaultReply(200, body: "")), at: .single)
                let ignored = try #require(try await storage.refusesSecond(order.key))
                #expect(ignored == (false, true))
                place.misbehave(.reply(.slowDown()), at: .single)
                let error = await #expect(throws: DeliveryError.self) { try await storage.refusesSecond(order.key) }
                #expect(error?.code == .throttled)
            }
        }
        try await Self.withPlace("overwrite") { place in
            let storage = try #require(place.pipeline as? any ObjectListing)
            #expect(try await storage.refusesSecond("k") == nil)
            #expect(place.count(.single) == 0)
        }
    }

    /// As Ceph's gateway is.
    private static let forgetful = S3Sandbox.Rules(pageSize: 2, composesOnlyNew: false)

    @Test func `a store that forgets the condition where it composes parts is known by trying`() async throws {
        try await withS3Place(["if_exists": .string("fail")], rules: Self.forgetful) { place in
            let (path, order) = try place.file(1000)
            _ = try await place.deliver(path, order).get()
            let storage = try #require(place.pipeline as? any ObjectListing)
            let refused = try #require(try await storage.refusesSecond(order.key))
            #expect(refused == (true, false))
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: ["fail", "version"])
    func `such a store is asked once more before parts are composed, and what came meanwhile stays`(
        _ ifExists: String
    ) async throws {
        try await withS3Place(["if_exists": .string(ifExists)], rules: Self.forgetful) { place in
            let (other, otherOrder) = try Self.file(place, 1000, seed: 2)
            let (path, order) = try Self.file(place, Place.part + 1)
            let isFirst = Switch()
            let attempt = Notes().attempt(noted: { names in
                guard names.contains("part:1"), !isFirst.isOn else { return }
                isFirst.turnOn()
                var order = otherOrder
                order.key = "k.\(Place.part + 1)"
                _ = try? await place.deliver(other, order).get()
            })
            let result = try await place.deliver(path, order, attempt)
            #expect(try place.visible()[order.key] == content(1000, seed: 2), "it was overwritten")
            switch result {
            case .success(let proof):
                #expect(ifExists == "version")
                #expect(try place.visible()[proof.key] == content(Place.part + 1))
            case .failure(let error): #expect(ifExists == "fail" && error.code == .destinationExists)
            }
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `an answer that was lost to composing does not make the object another's`() async throws {
        for rules in [Self.forgetful, S3Sandbox.Rules(pageSize: 2)] {
            try await withS3Place(["if_exists": .string("fail")], rules: rules) { place in
                place.misbehave(.loseAnswer, at: .complete)
                let (path, order) = try place.file(Place.part + 1)
                let proof = try await place.deliver(path, order).get()
                #expect(proof.key == order.key && proof.method == .md5Parts)
                #expect(place.s3?.objects().map(\.versions) == [1])
            }
        }
    }

    /// What a listing says after a HEAD was answered with 400, and what becomes of the delivery.
    static let explanations: [(FaultReply, DeliveryError.Verdict, ErrorCode)] = [
        (.s3(400, "ExpiredToken"), .credentials, .unauthorized),
        (.s3(400, "AuthorizationHeaderMalformed"), .outage(after: nil), .redirected),
        // Nothing of what the HEAD was about.
        (.s3(403, "AccessDenied"), .giveUp, .badRequest), (.s3(501, "NotImplemented"), .giveUp, .badRequest),
    ]

    @Test(arguments: explanations) func `what the answer to HEAD has no words for is asked of a listing`(
        _ reply: FaultReply, _ verdict: DeliveryError.Verdict, _ code: ErrorCode
    ) async throws {
        for ifExists in ["skip-same", "fail"] {
            try await Self.withPlace(ifExists) { place in
                place.s3?.faults.add(
                    S3Fault(.reply(.s3(400, "Unseen")), at: .headObject), S3Fault(.reply(reply), at: .listObjects))
                let (path, order) = try place.file(Place.part + 1)
                let error = expectError(try await place.failure(path, order), verdict, code: code)
                #expect(error?.reason.contains("looking up") == (verdict == .giveUp))
                #expect(place.s3?.traffic.counts[.listObjects] == 1)
                #expect(place.count(.create) == 0)
            }
        }
    }
}
