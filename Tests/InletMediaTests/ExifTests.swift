import InletCore
import InletTestSupport
import Testing

@testable import InletMedia

struct ExifTests {
    private static let original: [(UInt16, String)] = [(0x9003, "2026:11:20 07:08:09")]

    @Test(
        arguments: [
            (
                [(0x9003, "2026:11:20 07:08:09"), (0x9004, "2026:11:19 00:00:00")],
                "2026-11-20T07:08:09.000 EXIF DateTimeOriginal"
            ),
            (
                [(0x9003, "2026:11:20 07:08:09"), (0x9011, "+02:00"), (0x9291, "25")],
                "2026-11-20T07:08:09.250+02:00 EXIF DateTimeOriginal"
            ),
            // Another date's zone is not this one's.
            ([(0x9003, "2026:11:20 07:08:09"), (0x9010, "+02:00")], "2026-11-20T07:08:09.000 EXIF DateTimeOriginal"),
            ([(0x9004, "2026:11:19 01:02:03"), (0x9012, "-05:00")], "2026-11-19T01:02:03.000-05:00 EXIF CreateDate"),
            (
                [(0x9003, "    :  :     :  :  "), (0x9004, "2026:11:19 01:02:03")],
                "2026-11-19T01:02:03.000 EXIF CreateDate"
            ),
            (
                [(0x9003, "1980:01:01 00:00:00"), (0x9004, "2026:11:19 01:02:03")],
                "2026-11-19T01:02:03.000 EXIF CreateDate"
            ),
            ([(0x9003, "2099:01:01 00:00:00")], "2026-11-01T12:00:00.000 EXIF DateTime"),
            ([], "2026-11-01T12:00:00.000 EXIF DateTime"),
        ] as [([(UInt16, String)], String)])
    func `the best date that can be believed is taken`(exif: [(UInt16, String)], expected: String) throws {
        let main: [(UInt16, String)] = [(0x010F, "Camera"), (0x0132, "2026:11:01 12:00:00")]
        for isBig in [false, true] {
            let block = Sample.tiff(main, exif: exif, isBig: isBig)
            #expect(try text(block) == expected)
            #expect(try text(Sample.jpeg(block)) == expected)
        }
    }

    @Test func `a block without dates has none, and none is made up`() throws {
        for block in [
            Sample.tiff(), Sample.tiff([(0x010F, "Camera")], exif: []), Sample.tiff(exif: [(0x9011, "+01:00")]),
        ] {
            #expect(try date(block) == nil)
            #expect(try date(Sample.jpeg(block)) == nil)
        }
    }

    @Test func `the block is found behind other segments and fill bytes`() throws {
        let before = [
            Sample.segment(0xE0, Array("JFIF\0".utf8)),
            Sample.segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8)),
            Sample.segment(0xE2, [UInt8](repeating: 7, count: 60_000)), [0xFF, 0xFF, 0xFF],
        ]
        let file = SparseFile(Sample.jpeg(Sample.tiff(exif: Self.original), before: before))
        #expect(try file.date()?.time.display == "2026-11-20T07:08:09.000")
        #expect(file.bytesRead < 1000)
    }

    @Test(arguments: [false, true])
    func `directories behind gigabytes of picture are found`(isBig: Bool) throws {
        let shift = 3 << 30
        let main: [(UInt16, String)] = [(0x0132, "2026:11:01 12:00:00")]
        let whole = Sample.tiff(main, exif: Self.original + [(0x9011, "Z")], isBig: isBig, shift: shift)
        let file = SparseFile(
            size: Int64(shift + whole.count),
            [(0, Array(whole.prefix(8))), (Int64(shift + 8), Array(whole.dropFirst(8)))])
        #expect(try file.date()?.time.display == "2026-11-20T07:08:09.000Z")
        #expect(file.reads <= 10)
        #expect(file.bytesRead <= 200)
    }

    @Test(arguments: [[], Array("Exif\0\0".utf8)])
    func `chunks of PNG and WebP are found`(before: [UInt8]) throws {
        let block = before + Sample.tiff(exif: Self.original)
        for picture in [Sample.png(block), Sample.webP(block)] {
            #expect(try text(picture) == "2026-11-20T07:08:09.000 EXIF DateTimeOriginal")
            #expect(try date(Array(picture.prefix(40))) == nil)
        }
    }

    @Test func `segments behind the picture's beginning are not looked at`() throws {
        let exif = Sample.segment(0xE1, Array("Exif\0\0".utf8) + Sample.tiff(exif: Self.original))
        #expect(try date([0xFF, 0xD8, 0xFF, 0xDA, 0, 2] + exif) == nil)
        #expect(try date([0xFF, 0xD8, 0xFF, 0xD9] + exif) == nil)
        #expect(try date([0xFF, 0xD8, 0x00, 0x00] + exif) == nil)
    }

    @Test(arguments: [("IIRO", false), ("IIRS", false), ("MMOR", true), ("IIU\0", false)])
    func `raw formats with a mark of their own are TIFF all the same`(mark: String, isBig: Bool) throws {
        let block = Sample.tiff(exif: Self.original, isBig: isBig, mark: Array(mark.utf8))
        #expect(try date(block)?.time.display == "2026-11-20T07:08:09.000")
    }

    @Test func `Fujifilm's raw files lead to the JPEG in them`() throws {
        let jpeg = Sample.jpeg(Sample.tiff(exif: Self.original))
        let raw = Sample.fujifilmRaw(jpeg)
        #expect(try date(raw)?.origin == "EXIF DateTimeOriginal")
        #expect(try date(Array(raw.prefix(92))) == nil)
    }

    @Test(arguments: [0, 1, 2] as [UInt8])
    func `a HEIF picture's item is found`(version: UInt8) throws {
        let block = Sample.tiff(exif: Self.original, isBig: true)
        #expect(try text(Sample.heif(block, version: version)) == "2026-11-20T07:08:09.000 EXIF DateTimeOriginal")
    }

    @Test func `a HEIF item that does not lie in the file itself has no date`() throws {
        #expect(try date(Sample.heif(Sample.tiff(exif: Self.original), method: 1)) == nil)
    }

    @Test func `a CR3's date is found in Canon's box`() throws {
        // Canon's CMT2 has the dates in its main directory.
        let block = Sample.tiff(Self.original)
        #expect(try text(Sample.canonRaw(block)) == "2026-11-20T07:08:09.000 EXIF DateTimeOriginal")
        #expect(
            try text(Sample.canonRaw(block, id: Sample.canonID.reversed()))
                == "2026-11-13T00:00:00.000Z MP4 creation time")
    }

    @Test func `fields longer than any date are left out before they are copied`() throws {
        // 4,000 entries over the same few bytes: hundreds of megabytes for whoever copies them all.
        func block(fieldLength: Int64) -> [UInt8] {
            let date = Array("2026:11:20 07:08:09\0".utf8)
            var block: [UInt8] = Array("II*\0".utf8) + Sample.bytes(28, 4, isBig: false) + date
            block += Sample.bytes(4000, 2, isBig: false)
            for index in 0..<4000 {
                block += Sample.bytes(Int64(0x9003 + index), 2, isBig: false) + Sample.bytes(2, 2, isBig: false)
                block += Sample.bytes(fieldLength, 4, isBig: false) + Sample.bytes(8, 4, isBig: false)
            }
            return block + [UInt8](repeating: 0, count: 10_000)
        }
        for (length, isTaken) in [(20, true), (256, true), (257, false), (50_000, false)] as [(Int64, Bool)] {
            let file = SparseFile(Sample.jpeg(block(fieldLength: length)))
            #expect((try file.date() != nil) == isTaken, "\(length)")
            #expect(file.bytesRead <= 70_000)
        }
    }

    @Test(arguments: [
        "", "plain text\n", "%PDF-1.7", "\u{89}PNG\n", "RIFF1234WAVE", "II", "MM\0*", "\u{7F}ELF", "Exif\0\0II*\0",
    ])
    func `other files have no date and cost one short read`(content: String) throws {
        let file = SparseFile(Array(content.utf8))
        #expect(try file.date() == nil)
        #expect(file.reads <= 2)
        #expect(file.bytesRead <= 64)
    }
}
