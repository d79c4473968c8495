import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletMedia

/// Recordings that do not open, and what whole ones say of themselves.
struct ClipTests {
    private static let index = Sample.box("moov", [Sample.movieHeader(1)])
    private static let noIndex = "it has no index (moov): the recording was not closed"
    private static let notMovie = "its beginning is not that of a MOV or MP4 file"
    private static let notMXF = "its beginning is not that of an MXF file"
    private static let noFooter = "it has no footer: the recording was not closed"

    private func fault(_ bytes: [UInt8], _ name: String = "C0001.MP4") throws -> String? {
        try ClipCheck.fault(SparseFile(bytes).bounded, named: name)
    }

    // MARK: - MOV and MP4

    @Test(
        arguments: [
            (Sample.fileType + Sample.box("mdat", [1, 2]) + index, nil),
            (Sample.fileType + index + Sample.box("mdat"), nil),
            (index, nil), (Sample.box("wide") + index, nil),
            // What comes behind the index need not be a box.
            (Sample.fileType + index + [1, 2, 3], nil),
            (Sample.fileType + index + Array("SEFT, and more of it".utf8), nil),
            (Sample.fileType + Sample.box("mdat", [1, 2]), noIndex), (Sample.fileType, noIndex),
            (Sample.fileType + [0, 0, 0, 0] + Array("mdat".utf8) + [1, 2, 3, 4], noIndex),
            (Array("not a movie at all".utf8), notMovie), ([0, 0], notMovie),
            ([UInt8](repeating: 0, count: 4096), notMovie),
            ([], "it is empty"),
        ] as [([UInt8], String?)])
    func `a movie needs its index`(bytes: [UInt8], expected: String?) throws { #expect(try fault(bytes) == expected) }

    @Test func `a movie that ends within its pictures or its index is cut off`() throws {
        let data = Sample.box("mdat", [UInt8](repeating: 7, count: 5000))
        for whole in [Sample.fileType + Self.index + data, Sample.fileType + data + Self.index] {
            #expect(try fault(whole) == nil)
            #expect(try fault(whole.dropLast(1)) == "it is cut off: 1 byte short")
        }
        let big = SparseFile(
            size: 1 << 30, [(0, Sample.fileType + Self.index + Sample.wideBox("mdat", [], size: 3 << 30))])
        let missing = try ClipCheck.fault(big.bounded, named: "a.mov")
        #expect(missing == "it is cut off: 2 GiB short" && big.reads < 10 && big.bytesRead < 200)
    }

    @Test func `pictures and other files are never at fault for being no movies`() throws {
        #expect(try fault(Sample.heif(Sample.tiff()), "a.heic") == nil)
        #expect(try fault(Sample.jpeg(Sample.tiff()), "a.jpg") == nil)
        #expect(try fault(Array("<xml/>".utf8), "C0001M01.XML") == nil)
        #expect(try fault([], "DONE") == nil)
        #expect(try fault([], "a.jpg") == ClipCheck.empty)
    }

    @Test func `a file of more boxes than are read is not called faulty`() throws {
        let boxes = Array([[UInt8]](repeating: Sample.box("free"), count: 5000).joined())
        #expect(try fault(Sample.fileType + boxes) == nil)
    }

    // MARK: - MXF

    private static func key(_ kind: UInt8) -> [UInt8] {
        [0x06, 0x0E, 0x2B, 0x34, 0x02, 0x05, 0x01, 0x01, 0x0D, 0x01, 0x02, 0x01, 0x01, kind, 0x04, 0x00]
    }

    private static func packet(_ key: [UInt8], _ content: [UInt8]) -> [UInt8] {
        key + [0x83] + Sample.bytes(Int64(content.count), 3) + content
    }

    private static func pack(_ kind: UInt8, footer: Int64, header: Int64 = 0) -> [UInt8] {
        let numbers = Sample.bytes(0, 8) + Sample.bytes(0, 8) + Sample.bytes(footer, 8) + Sample.bytes(header, 8)
        return packet(key(kind), [0, 1, 0, 3, 0, 0, 0, 1] + numbers + [UInt8](repeating: 0, count: 48))
    }

    private static func set(_ kind: UInt8, _ items: [(Int64, [UInt8])]) -> [UInt8] {
        let start: [UInt8] = [0x06, 0x0E, 0x2B, 0x34, 0x02, 0x53, 0x01, 0x01, 0x0D, 0x01, 0x01, 0x01, 0x01, 0x01]
        let content = items.map { Sample.bytes($0.0, 2) + Sample.bytes(Int64($0.1.count), 2) + $0.1 }
        return packet(start + [kind, 0], Array(content.joined()))
    }

    /// A file of 1000 frames of 25 a second from 01:00:00:00 on.
    private static func mxf(
        footer: Bool = true, body: Int = 200, rate: (Int64, Int64) = (25, 1), base: Int64 = 25, drop: UInt8 = 0
    ) -> [UInt8] {
        let sound = set(0x3B, [(0x4B01, Sample.bytes(48_000, 4) + Sample.bytes(1, 4))])
        let track = set(0x3B, [(0x4B01, Sample.bytes(rate.0, 4) + Sample.bytes(rate.1, 4))])
        let code = set(
            0x14,
            [
                (0x0202, Sample.bytes(1000, 8)), (0x1501, Sample.bytes(90_000, 8)), (0x1502, Sample.bytes(base, 2)),
                (0x1503, [drop]),
            ])
        let sets = sound + track + code
        let essence = packet([UInt8](repeating: 0x0A, count: 16), [UInt8](repeating: 1, count: body))
        let size = Int64(pack(2, footer: 0).count + sets.count + essence.count)
        let start = pack(2, footer: footer ? size : 0, header: Int64(sets.count)) + sets + essence
        return footer ? start + pack(4, footer: size) : start
    }

    @Test func `an MXF file needs its footer, or the index that stands at its end`() throws {
        let whole = Self.mxf()
        #expect(try fault(whole, "A001.MXF") == nil && fault(whole, "A001.bin") == nil)
        #expect(try fault(Self.mxf(footer: false), "A001.MXF") == Self.noFooter)
        let entry = Self.packet(Self.key(0x11), Sample.bytes(0, 12) + Sample.bytes(36, 4))
        #expect(try fault(Self.mxf(footer: false) + entry, "A001.MXF") == nil)
        // Other bytes may stand before it.
        #expect(try fault([UInt8](repeating: 9, count: 1000) + whole, "A001.MXF") == nil)
    }

    @Test func `an MXF file that ends early is called cut off, wherever it ends`() throws {
        let whole = Self.mxf()
        for count in [1, 60, 107] { #expect(try fault(Array(whole.dropLast(count)), "A.MXF") != nil, "\(count)") }
        let cut = try #require(try fault(Array(whole.dropLast(250)), "A.MXF"))
        #expect(cut.hasPrefix("it is cut off: at least ") && cut.hasSuffix(" short"), "\(cut)")
        for count in 1..<17 { #expect(try fault(Array(whole.prefix(count)), "A.MXF") == Self.notMXF) }
        #expect(try fault(Array("no MXF".utf8), "A.MXF") == Self.notMXF)
        var torn = whole
        torn[torn.count - 109 + 13] ^= 0xFF
        #expect(try fault(torn, "A.MXF") != nil)
    }

    @Test func `no damage breaks the reader`() throws {
        var random = SeededGenerator(seed: 7)
        for sound in [Self.mxf(), Sample.fileType + Self.index + Self.timecodeTrack(30, 1800)] {
            for _ in 0..<3000 {
                var bytes = sound
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random)))
                let file = SparseFile(bytes)
                _ = try ClipCheck.fault(file.bounded, named: "a.mxf")
                let facts = try ClipFacts.read(file.bounded)
                #expect(facts.duration.map { $0 > .zero && $0 <= .seconds(100 * 86_400) } ?? true)
            }
        }
    }

    // MARK: - Facts

    /// A track of time codes whose first sample lies in a box behind it, with the number of the first frame.
    private static func timecodeTrack(_ base: UInt8, _ frame: Int64, isDrop: Bool = false, at place: Int64 = 0)
        -> [UInt8]
    {
        let handler = Sample.box("hdlr", Sample.bytes(0, 8) + Array("tmcd".utf8) + Sample.bytes(0, 12))
        let fields =
            Sample.bytes(0, 4) + Sample.bytes(isDrop ? 1 : 0, 4) + Sample.bytes(30_000, 4) + Sample.bytes(1001, 4)
        let entry = Sample.box("tmcd", Sample.bytes(0, 6) + Sample.bytes(1, 2) + fields + [base, 0])
        let table = Sample.box(
            "stbl",
            [
                Sample.box("stsd", Sample.bytes(0, 4) + Sample.bytes(1, 4) + entry),
                Sample.box("stco", Sample.bytes(0, 4) + Sample.bytes(1, 4) + Sample.bytes(place, 4)),
            ])
        return Sample.box("trak", [Sample.box("mdia", [handler, Sample.box("minf", [table])])])
    }

    private static func movie(_ base: UInt8, _ frame: Int64, isDrop: Bool, extra: [UInt8] = []) -> [UInt8] {
        let header = Sample.box(
            "mvhd", [0, 0, 0, 0] + Sample.bytes(0, 8) + Sample.bytes(600, 4) + Sample.bytes(600 * 75 / 2, 4))
        // The sample stands in front: its place does not depend on the index.
        let data = Sample.box("mdat", Sample.bytes(frame, 4))
        let place = Int64(Sample.fileType.count + 8)
        return Sample.fileType + data
            + Sample.box("moov", [header, timecodeTrack(base, frame, isDrop: isDrop, at: place), extra])
    }

    @Test(
        arguments: [
            (25, 90_000, false, "01:00:00:00"), (24, 24 * 61 + 5, false, "00:01:01:05"),
            (30, 1800, true, "00:01:00;02"), (30, 1799, true, "00:00:59;29"), (30, 17_982, true, "00:10:00;00"),
            (60, 3600, true, "00:01:00;04"), (30, 107_892, true, "01:00:00;00"),
        ] as [(UInt8, Int64, Bool, String)])
    func `a movie's length and first time code are read`(base: UInt8, frame: Int64, isDrop: Bool, code: String) throws {
        let facts = try ClipFacts.read(SparseFile(Self.movie(base, frame, isDrop: isDrop)).bounded)
        #expect(facts.timecode == code)
        #expect(facts.duration == .milliseconds(37_500))
    }

    @Test func `the camera is named once, however its make is written`() throws {
        for (make, model, name) in [
            ("Sony", "ILME-FX3", "Sony ILME-FX3"), ("Canon", "Canon EOS R5", "Canon EOS R5"),
            ("NIKON CORPORATION", "NIKON Z 9", "NIKON Z 9"),
        ] {
            let meta = Sample.appleMeta([("com.apple.quicktime.make", make), ("com.apple.quicktime.model", model)])
            #expect(
                try ClipFacts.read(SparseFile(Self.movie(25, 0, isDrop: false, extra: meta)).bounded).camera == name)
            let picture = Sample.jpeg(Sample.tiff([(0x010F, make), (0x0110, model)]))
            #expect(try ClipFacts.read(SparseFile(picture).bounded).camera == name)
        }
        #expect(try ClipFacts.read(SparseFile(Sample.jpeg(Sample.tiff())).bounded) == ClipFacts())
    }

    @Test func `an MXF file's length counts pictures, not samples of sound`() throws {
        let facts = try ClipFacts.read(SparseFile(Self.mxf()).bounded)
        #expect(facts.duration == .seconds(40) && facts.timecode == "01:00:00:00")
        let other = try ClipFacts.read(SparseFile(Self.mxf(rate: (30_000, 1001), base: 30, drop: 1)).bounded)
        #expect(other.duration == .milliseconds(33_367) && other.timecode == "00:50:03;00")
    }

    @Test func `a file is checked by its path, and a symlink is not followed`() throws {
        let directory = try TemporaryDirectory()
        try directory.write(Sample.fileType, to: "C0001.MP4")
        #expect(try ClipCheck.fault(at: RootedPath(directory.path, "C0001.MP4")) == Self.noIndex)
        try DurableFile.makeLink(directory.path.appending("C0002.MP4"), to: directory.path.appending("C0001.MP4"))
        #expect(throws: SystemError.self) {
            try ClipCheck.fault(at: RootedPath(directory.path, "C0002.MP4"))
        }
    }
}
