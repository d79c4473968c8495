extension Digest {
    /// The CRC of two pieces of content one after the other, without their bytes; nil unless both are CRCs of one kind.
    ///
    /// - Parameters:
    ///   - next: the CRC of the second piece.
    ///   - length: the number of its bytes.
    package func combined(with next: Digest, length: Int64) -> Digest? {
        guard algorithm == next.algorithm, length >= 0 else { return nil }
        switch algorithm {
        case .crc32c: return combined(with: next, length, Remainder<UInt32>(polynomial: 0x82F6_3B78))
        case .crc64nvme: return combined(with: next, length, Remainder<UInt64>(polynomial: 0x9A6C_9329_AC4B_C9B5))
        default: return nil
        }
    }

    private func combined<Word>(with next: Digest, _ length: Int64, _ remainder: Remainder<Word>) -> Digest {
        // The first piece's CRC moves on by the second's bytes. The inversions of both cancel out.
        let moved = remainder.product(Word(bigEndian: bytes), remainder.power(ofByte: length))
        return Digest(algorithm, (moved ^ Word(bigEndian: next.bytes)).bigEndianBytes)
    }
}

/// Arithmetic of polynomials modulo a CRC's. Bits are reflected: the highest bit is x to the power of 0.
private struct Remainder<Word: FixedWidthInteger & UnsignedInteger> {
    let polynomial: Word
    private var one: Word { 1 << (Word.bitWidth - 1) }

    func product(_ left: Word, _ right: Word) -> Word {
        var (result, right): (Word, Word) = (0, right)
        for bit in (0..<Word.bitWidth).reversed() {
            if left >> bit & 1 == 1 { result ^= right }
            right = right >> 1 ^ (right & 1 == 1 ? polynomial : 0)
        }
        return result
    }

    /// x to the power of 8 times `count`: moves a CRC on by so many bytes.
    func power(ofByte count: Int64) -> Word {
        var (result, square, rest) = (one, one >> 8, count)
        while rest > 0 {
            if rest & 1 == 1 { result = product(result, square) }
            square = product(square, square)
            rest >>= 1
        }
        return result
    }
}

extension FixedWidthInteger {
    /// The most significant byte first.
    package var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

    fileprivate init(bigEndian bytes: [UInt8]) { self = bytes.reduce(0) { $0 << 8 | Self($1) } }
}
