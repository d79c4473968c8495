import Foundation
import SystemPackage

import struct NIOCore.ByteBuffer

/// A file that is being received: written under a temporary name, gone again unless it is moved to its place.
struct IncomingFile: ~Copyable {
    private let descriptor: FileDescriptor
    private let path: FilePath
    private(set) var hash: ContentHash

    /// Makes a new file in `folder`, which must be on the file system of the final place.
    init(in folder: FilePath, withCRC32C: Bool = false) throws {
        hash = ContentHash(withCRC32C: withCRC32C)
        path = folder.appending(UUID().uuidString)
        descriptor = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: [.ownerReadWrite])
    }

    deinit {
        // What counts has been synced and closed, or was given up.
        try? descriptor.close()
        unlink(path.string)
    }

    /// Appends, and takes the bytes into the checksums.
    mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
        try descriptor.writeAll(bytes)
        hash.update(bytes)
    }

    mutating func write(_ buffer: ByteBuffer) throws {
        try buffer.withUnsafeReadableBytes { try write($0) }
    }

    /// Gives the file its final name in one step, replacing what is there.
    func move(to target: FilePath) throws { try FileMove.rename(path, to: target) }
}

/// Renaming and whole-file writing: nothing below the store is ever seen half made.
enum FileMove {
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
    /// Opens `path`, hands its bytes to `consume` a mebibyte at a time, and closes it.
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
