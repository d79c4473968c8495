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

/// Small files that go to an S3 store together.
@Suite(.timeLimit(.minutes(8))) struct S3BurstTests {
    /// Sends files of these sizes together, each under its number, and returns their ends in this order.
    ///
    /// - Parameter cancelled: those that are ended before anything is sent.
    private func burst(_ place: Place, _ counts: [Int], cancelled: [Int] = []) async throws -> [BurstEnd] {
        let pipeline = try #require(place.pipeline as? any BurstPipeline)
        let files = try counts.enumerated().map { number, count in
            let (_, order) = try place.file(count, key: "\(number)")
            return BurstFile(order, content: Array(content(count)))
        }
        let ends = Mutex<[Int: BurstEnd]>([:])
        let burst = try pipeline.burst(files) { answers in
            ends.withLock { ends in for (index, end) in answers { ends[index] = end } }
            Happening.ring()
        }
        for index in cancelled { burst.cancel(index) }
        burst.start()
        try await eventually("each has its end") { ends.withLock(\.count) == counts.count }
        return ends.withLock { ends in counts.indices.compactMap { ends[$0] } }
    }

    private func answer(_ end: BurstEnd?) -> FirstAnswer? { if case .continues(let first) = end { first } else { nil } }

    /// What is known of a single file of `count` bytes that did not go well.
    private func mayHaveArrived(_ place: Place, _ count: Int) async throws -> Bool? {
        answer(try await burst(place, [count]).first)?.mayHaveArrived
    }

    @Test(arguments: ["md5", "crc32c", "size"])
    func `files that are sent together arrive, each with its proof`(_ verify: String) async throws {
        try await withS3Place(["verify": .string(verify)]) { place in
            let counts = [0, 1, 1000, 64 << 10, 7]
            for (number, end) in try await burst(place, counts).enumerated() {
                guard case .delivered(let proof) = end else {
                    Issue.record("\(number): \(end)")
                    continue
                }
                #expect(proof.key == "\(number)" && proof.size == Int64(counts[number]))
                #expect(try place.visible()["\(number)"] == content(counts[number]))
            }
            #expect(place.count(.single) == counts.count)
        }
    }

    @Test func `what may have arrived is known, also where the answer is lost`() async throws {
        try await withS3Place { place in
            place.misbehave(.loseAnswer, at: .single, times: nil)
            for count in [100, 0] {
                let isKnown = try await mayHaveArrived(place, count)
                #expect(isKnown == true, "\(count)")
            }
        }
        // Nobody listens there.
        try await withS3Place(before: { _ in 1 }) { place in
            let isKnown = try await mayHaveArrived(place, 100)
            #expect(isKnown == false)
        }
        // What another object keeps out has not arrived.
        try await withS3Place(["if_exists": .string("fail")]) { place in
            _ = try await burst(place, [100])
            let isKnown = try await mayHaveArrived(place, 200)
            #expect(isKnown == false)
        }
    }

    @Test func `one that is ended before the others are sent is not sent, and its attempt sends it anew`() async throws
    {
        try await withS3Place { place in
            let ends = try await burst(place, [10, 20, 30], cancelled: [1])
            #expect(place.count(.single) == 2)
            let first = try #require(answer(ends[1]))
            #expect(!first.mayHaveArrived)
            let (path, order) = try place.file(20, key: "1")
            let attempt = Attempt(checkpoint: Notes().attempt().checkpoint, continuing: first, isStopping: { false })
            let proof = try await place.deliver(path, order, attempt).get()
            #expect(proof.size == 20)
            #expect(place.count(.single) == 3)
        }
    }

    /// A reload may replace the destination while the answer is on its way.
    @Test func `an attempt takes the answer of its own store, and none of another`() async throws {
        try await withS3Place { place in
            let (path, order) = try place.file(100, key: "a")
            let md5 = try #require(SliceHasher.sums([.md5], of: Array(content(100)))[.md5])
            let success = HTTPResponse(status: 200, headers: [("ETag", "\"\(md5.hex)\"")])
            let own = (place.pipeline as? S3Pipeline)?.store(order, [:]).location("a", answered: nil) ?? ""
            for (address, requests) in [(own, 0), ("http://127.0.0.1:1/sandbox/a", 1)] {
                let first = FirstAnswer(.success(success), from: address, mayHaveArrived: true)
                let attempt = Attempt(
                    checkpoint: Notes().attempt().checkpoint, continuing: first, isStopping: { false })
                let proof = try await place.deliver(path, order, attempt).get()
                #expect(proof.method == .md5Parts)
                #expect(place.count(.single) == requests, "\(address)")
            }
        }
    }
}
