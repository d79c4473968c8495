internal import InletCore
internal import InletLinux

/// One reading of a part of a large file that leaves the page cache as it was found: what only we have read is given back,
/// so that a night of uploads does not push out what others work with. What was there before us stays: somebody has just
/// written it, or reads it.
struct CacheVisit: Sendable {
    /// Smaller files push nothing out.
    static let smallest: Int64 = 64 << 20

    private let source: SourceFile
    private let range: Range<Int64>
    private let wasCold: Bool

    /// Looks, before `range` is read. Three system calls, for a file that is large enough to matter.
    init(_ source: SourceFile, _ range: Range<Int64>) {
        self.source = source
        self.range = range
        wasCold =
            source.opened.size > Self.smallest
            && source.isUncached(offset: range.lowerBound, length: range.upperBound - range.lowerBound)
    }

    /// The bytes are proved at the destination; nobody here needs them again.
    func end() {
        if wasCold { source.dropCache(offset: range.lowerBound, length: range.upperBound - range.lowerBound) }
    }
}
