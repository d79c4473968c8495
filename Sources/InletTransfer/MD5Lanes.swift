internal import CMD5
package import InletCore

/// The MD5s of up to eight streams that go on side by side, which together cost little more than two of them one after the
/// other. Decides nothing about where bytes come from: `HashGroup` does.
package struct MD5Lanes {
    package static let count = Int(inlet_md5_lane_count)
    package static let blockSize = Int(inlet_md5_block_size)

    /// Up to so many streams are quicker one by one than with lanes that idle.
    private static let few = 2

    private var lanes = inlet_md5_lanes()

    package init() {
        for lane in 0..<Self.count { begin(lane) }
    }

    /// A new stream in a lane.
    package mutating func begin(_ lane: Int) { inlet_md5_begin(&lanes, CInt(lane)) }

    /// Takes `blocks` blocks of each stream that goes on.
    ///
    /// - Parameter pieces: for each lane where its blocks are; nil lets it stand still.
    package mutating func update(_ pieces: [UnsafeRawPointer?], blocks: Int) {
        guard blocks > 0, pieces.count == Self.count, let any = pieces.compactMap({ $0 }).first else { return }
        let running = pieces.indices.filter { pieces[$0] != nil }
        guard running.count > Self.few else {
            for lane in running { inlet_md5_update_one(&lanes, CInt(lane), pieces[lane] ?? any, blocks) }
            return
        }
        let before = lanes
        inlet_md5_update_all(&lanes, pieces.map { $0 ?? any }, blocks)
        for lane in pieces.indices where pieces[lane] == nil { inlet_md5_copy(&lanes, before, CInt(lane)) }
    }

    /// The digest of a stream that ends, `length` bytes in all, with `tail`: what is left behind its whole blocks, below a block.
    package mutating func finish(_ lane: Int, _ tail: UnsafeRawBufferPointer, length: Int64) -> Digest {
        // RFC 1321, 3.1 and 3.2: a one, zeros, and the length in bits.
        var last = Array(tail) + [0x80]
        while last.count % Self.blockSize != Self.blockSize - 8 { last.append(0) }
        last += withUnsafeBytes(of: (UInt64(length) &* 8).littleEndian) { Array($0) }
        inlet_md5_update_one(&lanes, CInt(lane), last, last.count / Self.blockSize)
        var digest = [UInt8](repeating: 0, count: 16)
        inlet_md5_digest(&lanes, CInt(lane), &digest)
        return Digest(.md5, digest)
    }
}
