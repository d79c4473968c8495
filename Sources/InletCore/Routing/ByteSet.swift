/// A set of byte values in 32 bytes, for the classes of a glob.
struct ByteSet: Hashable, Sendable {
    private var low: (UInt64, UInt64) = (0, 0)
    private var high: (UInt64, UInt64) = (0, 0)

    init() {}

    init(_ members: (UInt8) -> Bool) {
        for byte in UInt8.min ... .max where members(byte) { insert(byte) }
    }

    func contains(_ byte: UInt8) -> Bool {
        let bit = UInt64(1) << UInt64(byte & 63)
        return switch byte >> 6 {
        case 0: low.0 & bit != 0
        case 1: low.1 & bit != 0
        case 2: high.0 & bit != 0
        default: high.1 & bit != 0
        }
    }

    mutating func insert(_ byte: UInt8) {
        let bit = UInt64(1) << UInt64(byte & 63)
        switch byte >> 6 {
        case 0: low.0 |= bit
        case 1: low.1 |= bit
        case 2: high.0 |= bit
        default: high.1 |= bit
        }
    }

    mutating func formUnion(_ other: ByteSet) {
        low = (low.0 | other.low.0, low.1 | other.low.1)
        high = (high.0 | other.high.0, high.1 | other.high.1)
    }

    var inverted: ByteSet {
        var result = ByteSet()
        result.low = (~low.0, ~low.1)
        result.high = (~high.0, ~high.1)
        return result
    }

    static func == (left: ByteSet, right: ByteSet) -> Bool { left.low == right.low && left.high == right.high }

    func hash(into hasher: inout Hasher) {
        for word in [low.0, low.1, high.0, high.1] { hasher.combine(word) }
    }
}
