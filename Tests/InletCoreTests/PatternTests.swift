import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct GlobPatternTests {
    @Test(arguments: [
        ("", 0, "empty"), ("/", 0, "empty"), ("!*.bak", 0, "negate"), ("a//b", 2, "one slash"), ("a/../b", 2, "'..'"),
        ("./a", 0, "'.'"), ("a[bc", 1, "not closed"), ("a[", 1, "not closed"), ("a\\", 1, "backslash"),
        ("[z-a]", 1, "backwards"), ("[a/b]", 2, "'/'"), ("[ä]", 1, "ASCII"), ("[[:nope:]]", 1, "unknown class"),
        ("a\u{0}b", 1, "NUL"), (String(repeating: "a/", count: 70), 0, "more than"),
    ])
    func `a pattern that could never match is refused where it goes wrong`(text: String, offset: Int, word: String) {
        let error = #expect(throws: PatternError.self) { try GlobPattern(text) }
        #expect(error?.offset == offset && error?.message.contains(word) == true)
    }

    @Test(
        arguments: [
            ("*.bak", "x.bak", true), ("*.bak", "a/b/x.bak", true), ("*.bak", "x.bak.txt", false),
            ("*.BAK", "x.bak", false), ("*.bak", "x.bak/inside", true), ("/x", "x", true), ("/x", "a/x", false),
            ("a/x", "b/a/x", false), ("a/x", "a/x", true), ("gigs/**", "gigs/1/2.mp4", true),
            ("gigs/**", "gigs", false), ("gigs/**", "sub/gigs/1", false), ("**/x", "x", true), ("**/x", "a/b/x", true),
            ("a/**/b", "a/b", true), ("a/**/b", "a/1/2/b", true), ("a/**/b", "a/1/c", false), ("**", "any/thing", true),
            ("a**b", "axxb", true), ("a**b", "a/b", false), ("a?c", "abc", true), ("a?c", "a/c", false),
            ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false), ("[^a]x", "bx", true), ("[]]x", "]x", true),
            ("[a-]x", "-x", true), ("[[:digit:]]", "7", true), ("[[:digit:]]", "d", false), ("[\\]]x", "]x", true),
            ("\\*", "*", true), ("\\*", "a", false), ("\\!a", "!a", true), ("#recycle", "#recycle/x", true),
            ("a*", "a", true), ("*", ".hidden", true), ("photos/*.jpg", "photos/a.jpg", true),
            ("photos/*.jpg", "photos/b/a.jpg", false), ("a/*", "a/b/c", true), ("naïve*", "naïve.txt", true),
        ] as [(String, String, Bool)])
    func `patterns follow gitignore`(pattern: String, path: String, matches: Bool) throws {
        #expect(try GlobPattern(pattern).matches(FilePath(path)) == matches)
    }

    @Test func `a trailing slash means folders and what is below them`() throws {
        let pattern = try GlobPattern("cache/")
        #expect(!pattern.matches("cache"))
        #expect(pattern.matches("cache", isDirectory: true))
        #expect(pattern.matches("a/cache/file"))
        #expect(try !GlobPattern("a/cache/").matches("b/a/cache/file"))
    }

    @Test func `names that are not UTF-8 match byte by byte`() throws {
        let path = FilePath(bytes: Array("a/caf".utf8) + [0xE9] + Array(".jpg".utf8))
        #expect(try GlobPattern("*.jpg").matches(path))
        #expect(try GlobPattern("caf?.jpg").matches(path))
        #expect(try !GlobPattern("café.jpg").matches(path))
    }

    @Test func `many stars do not blow up`() throws {
        let pattern = try GlobPattern(String(repeating: "a*", count: 100) + "b")
        let deep = try GlobPattern(String(repeating: "**/a/", count: 29) + "b")
        let clock = ContinuousClock()
        let time = clock.measure {
            #expect(!pattern.matches(FilePath(String(repeating: "a", count: 4000))))
            #expect(!deep.matches(FilePath(String(repeating: "a/", count: 500))))
        }
        #expect(time < .seconds(60))
    }

    @Test func `random patterns agree with a naive matcher`() throws {
        var generator = SeededGenerator(seed: 42)
        for _ in 0..<5000 {
            let pattern = random("ab*?/", 1...7, &generator)
            let path = random("ab/", 1...7, &generator).split(separator: "/").joined(separator: "/")
            guard !path.isEmpty, let glob = try? GlobPattern(pattern) else { continue }
            let isDirectory = Bool.random(using: &generator)
            let expected = NaiveGlob.matches(pattern, path, isDirectory)
            #expect(glob.matches(FilePath(path), isDirectory: isDirectory) == expected, "\(pattern) on \(path)")
        }
    }

    private func random(_ alphabet: String, _ length: ClosedRange<Int>, _ generator: inout SeededGenerator) -> String {
        String(
            (0..<Int.random(in: length, using: &generator)).compactMap { _ in alphabet.randomElement(using: &generator)
            })
    }
}

/// gitignore's rules written as plainly as possible, with backtracking over strings.
private enum NaiveGlob {
    static func matches(_ pattern: String, _ path: String, _ isDirectory: Bool) -> Bool {
        var pattern = Substring(pattern)
        let foldersOnly = pattern.hasSuffix("/")
        if foldersOnly { pattern.removeLast() }
        let isAnchored = pattern.contains("/")
        if pattern.hasPrefix("/") { pattern.removeFirst() }
        let segments = (isAnchored ? [] : ["**"]) + pattern.split(separator: "/").map(String.init)
        let names = path.split(separator: "/").map(String.init)
        return (1...names.count).contains { length in
            let isFolder = length < names.count || isDirectory
            return (isFolder || !foldersOnly) && folders(segments[...], names[..<length])
        }
    }

    private static func folders(_ pattern: ArraySlice<String>, _ names: ArraySlice<String>) -> Bool {
        guard let first = pattern.first else { return names.isEmpty }
        let rest = pattern.dropFirst()
        if first == "**" {
            if rest.isEmpty { return !names.isEmpty }
            return (0...names.count).contains { folders(rest, names.dropFirst($0)) }
        }
        guard let name = names.first else { return false }
        return characters(first[...], name[...]) && folders(rest, names.dropFirst())
    }

    private static func characters(_ pattern: Substring, _ name: Substring) -> Bool {
        guard let first = pattern.first else { return name.isEmpty }
        if first == "*" { return (0...name.count).contains { characters(pattern.dropFirst(), name.dropFirst($0)) } }
        guard let head = name.first, first == "?" || first == head else { return false }
        return characters(pattern.dropFirst(), name.dropFirst())
    }
}

struct IgnoreListTests {
    @Test(arguments: [
        "a.part", "a.mp4.partial", "a.filepart", "x.TMP", "x.temp", "x.crdownload", "x.download", "x.opdownload",
        "a.mkv.!qB", "a.mkv.!ut", "a.mkv.bc!", "a.iso.aria2", ".pending-1700000000-IMG_1.jpg", ".in.a.mp4.",
        ".pureftpd-upload.5f3e.15.1a2b.c3", ".smbdeleteAAA1f2e", ".~tmp~/a.jpg", ".rsync-partial/a.jpg",
        ".rsync-partial", "notes.txt~", ".~lock.report.odt#", ".#main.c", "a.swp", ".a.swx", ".DS_Store", "._IMG_1.jpg",
        ".Spotlight-V100/x", ".Trashes/1", ".fseventsd/0", ".TemporaryItems/f", "a/@eaDir/x.jpg", "#recycle/y",
        "@Recycle/y", ".recycle/y", "lost+found/#1", "System Volume Information/x", "$RECYCLE.BIN/x", "Thumbs.db",
        "desktop.ini", "ehthumbs.db", ".stfolder/x", ".stversions/x", ".syncthing.a.mov.tmp", "~syncthing~a.mov.tmp",
        ".sync/x", ".inlet/done/a.jpg", ".nfs000000001", ".fuse_hidden0001", ".goutputstream-ABC", ".IMG_1.jpg.aB3xYz",
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
    func `a user's file is not`(path: String) { #expect(!IgnoreList().ignores(FilePath(path), isDirectory: false)) }

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
        ("a.PART", "'a.PART'", "*.part"), (".IMG_1.jpg.aB3xYz", "'.IMG_1.jpg.aB3xYz'", "rsync's temporary names"),
    ])
    func `a reason names the name and what it is known by`(path: String, name: String, pattern: String) throws {
        let reason = try #require(IgnoreList().reason(FilePath(path), isDirectory: false))
        #expect(reason.hasPrefix(name) && reason.hasSuffix(": " + pattern), "\(reason)")
    }

    @Test func `there is a reason for what is ignored, and only for that`() throws {
        let list = IgnoreList(user: [try GlobPattern("*.bak")])
        #expect(list.reason("a/x.bak", isDirectory: false) == "it matches '*.bak' in the folder's 'ignore'")
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

@Suite struct RootPatternTests {
    @Test(arguments: [
        ("/media/*/DCIM", "/media/A/DCIM", "/media/A/DCIM"),
        ("/media/*/DCIM", "/media/A/DCIM/100/a.jpg", "/media/A/DCIM"), ("/media/*/DCIM", "/media/A/PRIVATE/a", nil),
        ("/media/*/DCIM", "/media/DCIM", nil), ("/media/*/DCIM", "/mnt/A/DCIM", nil),
        ("/media/*/*", "/media/ann/EOS/DCIM/a", "/media/ann/EOS"), ("/media/EOS?", "/media/EOS1", "/media/EOS1"),
        ("/media/EOS?", "/media/EOS12", nil), ("/media/[ab]*", "/media/beta/x", "/media/beta"),
        ("/media/*", "/media/.hidden/x", nil), ("/media/.*", "/media/.hidden", "/media/.hidden"),
    ])
    func `the folder of a pattern that a path lies in`(pattern: String, path: String, root: String?) throws {
        #expect(try RootPattern(FilePath(pattern)).root(of: FilePath(path)) == root.map { FilePath($0) })
    }

    @Test func `what comes before the first wildcard is fixed`() throws {
        let pattern = try RootPattern("/media/ann/*/DCIM")
        #expect(pattern.parent == "/media/ann" && pattern.parts.count == 2)
        #expect(RootPattern.isPattern("/media/*/DCIM"))
        #expect(!RootPattern.isPattern("/srv/drop"))
    }

    @Test func `a pattern without an end, or that cannot be understood, is refused at its place`() {
        #expect(throws: PatternError.self) { try RootPattern("/media/**/DCIM") }
        do throws(PatternError) {
            _ = try RootPattern("/media/[a/DCIM")
            Issue.record("an open bracket was taken")
        } catch {
            #expect(error.offset >= 7)
        }
    }

    @Test func `the label of the volume is a part of keys, and its segment goes where there is none`() throws {
        let template = try KeyTemplate("cards/{volume}/{name}")
        var fields = KeyFields(
            path: "100/a.jpg", modified: 0, category: "images", admitted: WallTime(milliseconds: 0), volume: "EOS 1/2")
        #expect(template.key(fields) == "cards/EOS_1_2/a.jpg")
        // A slash with a combining mark is one Character, but stores see the slash.
        fields.volume = "a/\u{308}b"
        #expect(template.key(fields).split(separator: "/").count == 3)
        fields.volume = nil
        #expect(template.key(fields) == "cards/a.jpg")
    }
}
