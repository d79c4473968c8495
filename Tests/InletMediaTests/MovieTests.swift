import InletCore
import InletTestSupport
import Testing

@testable import InletMedia

struct MovieTests {
    /// 2026-11-20T07:08:09Z in seconds since 1904.
    private static let seconds = Sample.since1904(day: 20_777, second: 25_689)
    private static let header = "2026-11-20T07:08:09.000Z MP4 creation time"
    private static let apple = ("com.apple.quicktime.creationdate", "2026-11-20T09:08:09+0200")

    @Test(arguments: [0, 1] as [UInt8])
    func `the header's time is UTC, in both of its versions`(version: UInt8) throws {
        let movie = Sample.box("moov", [Sample.movieHeader(Self.seconds, version: version)])
        #expect(try text(Sample.fileType + movie) == Self.header)
        #expect(try text(Sample.fileType + Sample.box("mdat", [1, 2, 3]) + movie) == Self.header)
        // QuickTime of old begins with what it pleases.
        for type in ["wide", "free", "skip", "mdat", "pnot"] {
            #expect(try text(Sample.box(type) + movie) == Self.header)
        }
        #expect(try text(movie) == Self.header)
        // A last box may say that it goes to the end.
        #expect(try text(Sample.fileType + [0, 0, 0, 0] + movie.dropFirst(4)) == Self.header)
    }

    @Test(arguments: [0, 1, 2_082_844_800, 0xFFFF_FFFF, Sample.since1904(day: 20_780)])
    func `times of clocks that were never set do not count`(seconds: Int64) throws {
        for version in [0, 1] as [UInt8] {
            #expect(
                try date(Sample.fileType + Sample.box("moov", [Sample.movieHeader(seconds, version: version)])) == nil)
        }
    }

    @Test(arguments: [Int64.max, -1, 1 << 40, 1 << 62])
    func `a time of 64 bits that no calendar has does not count`(seconds: Int64) throws {
        let movie = Sample.box("moov", [Sample.movieHeader(seconds, version: 1)])
        #expect(try date(Sample.fileType + movie) == nil)
        #expect(try date(Sample.fileType + Sample.box("moov", [Sample.movieHeader(Self.seconds, version: 2)])) == nil)
    }

    @Test(arguments: [false, true])
    func `Apple's date comes first, because it has the zone`(isFull: Bool) throws {
        let others = [("com.apple.quicktime.make", "Apple"), ("com.apple.quicktime.creationdat", "x")]
        let meta = Sample.appleMeta(others + [Self.apple], isFull: isFull)
        for place in [meta, Sample.box("udta", meta)] {
            let movie = Sample.box("moov", [Sample.movieHeader(Self.seconds), place])
            #expect(try text(Sample.fileType + movie) == "2026-11-20T09:08:09.000+02:00 QuickTime creationdate")
        }
    }

    @Test(arguments: [
        [("com.apple.quicktime.make", "Apple")], [("com.apple.quicktime.creationdate", "yesterday")],
        [("com.apple.quicktime.creationdate", "1904-01-01T00:00:00Z")], [("com.apple.quicktime.creationdate", "")],
        [("com.apple.quicktime.creationdate", String(repeating: "9", count: 500))], [],
    ])
    func `without a sound date of Apple's the header's counts`(pairs: [(String, String)]) throws {
        let movie = Sample.box("moov", [Sample.appleMeta(pairs), Sample.movieHeader(Self.seconds)])
        #expect(try text(Sample.fileType + movie) == Self.header)
    }

    @Test func `an index behind gigabytes is found with a few short reads`() throws {
        let movie = Sample.box("moov", [Sample.movieHeader(Self.seconds), Sample.appleMeta([Self.apple])])
        let start = Int64(Sample.fileType.count)
        let length: Int64 = 5 << 40
        let file = SparseFile(
            size: start + length + Int64(movie.count),
            [(0, Sample.fileType + Sample.wideBox("mdat", [], size: length)), (start + length, movie)])
        #expect(try file.date()?.origin == "QuickTime creationdate")
        #expect(file.reads <= 20)
        #expect(file.bytesRead <= 500)
    }

    @Test func `an index at the end of the largest file there can be breaks nothing`() throws {
        let meta = Sample.appleMeta([Self.apple])
        for cut in 0..<(meta.count + 8) {
            let tail = Array((Sample.bytes(0, 4) + Array("moov".utf8) + meta).dropLast(cut))
            let start = Int64.max - Int64(tail.count)
            let data = Sample.wideBox("mdat", [], size: start - Int64(Sample.fileType.count))
            #expect(try SparseFile(size: .max, [(0, Sample.fileType + data), (start, tail)]).date() == nil)
        }
    }

    @Test func `a box that claims more than there is, is cut`() throws {
        let header = Sample.movieHeader(Self.seconds)
        for size in [Int64.max, -1, 1 << 62, 1 << 40] {
            #expect(try text(Sample.fileType + Sample.wideBox("moov", header, size: size)) == Self.header)
        }
        #expect(try text(Sample.fileType + Sample.bytes(0xFFFF_FFFF, 4) + Array("moov".utf8) + header) == Self.header)
    }

    @Test(arguments: [1, 2, 7] as [Int64])
    func `a box smaller than its own header ends the walk`(size: Int64) throws {
        let movie = Sample.box("moov", [Sample.movieHeader(Self.seconds)])
        let file = SparseFile(Sample.fileType + Sample.bytes(size, 4) + Array("free".utf8) + Sample.bytes(0, 8) + movie)
        #expect(try file.date() == nil)
        #expect(file.reads <= 4)
        let wide = SparseFile(Sample.fileType + Sample.wideBox("free", [], size: size) + movie)
        #expect(try wide.date() == nil)
    }

    @Test func `a file of nothing but tiny boxes is given up`() throws {
        let boxes = [[UInt8]](repeating: Sample.box("free"), count: 50_000).joined()
        let file = SparseFile(Sample.fileType + Array(boxes) + Sample.box("moov", [Sample.movieHeader(Self.seconds)]))
        #expect(try file.date() == nil)
        #expect(file.reads <= BoundedBytes.maximumReads)
        #expect(file.bytesRead <= BoundedBytes.maximumBytes)
    }

    @Test func `a list of keys without end is given up`() throws {
        let keys = [[UInt8]](repeating: Sample.box("mdta"), count: 20_000).joined()
        let meta = Sample.box(
            "meta",
            [Sample.box("hdlr"), Sample.box("keys", Sample.bytes(0, 8) + Array(keys)), Sample.box("ilst")])
        let file = SparseFile(Sample.fileType + Sample.box("moov", [Sample.movieHeader(Self.seconds), meta]))
        #expect(try file.date()?.origin == "MP4 creation time")
        #expect(file.reads <= 300)
    }

    @Test func `a file that ends early has no date, or a whole one`() throws {
        let movie = Sample.box("moov", [Sample.movieHeader(Self.seconds), Sample.appleMeta([Self.apple])])
        let whole = Sample.fileType + movie
        for count in 0..<whole.count {
            let found = try date(Array(whole.prefix(count)))
            #expect(found == nil || found?.time.isPlausible(at: Sample.today) == true)
        }
        #expect(try date(whole) != nil)
    }
}
