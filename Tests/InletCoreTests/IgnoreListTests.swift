import InletCore
import SystemPackage
import Testing

struct IgnoreListTests {
    @Test(arguments: [
        "a.part", "a.mp4.partial", "a.filepart", "x.TMP", "x.temp", "x.crdownload", "x.download", "x.opdownload",
        "a.mkv.!qB", "a.mkv.!ut", "a.mkv.bc!", "a.iso.aria2", ".pending-1700000000-IMG_1.jpg", ".in.a.mp4.",
        ".pureftpd-upload.5f3e.15.1a2b.c3", ".smbdeleteAAA1f2e", ".~tmp~/a.jpg", ".rsync-partial/a.jpg",
        ".rsync-partial", "notes.txt~", ".~lock.report.odt#", ".#main.c", "a.swp", ".a.swx", ".DS_Store", "._IMG_1.jpg",
        ".Spotlight-V100/x", ".Trashes/1", ".fseventsd/0", ".TemporaryItems/f", "a/@eaDir/x.jpg", "#recycle/y",
        "@Recycle/y",
        ".recycle/y", "lost+found/#1", "System Volume Information/x", "$RECYCLE.BIN/x", "Thumbs.db", "desktop.ini",
        "ehthumbs.db", ".stfolder/x", ".stversions/x", ".syncthing.a.mov.tmp", "~syncthing~a.mov.tmp", ".sync/x",
        ".inlet/done/a.jpg", ".nfs000000001", ".fuse_hidden0001", ".goutputstream-ABC", ".IMG_1.jpg.aB3xYz",
        ".movie.x9k2q1", "a/clip.mp4.inlet-receipt.json",
    ])
    func `leavings of other programs are ignored, and all below them`(path: String) {
        #expect(IgnoreList().ignores(FilePath(path), isDirectory: false))
    }

    @Test(arguments: [
        "a.jpg", "part", "tmp/a.jpg", ".hidden", ".photos.sqlite", "a.parts", "x.CATPart", "~", "IMG.123456", "inlet/a",
        ".profile", "a.b.aB3xYz", "recycle/a", "desktop.ini.txt", ".x.000123", "clip.receipt.json",
        ".in.a.mp4", "a.qB", "in.a.", "pending-1.jpg",
    ])
    func `a user's file is not`(path: String) {
        #expect(!IgnoreList().ignores(FilePath(path), isDirectory: false))
    }

    @Test func `the user's patterns come on top`() throws {
        let list = IgnoreList(user: [try GlobPattern("*.bak"), try GlobPattern("raw/")])
        #expect(list.ignores("a/x.bak", isDirectory: false))
        #expect(list.ignores("raw/a.jpg", isDirectory: false))
        #expect(!list.ignores("raw", isDirectory: false))
        #expect(list.ignoresName("raw", isDirectory: true))
        #expect(list.ignores("x.part", isDirectory: false))
    }

    @Test(arguments: [
        ("a/@eaDir/x.jpg", "'@eaDir'", "@eaDir"), ("THUMBS.DB", "'THUMBS.DB'", "Thumbs.db"),
        ("a.PART", "'a.PART'", "*.part"),
        (".IMG_1.jpg.aB3xYz", "'.IMG_1.jpg.aB3xYz'", "rsync's temporary names"),
    ])
    func `a reason names the name and what it is known by`(path: String, name: String, pattern: String) throws {
        let reason = try #require(IgnoreList().reason(FilePath(path), isDirectory: false))
        #expect(reason.hasPrefix(name) && reason.hasSuffix(": " + pattern), "\(reason)")
    }

    @Test func `there is a reason for what is ignored, and only for that`() throws {
        let list = IgnoreList(user: [try GlobPattern("*.bak")])
        #expect(list.reason("a/x.bak", isDirectory: false) == "it matches '*.bak' of the folder's 'ignore'")
        #expect(list.reason("a/x.jpg", isDirectory: false) == nil)
    }

    @Test func `a walk looks at the last name only`() {
        let list = IgnoreList()
        #expect(!list.ignoresName(".inlet/done/a.jpg", isDirectory: false))
        #expect(list.ignoresName("a/.inlet", isDirectory: true))
    }

    @Test func `names that are not UTF-8 are compared as bytes`() {
        let name: [UInt8] = [0xFF, 0xFE] + Array(".part".utf8)
        #expect(IgnoreList.isBuiltIn(name: name))
        #expect(!IgnoreList.isBuiltIn(name: name.dropLast()))
    }

    @Test func `every built-in name has at most one star`() {
        #expect(IgnoreList.builtIn.allSatisfy { name in name.count { $0 == "*" } <= 1 })
    }
}
