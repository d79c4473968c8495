import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

/// Several checksums in one pass, CRC-32C among them.
struct SliceSumsTests {
    private let pool = BlockingPool(name: "sums", threads: 1)

    private static func sums(_ bytes: [UInt8], _ kinds: SumKinds = [.md5, .sha256, .crc32c]) -> SliceSums {
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
        #expect(Self.sums(bytes).crc32c?.hex == hex)
    }

    @Test func `only what is asked for is computed`() {
        let sums = Self.sums([1], [.sha256])
        #expect(sums == SliceSums(sha256: Checksum.sha256([1])))
        #expect(sums.sum(.sha256) == Checksum.sha256([1]))
        #expect(sums.sum(.md5) == nil && sums.sum(.crc32c) == nil)
        #expect(Self.sums([1], []) == SliceSums())
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
        #expect(hasher.finish().md5 == Checksum.md5(bytes))
    }

    @Test(arguments: [(0, 0), (0, 1), (262_143, 300_000), (0, 700_001)])
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
        var expected = Self.sums(bytes).sum(algorithm)
        if let partSize {
            let starts = stride(from: 0, to: bytes.count, by: Int(partSize))
            let parts = starts.flatMap { start -> [UInt8] in
                let part = bytes[start...].prefix(Int(partSize))
                return Self.sums(Array(part)).sum(algorithm)?.bytes ?? []
            }
            expected = Self.sums(parts).sum(algorithm)
        }
        #expect(found.digest == expected)
        #expect(found.partSize == partSize)
    }
}
