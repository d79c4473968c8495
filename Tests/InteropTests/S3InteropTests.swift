import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// The `s3` destination against `rclone serve s3` and moto.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Interop.isThere, Comment(rawValue: Interop.reason)))
struct S3InteropTests {
    private static let part = Bucket.part

    @Test(arguments: Peer.Kind.allCases, ["auto", "md5", "crc64nvme", "crc32c", "sha256", "size"])
    func `bytes arrive as they are`(_ kind: Peer.Kind, _ verify: String) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, ["verify": verify], files: files)
            for count in [0, 1, 100_000, Self.part, Self.part + 1, 3 * Self.part + 12_345] {
                let (path, order) = try bucket.file(count, key: "files/\(count).bin")
                let proof = try await bucket.deliver(path, order)
                #expect(proof.size == Int64(count))
                // Neither confirms a checksum, so that the MD5 of the ETag counts.
                #expect(proof.method == (verify == "size" ? .size : .md5Parts))
                #expect(try await bucket.get(order.key) == Bucket.content(count), "\(count) bytes")
                if kind == .rclone {
                    let file = peer.folder.appending(Peer.bucket).pushing(FilePath(order.key))
                    #expect(try Data(contentsOf: URL(fileURLWithPath: file.string)) == Bucket.content(count))
                }
            }
            #expect(try await bucket.openUploads() == 0)
            // What showed which checksums the store compares is gone.
            #expect(try await bucket.keys(prefix: S3ChecksumTrial.folder) == [])
        }
    }

    @Test(arguments: Peer.Kind.allCases, ["auto", "md5", "crc64nvme", "crc32c", "sha256"])
    func `a byte that changes on the way is sent again`(_ kind: Peer.Kind, _ verify: String) async throws {
        try await Bucket.make(kind) { peer, files in
            let line = try ChaosProxy(to: peer.port)
            let bucket = try Bucket(Int(line.port), ["verify": verify], files: files)
            let (first, firstOrder) = try bucket.file(10, key: "first")
            _ = try await bucket.deliver(first, firstOrder)
            for (number, count) in [1_000_000, Self.part + 1_000_000].enumerated() {
                line.hangUp()
                line.add(.flip(.request, at: 500_000))
                // Of the connections that an upload takes, the first may end with its opening.
                if count > Self.part { line.add(.flip(.request, at: 500_000)) }
                let (path, order) = try bucket.file(count, key: "\(count)")
                let notes = KeptNotes(nil)
                // rclone writes a part before anybody compares it, and takes it no second time: the next attempt, as the
                // agent makes it, sends all anew.
                try await eventually("the object is whole") {
                    (try? await bucket.deliver(path, order, notes)) != nil
                }
                #expect(line.injected > number)
                #expect(try await bucket.get(order.key) == Bucket.content(count))
            }
        }
    }

    @Test(arguments: Peer.Kind.allCases)
    func `names that URLs and shells would change arrive as they are`(_ kind: Peer.Kind) async throws {
        let keys = ["a b/c d.mp4", "größe/日本語/é.bin", "100%/%41.bin", "#1?x=1+2&y=;.bin", "'\"$(x)`~!@^*{}|<>.bin"]
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, files: files)
            for key in keys {
                let (path, order) = try bucket.file(100, key: key)
                _ = try await bucket.deliver(path, order)
                #expect(try await bucket.get(key) == Bucket.content(100))
            }
            let (path, order) = try bucket.file(Self.part + 1, key: "large/" + keys.joined())
            _ = try await bucket.deliver(path, order)
            #expect(try await bucket.keys() == (keys + [order.key]).sorted())
        }
    }

    @Test(arguments: Peer.Kind.allCases)
    func `type and time are kept`(_ kind: Peer.Kind) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, ["cache_control": "max-age=60"], files: files)
            for count in [10, Self.part + 1] {
                let (path, order) = try bucket.file(count, key: "\(count)")
                _ = try await bucket.deliver(path, order)
                let head = try await bucket.pipeline.api.send(S3API.Call(method: "HEAD", key: order.key), "looking")
                #expect(head.header("Content-Type") == "video/mp4")
                #expect(head.header("Cache-Control") == "max-age=60")
                let time = head.header("x-amz-meta-mtime").flatMap { S3Store.modifiedTime($0) }
                #expect(time == order.source.modified)
            }
        }
    }

    @Test func `a wrong secret is a matter of credentials`() async throws {
        try await Bucket.make(.rclone) { peer, files in
            let bucket = try Bucket(peer.port, ["secret_key": "wrong"], files: files)
            for count in [10, Self.part + 1] {
                let (path, order) = try bucket.file(count, key: "k")
                let error = await #expect(throws: DeliveryError.self) { try await bucket.deliver(path, order) }
                #expect(error?.verdict == .credentials)
                #expect(error?.reason.contains("SignatureDoesNotMatch") == true)
            }
            let probe = await #expect(throws: DeliveryError.self) { try await bucket.pipeline.probe() }
            #expect(probe?.verdict == .credentials)
            let right = try Bucket(peer.port, files: files)
            #expect(try await right.keys() == [])
        }
    }

    @Test(arguments: [3600, -3600] as [Int64])
    func `a wrong clock is named`(_ seconds: Int64) async throws {
        try await Bucket.make(.rclone) { peer, files in
            let bucket = try Bucket(peer.port, files: files)
            let wrong = WallTime.now + .seconds(seconds)
            let response = try await bucket.send(S3API.Call(method: "PUT", key: "k", body: .bytes([1])), at: wrong)
            // As it looks to a machine whose clock is wrong.
            let error = DeliveryError.ofS3(response, "sending k", now: wrong)
            #expect(error.code == .clockSkewed)
            #expect(error.verdict == .outage(after: nil))
            #expect(error.reason.contains(seconds > 0 ? "ahead of the store's" : "behind the store's"))
        }
    }

    @Test(arguments: Peer.Kind.allCases)
    func `what is not there is named`(_ kind: Peer.Kind) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, ["bucket": "other"], files: files)
            for count in [10, Self.part + 1] {
                let (path, order) = try bucket.file(count, key: "k")
                let error = await #expect(throws: DeliveryError.self) { try await bucket.deliver(path, order) }
                #expect(error?.verdict == .outage(after: nil))
                #expect(error?.reason.contains("NoSuchBucket") == true)
            }
        }
    }

    @Test(arguments: Peer.Kind.allCases)
    func `skip-same sends only what differs`(_ kind: Peer.Kind) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, ["if_exists": "skip-same"], files: files)
            for count in [1000, Self.part + 1] {
                for seed in 1...2 as ClosedRange<UInt64> {
                    let (path, order) = try bucket.file(count, key: "\(count)", seed: seed)
                    for isFirst in [true, false] {
                        let notes = KeptNotes(nil)
                        let attempt = notes.attempt()
                        _ = try await bucket.pipeline.deliver(SourceFile(opening: path), order, attempt)
                        #expect(attempt.bytesSent == (isFirst ? Int64(count) : 0))
                    }
                    #expect(try await bucket.get(order.key) == Bucket.content(count, seed: seed))
                }
            }
        }
    }

    @Test func `fail and version leave the other object`() async throws {
        try await Bucket.make(.moto) { peer, files in
            let failing = try Bucket(peer.port, ["if_exists": "fail"], files: files)
            let versioning = try Bucket(peer.port, ["if_exists": "version"], files: files)
            for count in [1000, Self.part + 1] {
                let (old, oldOrder) = try failing.file(count, key: "\(count).bin")
                _ = try await failing.deliver(old, oldOrder)
                let (path, order) = try failing.file(count, key: "\(count).bin", seed: 2)
                let error = await #expect(throws: DeliveryError.self) { try await failing.deliver(path, order) }
                #expect(error?.code == .destinationExists)
                let notes = KeptNotes(nil)
                for _ in 1...2 {
                    #expect(try await versioning.deliver(path, order, notes).key == "\(count)_2.bin")
                }
                #expect(try await versioning.get("\(count).bin") == Bucket.content(count))
                #expect(try await versioning.get("\(count)_2.bin") == Bucket.content(count, seed: 2))
            }
            #expect(try await versioning.keys().count == 4)
            #expect(try await versioning.openUploads() == 0)
        }
    }
}

/// Ends without warning, of ours and of the server's, in the middle of an upload.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Interop.isThere, Comment(rawValue: Interop.reason)))
struct S3KillTests {
    private static let size = 5 * Bucket.part + 9

    @Test(arguments: Peer.Kind.allCases)
    func `a killed process goes on where it was`(_ kind: Peer.Kind) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, ["parallel_parts": "1"], files: files)
            let (path, order) = try bucket.file(Self.size, key: "clip.mp4")
            let notes = files.path.appending("notes")
            let (port, source, kept) = (peer.port, path.string, notes.string)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [port = port as Int, source = source as String, kept = kept as String] in
                let bucket = try Bucket(port, ["parallel_parts": "1"], files: try TemporaryDirectory())
                let file = FilePath(source)
                let attempt = KeptNotes(FilePath(kept)).attempt { names in
                    if names.contains("part:3") { kill(getpid(), SIGKILL) }
                }
                let order = try Bucket.order(file, key: "clip.mp4")
                _ = try await bucket.pipeline.deliver(SourceFile(opening: file), order, attempt)
            }
            let later = KeptNotes(notes)
            #expect(later.entries.keys.count { $0.hasPrefix("part:") } == 3)
            _ = try await bucket.deliver(path, order, later)
            let sent = Set(later.puts.joined()).filter { $0.hasPrefix("part:") }
            #expect(sent == ["part:4", "part:5", "part:6"])
            #expect(try await bucket.get(order.key) == Bucket.content(Self.size))
            #expect(try await bucket.openUploads() == 0)
        }
    }

    @Test(arguments: Peer.Kind.allCases)
    func `a process killed in the middle of parts delivers whole`(_ kind: Peer.Kind) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, files: files)
            let (path, order) = try bucket.file(Self.size, key: "clip.mp4")
            let notes = files.path.appending("notes")
            let (port, source, kept) = (peer.port, path.string, notes.string)
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [port = port as Int, source = source as String, kept = kept as String] in
                let bucket = try Bucket(port, files: try TemporaryDirectory())
                let file = FilePath(source)
                let attempt = KeptNotes(FilePath(kept)).attempt()
                let order = try Bucket.order(file, key: "clip.mp4")
                async let delivered = bucket.pipeline.deliver(SourceFile(opening: file), order, attempt)
                try await eventually("bytes are under way") { attempt.bytesSent > 1 << 20 }
                kill(getpid(), SIGKILL)
                _ = try await delivered
            }
            // What a server makes of a broken part is its own affair (rclone spoils the upload): the next attempts, as the
            // agent makes them, end with the whole object.
            try await eventually("the object is whole") {
                (try? await bucket.deliver(path, order, KeptNotes(notes))) != nil
            }
            #expect(try await bucket.get(order.key) == Bucket.content(Self.size))
            #expect(try await bucket.openUploads() == 0)
        }
    }

    @Test func `a server that was killed and forgot the upload gets it anew`() async throws {
        try await Bucket.make(.rclone) { peer, files in
            let first = try Bucket(peer.port, ["parallel_parts": "1"], files: files)
            let (path, order) = try first.file(Self.size, key: "clip.mp4")
            let notes = KeptNotes(nil)
            let attempt = notes.attempt { names in if names.contains("part:2") { peer.kill() } }
            let error = await #expect(throws: DeliveryError.self) {
                try await first.pipeline.deliver(SourceFile(opening: path), order, attempt)
            }
            #expect(error?.verdict == .outage(after: nil))
            let again = try await Peer(.rclone, in: peer.folder, port: peer.port)
            let second = try Bucket(again.port, ["parallel_parts": "1"], files: files)
            _ = try await second.deliver(path, order, notes)
            #expect(try await second.get(order.key) == Bucket.content(Self.size))
            #expect(try await second.openUploads() == 0)
        }
    }

    @Test(arguments: Peer.Kind.allCases)
    func `a completion nobody heard of is found by looking`(_ kind: Peer.Kind) async throws {
        try await Bucket.make(kind) { peer, files in
            let bucket = try Bucket(peer.port, files: files)
            let (path, order) = try bucket.file(Self.size, key: "clip.mp4")
            let notes = KeptNotes(nil)
            _ = try await bucket.deliver(path, order, notes)
            let parts = notes.puts.count { $0.contains { $0.hasPrefix("part:") } }
            let again = try await bucket.deliver(path, order, notes)
            #expect(again.content != nil)
            #expect(notes.puts.count { $0.contains { $0.hasPrefix("part:") } } == parts)
        }
    }
}
