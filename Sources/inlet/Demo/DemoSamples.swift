import Foundation
import SystemPackage

/// The files that `inlet demo` drops: small real ones of several kinds, one large enough for parallel parts, and some
/// that must be refused. All are made by code, the same bytes on every machine.
enum DemoSamples {
    /// What the demo's routes make of a sample.
    enum Expectation: Sendable, Equatable {
        case delivered
        case rejected
    }

    struct Sample: Sendable {
        /// Below the drop folder.
        var path: FilePath
        /// For the person who watches the demo.
        var purpose: String
        var expectation: Expectation
    }

    /// Writes every sample below `dropDirectory`, making the folders in between. A watcher sees each file whole.
    static func write(into dropDirectory: FilePath) throws -> [Sample] {
        try all.map { sample, content in
            try SampleFile.write(to: dropDirectory.pushing(sample.path), content)
            return sample
        }
    }

    private typealias Content = (inout SampleFile) throws -> Void

    private static var all: [(Sample, Content)] {
        [
            sample("photos/sunset.png", "a small image") { try PNGSample.write(640, 400, .sunset, to: &$0) },
            sample("photos/two words.png", "a name with a space") { try PNGSample.write(320, 480, .sea, to: &$0) },
            sample("models/spaceship.glb", "a 3D model") { try GLBSample.write(to: &$0) },
            sample("documents/manual.pdf", "a document") { try PDFSample.write(to: &$0) },
            sample("audio/tone.wav", "a few megabytes of sound") { try WAVSample.write(seconds: 36, to: &$0) },
            sample("videos/interview.mov", "over 20 MiB: parts go in parallel") { try MOVSample.write(to: &$0) },
            sample("gigs/The Loopbacks/Blue Moon.mp4", "a gig's video, by tus") { try MP4Sample.write(to: &$0) },
            sample("gigs/The Loopbacks/Soundcheck.wav", "a gig's sound, in one form") { file in
                try WAVSample.write(seconds: 9, to: &file)
            },
            sample("products/kettle.mp4", "a product's video, from which pictures are made") { file in
                try MP4Sample.write(to: &file)
            },
            sample("spaces/atrium/spaceship.png", "what a space shows until its model is loaded") { file in
                try PNGSample.write(320, 200, .sea, to: &file)
            },
            sample("spaces/atrium/spaceship.glb", "a 3D model, registered in its space") { file in
                try GLBSample.write(to: &file)
            },
            sample("notes/empty.txt", "no bytes at all") { _ in },
            sample("documents/setup.exe", "an extension that its route refuses", .rejected) { file in
                try file.write(Array("MZ".utf8) + [UInt8](repeating: 0, count: 510))
            },
            sample("photos/huge.tif", "larger than its route allows", .rejected) { try TIFSample.write(to: &$0) },
        ]
    }

    private static func sample(
        _ path: FilePath, _ purpose: String, _ expectation: Expectation = .delivered, _ content: @escaping Content
    ) -> (Sample, Content) {
        (Sample(path: path, purpose: purpose, expectation: expectation), content)
    }
}

/// A file that is written under a hidden temporary name beside its place and renamed when it is whole.
struct SampleFile: ~Copyable {
    private let descriptor: FileDescriptor

    static func write(to path: FilePath, _ content: (inout SampleFile) throws -> Void) throws {
        let folder = path.removingLastComponent()
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        let draft = folder.appending(".\(UUID().uuidString).tmp")
        do {
            var file = try SampleFile(draft)
            try content(&file)
        } catch {
            unlink(draft.string)
            throw error
        }
        guard rename(draft.string, path.string) == 0 else {
            let failure = Errno(rawValue: errno)
            unlink(draft.string)
            throw failure
        }
    }

    private init(_ path: FilePath) throws {
        descriptor = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
    }

    // What counts has been synced, or was given up.
    deinit { try? descriptor.close() }

    mutating func write(_ bytes: [UInt8]) throws { _ = try descriptor.writeAll(bytes) }

    /// Writes `count` pseudo-random bytes (xorshift64, Marsaglia 2003), 64 KiB in memory at a time.
    mutating func writeNoise(count: Int, seed: UInt64) throws {
        var state = seed
        var rest = count
        while rest > 0 {
            let length = min(rest, 1 << 16)
            var chunk: [UInt8] = []
            chunk.reserveCapacity(length + 8)
            while chunk.count < length {
                state ^= state << 13
                state ^= state >> 7
                state ^= state << 17
                chunk.append(littleEndian: state)
            }
            try write(Array(chunk.prefix(length)))
            rest -= length
        }
    }
}

extension [UInt8] {
    mutating func append(littleEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.littleEndian) { append(contentsOf: $0) }
    }
    mutating func append(bigEndian value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }
}
