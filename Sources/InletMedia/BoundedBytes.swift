internal import InletCore
internal import InletLinux

/// A file's bytes in small pieces, within a budget that holds for any file, whatever sizes it claims.
///
/// One reading of one file by one thread.
final class BoundedBytes {
    /// More than the dates of any valid file need: an index of a few hundred boxes, one block of EXIF.
    static let maximumBytes = 1 << 20
    static let maximumReads = 1024
    /// An exbibyte. Bytes beyond it in a sparse file are ignored, so that adding to an offset cannot overflow.
    static let maximumSize: Int64 = 1 << 60

    typealias Fetch = (_ offset: Int64, _ count: Int) throws(SystemError) -> [UInt8]

    /// The file's length, but at most `maximumSize`.
    let size: Int64
    private let fetch: Fetch
    private(set) var bytesLeft = maximumBytes
    private(set) var readsLeft = maximumReads

    /// `fetch` gives `count` bytes, or fewer at the file's end.
    init(size: Int64, fetch: @escaping Fetch) {
        self.size = min(size, Self.maximumSize)
        self.fetch = fetch
    }

    convenience init(_ source: SourceFile) {
        self.init(size: source.opened.size) { offset, count throws(SystemError) in
            try source.content(of: count, at: offset)
        }
    }

    /// Whether the budget is spent, so that the rest of the file is unknown.
    var isSpent: Bool { bytesLeft == 0 || readsLeft == 0 }

    /// Exactly `count` bytes; nil where the file ends before them or the budget is spent.
    func read(_ count: Int, at offset: Int64) throws(SystemError) -> [UInt8]? {
        let bytes = try read(upTo: count, at: offset)
        return bytes.count == count ? bytes : nil
    }

    /// `count` bytes, fewer at the file's end, none when the budget is spent.
    func read(upTo count: Int, at offset: Int64) throws(SystemError) -> [UInt8] {
        guard count > 0, offset >= 0, offset < size, readsLeft > 0, count <= bytesLeft else { return [] }
        readsLeft -= 1
        let wanted = Int(min(Int64(count), size - offset))
        bytesLeft -= wanted
        return Array(try fetch(offset, wanted).prefix(wanted))
    }
}

extension Collection<UInt8> where Index == Int {
    /// The unsigned number in the `count` (at most 8) bytes at `offset`, the most significant first; the bytes must
    /// exist.
    func bigEndian(_ count: Int, at offset: Int) -> UInt64 {
        self[(startIndex + offset)..<(startIndex + offset + count)].reduce(0) { $0 << 8 | UInt64($1) }
    }
}
