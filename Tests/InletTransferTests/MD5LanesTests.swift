import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import Synchronization
import SystemPackage
import Testing

/// MD5s side by side must be those of one after the other.
struct MD5LanesTests {
    /// RFC 1321, appendix A.5.
    private static let published: [(String, String)] = [
        ("", "d41d8cd98f00b204e9800998ecf8427e"), ("a", "0cc175b9c0f1b6a831c399e269772661"),
        ("abc", "900150983cd24fb0d6963f7d28e17f72"), ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
        ("abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
        ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "d174ab98d277d9f5a5611c2c9f419d9f"),
        (
            "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
            "57edf4a22be3c955ac49da2e2107b67a"
        ),
    ]

    @Test func `texts have the published digests, in every lane`() {
        for lane in 0..<MD5Lanes.count {
            var lanes = MD5Lanes()
            for (text, hex) in Self.published {
                lanes.begin(lane)
                let found = Array(text.utf8).withUnsafeBytes { bytes in
                    Self.takeWhole(bytes, &lanes, lane)
                }
                #expect(found.hex == hex)
            }
        }
    }

    private static func takeWhole(_ bytes: UnsafeRawBufferPointer, _ lanes: inout MD5Lanes, _ lane: Int) -> Digest {
        let blocks = bytes.count / MD5Lanes.blockSize
        var pieces: [UnsafeRawPointer?] = Array(repeating: nil, count: MD5Lanes.count)
        pieces[lane] = bytes.baseAddress
        lanes.update(pieces, blocks: blocks)
        let tail = UnsafeRawBufferPointer(rebasing: bytes[(blocks * MD5Lanes.blockSize)...])
        return lanes.finish(lane, tail, length: Int64(bytes.count))
    }

    /// A stream of the property test.
    private struct Stream {
        var bytes: [UInt8]
        var taken = 0

        var blocks: Int { (bytes.count - taken) / MD5Lanes.blockSize }
    }

    /// Streams come and go, some stand still for a while: what one does must leave the others alone.
    @Test(arguments: 0..<60 as Range<UInt64>)
    func `streams that come and go keep to themselves`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var lanes = MD5Lanes()
        var streams: [Stream?] = Array(repeating: nil, count: MD5Lanes.count)
        var ended = 0
        while ended < 40 {
            for lane in streams.indices where streams[lane] == nil && Bool.random(using: &generator) {
                let length = Int.random(in: 0...1500, using: &generator)
                streams[lane] = Stream(bytes: pattern(length, seed: generator.next()))
                lanes.begin(lane)
            }
            let running = streams.indices.filter { lane in
                (streams[lane]?.blocks ?? 0) > 0 && Int.random(in: 0..<4, using: &generator) > 0
            }
            Self.advance(&lanes, &streams, running)
            for lane in streams.indices {
                guard let stream = streams[lane], stream.blocks == 0 else { continue }
                let found = Array(stream.bytes[stream.taken...]).withUnsafeBytes {
                    lanes.finish(lane, $0, length: Int64(stream.bytes.count))
                }
                #expect(found == Checksum.md5(stream.bytes))
                streams[lane] = nil
                ended += 1
            }
        }
    }

    private static func advance(_ lanes: inout MD5Lanes, _ streams: inout [Stream?], _ running: [Int]) {
        let blocks = running.compactMap { streams[$0]?.blocks }.min() ?? 0
        var buffers: [UnsafeMutableRawBufferPointer] = []
        defer { for buffer in buffers { buffer.deallocate() } }
        var pieces: [UnsafeRawPointer?] = Array(repeating: nil, count: MD5Lanes.count)
        for lane in running {
            guard let stream = streams[lane] else { continue }
            // Aligned to nothing, and not to be read beyond.
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: blocks * MD5Lanes.blockSize, alignment: 1)
            buffer.copyBytes(from: stream.bytes[stream.taken...].prefix(buffer.count))
            buffers.append(buffer)
            pieces[lane] = UnsafeRawPointer(buffer.baseAddress)
            streams[lane]?.taken += buffer.count
        }
        lanes.update(pieces, blocks: blocks)
    }
}

/// The same with files, tasks and one thread.
struct HashGroupTests {
    private let pool = BlockingPool(name: "lanes", threads: 1)

    /// More slices than lanes, begun at once: the lead goes from hand to hand, and the rest finds other groups.
    @Test(arguments: [1, 2, 5, 8, 9, 30])
    func `slices that are hashed at once have the MD5s of their bytes`(_ count: Int) async throws {
        let bytes = pattern(1_500_000)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let pool = pool
        let slices = (0..<count).map { (offset: $0 * 20_011, length: 262_145 + $0 * 12_345 % 400_000) }
        try await withThrowingTaskGroup(of: (Int, Digest).self) { group in
            for (index, slice) in slices.enumerated() {
                group.addTask {
                    (
                        index,
                        try await Checksum.md5(
                            of: source, offset: Int64(slice.offset), length: Int64(slice.length), on: pool)
                    )
                }
            }
            for try await (index, found) in group {
                let slice = slices[index]
                #expect(found == Checksum.md5(bytes[slice.offset..<slice.offset + slice.length]))
            }
        }
    }

    /// The first leads; it is cancelled while others depend on it, and one of these cannot be read to its end.
    @Test func `one that is cancelled or fails takes nobody along`() async throws {
        let bytes = pattern(700_000)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let endless = try SourceFile(opening: sparseFile(directory, size: 1 << 40))
        let pool = pool
        let moves = Moves()
        try await withThrowingTaskGroup(of: Void.self) { group in
            let leader = Task {
                do throws(TransferError) {
                    return try await Checksum.md5(of: endless, offset: 0, length: 1 << 40, on: pool) {
                        moves.count.add(1, ordering: .relaxed)
                    }.hex
                } catch { return error.code.rawValue }
            }
            try await eventually("it leads") { moves.count.load(ordering: .relaxed) > 0 }
            for _ in 0..<3 {
                group.addTask {
                    let found = try await Checksum.md5(of: source, offset: 0, length: 700_000, on: pool)
                    #expect(found == Checksum.md5(bytes))
                }
            }
            group.addTask {
                let error = await #expect(throws: TransferError.self) {
                    try await Checksum.md5(of: source, offset: 300_000, length: 500_000, on: pool)
                }
                #expect(error?.code == .sourceChanged)
            }
            // They end while the first goes on.
            try await group.waitForAll()
            leader.cancel()
            #expect(await leader.value == "cancelled")
        }
        #expect(try await Checksum.md5(of: source, offset: 0, length: 700_000, on: pool) == Checksum.md5(bytes))
    }

    /// Cancelled while others wait for it: the lead passes on.
    @Test func `whoever leads can be cancelled`() async throws {
        let bytes = pattern(9_000_000)
        let directory = try TemporaryDirectory()
        let source = try SourceFile(opening: directory.write(bytes, to: "f"))
        let endless = try SourceFile(opening: sparseFile(directory, size: 1 << 40))
        let pool = pool
        let moves = Moves()
        let leader = Task {
            try? await Checksum.md5(of: endless, offset: 0, length: 1 << 40, on: pool) {
                moves.count.add(1, ordering: .relaxed)
            }
        }
        try await eventually("it leads") { moves.count.load(ordering: .relaxed) > 0 }
        let other = Task {
            try await Checksum.md5(of: source, offset: 0, length: 9_000_000, on: pool) {
                moves.count.add(1, ordering: .relaxed)
            }
        }
        leader.cancel()
        #expect(await leader.value == nil)
        #expect(try await other.value == Checksum.md5(bytes))
    }
}

/// How often something has been read, counted from several tasks.
private final class Moves: Sendable {
    let count = Atomic<Int>(0)
}
