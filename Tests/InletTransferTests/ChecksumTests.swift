import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

struct ChecksumTests {
    private let pool = BlockingPool(name: "checksum", threads: 1)

    /// RFC 1321, appendix A.5, and FIPS 180-4's examples.
    @Test(arguments: [
        ("", "d41d8cd98f00b204e9800998ecf8427e", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ]) func `bytes and files have the published checksums`(text: String, md5: String, sha256: String) async throws {
        #expect(Checksum.md5(text.utf8).hex == md5)
        #expect(Checksum.sha256(text.utf8) == Digest(.sha256, Checksum.sha256(Array(text.utf8)).bytes))
        #expect(Checksum.sha256(text.utf8).hex == sha256)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(text.utf8, to: "f"))
        #expect(try await Checksum.sha256(of: source, on: pool).hex == sha256)
    }

    @Test func `a file that ends too early is a changed source`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(pattern(10), to: "f"))
        let error = await #expect(throws: TransferError.self) {
            try await Checksum.sums([.md5], of: source, offset: 5, length: 6, on: pool)
        }
        #expect(error?.code == .sourceChanged)
        #expect(error?.reason.contains("/f") == true)
    }

    @Test func `cancelling ends a long checksum`() async throws {
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: sparseFile(directory, size: 1 << 40))
        let pool = pool
        let task = Task {
            do throws(TransferError) {
                return try await Checksum.sha256(of: source, on: pool).hex
            } catch { return error.code.rawValue }
        }
        task.cancel()
        #expect(await task.value == "cancelled")
    }
}

/// Several checksums in one pass, CRC-32C among them.
struct SliceSumsTests {
    private let pool = BlockingPool(name: "sums", threads: 1)

    private static func sums(_ bytes: [UInt8], _ kinds: Set<Digest.Algorithm> = [.md5, .sha256, .crc32c]) -> SliceSums {
        var hasher = SliceHasher(kinds)
        bytes.withUnsafeBytes { hasher.update($0) }
        return hasher.finish()
    }

    /// RFC 3720, appendix B.4, and the check value of CRC-32C in the catalogue of parametrised CRC algorithms.
    @Test(
        arguments: [
            ([], "00000000"), (Array("123456789".utf8), "e3069283"), (Array(repeating: 0, count: 32), "8a9136aa"),
            (Array(repeating: 0xFF, count: 32), "62a8ab43"), (Array(0...31), "46dd794e"),
            (Array((0...31).reversed()), "113fdb5c"),
        ] as [([UInt8], String)])
    func `CRC-32C has the published values`(_ bytes: [UInt8], _ hex: String) {
        #expect(Self.sums(bytes)[.crc32c]?.hex == hex)
    }

    /// The check value of CRC-64/NVME in the same catalogue.
    @Test func `CRC-64/NVME has the published value`() {
        #expect(Self.sums(Array("123456789".utf8), [.crc64nvme])[.crc64nvme]?.hex == "ae8b14860a799888")
    }

    @Test(arguments: [Digest.Algorithm.crc32c, .crc64nvme], 0..<20 as Range<UInt64>)
    func `the CRCs of parts make that of the whole`(_ algorithm: Digest.Algorithm, _ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var whole: [UInt8] = []
        var combined = try #require(Self.sums([], [algorithm])[algorithm])
        for part in 0..<5 {
            let bytes = pattern(Int.random(in: 0...20_000, using: &generator), seed: seed &* 5 &+ UInt64(part))
            let next = try #require(Self.sums(bytes, [algorithm])[algorithm])
            combined = try #require(combined.combined(with: next, length: Int64(bytes.count)))
            whole += bytes
        }
        #expect(combined == Self.sums(whole, [algorithm])[algorithm])
    }

    @Test func `only CRCs of one kind are combined`() {
        let crc = Digest(.crc32c, [0, 0, 0, 1])
        #expect(crc.combined(with: Digest(.crc64nvme, [0, 0, 0, 0, 0, 0, 0, 1]), length: 1) == nil)
        #expect(Checksum.md5([1]).combined(with: Checksum.md5([2]), length: 1) == nil)
    }

    @Test func `only what is asked for is computed`() {
        let sums = Self.sums([1], [.sha256])
        #expect(sums == [.sha256: Checksum.sha256([1])])
        #expect(Self.sums([1], []).isEmpty)
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `bytes have the same sums, however they come`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let bytes = pattern(Int.random(in: 0...5000, using: &generator), seed: seed)
        var hasher = SliceHasher([.md5, .sha256, .crc32c])
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 1...700, using: &generator))
            piece.withUnsafeBytes { hasher.update($0) }
            rest = rest.dropFirst(piece.count)
        }
        #expect(hasher.finish() == Self.sums(bytes))
        #expect(hasher.finish()[.md5] == Checksum.md5(bytes))
    }

    @Test(arguments: [(0, 0), (0, 1), (1, 262_144), (262_143, 300_000), (0, 700_001), (700_001, 0)])
    func `a slice of a file has the sums of its bytes`(_ offset: Int, _ length: Int) async throws {
        let bytes = pattern(700_001)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let found = try await Checksum.sums(
            [.md5, .sha256, .crc32c], of: source, offset: Int64(offset), length: Int64(length), on: pool)
        #expect(found == Self.sums(Array(bytes[offset..<offset + length])))
    }

    @Test(arguments: [Digest.Algorithm.md5, .sha256, .crc32c], [nil, 250_000, 700_001] as [Int64?])
    func `a content is computed anew as it was made`(_ algorithm: Digest.Algorithm, _ partSize: Int64?) async throws {
        let bytes = pattern(700_001)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let model = ContentHash(digest: Digest(algorithm, []), partSize: partSize)
        let found = try await Checksum.content(like: model, of: source, on: pool)
        var expected = Self.sums(bytes)[algorithm]
        if let partSize {
            let starts = stride(from: 0, to: bytes.count, by: Int(partSize))
            let parts = starts.flatMap { start -> [UInt8] in
                let part = bytes[start...].prefix(Int(partSize))
                return Self.sums(Array(part))[algorithm]?.bytes ?? []
            }
            expected = Self.sums(parts)[algorithm]
        }
        #expect(found.digest == expected)
        #expect(found.partSize == partSize)
    }
}

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
