import CCrypto
import CHash
import InletCore
import InletTestSupport
import Testing

/// Every build of our hashes that this processor can run, against a plain reference.
struct HashBuildTests {
    /// Bit by bit, as the standard defines it.
    private static func crc64(_ bytes: [UInt8]) -> UInt64 {
        ~bytes.reduce(UInt64.max) { crc, byte in
            (0..<8).reduce(crc ^ UInt64(byte)) { crc, _ in crc >> 1 ^ (crc & 1 == 1 ? 0x9A6C_9329_AC4B_C9B5 : 0) }
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `every build has the CRC-64 of its definition`(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let bytes = pattern(Int.random(in: 0...2500, using: &generator), seed: seed)
        let cut = Int.random(in: 0...bytes.count, using: &generator)
        let expected = Self.crc64(bytes)
        var index = 0
        while let build = inlet_crc64nvme_build(index)?.pointee {
            let found = bytes.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[cut...])
                return build.update(build.update(0, bytes.baseAddress, cut), rest.baseAddress, rest.count)
            }
            #expect(found == expected, "\(String(cString: build.name)), \(bytes.count) bytes, cut at \(cut)")
            index += 1
        }
        #expect(index > 0)
        #expect(bytes.withUnsafeBytes { inlet_crc64nvme(0, $0.baseAddress, $0.count) } == expected)
    }

    /// Streams of different lengths in one buffer, in pieces of different lengths.
    private struct Streams {
        let bytes: [UInt8]
        let ranges: [Range<Int>]
        /// What each is given at a time.
        let rounds: [[Range<Int>]]

        init(seed: UInt64) {
            var generator = SeededGenerator(seed: seed)
            bytes = pattern(20_000, seed: seed)
            ranges = (0..<Int.random(in: 1...20, using: &generator)).map { _ in
                let start = Int.random(in: 0...15_000, using: &generator)
                return start..<start + Int.random(in: 0...5000, using: &generator)
            }
            var rounds: [[Range<Int>]] = []
            var places = ranges.map(\.lowerBound)
            while places != ranges.map(\.upperBound) {
                let round = zip(places, ranges).map { place, range in
                    place..<min(range.upperBound, place + Int.random(in: 0...3000, using: &generator))
                }
                rounds.append(round)
                places = round.map(\.upperBound)
            }
            self.rounds = rounds
        }

        /// The contexts of all streams, moved on by `update`.
        func hashed<Context>(from begun: Context, _ update: ([inlet_stream]) -> Void) -> [Context] {
            var contexts = ranges.map { _ in begun }
            bytes.withUnsafeBytes { bytes in
                contexts.withUnsafeMutableBufferPointer { contexts in
                    guard let first = contexts.baseAddress else { return }
                    for round in rounds {
                        update(
                            round.enumerated().map { index, range in
                                let piece = UnsafeRawBufferPointer(rebasing: bytes[range])
                                return inlet_stream(
                                    context: first + index, bytes: piece.baseAddress, length: piece.count)
                            })
                    }
                }
            }
            return contexts
        }
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `every build has the MD5s of libcrypto, wherever its streams end`(_ seed: UInt64) {
        let streams = Streams(seed: seed)
        let expected = streams.ranges.map { MD5.bytes(of: streams.bytes[$0]) }
        var begun = MD5_CTX()
        MD5_Init(&begun)
        var build = 0
        while let name = inlet_md5_build(build) {
            let found = streams.hashed(from: begun) { inlet_md5_update(build, $0, $0.count) }.map { context in
                var (context, digest) = (context, [UInt8](repeating: 0, count: Int(MD5_DIGEST_LENGTH)))
                MD5_Final(&digest, &context)
                return digest
            }
            #expect(found == expected, "\(String(cString: name)), \(streams.ranges.map(\.count))")
            build += 1
        }
        #expect(build > 0)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `every build has the SHA-256s of libcrypto, wherever its streams end`(_ seed: UInt64) {
        let streams = Streams(seed: seed)
        let expected = streams.ranges.map { SHA256.bytes(of: streams.bytes[$0]) }
        var begun = SHA256_CTX()
        SHA256_Init(&begun)
        var build = 0
        while let name = inlet_sha256_build(build) {
            let found = streams.hashed(from: begun) { inlet_sha256_update(build, $0, $0.count) }.map { context in
                var (context, digest) = (context, [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH)))
                SHA256_Final(&digest, &context)
                return digest
            }
            #expect(found == expected, "\(String(cString: name)), \(streams.ranges.map(\.count))")
            build += 1
        }
        #expect(build > 0)
    }
}
