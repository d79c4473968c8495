/// Cuts bytes that come in pieces into lines. Of a line beyond `most` bytes the beginning is taken as a line, the rest is left
/// out.
package struct LineSplitter: Sendable {
    private let most: Int
    private var rest: [UInt8] = []
    private var isTooLong = false

    package init(most: Int = 1 << 20) { self.most = most }

    /// The lines that end in the piece, without their ends.
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

    /// What came after the last line's end; nil where nothing did.
    package mutating func end() -> [UInt8]? {
        defer { (rest, isTooLong) = ([], false) }
        return rest.isEmpty ? nil : rest
    }
}

extension Array {
    /// The elements in their order, `size` together; the last group may be smaller.
    package func groups(of size: Int) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
