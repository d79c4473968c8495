import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Ends without warning, of ours and of the server's, in the middle of an upload.
@Suite(.serialized, .timeLimit(.minutes(8)), .enabled(if: Interop.isThere, Comment(rawValue: Interop.reason)))
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
            try await eventually("the object is whole", within: .seconds(60)) {
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
