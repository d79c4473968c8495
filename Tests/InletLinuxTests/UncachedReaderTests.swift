import Foundation
import InletCore
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletLinux

/// Reads of what is on the disk, past the page cache.
struct UncachedReaderTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test func `reading back gives the bytes on the disk, whichever way`() async throws {
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.shutdown() }
        for (directory, count) in [
            (folder.path, 3_000_001), (folder.path, 1 << 20), (folder.path, 0), ("/dev/shm", 2_000_001),
        ] {
            let bytes = pattern(count)
            let path = directory.appending("inlet-back-" + String(UInt64.random(in: 0 ... .max)))
            try DurableFile.write(bytes, to: path, mode: 0o600)
            defer { try? DurableFile.remove(path) }
            var reader = try UncachedReader(path)
            var found: [UInt8] = []
            while try reader.next({ found += $0 }) {}
            #expect(found == bytes, "\(path) \(count)")
            let name = try #require(path.lastComponent)
            var ahead: [UInt8] = []
            try await UncachedPieces(name, in: Folder(directory)).each(on: pool) { ahead += $0 }
            #expect(ahead == bytes, "\(path) \(count)")
        }
    }

    @Test func `reading the next piece leaves the one before alone`() throws {
        let path = try folder.write(pattern(3_000_001), to: "a")
        var reader = try UncachedReader(path)
        var last = try reader.piece()
        while !last.isEmpty {
            let bytes = Array(last)
            let next = try reader.piece()
            #expect(last.elementsEqual(bytes))
            last = next
        }
    }

    @Test func `reading back ends where the file has become shorter`() async throws {
        let path = try folder.write(pattern(3_000_001), to: "a")
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.shutdown() }
        let pieces = try UncachedPieces(try #require(path.lastComponent), in: Folder(folder.path))
        let file = try FileDescriptor.open(path, .writeOnly)
        try file.closeAfter { try file.resize(to: 1_000_000) }
        var count = 0
        try await pieces.each(on: pool) { count += $0.count }
        #expect(count == 1_000_000)
    }

    @Test func `reading back ends when its task is cancelled`() async throws {
        let path = try folder.write(pattern(3_000_001), to: "a")
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.shutdown() }
        let pieces = try UncachedPieces(try #require(path.lastComponent), in: Folder(folder.path))
        let error = await Task { () -> SystemError? in
            withUnsafeCurrentTask { $0?.cancel() }
            do throws(SystemError) {
                try await pieces.each(on: pool) { _ in }
                return nil
            } catch {
                return error
            }
        }.value
        #expect(error?.code == .canceled)
    }
}
