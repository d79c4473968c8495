/// How a file is cut: all parts the same size but the last, as R2 demands, chosen once per file and journaled.
struct PartPlan: Sendable, Equatable, Codable {
    /// Store limits (Cloudflare R2, "Limits" and "Multipart upload"): parts from 5 MiB, below 5 GiB.
    static let smallestSize: Int64 = 5 << 20
    static let largestSize: Int64 = 4 << 30
    /// `part_size: auto`: from the first to the last, in powers of two.
    static let defaultSize: Int64 = 8 << 20
    static let largestAuto: Int64 = 64 << 20
    /// Our own bound for presigned parts: one answer carries a URL for every part.
    static let mostParts: Int64 = 1000

    private static let mebibyte: Int64 = 1 << 20

    let fileSize: Int64
    let partSize: Int64

    /// The plan for a file of `fileSize` bytes: `configured`, or what keeps it at `mostParts` parts, in whole MiB.
    init(fileSize: Int64, configured: Int64, mostParts: Int64 = Self.mostParts) {
        self.fileSize = fileSize
        let needed = (fileSize + mostParts - 1) / mostParts
        let wholeMiB = (needed + Self.mebibyte - 1) / Self.mebibyte * Self.mebibyte
        partSize = max(configured, wholeMiB)
    }

    /// Every plan that there can be for a file, where its part size follows from the line.
    static func all(fileSize: Int64, from smallest: Int64, to largest: Int64, mostParts: Int64) -> [PartPlan] {
        let sizes = sequence(first: smallest) { $0 * 2 <= largest ? $0 * 2 : nil }
        return sizes.map { PartPlan(fileSize: fileSize, configured: $0, mostParts: mostParts) }
    }

    /// At least 1: an empty file is one empty part.
    var count: Int { max(1, Int((fileSize + partSize - 1) / partSize)) }

    /// The bytes of part `number`, which counts from 1.
    func range(_ number: Int) -> Range<Int64> {
        let start = Int64(number - 1) * partSize
        return start..<min(start + partSize, fileSize)
    }
}
