/// How a file is cut: all parts the same size but the last, as R2 demands, chosen once per file and journaled.
struct PartPlan: Sendable, Equatable, Codable {
    /// Store limits (Cloudflare R2, "Limits" and "Multipart upload"): parts from 5 MiB, below 5 GiB.
    static let smallestSize: Int64 = 5 << 20
    static let largestSize: Int64 = 4 << 30
    static let defaultSize: Int64 = 8 << 20
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

    /// At least 1: an empty file is one empty part.
    var count: Int { max(1, Int((fileSize + partSize - 1) / partSize)) }

    /// The bytes of part `number`, which counts from 1.
    func range(_ number: Int) -> Range<Int64> {
        let start = Int64(number - 1) * partSize
        return start..<min(start + partSize, fileSize)
    }
}
