/// The files of a card that are read a second time (`source_check: sample`).
///
/// A part of a file cannot be compared with a checksum of the whole, so the sample consists of whole files.
package enum SourceSample {
    /// One of that many files is read.
    private static let share = 8
    private static let least = 3

    /// One file in eight, spread over all of them, and at least three. The biggest and the last are always among them:
    /// the one takes most of the card, and the other was perhaps being written when the camera stopped.
    ///
    /// - Parameters:
    ///   - sizes: of all files, in their order.
    ///   - seed: chooses the others, such as the card's UUID and the digest of its inventory. The same seed chooses
    ///     the same files.
    /// - Returns: positions in `sizes`.
    package static func choose(_ sizes: [Int64], seed: String) -> Set<Int> {
        guard let last = sizes.indices.last, let biggest = sizes.indices.max(by: { sizes[$0] < sizes[$1] }) else {
            return []
        }
        var random = SeededGenerator(seed: SHA256.bytes(of: seed.utf8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) })
        var chosen: Set<Int> = [last, biggest]
        for start in stride(from: 0, to: sizes.count, by: share) {
            let run = start..<min(start + share, sizes.count)
            let pick = Int.random(in: run, using: &random)
            if !run.contains(where: chosen.contains) { chosen.insert(pick) }
        }
        while chosen.count < min(least, sizes.count) {
            chosen.insert(Int.random(in: sizes.indices, using: &random))
        }
        return chosen
    }
}
