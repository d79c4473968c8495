import Hummingbird
import SystemPackage

import struct NIOCore.ByteBuffer

/// One `Range` of bytes (RFC 9110, section 14.1.2).
struct ByteRange: Sendable, Equatable {
    var first: Int64
    /// One past the last.
    var end: Int64
    var isPartial: Bool
    var count: Int64 { end - first }

    /// The whole where no header, or one that is not a single range of bytes, is given; nil when it lies outside.
    init?(header: String?, size: Int64) {
        self.init(first: 0, end: size, isPartial: false)
        guard let header, header.hasPrefix("bytes="), !header.contains(",") else { return }
        let ends = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return }
        switch (Int64(ends[0]), Int64(ends[1])) {
        case (let from?, let to) where ends[1].isEmpty || to != nil:
            if let to, to < from { return }
            guard from < size else { return nil }
            self.init(first: from, end: min(to.map { $0 == .max ? $0 : $0 + 1 } ?? size, size), isPartial: true)
        case (nil, let last?) where ends[0].isEmpty:
            guard last > 0, size > 0 else { return nil }
            self.init(first: max(size - last, 0), end: size, isPartial: true)
        default: return
        }
    }

    private init(first: Int64, end: Int64, isPartial: Bool) {
        (self.first, self.end, self.isPartial) = (first, end, isPartial)
    }
}

extension ResponseBody {
    /// A slice of a file, 256 KiB in memory at a time.
    init(_ range: ByteRange, of path: FilePath) {
        self.init(contentLength: Int(range.count)) { writer in
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            // It was only read.
            defer { try? file.close() }
            var offset = range.first
            while offset < range.end {
                var chunk = ByteBuffer()
                let wanted = Int(min(range.end - offset, 1 << 18))
                let count = try chunk.writeWithUnsafeMutableBytes(minimumWritableBytes: wanted) { space in
                    try file.read(
                        fromAbsoluteOffset: offset, into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]))
                }
                guard count > 0 else { throw ConnectionDropped() }
                offset += Int64(count)
                try await writer.write(chunk)
            }
            try await writer.finish(nil)
        }
    }
}
