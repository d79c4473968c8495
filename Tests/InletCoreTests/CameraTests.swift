import InletCore
import SystemPackage
import Testing

struct CameraTests {
    @Test(arguments: [
        ("DCIM/100CANON/IMG_0001.CR3", "Canon"), ("DCIM/100EOS5D/a.jpg", "Canon"), ("DCIM/101NIKON/a.nef", "Nikon"),
        ("DCIM/100NCD90/a.jpg", "Nikon"), ("DCIM/100ND850/a.jpg", "Nikon"), ("DCIM/100NCZ_6/a.jpg", "Nikon"),
        ("DCIM/100MSDCF/DSC00001.ARW", "Sony"), ("PRIVATE/M4ROOT/CLIP/C0001.MP4", "Sony"),
        ("private/m4root/clip/c0001.mp4", "Sony"), ("XDROOT/Clip/0001.MXF", "Sony XDCAM"),
        ("BPAV/CLPR/a/a.MP4", "Sony XDCAM"), ("DCIM/100_FUJI/DSCF0001.RAF", "Fujifilm"),
        ("DCIM/100OLYMP/P1.ORF", "Olympus"), ("DCIM/100OMSYS/P1.ORF", "OM System"),
        ("DCIM/100_PANA/P1.RW2", "Panasonic"), ("PRIVATE/PANA_GRP/001RAQAM/a.MOV", "Panasonic"),
        ("CONTENTS/VIDEO/0001AB.MXF", "Panasonic P2"), ("CONTENTS/CLIPS001/AA0001/AA000101.MXF", "Canon"),
        ("DCIM/100LEICA/L1.DNG", "Leica"), ("DCIM/100GOPRO/GX010001.MP4", "GoPro"), ("DCIM/100MEDIA/a.MP4", "DJI"),
        ("DCIM/DJI_001/a.MP4", "DJI"), ("DCIM/x/DJI_0001.MP4", "DJI"), ("DCIM/100APPLE/IMG_1.HEIC", "Apple"),
        ("A001.RDM/A001_C001.RDC/A001_C001_001.R3D", "RED"), ("A001_C001.braw", "Blackmagic"), ("clip.ari", "ARRI"),
        ("A001/ARRIRAW/a", "ARRI"), ("A001/DCIM/100CANON/a/b/c.jpg", "Canon"),
        // The nearest name decides.
        ("100CANON/100MSDCF/a.jpg", "Sony"), ("100CANON/a.braw", "Blackmagic"),
    ])
    func `folders and names tell the camera`(path: String, system: String) {
        #expect(CameraStructure(of: FilePath(path))?.system == system)
        #expect(CameraStructure(of: FilePath("/media/CARD").pushing(FilePath(path)))?.system == system)
    }

    @Test(arguments: [
        "", "a.jpg", "DCIM/a.jpg", "DCIM/100XYZAB/a.jpg", "DCIM/10CANON/a.jpg", "DCIM/1000CANON/a.jpg",
        "CONTENTS/a.txt",
        "CONTENTS", "PRIVATE/AVCHD/BDMV/a.MTS", ".braw", "braw", "CANON/a.jpg", "DCIM/１００CANON/a.jpg",
    ])
    func `other names tell nothing`(path: String) { #expect(CameraStructure(of: FilePath(path)) == nil) }

    @Test func `a listing tells the system, unless it tells of two`() {
        let sony: [FilePath] = ["DCIM", "DCIM/100MSDCF", "PRIVATE", "PRIVATE/M4ROOT", "AVF_INFO"]
        #expect(CameraStructure(listing: sony)?.system == "Sony")
        #expect(CameraStructure(listing: sony + ["XDROOT"])?.system == "Sony XDCAM")
        #expect(CameraStructure(listing: sony + ["DCIM/100CANON"]) == nil)
        #expect(CameraStructure(listing: ["DCIM", "MISC"] as [FilePath]) == nil)
    }

    @Test(
        arguments: [
            ("Canon", "Canon EOS R5", nil, "Canon EOS R5"), ("NIKON CORPORATION", "NIKON Z 6", nil, "Nikon Z 6"),
            ("SONY", "ILCE-7SM3", nil, "Sony ILCE-7SM3"), ("FUJIFILM", "X-T4", nil, "Fujifilm X-T4"),
            ("OLYMPUS IMAGING CORP.  ", "E-M1MarkII      ", nil, "Olympus E-M1MarkII"),
            ("OM Digital Solutions", "OM-1", nil, "OM System OM-1"), ("LEICA CAMERA AG", "LEICA Q2", nil, "Leica Q2"),
            ("Blackmagic Design", "Blackmagic Pocket Cinema Camera 6K", nil, "Blackmagic Pocket Cinema Camera 6K"),
            ("Red", "Redmi 9", nil, "RED Redmi 9"), ("Canon", "Canon", nil, "Canon"), (nil, "FX6", nil, "FX6"),
            ("Acme Inc.", "One\u{0}\u{0}junk", nil, "Acme Inc. One"), ("a\nb", "c\u{7}d", nil, "a_b c_d"),
            // The model is more exact than the folder, the folder than the maker.
            ("Sony", "ILME-FX6V", "XDROOT/a", "Sony ILME-FX6V"), ("Sony", nil, "XDROOT/a", "Sony XDCAM"),
            ("Sony", nil, nil, "Sony"), (nil, nil, "100CANON/a", "Canon"), (" ", "\u{0}", nil, nil),
            (nil, nil, nil, nil),
        ] as [(String?, String?, FilePath?, String?)])
    func `a camera is named as people name it`(make: String?, model: String?, path: FilePath?, name: String?) {
        let system = path.flatMap { CameraStructure(of: $0) }
        #expect(Camera(make: make, model: model, system: system).name == name)
    }

    @Test(arguments: [
        ("canon eos r5", true), ("Canon EOS*", true), ("*r5", true), ("CANON", true), ("EOS R5", true), ("*", true),
        (" Canon ", true), ("Canon EOS", false), ("Sony", false), ("Can?n*", false), ("R5", false),
    ])
    func `a pattern matches the name, the maker, the model or the system`(text: String, isMatch: Bool) throws {
        let pattern = try CameraPattern(text)
        #expect(pattern.matches(Camera(make: "Canon", model: "Canon EOS R5")) == isMatch)
        #expect(!pattern.matches(Camera()))
    }

    @Test func `an empty pattern is refused`() {
        for text in ["", " "] { #expect(throws: PatternError.self) { try CameraPattern(text) } }
        let camera = Camera(make: "Sony", model: "ILME-FX6V", system: CameraStructure(of: "XDROOT/a"))
        #expect(["Sony XDCAM", "ilme*"].allSatisfy { (try? CameraPattern($0))?.matches(camera) == true })
    }
}
