import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

@testable import InletPipelines

/// Small files that are sent to a store together, against what a single delivery does.
@Suite(.timeLimit(.minutes(15))) struct S3BurstTests {
    private struct File {
        let path: FilePath
        let order: DeliveryOrder
        let burst: BurstFile
    }

    private static func pipeline(_ place: Place) throws -> S3Pipeline { try #require(place.pipeline as? S3Pipeline) }

    private static func file(_ count: Int, key: String, _ place: Place) throws -> File {
        let bytes = content(count, seed: UInt64(count + 1))
        let path = try place.write(bytes, FilePath(key))
        let order = try place.order(path, key: key)
        return File(path: path, order: order, burst: BurstFile(order, content: Array(bytes)))
    }

    /// How each file of a burst ends, in their order.
    ///
    /// - Parameter cancelled: one that is ended before anything is sent.
    private static func send(_ files: [File], _ place: Place, cancelled: Int? = nil) async throws -> [BurstEnd] {
        let ends = Listing<(index: Int, end: BurstEnd)>()
        let burst = try pipeline(place).burst(files.map(\.burst)) { answers in
            for answer in answers { ends.add(answer) }
            Happening.ring()
        }
        if let cancelled { burst.cancel(cancelled) }
        burst.start()
        try await eventually("all have ended") { ends.all.count >= files.count }
        let sorted = ends.all.sorted { $0.index < $1.index }
        #expect(sorted.map(\.index) == Array(files.indices))
        return sorted.map(\.end)
    }

    /// The answer from which the only file of a burst goes on.
    private static func first(_ file: File, _ place: Place) async throws -> FirstAnswer {
        let ends = try await send([file], place)
        guard case .continues(let first)? = ends.first else {
            throw NotInTime("it ended well: \(ends)")
        }
        return first
    }

    private static func goOn(
        _ file: File, from first: FirstAnswer, _ place: Place, _ notes: Notes = Notes()
    ) async throws -> Result<Proof, DeliveryError> {
        let attempt = Attempt(checkpoint: notes.attempt().checkpoint, continuing: first, isStopping: { false })
        return try await place.deliver(file.path, file.order, attempt)
    }

    // MARK: - Proofs

    @Test(arguments: ["md5", "crc64nvme", "crc32c", "sha256", "size"])
    func `a file has the proof that it would have alone`(_ verify: String) async throws {
        try await withS3Place(["verify": .string(verify)]) { place in
            let files = try [0, 1, 1000, 65_535, 65_536].map { try Self.file($0, key: "\($0)", place) }
            let ends = try await Self.send(files, place)
            #expect(place.count(.single) == files.count && place.requests == files.count)
            for (file, end) in zip(files, ends) {
                guard case .delivered(let proof) = end else {
                    Issue.record("\(file.order.key) did not end well")
                    continue
                }
                #expect(try place.visible()[file.order.key] == Data(file.burst.content))
                #expect(try await place.deliver(file.path, file.order).get() == proof)
            }
            #expect(place.s3?.objects().allSatisfy { $0.contentType == "video/mp4" } == true)
        }
    }

    @Test(arguments: ["md5", "crc64nvme", "crc32c", "sha256"])
    func `a byte that changes on the way is caught, and the file sent again`(_ verify: String) async throws {
        let lines = Listing<ChaosProxy>()
        var rules = S3Sandbox.Rules(pageSize: 2)
        // The signature's SHA-256 would catch it first.
        rules.comparesPayload = false
        let proxy: @Sendable (Int) throws -> Int = { port in
            let line = try ChaosProxy(to: port)
            lines.add(line)
            return Int(line.port)
        }
        try await withS3Place(["verify": .string(verify)], rules: rules, before: proxy) { place in
            let line = try #require(lines.all.first)
            line.add(.flip(.request, at: 30_000))
            let file = try Self.file(60_000, key: "a", place)
            let first = try await Self.first(file, place)
            #expect(line.injected == 1 && first.mayHaveArrived)
            let proof = try await Self.goOn(file, from: first, place).get()
            #expect(proof.method == (verify == "md5" ? .md5Parts : .checksum))
            #expect(try place.visible() == ["a": Data(file.burst.content)])
            #expect(place.count(.single) == 2)
            line.close()
        }
    }

    // MARK: - What goes on as a delivery

    @Test func `after an answer that passes the file is sent once more`() async throws {
        try await withS3Place { place in
            let files = try (0..<3).map { try Self.file(1000 + $0, key: "\($0)", place) }
            place.misbehave(.reply(.s3(503, "ServiceUnavailable")), at: .single)
            let ends = try await Self.send(files, place)
            let left = zip(files, ends).compactMap { file, end -> (File, FirstAnswer)? in
                if case .continues(let first) = end { (file, first) } else { nil }
            }
            #expect(left.count == 1 && place.requests == 3)
            let (file, first) = try #require(left.first)
            #expect(first.mayHaveArrived)
            #expect(try await Self.goOn(file, from: first, place).get().key == file.order.key)
            #expect(place.count(.single) == 4 && place.requests == 4)
        }
    }

    @Test func `an answer that is final is the attempt's, without another request`() async throws {
        try await withS3Place { place in
            let file = try Self.file(1000, key: "a", place)
            place.misbehave(.reply(.s3(403, "AccessDenied")), at: .single)
            let first = try await Self.first(file, place)
            guard case .failure(let error) = try await Self.goOn(file, from: first, place) else {
                Issue.record("it was delivered")
                return
            }
            #expect(error.verdict == .credentials && place.requests == 1)
        }
    }

    @Test(arguments: ["fail", "version"])
    func `a key that is taken is not overwritten`(_ ifExists: String) async throws {
        try await withS3Place(["if_exists": .string(ifExists)]) { place in
            let other = try place.write(content(1000, seed: 9), "other")
            _ = try await place.deliver(other, try place.order(other, key: "a")).get()
            let file = try Self.file(1000, key: "a", place)
            let first = try await Self.first(file, place)
            // What another object keeps out has not arrived.
            #expect(!first.mayHaveArrived && place.count(.single) == 2)
            let notes = Notes()
            switch try await Self.goOn(file, from: first, place, notes) {
            case .success(let proof):
                #expect(ifExists == "version" && proof.key == "a_2" && notes.puts == [["key"]])
                #expect(try place.visible()["a_2"] == Data(file.burst.content) && place.count(.single) == 3)
            case .failure(let error):
                #expect(ifExists == "fail" && error.code == .destinationExists && place.count(.single) == 2)
            }
            #expect(try place.visible()["a"] == content(1000, seed: 9))
        }
    }

    @Test func `what may have arrived is known, also where the answer is lost`() async throws {
        try await withS3Place { place in
            place.misbehave(.loseAnswer, at: .single, times: nil)
            for count in [1000, 0] {
                let file = try Self.file(count, key: "\(count)", place)
                let first = try await Self.first(file, place)
                #expect(first.mayHaveArrived)
                #expect(try place.visible()[file.order.key] == Data(file.burst.content))
            }
        }
        // Nobody listens there.
        try await withS3Place(before: { _ in 1 }) { place in
            let first = try await Self.first(try Self.file(1000, key: "a", place), place)
            #expect(!first.mayHaveArrived)
        }
    }

    @Test func `one that is ended before it is sent never arrives, and its attempt sends it`() async throws {
        try await withS3Place { place in
            let files = try (0..<3).map { try Self.file(10 + $0, key: "\($0)", place) }
            let ends = try await Self.send(files, place, cancelled: 1)
            guard case (.delivered, .continues(let first), .delivered) = (ends[0], ends[1], ends[2]) else {
                Issue.record("\(ends)")
                return
            }
            #expect(!first.mayHaveArrived && place.count(.single) == 2)
            #expect(try await Self.goOn(files[1], from: first, place).get().key == "1")
            #expect(place.count(.single) == 3)
        }
    }

    /// A reload may replace the destination while the answer is on its way.
    @Test func `an attempt takes the answer of its own store, and none of another`() async throws {
        try await withS3Place { place in
            let file = try Self.file(100, key: "a", place)
            let md5 = try #require(SliceHasher.sums([.md5], of: file.burst.content)[.md5])
            let success = HTTPResponse(status: 200, headers: [("ETag", "\"\(md5.hex)\"")])
            let own = try Self.pipeline(place).store(file.order, [:]).location("a", answered: nil) ?? ""
            for (address, requests) in [(own, 0), ("http://127.0.0.1:1/sandbox/a", 1)] {
                let first = FirstAnswer(.success(success), from: address, mayHaveArrived: true)
                #expect(try await Self.goOn(file, from: first, place).get().method == .md5Parts)
                #expect(place.count(.single) == requests, "\(address)")
            }
        }
    }

    // MARK: - When there are bursts

    @Test func `a burst takes what needs one request, and no look at the store`() async throws {
        func limit(_ settings: [String: ConfigValue]) async throws -> Int? {
            let found = Mutex<Int?>(nil)
            try await withS3Place(settings) { place in
                let limit = try Self.pipeline(place).burstLimit
                found.withLock { $0 = limit }
            }
            return found.withLock(\.self)
        }
        #expect(try await limit([:]) == PartSender.smallest)
        #expect(try await limit(["if_exists": .string("version")]) == PartSender.smallest)
        #expect(try await limit(["if_exists": .string("skip-same")]) == nil)
        #expect(try await limit(["multipart_threshold": .bytes(1000)]) == 1000)
        #expect(try await limit(["multipart_threshold": .bytes(0)]) == 0)
        #expect(try await limit(["max_object_size": .bytes(500)]) == 500)
    }

    @Test func `with verify auto there are bursts once the store has been asked`() async throws {
        try await withS3Place(["verify": .string("auto")]) { place in
            let pipeline = try Self.pipeline(place)
            let file = try Self.file(1000, key: "a", place)
            #expect(pipeline.burstLimit == nil)
            #expect(throws: DeliveryError.self) { try pipeline.burst([file.burst]) { _ in } }
            let alone = try await place.deliver(file.path, file.order).get()
            #expect(pipeline.burstLimit == PartSender.smallest)
            guard case .delivered(let proof)? = try await Self.send([file], place).first else {
                Issue.record("it did not end well")
                return
            }
            #expect(proof == alone && proof.content?.digest.algorithm == .crc64nvme)
        }
    }
}
