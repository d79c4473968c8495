import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

struct HashPieceTests {
    private static let piece = Int(RunningHash.piece)

    @Test(arguments: [0, 1, piece - 1, piece, piece + 1, 2 * piece + 7])
    func `a file that is hashed in pieces has the checksum of the whole`(size: Int) async throws {
        let pool = BlockingPool(name: "pieces", threads: 1)
        let bytes = pattern(size)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        var hash = RunningHash()
        for end in [size / 3, size / 2, size, size / 4] {
            hash = try await hash.advanced(to: Int64(end), of: source, on: pool)
        }
        #expect(hash.position == Int64(size))
        #expect(hash.digest == Checksum.sha256(bytes))
    }

    @Test func `a long file leaves its thread to others between its pieces`() async throws {
        let pool = BlockingPool(name: "pieces", threads: 1)
        let bytes = pattern(Self.piece + 1)
        let directory = try TemporaryDirectory()
        let path = try directory.write(bytes, to: "f")
        let source = try SourceFile(opening: path)
        // Both wait in this order for the one thread, which this body holds.
        let digest = try await withTaskExecutorPreference(pool.branch(source.opened.device)) {
            async let hashed = RunningHash().advanced(to: Int64(bytes.count), of: source, on: pool)
            async let changed: Void = Self.write(bytes[Self.piece] ^ 0xFF, to: path, at: Self.piece)
            try await changed
            return try await hashed.digest
        }
        // What the second did in between, the rest of the hash has seen.
        #expect(digest == Checksum.sha256(bytes.prefix(Self.piece) + [bytes[Self.piece] ^ 0xFF]))
    }

    private static func write(_ byte: UInt8, to path: FilePath, at offset: Int) throws {
        let descriptor = try FileDescriptor.open(path, .writeOnly, options: .closeOnExec)
        try descriptor.closeAfter { _ = try descriptor.writeAll(toAbsoluteOffset: Int64(offset), [byte]) }
    }
}
