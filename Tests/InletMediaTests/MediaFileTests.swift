import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletMedia

struct DateTextTests {
    @Test(arguments: [
        ("2026:11:21 07:08:09", "2026-11-21T07:08:09.000"), ("2026-11-21T07:08:09", "2026-11-21T07:08:09.000"),
        ("2026/11/21 07:08:09 ", "2026-11-21T07:08:09.000"), (" 2026.11.21 07:08:09", "2026-11-21T07:08:09.000"),
        ("2026-11-21T07:08:09Z", "2026-11-21T07:08:09.000Z"),
        ("2026-11-21T07:08:09+0100", "2026-11-21T07:08:09.000+01:00"),
        ("2026-11-21T07:08:09-03:30", "2026-11-21T07:08:09.000-03:30"),
        ("2026-11-21T07:08:09+09", "2026-11-21T07:08:09.000+09:00"),
        ("2026-11-21T07:08:09.25+0100", "2026-11-21T07:08:09.250+01:00"),
        ("2026-11-21T07:08:09,123456Z", "2026-11-21T07:08:09.123Z"),
        ("2026:11:21 07:08:60", "2026-11-21T07:08:59.000"),
        // A zone that is none, or not known, does not cost the date.
        ("2026-11-21T07:08:09+99:00", "2026-11-21T07:08:09.000"),
        ("2026-11-21T07:08:09-00:00", "2026-11-21T07:08:09.000"), ("2026:11:21 07:08:09 PM", "2026-11-21T07:08:09.000"),
    ])
    func `dates are read as cameras write them`(text: String, expected: String) {
        #expect(DateText.time(text.utf8)?.display == expected)
    }

    @Test(arguments: [
        "", " ", "    :  :     :  :  ", "0000:00:00 00:00:00", "2026:11:21", "2026:11:21 07:08", "2026:02:30 07:08:09",
        "2026:11:21 24:00:00", "21:11:2026 07:08:09", "2026:1:2 07:08:09", "2026:11:21 07:08:0", "20261121070809",
        "+026:11:21 07:08:09", "2026:11:21 ０7:08:09", "\u{0}2026:11:21 07:08:09",
    ])
    func `what is no date is none`(text: String) { #expect(DateText.time(text.utf8) == nil) }

    @Test(arguments: [
        ("+01:00", "5", "2026-11-21T07:08:09.500+01:00"), ("-08:00", "012", "2026-11-21T07:08:09.012-08:00"),
        ("Z", "98 ", "2026-11-21T07:08:09.980Z"), ("   :  ", "   ", "2026-11-21T07:08:09.000"),
        ("", "", "2026-11-21T07:08:09.000"), ("+1", "1234567", "2026-11-21T07:08:09.123"),
    ])
    func `fields of their own make a date exact`(offset: String, subSeconds: String, expected: String) {
        let time = DateText.time(
            "2026:11:21 07:08:09".utf8, subSeconds: Array(subSeconds.utf8), offset: Array(offset.utf8))
        #expect(time?.display == expected)
    }

    @Test(arguments: 0..<4)
    func `no text breaks the reader`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let sound = Array("2026-11-21T07:08:09.25+01:00".utf8)
        for _ in 0..<2000 {
            var text = sound
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                text[place] = UInt8.random(in: 0...255, using: &random)
            }
            text = Array(text.prefix(Int.random(in: 1...text.count, using: &random)))
            if let time = DateText.time(text, subSeconds: text, offset: text) {
                #expect(abs(time.offset ?? 0) < 86_400)
            }
        }
    }
}

/// These need libmagic on the machine that runs them, as the packages that build Inlet do.
@Suite struct ContentTypeTests {
    @Test(
        arguments: [
            (
                [
                    0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 0, 1, 0,
                    0, 0, 1, 8, 2, 0, 0, 0,
                ], "image/png"
            ),
            ([0, 0, 0, 24] + Array("ftypisom".utf8) + [0, 0, 2, 0] + Array("isomavc1".utf8), "video/mp4"),
            (Array("%PDF-1.7\n".utf8), "application/pdf"), (Array("plain words\n".utf8), "text/plain"),
        ] as [([UInt8], String)])
    func `a type comes from the content`(bytes: [UInt8], type: String) throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(bytes, to: "anything.exe")
        #expect(try ContentType.read(from: try SourceFile(opening: path)) == type)
    }

    @Test func `every content has a type, an empty one too`() throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<500 {
            let bytes = (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let type = try ContentType.of(bytes)
            #expect(type.split(separator: "/").count == 2 && type == type.lowercased())
        }
        #expect(try ContentType.of([]).hasSuffix("empty"))
        try ContentType.check()
    }
}

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
