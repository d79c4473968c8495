import Foundation
import Hummingbird
import InletCore
import SystemPackage

import struct NIOCore.ByteBuffer

/// A file that is being received: written under a temporary name, and removed unless it is moved to its place.
struct ReceivedFile: ~Copyable {
    private let descriptor: FileDescriptor
    private let path: FilePath
    private(set) var hash: ContentHash

    /// Makes a new file in `folder`, which must be on the file system of the final place.
    init(in folder: FilePath, crcs: [Digest.Algorithm] = []) throws {
        hash = ContentHash(crcs: crcs)
        path = folder.appending(UUID().uuidString)
        descriptor = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: [.ownerReadWrite])
    }

    deinit {
        // The file is synced and closed already, or given up.
        try? descriptor.close()
        unlink(path.string)
    }

    /// Appends the bytes and updates the checksums.
    mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
        try descriptor.writeAll(bytes)
        hash.update(bytes)
    }

    mutating func write(_ buffer: ByteBuffer) throws {
        try buffer.withUnsafeReadableBytes { try write($0) }
    }

    /// Gives the file its final name in one step, replacing an older file.
    func move(to target: FilePath) throws { try FileMove.rename(path, to: target) }
}

/// Renaming and whole-file writing: a sandbox's files are never visible half written.
enum FileMove {
    /// Including the folders above it; it may exist.
    static func makeFolder(_ path: FilePath) throws {
        try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    }

    static func save(_ value: some Encodable, to target: FilePath) throws {
        try write(Data(JSON.encode(value)), to: target)
    }

    /// The content that `save` wrote; nil if there is no such file.
    ///
    /// - Throws: `UnreadableRecord` for another version's file.
    static func load<Value: Decodable>(_ type: Value.Type = Value.self, from path: FilePath) throws -> Value? {
        guard FileManager.default.fileExists(atPath: path.string) else { return nil }
        do {
            return try JSON.decode(Data(contentsOf: URL(fileURLWithPath: path.string)))
        } catch is DecodingError {
            throw UnreadableRecord(path: path)
        }
    }

    /// `rename(2)`.
    static func rename(_ source: FilePath, to target: FilePath) throws {
        guard Foundation.rename(source.string, target.string) == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    /// Writes a small file under a temporary name beside `target`, then renames it.
    static func write(_ data: Data, to target: FilePath) throws {
        try data.write(to: URL(fileURLWithPath: target.string), options: .atomic)
    }
}

extension FileDescriptor {
    /// Opens `path`, passes its bytes to `consume` a mebibyte at a time, and closes it.
    static func forEachChunk(of path: FilePath, _ consume: (UnsafeRawBufferPointer) throws -> Void) throws {
        let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        try file.closeAfter {
            var chunk = [UInt8](repeating: 0, count: 1 << 20)
            while true {
                let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0) }
                if count == 0 { return }
                try chunk.withUnsafeBytes { try consume(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            }
        }
    }
}

/// The checksums of a stream, computed as it passes; CRCs only on request.
struct ContentHash {
    private var md5 = MD5()
    private var sha256 = SHA256()
    private var crcs: [CRC]
    private(set) var size: Int64 = 0

    init(crcs: [Digest.Algorithm] = []) { self.crcs = crcs.compactMap { CRC($0) } }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        md5.update(bytes)
        sha256.update(bytes)
        for index in crcs.indices { crcs[index].update(bytes) }
        size += Int64(bytes.count)
    }

    func finish() -> (md5: [UInt8], sha256: [UInt8]) { (md5.bytes, sha256.bytes) }

    /// nil for a CRC that was not requested.
    subscript(algorithm: Digest.Algorithm) -> [UInt8]? {
        switch algorithm {
        case .md5: md5.bytes
        case .sha256: sha256.bytes
        default: crcs.first { $0.algorithm == algorithm }?.bytes
        }
    }
}

/// A reflected CRC that begins and ends with an inversion, as in `x-amz-checksum-crc32c` (Castagnoli, RFC 3720 appendix
/// B.4) and `x-amz-checksum-crc64nvme`.
struct CRC {
    private static let castagnoli = table(0x82F6_3B78)
    private static let nvme = table(0x9A6C_9329_AC4B_C9B5)

    private static func table(_ polynomial: UInt64) -> [UInt64] {
        (0..<256).map { index in
            (0..<8).reduce(index) { value, _ in value & 1 == 1 ? polynomial ^ (value >> 1) : value >> 1 }
        }
    }

    let algorithm: Digest.Algorithm
    private let table: [UInt64]
    private var state: UInt64

    /// nil for others than CRCs.
    init?(_ algorithm: Digest.Algorithm) {
        switch algorithm {
        case .crc32c: (table, state) = (Self.castagnoli, UInt64(UInt32.max))
        case .crc64nvme: (table, state) = (Self.nvme, .max)
        default: return nil
        }
        self.algorithm = algorithm
    }

    /// Big-endian, as on the wire in base 64.
    var bytes: [UInt8] { withUnsafeBytes(of: (~state).bigEndian) { Array($0.suffix(algorithm.length)) } }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        // Without the optimiser, as tests run, a `reduce` takes many times as long.
        var index = 0
        while index < bytes.count {
            state = table[Int(state & 0xFF) ^ Int(bytes[index])] ^ state >> 8
            index += 1
        }
    }
}

/// One `Range` of bytes (RFC 9110, section 14.1.2).
struct ByteRange: Sendable, Equatable {
    var first: Int64
    /// One past the last.
    var end: Int64
    var isPartial: Bool
    var count: Int64 { end - first }

    /// The whole file without a header, or with one that is not a single range of bytes; nil if the range lies outside.
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

/// A record of another version. A sandbox holds only samples, so it makes them again.
struct UnreadableRecord: Error, CustomStringConvertible {
    let path: FilePath

    var description: String {
        "\(path.display) is not a record of this version of the sandbox; remove the demo's folder, or give another with --dir"
    }
}
