import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletMedia

/// What no file may do to the reader, and the way from a real file to its date.
struct HostileFileTests {
    private static let exif: [(UInt16, String)] = [
        (0x9003, "2026:11:20 07:08:09"), (0x9004, "2026:11:19 07:08:09"), (0x9011, "+02:00"), (0x9291, "25"),
    ]

    private static let samples: [[UInt8]] = {
        let block = Sample.tiff([(0x010F, "Camera"), (0x0132, "2026:11:01 12:00:00")], exif: exif)
        let movie = [
            Sample.movieHeader(Sample.since1904(day: 20_777)),
            Sample.appleMeta([("com.apple.quicktime.creationdate", "2026-11-20T09:08:09+0200")]),
        ]
        return [
            block, Sample.tiff(exif: exif, isBig: true), Sample.jpeg(block), Sample.heif(block),
            Sample.heif(block, version: 2),
            Sample.fileType + Sample.box("mdat", [1, 2, 3]) + Sample.box("moov", movie),
            Sample.fileType + Sample.wideBox("moov", Array(movie.joined())),
            Sample.canonRaw(block), Sample.heif(Sample.tiff(exif: exif, isBig: true), version: 0), Sample.png(block),
            Sample.webP(block), Sample.fujifilmRaw(Sample.jpeg(block)),
        ]
    }()

    /// What no random damage finds soon: boxes that are cut off where something is expected in them, and sizes of all
    /// kinds in the four bytes before a name.
    @Test func `a box that says any size of itself never breaks the reader`() throws {
        let names = ["moov", "uuid", "CMT1", "CMT2", "mvhd", "meta", "iinf", "infe", "iloc", "keys", "ilst", "data"]
        for sample in Self.samples {
            for name in names {
                for place in sample.indices.dropFirst(4) where sample[place...].starts(with: name.utf8) {
                    for size in Array(0...40) + [1 << 31, 1 << 32 - 1] as [Int64] {
                        var bytes = sample
                        bytes.replaceSubrange((place - 4)..<place, with: Sample.bytes(size, 4))
                        if let date = try date(bytes) { #expect(date.time.isPlausible(at: Sample.today)) }
                    }
                }
            }
        }
    }

    @Test(arguments: 0..<16)
    func `what is behind a box too short for Canon's mark is not Canon's`(length: Int) throws {
        let block = Sample.tiff(Self.exif)
        let box = Sample.box("uuid", Array(Sample.canonID.prefix(length)))
        let rest = Array(Sample.canonID.dropFirst(length)) + Sample.box("CMT2", block)
        #expect(try date(Sample.fileType + Sample.box("moov", box + rest)) == nil)
    }

    @Test(arguments: 0..<16)
    func `a damaged file never breaks the reader or its bounds`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for round in 0..<400 {
            var bytes = Self.samples[round % Self.samples.count]
            for _ in 0..<Int.random(in: 1...8, using: &random) { Self.damage(&bytes, &random) }
            // The head stays, so that every reader gets to work.
            bytes = Array(Self.samples[round % Self.samples.count].prefix(8)) + bytes.dropFirst(8)
            let file = SparseFile(size: Self.claimedSize(bytes, &random), [(0, bytes)])
            if let date = try file.date() { #expect(date.time.isPlausible(at: Sample.today)) }
            #expect(file.reads <= BoundedBytes.maximumReads, "seed \(seed), round \(round)")
            #expect(file.bytesRead <= BoundedBytes.maximumBytes, "seed \(seed), round \(round)")
        }
    }

    /// Also a file that goes on with zeros behind the damage, as far as a file can.
    private static func claimedSize(_ bytes: [UInt8], _ random: inout SeededGenerator) -> Int64 {
        let real = Int64(bytes.count)
        return [real, real, real + 100_000, 1 << 33, Int64.max].randomElement(using: &random) ?? real
    }

    private static func damage(_ bytes: inout [UInt8], _ random: inout SeededGenerator) {
        guard bytes.count > 8 else { return }
        let place = Int.random(in: 8..<bytes.count, using: &random)
        let length = Int.random(in: 0...min(16, bytes.count - place), using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes.removeSubrange(place..<place + length)
        case 3: bytes.insert(contentsOf: Array(bytes[place..<place + length]), at: place)
        case 4: for index in place..<place + length { bytes[index] = [0, 0xFF, 1].randomElement(using: &random) ?? 0 }
        default: bytes.removeSubrange(place...)
        }
    }

    @Test func `a real file is read in place, and one without a date is an answer`() throws {
        let folder = try TemporaryDirectory()
        let picture = try folder.write(Sample.jpeg(Sample.tiff(exif: Self.exif)), to: "a.jpg")
        let found = try CaptureDate.read(from: try SourceFile(opening: picture), at: Sample.today)
        #expect(found?.time.display == "2026-11-20T07:08:09.250+02:00")
        #expect(Captured(found) == .at(try #require(found?.time), origin: "EXIF DateTimeOriginal"))
        let empty = try folder.write([], to: "empty")
        #expect(Captured(try CaptureDate.read(from: try SourceFile(opening: empty))) == .unknown)
    }

    @Test func `a file that shrinks while it is read has no date`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write(Sample.tiff(exif: Self.exif), to: "a.tif")
        let source = try SourceFile(opening: path)
        let handle = try #require(FileHandle(forWritingAtPath: path.string))
        try handle.truncate(atOffset: 12)
        try handle.close()
        #expect(try CaptureDate.read(from: source, at: Sample.today) == nil)
    }

    @Test func `a file that cannot be read is an error, not a file without a date`() {
        let bytes = BoundedBytes(size: 1000) { _, _ throws(SystemError) in
            throw SystemError(call: "read", path: "/a", code: .ioError)
        }
        #expect(throws: SystemError.self) { try CaptureDate.read(bytes, at: Sample.today) }
    }
}
