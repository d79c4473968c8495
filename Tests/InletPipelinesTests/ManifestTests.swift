import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// The documents of checksum lists, byte for byte.
@Suite struct ManifestTests {
    static let ended = WallTime(milliseconds: 1_795_348_800_000)

    static func content(_ names: [String] = ["a.txt"]) -> ManifestContent {
        let digest = Digest(.xxh64, hex: "22c8b2fe096816df") ?? Digest(.xxh64, [])
        return ManifestContent(
            startedAt: ended + .seconds(-60), endedAt: ended, host: "box", version: "1.0",
            entries: names.map { name in
                ManifestContent.Entry(
                    path: FilePath(name), size: 4, modified: (ended.milliseconds - 2000) * 1_000_000, digest: digest,
                    hashedAt: ended + .milliseconds(123))
            })
    }

    static func text(_ document: [UInt8]?) -> String { String(decoding: document ?? [], as: UTF8.self) }

    /// The vectors of the C4 project's README and of its reference tool.
    @Test(arguments: [
        ("", "c459dsjfscH38cYeXXYogktxf4Cd9ibshE3BHUo6a58hBXmRQdZrAkZzsWcbWtDg5oQstpDuni4Hirj75GEmTc1sFT"),
        ("alfa", "c43zYcLni5LF9rR4Lg4B8h3Jp8SBwjcnyyeh4bc6gTPHndKuKdjUWx1kJPYhZxYt3zV6tQXpDs2shPsPYjgG81wZM1"),
        ("abc", "c45S4rnaTNWonxss1u8LzsaJdEph1AJhWUF4sh2waXKMsutyfAxg4ybUeuXVWS9HdNcEypmeXn8FZGonD4w1rj9DZp"),
    ])
    func `a C4 id is the SHA-512 in base 58`(_ text: String, _ id: String) {
        #expect(MediaHashList.c4(of: Array(text.utf8)) == id)
    }

    /// Files as route keys name them: what admission computes goes into the lists as it is.
    @Test func `the digests of a file are those of the vectors`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("one\n".utf8, to: "a")
        let digests = try await Fingerprint.digests(
            [.xxh64, .sha1, .md5], of: try SourceFile(opening: path), on: BlockingPool(name: "test", threads: 1))
        #expect(
            Set(digests.map(\.description)) == [
                "xxh64:22c8b2fe096816df", "sha1:c7059bb19433cc3cabaa6236c83d56668a843dd2",
                "md5:5bbf5a52328e7439ae6e719dfe712200",
            ])
    }

    @Test func `a generation of a history`() {
        #expect(
            Self.text(MediaHashList.document(Self.content(), .generation(known: []))) == """
                <?xml version="1.0" encoding="UTF-8"?>
                <hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0">
                  <creatorinfo>
                    <creationdate>2026-11-22T12:00:00Z</creationdate>
                    <hostname>box</hostname>
                    <tool version="1.0">Inlet</tool>
                  </creatorinfo>
                  <processinfo>
                    <process>transfer</process>
                  </processinfo>
                  <hashes>
                    <hash>
                      <path size="4" lastmodificationdate="2026-11-22T11:59:58Z">a.txt</path>
                      <xxh64 action="original" hashdate="2026-11-22T12:00:00.123Z">22c8b2fe096816df</xxh64>
                    </hash>
                  </hashes>
                </hashlist>

                """)
    }

    @Test func `what earlier generations know is verified, by its bytes`() {
        let names = ["b", "caf\u{E9}", "cafe\u{301}"]
        let known: Set<[UInt8]> = [Array("b".utf8), Array("caf\u{E9}".utf8)]
        let text = Self.text(MediaHashList.document(Self.content(names), .generation(known: known)))
        #expect(text.matches(of: /action="(\w+)"/).map { String($0.1) } == ["verified", "original", "verified"])
    }

    @Test func `a list that stands alone ignores itself and what it cannot list`() {
        var content = Self.content()
        content.unlisted = ["DONE", "day [1]/a*?\\.xml"]
        let text = Self.text(MediaHashList.document(content, .list(name: "X.mhl")))
        #expect(
            text.contains(
                """
                    <process>flatten</process>
                    <ignore>
                      <pattern>.DS_Store</pattern>
                      <pattern>ascmhl</pattern>
                      <pattern>ascmhl/</pattern>
                      <pattern>**/DONE</pattern>
                      <pattern>**/X.mhl</pattern>
                      <pattern>**/day\\ \\[1\\]/a\\*\\?\\\\.xml</pattern>
                    </ignore>
                """))
    }

    @Test func `a classic list`() {
        #expect(
            Self.text(MediaHashList.classic(Self.content())) == """
                <?xml version="1.0" encoding="UTF-8"?>
                <hashlist version="1.1">
                  <creatorinfo>
                    <username>inlet</username>
                    <hostname>box</hostname>
                    <tool>Inlet 1.0</tool>
                    <startdate>2026-11-22T11:59:00Z</startdate>
                    <finishdate>2026-11-22T12:00:00Z</finishdate>
                  </creatorinfo>
                  <hash>
                    <file>a.txt</file>
                    <size>4</size>
                    <lastmodificationdate>2026-11-22T11:59:58Z</lastmodificationdate>
                    <xxhash64be>22c8b2fe096816df</xxhash64be>
                    <hashdate>2026-11-22T12:00:00Z</hashdate>
                  </hash>
                </hashlist>

                """)
    }

    @Test func `names come back from XML as they were`() throws {
        let names = ["a & b <c> \"d\" 'e'", "tab\t", "line\nfeed", "carriage\rreturn", "日本 😀", "]]>", " blank "]
        for format in ManifestRule.Format.allCases {
            let content = Self.content(names)
            let document =
                format == .mhl ? MediaHashList.classic(content) : MediaHashList.document(content, .list(name: "l.mhl"))
            let root = try XMLReader.read(try #require(document))
            let hashes = format == .mhl ? root.all("hash") : root.children.last?.all("hash") ?? []
            let read = hashes.compactMap { $0.text(of: format == .mhl ? "file" : "path") }
            #expect(
                read.map { Array($0.utf8) } == names.map { Array($0.utf8) }.sorted { $0.lexicographicallyPrecedes($1) })
        }
    }

    @Test func `what a format cannot hold is left out and named`() {
        var content = Self.content(["a", "ascmhl/x", "bell\u{7}", "empty"])
        content.entries.append(content.entries[0])
        content.entries[4].path = FilePath(bytes: [0x62, 0xFF])
        content.entries[3].size = 0
        let list = Self.text(MediaHashList.document(content, .generation(known: [])))
        #expect(list.matches(of: /<hash>/).count == 2 && list.contains("<path size=\"0\""))
        #expect(
            list.contains(
                "<comment>not in this list: ascmhl/x (in a folder ascmhl, which the format keeps for itself), "
                    + "bell\\x07 (its name cannot be written in XML), b\\xFF (its name cannot be written in XML)</comment>"
            ))
        let classic = Self.text(MediaHashList.classic(content))
        #expect(classic.matches(of: /<hash>/).count == 2 && classic.contains("<file>ascmhl/x</file>"))
        #expect(classic.contains("<log>not in this list: bell\\x07") && classic.contains("empty (empty)"))
    }

    @Test func `what has no entry is named in either format`() {
        var content = Self.content(["a", "bell\u{7}"])
        content.absent = ["clip.xmp (no xxh64 was computed)"]
        let named = "not in this list: clip.xmp (no xxh64 was computed), bell\\x07 (its name cannot be written in XML)<"
        #expect(Self.text(MediaHashList.classic(content)).contains(named))
        #expect(Self.text(MediaHashList.document(content, .list(name: "l.mhl"))).contains(named))
    }

    @Test func `nothing to list is no list`() {
        #expect(MediaHashList.document(Self.content([]), .generation(known: [])) == nil)
        #expect(MediaHashList.document(Self.content(["\u{1}"]), .list(name: "l")) == nil)
        var empty = Self.content()
        empty.entries[0].size = 0
        #expect(MediaHashList.classic(empty) == nil)
    }

    @Test(arguments: [
        ("0001_R_2026-11-22_120000Z.mhl", 1), ("0012.mhl", 12), ("12345_a.mhl", 12345), ("001_a.mhl", nil),
        ("0001a.mhl", nil), ("0001_.mhl", nil), ("._0001_a.mhl", nil), ("0001_a.mhl.tmp", nil), ("a.mhl", nil),
    ])
    func `a generation is known by its name`(_ name: String, _ number: Int?) {
        #expect(ManifestHistory.number(of: name) == number)
    }
}
