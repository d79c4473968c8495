import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
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
        let digests = try await SourceDigests.digests(
            [.xxh64, .sha1, .md5], of: try SourceFile(opening: path), on: BlockingPool(name: "test", threads: 1))
        #expect(
            Set(digests.map(\.description)) == [
                "xxh64:22c8b2fe096816df", "sha1:c7059bb19433cc3cabaa6236c83d56668a843dd2",
                "md5:5bbf5a52328e7439ae6e719dfe712200",
            ])
    }

    @Test func `a generation of a history`() {
        #expect(
            Self.text(MediaHashList.document(Self.content())) == """
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
        let text = Self.text(MediaHashList.document(Self.content(names), known: known))
        #expect(text.matches(of: /action="(\w+)"/).map { String($0.1) } == ["verified", "original", "verified"])
    }

    @Test func `a list that stands alone ignores itself and what it cannot list`() {
        var content = Self.content()
        content.unlisted = ["DONE", "day [1]/a*?\\.xml"]
        let text = Self.text(MediaHashList.document(content, alone: "X.mhl"))
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
                format == .mhl ? MediaHashList.classic(content) : MediaHashList.document(content, alone: "l.mhl")
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
        let list = Self.text(MediaHashList.document(content))
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
        #expect(Self.text(MediaHashList.document(content, alone: "l.mhl")).contains(named))
    }

    @Test func `nothing to list is no list`() {
        #expect(MediaHashList.document(Self.content([])) == nil)
        #expect(MediaHashList.document(Self.content(["\u{1}"]), alone: "l") == nil)
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

/// Checksum lists in folders: whole, once, and never over what others wrote.
@Suite struct ManifestFolderTests {
    private let directory: TemporaryDirectory
    private let folder: ManifestFolder

    init() throws {
        directory = try TemporaryDirectory()
        folder = ManifestFolder(directory.path)
    }

    private func names(_ path: FilePath = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path.pushing(path).string).sorted()
    }

    private func read(_ path: FilePath) throws -> [UInt8] {
        try DurableFile.read(directory.path.pushing(path), limit: 1 << 20)
    }

    private func content(_ names: [String], later seconds: Int = 0) -> ManifestContent {
        var content = ManifestTests.content(names)
        content.endedAt = content.endedAt + .seconds(seconds)
        return content
    }

    @discardableResult
    private func generation(_ content: ManifestContent, mayAppend: Bool = false) throws -> ManifestFolder.Written? {
        if case .written(let written) = try folder.writeGeneration(content, name: "R", mayAppend: mayAppend) {
            written
        } else {
            nil
        }
    }

    private func refusal(_ content: ManifestContent, mayAppend: Bool = false) throws -> String? {
        if case .refused(let reason) = try folder.writeGeneration(content, name: "R", mayAppend: mayAppend) {
            reason
        } else {
            nil
        }
    }

    @Test(arguments: ManifestRule.Format.allCases)
    func `a list is written once, and never over another`(_ format: ManifestRule.Format) throws {
        try directory.write("mine".utf8, to: "X.mhl")
        let first = try #require(try folder.writeList(content(["a"]), format, stem: "X"))
        #expect(first.path.lastComponent == "X_2.mhl" && first.isNew)
        let again = try #require(try folder.writeList(content(["a"]), format, stem: "X"))
        #expect(again.path == first.path && !again.isNew)
        #expect(try names() == ["X.mhl", "X_2.mhl"])
        #expect(try read("X.mhl") == Array("mine".utf8))
    }

    @Test func `what a killed try left is gone with the next`() throws {
        for name in [".X.mhl.tmp", "..X.mhl.tmp.inlet-0123abcd.tmp"] { try directory.write([1], to: FilePath(name)) }
        #expect(try folder.writeList(content(["a"]), .ascmhl, stem: "X")?.isNew == true)
        #expect(try names() == ["X.mhl"])
    }

    @Test func `a history begins with a list and its chain, and nothing changes the second time`() throws {
        let written = try #require(try generation(content(["a"])))
        #expect(written.path.lastComponent == "0001_R_2026-11-22_120000Z.mhl" && written.isNew)
        let list = try read("ascmhl/0001_R_2026-11-22_120000Z.mhl")
        #expect(
            String(decoding: try read("ascmhl/ascmhl_chain.xml"), as: UTF8.self) == """
                <?xml version="1.0" encoding="UTF-8"?>
                <ascmhldirectory xmlns="urn:ASC:MHL:DIRECTORY:v2.0">
                  <hashlist sequencenr="1">
                    <path>0001_R_2026-11-22_120000Z.mhl</path>
                    <c4>\(MediaHashList.c4(of: list))</c4>
                  </hashlist>
                </ascmhldirectory>

                """)
        let again = try #require(try generation(content(["a"])))
        #expect(!again.isNew && again.path == written.path)
        #expect(try names("ascmhl") == ["0001_R_2026-11-22_120000Z.mhl", "ascmhl_chain.xml"])
    }

    @Test func `after a crash between list and chain the chain is made up for`() throws {
        try generation(content(["a"]))
        let chain = try read("ascmhl/ascmhl_chain.xml")
        try FileManager.default.removeItem(atPath: directory.path.pushing("ascmhl/ascmhl_chain.xml").string)
        #expect(try generation(content(["a"]))?.isNew == true)
        #expect(try read("ascmhl/ascmhl_chain.xml") == chain)
    }

    @Test func `a later end is the next generation`() throws {
        try generation(content(["a"]))
        let second = try #require(try generation(content(["a", "b"], later: 5), mayAppend: true))
        #expect(second.path.lastComponent == "0002_R_2026-11-22_120005Z.mhl")
        let text = String(decoding: try DurableFile.read(second.path, limit: 1 << 20), as: UTF8.self)
        #expect(text.matches(of: /action="(\w+)"/).map { String($0.1) } == ["verified", "original"])
        let chain = String(decoding: try read("ascmhl/ascmhl_chain.xml"), as: UTF8.self)
        #expect(chain.matches(of: /sequencenr="(\d)"/).map { String($0.1) } == ["1", "2"])
        #expect(try generation(content(["a", "b"], later: 5), mayAppend: true)?.isNew == false)
    }

    @Test func `a history of somebody else's, or one that cannot be read, is left alone`() throws {
        try generation(content(["a"]))
        let before = try read("ascmhl/ascmhl_chain.xml")
        #expect(try refusal(content(["b"], later: 5)) == "it belongs to something else than this unit")
        var changed = content(["a"], later: 5)
        changed.entries[0].digest = Digest(.xxh64, [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(try refusal(changed, mayAppend: true) == "it has another checksum or size of a")
        try directory.write("<hashlist>".utf8, to: "ascmhl/0002_cut.mhl")
        let unlinked = "its list 0002_cut.mhl is not in ascmhl_chain.xml"
        #expect(try refusal(content(["b"], later: 5), mayAppend: true) == unlinked)
        #expect(try read("ascmhl/ascmhl_chain.xml") == before)
        #expect(try names() == ["ascmhl"])
    }

    @Test(arguments: [
        // The reference tool's, under our name and while the unit was delivered.
        ("0001_R_2026-11-22_115930Z.mhl", "<tool version=\"1.0\">ascmhl</tool>"),
        // Of an Inlet that had to do with this folder before the unit began.
        ("0001_R_2026-11-22_115859Z.mhl", "<tool version=\"1.0\">Inlet</tool>"),
        ("0001_Q_2026-11-22_115930Z.mhl", "<tool version=\"1.0\">Inlet</tool>"),
        ("0001.mhl", "<tool version=\"1.0\">Inlet</tool>"),
    ])
    func `a later end adds nothing to a history that was somebody else's from the first`(
        _ name: String, _ tool: String
    ) throws {
        let foreign = "<hashlist version=\"2.0\"><creatorinfo>\(tool)</creatorinfo></hashlist>"
        try directory.write(foreign.utf8, to: FilePath("ascmhl/\(name)"))
        let link = (1, name, MediaHashList.c4(of: Array(foreign.utf8)))
        try directory.write(try #require(MediaHashList.chain(nil, adding: [link])), to: "ascmhl/ascmhl_chain.xml")
        let reason = "it belongs to something else than this unit"
        #expect(try refusal(content(["a"])) == reason)
        #expect(try refusal(content(["a", "b"], later: 5), mayAppend: true) == reason)
        #expect(try names("ascmhl") == [name, "ascmhl_chain.xml"])
    }

    @Test func `two ends within a second are two generations`() throws {
        try generation(content(["a"]))
        for isNew in [true, false] {
            let second = try #require(try generation(content(["a", "b"]), mayAppend: true))
            #expect(second.path.lastComponent == "0002_R_2026-11-22_120000Z.mhl" && second.isNew == isNew)
        }
        #expect(try names("ascmhl").count == 3)
    }

    @Test func `a deeper history keeps one from beginning`() throws {
        let said = try refusal(content(["a", "reel/ascmhl/0001_card.mhl"]))
        #expect(said == "another history lies deeper, at reel/ascmhl")
        #expect(try names() == [])
    }
}

/// Histories that came with a card's files: they are continued, or left alone for a reason.
@Suite struct CarriedHistoryTests {
    private let directory: TemporaryDirectory
    private let folder: ManifestFolder
    private static let first = "0001_A001_2026-11-20_080000Z.mhl"
    private static let files = ["a.mov": "one\n", "raw/b.mov": "two\n"]

    init() throws {
        directory = try TemporaryDirectory()
        folder = ManifestFolder(directory.path)
        for (name, text) in Self.files { try directory.write(text.utf8, to: FilePath(name)) }
    }

    /// A list as the reference tool writes it, with directories, in another program's order.
    private static func list(_ hashes: [(path: String, size: Int, hash: String)]) -> String {
        let files = hashes.map {
            """
                <hash>
                  <path size="\($0.size)" lastmodificationdate="2026-11-20T07:00:00+00:00">\($0.path)</path>
                  \($0.hash)
                </hash>

            """
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0">
              <creatorinfo>
                <creationdate>2026-11-20T08:00:00+00:00</creationdate>
                <hostname>dit</hostname>
                <tool version="1.2">ascmhl</tool>
              </creatorinfo>
              <processinfo><process>in-place</process></processinfo>
              <hashes>
            \(files.joined())    <directoryhash><path>raw</path><content><md5>00</md5></content></directoryhash>
              </hashes>
            </hashlist>

            """
    }

    private static func hash(_ algorithm: Digest.Algorithm, _ text: String) throws -> String {
        let digest = try #require(SliceHasher.sums([algorithm], of: Array(text.utf8))[algorithm])
        return "<\(algorithm.rawValue) action=\"original\">\(MediaHashList.text(of: digest))</\(algorithm.rawValue)>"
    }

    private static func hashes(_ algorithm: Digest.Algorithm) throws -> [(path: String, size: Int, hash: String)] {
        try files.sorted { $0.key < $1.key }.map { ($0.key, 4, try hash(algorithm, $0.value)) }
    }

    /// Lays a history of one generation beside the files.
    private func carry(_ list: String) throws {
        try directory.write(list.utf8, to: FilePath("ascmhl/\(Self.first)"))
        let link = (1, Self.first, MediaHashList.c4(of: Array(list.utf8)))
        try directory.write(try #require(MediaHashList.chain(nil, adding: [link])), to: "ascmhl/ascmhl_chain.xml")
    }

    /// What was delivered: the files, and the history's.
    private func content(_ more: [String] = [], later seconds: Int = 0) throws -> ManifestContent {
        var content = ManifestTests.content(["ascmhl/\(Self.first)", "ascmhl/ascmhl_chain.xml"] + more)
        content.endedAt = content.endedAt + .seconds(seconds)
        for (name, text) in Self.files {
            var entry = content.entries[0]
            (entry.path, entry.size) = (FilePath(name), 4)
            entry.digest = try #require(SliceHasher.sums([.xxh64], of: Array(text.utf8))[.xxh64])
            content.entries.append(entry)
        }
        return content
    }

    private func write(_ content: ManifestContent, mayAppend: Bool = false) throws -> ManifestFolder.Generation {
        try folder.writeGeneration(content, name: "A001", mayAppend: mayAppend)
    }

    private func refusal(_ content: ManifestContent) throws -> String? {
        if case .refused(let reason) = try write(content) { reason } else { nil }
    }

    private func read(_ name: String) throws -> String {
        String(
            decoding: try DurableFile.read(directory.path.pushing(FilePath("ascmhl/\(name)")), limit: 1 << 20),
            as: UTF8.self)
    }

    /// Every kind that the standard has. A new kind of hash stands beside a verified known one.
    @Test(arguments: [Digest.Algorithm.xxh64, .md5, .sha1, .xxh3, .xxh128, .c4])
    func `a whole history goes on with the next generation`(_ algorithm: Digest.Algorithm) throws {
        try carry(Self.list(try Self.hashes(algorithm)))
        let chain = try read("ascmhl_chain.xml")
        for isNew in [true, false] {
            guard case .written(let written) = try write(try content()) else {
                Issue.record("refused")
                return
            }
            #expect(written.path.lastComponent == "0002_A001_2026-11-22_120000Z.mhl" && written.isNew == isNew)
        }
        let list = try #require(HashList(Array(try read("0002_A001_2026-11-22_120000Z.mhl").utf8)))
        #expect(list.files.map(\.path) == ["a.mov", "raw/b.mov"])
        #expect(Set(list.files[0].hashes.map(\.name)) == [algorithm.rawValue, "xxh64"])
        let text = try read("0002_A001_2026-11-22_120000Z.mhl")
        #expect(!text.contains("original") && !text.contains("<comment>"))
        // The card's chain stays in it, byte for byte.
        let now = try read("ascmhl_chain.xml")
        #expect(MediaHashList.continues(Array(now.utf8)) { $0 == Array(chain.utf8) })
        #expect(now.matches(of: /sequencenr="(\d)"/).map { String($0.1) } == ["1", "2"])
    }

    @Test func `a unit that ends again continues what it began`() throws {
        try carry(Self.list(try Self.hashes(.xxh64)))
        guard case .written = try write(try content()),
            case .written(let third) = try write(
                try content(later: 5), mayAppend: true)
        else {
            Issue.record("refused")
            return
        }
        #expect(third.path.lastComponent == "0003_A001_2026-11-22_120005Z.mhl")
    }

    @Test func `a history without its chain, or with a changed, missing or foreign list, is left alone`() throws {
        try carry(Self.list(try Self.hashes(.xxh64)))
        let (chain, list) = (try read("ascmhl_chain.xml"), try read(Self.first))
        let at = { (name: String) in directory.path.pushing(FilePath("ascmhl/\(name)")) }
        try DurableFile.remove(at("ascmhl_chain.xml"))
        #expect(try refusal(try content()) == "it has no ascmhl_chain.xml")
        try directory.write("<a/>".utf8, to: "ascmhl/ascmhl_chain.xml")
        #expect(try refusal(try content()) == "its ascmhl_chain.xml cannot be read")
        try directory.write(chain.utf8, to: "ascmhl/ascmhl_chain.xml")
        try directory.write((list + " ").utf8, to: FilePath("ascmhl/\(Self.first)"))
        #expect(try refusal(try content()) == "its list \(Self.first) is not the one in ascmhl_chain.xml")
        try DurableFile.remove(at(Self.first))
        #expect(try refusal(try content()) == "its list \(Self.first) is missing")
        try directory.write(list.utf8, to: FilePath("ascmhl/\(Self.first)"))
        try directory.write(list.utf8, to: "ascmhl/0003_x.mhl")
        #expect(try refusal(try content()) == "it has 0003_x.mhl where its generation 2 belongs")
        try DurableFile.remove(at("0003_x.mhl"))
        #expect(try refusal(try content()) == nil)
    }

    @Test func `a history that lists another content, a missing file or unknown hashes is left alone`() throws {
        let hashes = try Self.hashes(.md5)
        func refused(_ change: (inout [(path: String, size: Int, hash: String)]) throws -> Void) throws -> String? {
            var changed = hashes
            try change(&changed)
            try carry(Self.list(changed))
            return try refusal(try content())
        }
        let differs = "it has another checksum or size of a.mov"
        #expect(try refused { $0[0].size = 5 } == differs)
        #expect(try refused { $0[0].hash = try Self.hash(.md5, "other") } == differs)
        #expect(try refused { $0[0].hash = try Self.hash(.xxh64, "other") } == differs)
        #expect(try refused { $0[0].path = "gone.mov" } == "it lists gone.mov, which is not here")
        #expect(
            try refused { ($0[0].path, $0[1].path) = ("x", "y") } == "it lists 2 files that are not here, as x")
        #expect(
            try refused { $0[0].hash = "<blake3>00</blake3>" }
                == "it has only blake3 hashes of a.mov, which Inlet does not compute")
        let lists = try FileManager.default.contentsOfDirectory(atPath: directory.path.appending("ascmhl").string)
        #expect(Set(lists) == [Self.first, "ascmhl_chain.xml"])
    }

    @Test(arguments: [
        "<!-- x --></ascmhldirectory><!-- y -->", "</m:ascmhldirectory>", "",
    ])
    func `a chain that does not end as one is not changed`(_ end: String) {
        #expect(MediaHashList.chain(Array("<ascmhldirectory>\(end)".utf8), adding: []) == nil)
    }

    @Test func `a chain that was changed otherwise continues nothing`() throws {
        let link = (1, "0001_a.mhl", "c4x")
        let one = try #require(MediaHashList.chain(nil, adding: [link]))
        let two = try #require(MediaHashList.chain(one, adding: [(2, "0002_a.mhl", "c4y"), (3, "0003_a.mhl", "c4z")]))
        #expect(MediaHashList.continues(two) { $0 == one })
        #expect(!MediaHashList.continues(one) { $0 == one } && !MediaHashList.continues([]) { _ in true })
        #expect(!MediaHashList.continues(two + Array("<x/>".utf8)) { _ in true })
    }
}
