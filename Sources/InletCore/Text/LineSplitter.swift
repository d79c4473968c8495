/// Splits incoming bytes into lines. Cuts a line after `most` bytes and drops its rest.
package struct LineSplitter: Sendable {
    private let most: Int
    private var rest: [UInt8] = []
    private var isTooLong = false

    package init(most: Int = 1 << 20) { self.most = most }

    /// The lines that end in the piece, without line ends.
    package mutating func take(_ piece: some Collection<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for part in piece.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            if part.offset > 0 {
                lines.append(rest)
                (rest, isTooLong) = ([], false)
            }
            guard !isTooLong else { continue }
            isTooLong = rest.count + part.element.count > most
            rest += part.element.prefix(most - rest.count)
        }
        return lines
    }

    /// The text after the last line end; nil if there is none.
    package mutating func end() -> [UInt8]? {
        defer { (rest, isTooLong) = ([], false) }
        return rest.isEmpty ? nil : rest
    }
}

extension Array {
    /// The elements in order, `size` per group; the last group may be smaller.
    package func groups(of size: Int) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
