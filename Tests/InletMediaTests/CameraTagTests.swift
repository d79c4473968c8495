import InletCore
import InletTestSupport
import Testing

@testable import InletMedia

struct CameraTagTests {
    private static let main: [(UInt16, String)] = [(0x010F, "Canon"), (0x0110, "Canon EOS R5")]
    private static let canon = CameraTags(make: "Canon", model: "Canon EOS R5")
    private static let xml = """
        <?xml version="1.0" encoding="UTF-8"?>
        <NonRealTimeMeta xmlns="urn:schemas-professionalDisc:nonRealTimeMeta:ver.2.00">
        <Device manufacturer="Sony" modelName="ILME-FX6V" serialNo="1"/></NonRealTimeMeta>
        """
    private static let sony = CameraTags(make: "Sony", model: "ILME-FX6V")

    private func tags(_ bytes: [UInt8]) throws -> CameraTags { try CameraTags.read(SparseFile(bytes).bounded) }

    @Test func `EXIF names the camera in every format`() throws {
        for isBig in [false, true] {
            let block = Sample.tiff(Self.main, exif: [(0x9003, "2026:11:20 07:08:09")], isBig: isBig)
            for file in [
                block, Sample.jpeg(block), Sample.png(block), Sample.webP(block), Sample.heif(block),
                Sample.fujifilmRaw(Sample.jpeg(block)),
            ] {
                #expect(try tags(file) == Self.canon)
            }
        }
    }

    @Test func `Canon's raw files and clips name it in boxes of their own`() throws {
        let block = Sample.tiff(Self.main)
        let raw = Sample.box("uuid", Sample.canonID + Sample.box("CMT1", block) + Sample.box("CMT2", Sample.tiff()))
        #expect(try tags(Sample.fileType + Sample.box("moov", raw)) == Self.canon)
        let clip = Sample.box("udta", Sample.box("CNTH", Sample.box("CNDA", Sample.jpeg(block))))
        #expect(try tags(Sample.fileType + Sample.box("moov", clip)) == Self.canon)
    }

    @Test(arguments: [
        [("com.apple.quicktime.make", "Apple"), ("com.apple.quicktime.model", "iPhone 15")],
        [("com.android.manufacturer", "Apple"), ("com.android.model", "iPhone 15")],
    ])
    func `phones name themselves under keys`(pairs: [(String, String)]) throws {
        let meta = Sample.appleMeta(pairs)
        for place in [meta, Sample.box("udta", meta)] {
            let movie = Sample.fileType + Sample.box("moov", [Sample.movieHeader(1), place])
            #expect(try tags(movie) == CameraTags(make: "Apple", model: "iPhone 15"))
        }
    }

    @Test func `user data names make and model`() throws {
        func text(_ type: UInt32, _ text: String) -> [UInt8] {
            let content = Sample.bytes(Int64(text.utf8.count), 2) + [0x55, 0xC4] + Array(text.utf8)
            return Sample.bytes(Int64(content.count + 8), 4) + Sample.bytes(Int64(type), 4) + content
        }
        let boxes = [text(0xA96D_616B, "Acme"), text(0xA96D_6F64, "One")]
        for order in [boxes, boxes.reversed()] {
            let movie = Sample.fileType + Sample.box("moov", [Sample.box("udta", order)])
            #expect(try tags(movie) == CameraTags(make: "Acme", model: "One"))
        }
        let drone = Sample.fileType + Sample.box("moov", [Sample.box("udta", text(0xA96D_646C, "FC3170"))])
        #expect(try tags(drone) == CameraTags(model: "FC3170"))
    }

    @Test func `Sony's XML names the camera, as a file and in a clip`() throws {
        let text = Array(Self.xml.utf8)
        let meta = Sample.box(
            "meta", [0, 0, 0, 0] + Sample.box("hdlr", [UInt8](repeating: 0, count: 24)) + Sample.box("xml ", text))
        for file in [
            text, [0xEF, 0xBB, 0xBF] + text, Sample.fileType + meta, Sample.fileType + Sample.box("moov", meta),
            Array(Self.xml.replacing("\"", with: "'").utf8),
        ] {
            #expect(try tags(file) == Self.sony)
        }
        for other in [
            "<?xml version=\"1.0\"?><Device manufacturer=\"x\" modelName=\"y\"/>", "<?xml", "<NonRealTimeMeta><Device ",
        ] {
            #expect(try tags(Array(other.utf8)) == CameraTags())
        }
    }

    @Test func `files without a camera name none`() throws {
        for file in [
            [], Array("words".utf8), Sample.jpeg(Sample.tiff()), Sample.tiff(),
            Sample.fileType + Sample.box("moov", [Sample.movieHeader(1)]),
        ] {
            #expect(try tags(file) == CameraTags())
        }
    }

    @Test(arguments: 0..<6 as Range<UInt64>)
    func `damaged files break nothing, and cost no more than sound ones may`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let block = Sample.tiff(Self.main)
        let clip = Sample.box("udta", Sample.box("CNTH", Sample.box("CNDA", Sample.jpeg(block))))
        let sound = [
            Sample.jpeg(block), Sample.heif(block), Array(Self.xml.utf8), Sample.fileType + Sample.box("moov", clip),
            Sample.fileType + Sample.box("moov", Sample.appleMeta([("com.apple.quicktime.model", "x")])),
        ]
        for _ in 0..<300 {
            var bytes = sound.randomElement(using: &random) ?? []
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let file = SparseFile(Array(bytes.prefix(Int.random(in: 1...bytes.count, using: &random))))
            _ = try CameraTags.read(file.bounded)
            #expect(file.reads <= BoundedBytes.maximumReads && file.bytesRead <= BoundedBytes.maximumBytes)
        }
    }
}
