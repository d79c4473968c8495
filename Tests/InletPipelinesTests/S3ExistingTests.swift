import Foundation
import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `if_exists`: what becomes of the object that is there, and of the one that comes.
@Suite(.timeLimit(.minutes(8))) struct S3ExistingTests {
    private static let part = Place.part
    private static let sizes = [1000, Place.part + 1]

    private static func withPlace(_ ifExists: String, _ body: @Sendable (Place) async throws -> Void) async throws {
        try await withS3Place(["if_exists": .string(ifExists)], body)
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
                let error = try await place.failure(path, order, notes.attempt())
                #expect(error?.verdict == .giveUp)
                #expect(error?.code == .destinationExists)
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
            let (notes, seen) = (Notes(), Seen())
            let attempt = notes.attempt(noted: { _ in seen.append(place.count(.single)) })
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

    @Test(arguments: ["fail", "version"])
    func `our own object, whose answer was lost, is not another one`(_ ifExists: String) async throws {
        try await Self.withPlace(ifExists) { place in
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
