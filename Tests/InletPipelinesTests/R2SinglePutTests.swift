import Foundation
import InletCore
import InletPipelines
import InletSandbox
import Testing

/// Small files in one request (dialect v1), which is visible the moment its last byte is there.
@Suite(.timeLimit(.minutes(8))) struct R2SinglePutTests {
    @Test func `files up to 5 MiB go in one request, larger ones in parts`() async throws {
        try await withPlace(.r2("v1")) { place in
            for (count, key) in [(0, "empty"), (1, "one"), (5 << 20, "limit")] {
                let (path, order) = try place.file(count, key: key)
                let proof = try await place.deliver(path, order).get()
                #expect(proof.method == .md5Parts)
                #expect(proof.content?.partSize == nil)
                #expect(proof.content?.digest == place.sandbox?.objects().first { $0.key == key }?.md5)
            }
            #expect(place.count(.single) == 3)
            #expect(place.count(.create) == 0)
            let (path, order) = try place.file((5 << 20) + 1, key: "larger")
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.single) == 3)
            #expect(place.count(.part) == 2)
            #expect(place.sandbox?.objects().allSatisfy { $0.contentType == "video/mp4" } == true)
        }
    }

    @Test(arguments: ["seed", "r2"])
    func `the older dialects send an empty file as one empty part`(_ dialect: String) async throws {
        try await withPlace(.r2(dialect)) { place in
            let (path, order) = try place.file(0)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.part) == 1)
            #expect(place.sandbox?.objects().map(\.size) == [0])
        }
    }

    @Test(arguments: [FaultAction.status(500), .reset(afterBytes: 5), .missingETag, .wrongETag(.random), .loseAnswer])
    func `what passes is got over, and leaves one object`(_ action: FaultAction) async throws {
        try await withPlace(.r2("v1"), faults: Fault(action, at: .single)) { place in
            let (path, order) = try place.file(1000)
            _ = try await place.deliver(path, order).get()
            #expect(place.count(.single) == 2)
            #expect(place.count(.presign) == 1)
            #expect(try place.visible() == [order.key: content(1000)])
        }
    }

    @Test func `an answer that is lost for good leaves a note that the object may be there`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.loseAnswer, at: .single, times: nil)) { place in
            let (path, order) = try place.file(1000)
            let notes = Notes()
            #expect(try await place.failure(path, order, notes.attempt()) != nil)
            #expect(try place.visible() == [order.key: content(1000)])
            #expect(notes.entries.keys.sorted() == [CheckpointNote.mayBeVisible])
        }
    }

    @Test func `tags tell damage from a store without MD5 here too`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.wrongETag(.constant), at: .single, times: nil)) { place in
            let (path, order) = try place.file(1000)
            #expect(try await place.failure(path, order)?.code == .foreignETag)
        }
        try await withPlace(.r2("v1"), faults: Fault(.wrongETag(.random), at: .single, times: nil)) { place in
            let (path, order) = try place.file(1000)
            #expect(try await place.failure(path, order)?.code == .corrupted)
        }
    }

    @Test func `a URL that has expired is asked for again by the next attempt`() async throws {
        try await withPlace(.r2("v1"), faults: Fault(.expiredURLs, at: .presign)) { place in
            let (path, order) = try place.file(1000)
            let error = try await place.failure(path, order)
            #expect(error?.code == .urlExpired)
            #expect(error?.verdict == .retry(after: nil))
            #expect(place.count(.single) == 1)
            _ = try await place.deliver(path, order).get()
        }
    }
}
