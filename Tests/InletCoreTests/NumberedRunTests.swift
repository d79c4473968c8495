import InletCore
import Testing

/// Runs of numbered recordings, and what is missing from them.
struct NumberedRunTests {
    @Test(
        arguments: [
            (["C0001.MP4", "C0002.MP4", "C0004.MP4"], ["C0003"]),
            (["IMG_0001.CR3", "IMG_0005.CR3"], ["IMG_0002 to IMG_0004"]),
            (["DSC00998.ARW", "DSC01001.ARW", "DSC01003.ARW"], ["DSC00999 to DSC01000", "DSC01002"]),
            (["A001_C001_1127XX_001.R3D", "A001_C001_1127XX_003.R3D"], ["A001_C001_1127XX_002"]),
            (["A001_11270512_C001.braw", "A001_11270530_C003.braw"], ["A001_…_C002"]),
            // Two formats of one picture are one number.
            (["IMG_0001.CR3", "IMG_0001.JPG", "IMG_0003.JPG"], ["IMG_0002"]),
            // A companion does not stand for its recording, nor does it miss one.
            (["C0001.MP4", "C0002M01.XML", "C0002.THM", "C0003.MP4"], ["C0002"]),
            (["C0001.XML", "C0003.XML"], []), (["C0001M01.XML", "C0003M01.XML"], []),
            // Another prefix, or another width, is another run.
            (["A0001.MP4", "B0003.MP4"], []), (["C001.MP4", "C0003.MP4"], []),
            // Some cameras count pictures and recordings together.
            (["IMG_0001.CR3", "MVI_0002.MP4", "IMG_0003.CR3"], []),
            // The counter was set, or the number is a date.
            (["C0001.MP4", "C0203.MP4"], []), (["20261127.mp4", "20261129.mp4"], []),
            (["C0001.MP4", "C0202.MP4"], ["C0002 to C0201"]), (["clip1.mp4", "clip3.mp4"], []),
            ([".C0001.MP4", "C0003.MP4"], []), (["C0001", "C0003"], []), ([], []),
        ] as [([String], [String])])
    func `numbers between the first and the last are missed`(names: [String], missing: [String]) {
        #expect(NumberedRun.gaps(names) == missing)
        #expect(NumberedRun.gaps(names.reversed() + names) == missing)
    }

    @Test func `each folder counts for itself`() {
        let paths = ["DCIM/100/IMG_0001.JPG", "DCIM/101/IMG_0003.JPG", "DCIM/101/IMG_0005.JPG", "C0009.MP4"]
        #expect(NumberedRun.gaps(inFolders: paths) == ["DCIM/101/IMG_0004"])
        #expect(
            NumberedRun.gaps(inFolders: ["B/C0001.MP4", "A/C0001.MP4", "A/C0003.MP4", "B/C0003.MP4"]) == [
                "A/C0002", "B/C0002",
            ])
    }

    @Test(arguments: [
        ("C0001.MP4", true), ("a.mxf", true), ("A001_001.R3D", true), ("x.jpg", true), ("s.wav", true),
        ("C0001.XML", false), ("DONE", false), ("a.txt", false), (".mp4", true),
    ])
    func `recordings are known by their names`(name: String, isRecording: Bool) {
        #expect(NumberedRun.isRecording(named: name) == isRecording)
    }
}
