import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Checksum lists of other programs, as they lie on cards.
@Suite struct SourceManifestTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static let xxh64 = "22c8b2fe096816df"
    private static let md5 = "5bbf5a52328e7439ae6e719dfe712200"
    private static let sha1 = "c7059bb19433cc3cabaa6236c83d56668a843dd2"

    /// A classic list as other tools shape it.
    private static func classic(_ file: String, _ hash: String, size: String = "4") -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <hashlist version="1.1">
          <creatorinfo>
            <name>A. Body</name>
            <username>abody</username>
            <hostname>cart.local</hostname>
            <tool>Copier v. 7.1.2</tool>
            <startdate>2026-11-20T08:00:00Z</startdate>
            <finishdate>2026-11-20T08:10:00Z</finishdate>
          </creatorinfo>
          <hash>
            <file>\(file)</file>
            <size>\(size)</size>
            <lastmodificationdate>2026-11-20T07:00:00Z</lastmodificationdate>
            \(hash)
            <hashdate>2026-11-20T08:05:00Z</hashdate>
          </hash>
        </hashlist>
        """
    }

    /// A history of these lists, oldest first, whose chain says `links` if they are given.
    private func history(_ lists: [String], in folder: String = "", links: [MediaHashList.Link]? = nil) throws {
        var chain: [MediaHashList.Link] = []
        for (index, list) in lists.enumerated() {
            let name = "000\(index + 1)_A001_2026-11-2\(index)_080000Z.mhl"
            try directory.write(list.utf8, to: FilePath("\(folder)ascmhl/\(name)"))
            chain.append((index + 1, name, MediaHashList.c4(of: Array(list.utf8))))
        }
        let bytes = try #require(MediaHashList.chain(nil, adding: links ?? chain))
        try directory.write(bytes, to: FilePath("\(folder)ascmhl/ascmhl_chain.xml"))
    }

    private static func generation(_ hashes: String) -> String {
        """
        <hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0"><creatorinfo><tool version="1">ascmhl</tool></creatorinfo>
        <processinfo><process>in-place</process></processinfo><hashes>\(hashes)</hashes></hashlist>
        """
    }

    private func all() -> (lists: [SourceManifest], faults: [SourceManifest.Fault]) {
        SourceManifest.all(on: directory.path)
    }

    private func only() throws -> SourceManifest.Entry {
        let found = all()
        #expect(found.faults.isEmpty, "\(found.faults)")
        return try #require(found.lists.first?.entries.first)
    }

    private func fault() throws -> String {
        let found = all()
        #expect(found.lists.isEmpty && found.faults.count == 1, "\(found)")
        return try #require(found.faults.first?.reason)
    }

    // MARK: - Classic lists

    @Test(arguments: [
        ("<xxhash64be>22c8b2fe096816df</xxhash64be>", Digest.Algorithm.xxh64),
        ("<xxhash64be>\n 22C8B2FE096816DF </xxhash64be>", .xxh64), ("<xxhash64>22c8b2fe096816df</xxhash64>", .xxh64),
        // As the format's schema has it, least significant byte first.
        ("<xxhash64>df166809feb2c822</xxhash64>", .xxh64), ("<xxhash>22c8b2fe096816df</xxhash>", .xxh64),
        ("<md5>5bbf5a52328e7439ae6e719dfe712200</md5>", .md5),
        ("<MD5/><md5>5bbf5a52328e7439ae6e719dfe712200</md5>", .md5),
        ("<sha1>c7059bb19433cc3cabaa6236c83d56668a843dd2</sha1>", .sha1),
        ("<xxhash128>06567c16a1de182538d12e73f626d650</xxhash128>", .xxh128),
        ("<xxhash3_64>4beaafaffddac41e</xxhash3_64>", .xxh3),
        ("<xxhash64be>22c8b2fe096816df</xxhash64be><md5>5bbf5a52328e7439ae6e719dfe712200</md5>", .md5),
    ])
    func `each kind of hash is compared`(_ hash: String, _ algorithm: Digest.Algorithm) throws {
        try directory.write(Self.classic("CLIP/a.mov", hash).utf8, to: "A001.mhl")
        let entry = try only()
        #expect(entry.path == "CLIP/a.mov" && entry.size == 4 && entry.digest.algorithm == algorithm)
        let sums = SliceHasher.sums([algorithm], of: Array("one\n".utf8)).values
        #expect(ManifestCheck.judge(entry, size: 4, digests: Array(sums)) == .same)
        #expect(ManifestCheck.judge(entry, size: 4, digests: []) == .needsRead(algorithm))
        let others = SliceHasher.sums([algorithm], of: Array("two\n".utf8)).values
        let judgement = ManifestCheck.judge(entry, size: 4, digests: Array(others))
        guard case .differs(let reason) = judgement else {
            Issue.record("\(judgement)")
            return
        }
        #expect(reason.hasPrefix("the list has \(algorithm.rawValue) ") && reason.contains(", and the file has "))
        let size = ManifestCheck.judge(entry, size: 5, digests: Array(sums))
        #expect(size == .differs("the list has 4 bytes, and the file has 5"))
    }

    @Test func `any hash that is known decides, and each of them must agree`() throws {
        let hashes = "<md5>\(Self.md5)</md5><xxhash64be>0000000000000000</xxhash64be>"
        try directory.write(Self.classic("a.mov", hashes).utf8, to: "A001.mhl")
        let entry = try only()
        let (md5, xxh64) = (try #require(Digest(.md5, hex: Self.md5)), try #require(Digest(.xxh64, hex: Self.xxh64)))
        #expect(ManifestCheck.judge(entry, size: 4, digests: [md5]) == .same)
        let differs = "the list has xxh64 0000000000000000, and the file has \(Self.xxh64)"
        #expect(ManifestCheck.judge(entry, size: 4, digests: [xxh64]) == .differs(differs))
        #expect(ManifestCheck.judge(entry, size: 4, digests: [md5, xxh64]) == .differs(differs))
        let crc = Digest(.crc32c, [0, 0, 0, 0])
        #expect(ManifestCheck.judge(entry, size: 4, digests: [crc]) == .needsRead(.md5))
    }

    @Test func `paths are below the list's folder, with either separator`() throws {
        let hash = "<md5>\(Self.md5)</md5>"
        try directory.write(Self.classic("CLIP\\day &amp; night\\a.mov", hash).utf8, to: "DCIM/100/A001.MHL")
        #expect(try only().path == "DCIM/100/CLIP/day & night/a.mov")
        #expect(all().lists[0].place == "DCIM/100/A001.MHL")
    }

    @Test(arguments: ["../a.mov", "/etc/passwd", "CLIP/../../a", "..\\a", "./a", "\\a", "a\\..\\..\\b", "."])
    func `a path out of the list's folder is a fault`(_ path: String) throws {
        try directory.write(Self.classic(path, "<md5>\(Self.md5)</md5>").utf8, to: "CLIP/A001.mhl")
        #expect(try fault().contains("which is not a path below its folder"))
    }

    @Test(arguments: [
        ("<xxhash>1234567890</xxhash>", "it has only xxhash hashes, which Inlet does not compute"),
        ("<crc>1</crc><blake3>00</blake3>", "it has only blake3, crc hashes, which Inlet does not compute"),
        ("<null></null>", "it lists no hash"), ("<md5>12</md5>", "it is damaged, or no checksum list"),
        ("<md5>zz</md5>", "it is damaged, or no checksum list"),
        ("<xxhash64be>22c8b2fe096816</xxhash64be>", "it is damaged, or no checksum list"),
        ("<md5>5bbf5a52328e7439ae6e719dfe712200<", "it is damaged, or no checksum list"),
    ])
    func `a list without a hash to compare is a fault`(_ hash: String, _ reason: String) throws {
        try directory.write(Self.classic("a.mov", hash).utf8, to: "A001.mhl")
        #expect(try fault() == reason)
    }

    @Test(arguments: [
        "", "<hashlist>", "not XML", "<a></a>",
        "<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]><hashlist><hash><file>&c;</file></hash></hashlist>",
        "<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><hashlist/>",
        String(repeating: "<hash>", count: 100_000),
        "<hashlist><hash><file></file><md5>5bbf5a52328e7439ae6e719dfe712200</md5></hash></hashlist>",
        "<hashlist><hash><md5>5bbf5a52328e7439ae6e719dfe712200</md5></hash></hashlist>",
    ])
    func `hostile text is a fault, and nothing more`(_ text: String) throws {
        try directory.write(text.utf8, to: "A001.mhl")
        #expect(try fault() == "it is damaged, or no checksum list")
    }

    @Test func `only so much is read`() throws {
        for number in 0..<105 {
            try directory.write(
                Self.classic("a\(number)", "<md5>\(Self.md5)</md5>").utf8, to: FilePath("list\(100 + number).mhl"))
        }
        let found = all()
        #expect(found.lists.count == 100 && found.faults.count == 1)
        #expect(
            found.faults[0].reason == "it has more than 100 checksum lists: further checksum lists were not looked for")
        let huge = try FileHandle(forWritingTo: URL(fileURLWithPath: directory.path.appending("list100.mhl").string))
        try huge.truncate(atOffset: 65 << 20)
        try huge.close()
        #expect(all().faults.contains { $0.path == "list100.mhl" && $0.reason.hasPrefix("it cannot be read: ") })
    }

    @Test func `lists lie at the top and in two levels of folders, and links lead nowhere`() throws {
        let list = Self.classic("a.mov", "<md5>\(Self.md5)</md5>")
        for place in ["a.mhl", "1/a.mhl", "1/2/a.mhl", "1/2/3/a.mhl", "._a.mhl", ".Trashes/a.mhl", "1/2/note.txt"] {
            try directory.write(list.utf8, to: FilePath(place))
        }
        for (name, target) in [("link.mhl", "a.mhl"), ("linked", "1")] {
            try FileManager.default.createSymbolicLink(
                atPath: directory.path.appending(name).string, withDestinationPath: target)
        }
        let found = all()
        #expect(found.lists.map(\.place) == ["a.mhl", "1/a.mhl", "1/2/a.mhl"] && found.faults.isEmpty)
        #expect(found.lists.map { $0.entries[0].path } == ["a.mov", "1/a.mov", "1/2/a.mov"])
    }

    @Test func `a volume that is away is a fault`() throws {
        let found = SourceManifest.all(on: directory.path.appending("away"))
        #expect(found.lists.isEmpty && found.faults.count == 1)
    }

    // MARK: - Histories

    @Test func `a history has what all its generations have, each file by its first hash`() throws {
        let first = """
            <hash><path size="4">a.mov</path><xxh64 action="original">\(Self.xxh64)</xxh64></hash>
            <hash><path size="4">old.mov</path><md5 action="original">\(Self.md5)</md5></hash>
            <hash><path size="4">only/first.mov</path><md5 action="original">\(Self.md5)</md5></hash>
            """
        let second = """
            <hash><path size="4">a.mov</path><md5 action="verified">\(Self.md5)</md5><xxh64>0000000000000000</xxh64></hash>
            <hash><path size="4">new.mov</path><sha1 action="verified">\(Self.sha1)</sha1><previousPath>old.mov</previousPath>
            </hash>
            <directoryhash><path>only</path><content><md5>00</md5></content></directoryhash>
            """
        try history([Self.generation(first), Self.generation(second)], in: "A001.RDM/")
        let found = all()
        #expect(found.faults.isEmpty && found.lists.count == 1, "\(found.faults)")
        let list = try #require(found.lists.first)
        #expect(list.place == "A001.RDM/ascmhl/0002_A001_2026-11-21_080000Z.mhl")
        #expect(
            list.entries.map(\.path) == ["A001.RDM/a.mov", "A001.RDM/new.mov", "A001.RDM/only/first.mov"])
        #expect(list.entries.map { $0.listed.all.map(\.algorithm) } == [[.md5, .xxh64], [.sha1, .md5], [.md5]])
        #expect(list.entries[0].listed.all[1].hex == Self.xxh64)
    }

    /// Its hash is that of the damaged file.
    @Test func `a hash that failed is not what the file should have`() throws {
        let first = "<hash><path>a.mov</path><xxh64 action=\"original\">\(Self.xxh64)</xxh64></hash>"
        let second = "<hash><path>a.mov</path><md5 action='failed'>00000000000000000000000000000000</md5></hash>"
        try history([Self.generation(first), Self.generation(second)])
        let entry = try only()
        #expect(entry.size == nil && entry.listed.all.map(\.algorithm) == [.xxh64])
    }

    @Test func `a history that was tampered with is a fault`() throws {
        let list = Self.generation("<hash><path>a.mov</path><xxh64>\(Self.xxh64)</xxh64></hash>")
        let name = "0001_A001_2026-11-20_080000Z.mhl"
        try history([list], links: [(1, name, MediaHashList.c4(of: [1]))])
        #expect(try fault() == "its list \(name) is not the one in ascmhl_chain.xml")
        try history([list], links: [])
        #expect(try fault() == "its list \(name) is not in ascmhl_chain.xml")
        let link = (1, name, MediaHashList.c4(of: Array(list.utf8)))
        try history([list], links: [link, (2, "0002_A001_2026-11-21_080000Z.mhl", "c4")])
        #expect(try fault() == "its list 0002_A001_2026-11-21_080000Z.mhl is missing")
        try DurableFile.remove(directory.path.pushing("ascmhl/ascmhl_chain.xml"))
        #expect(try fault() == "it has no ascmhl_chain.xml")
        #expect(all().faults[0].path == "ascmhl")
    }

    // MARK: - C4

    @Test func `a C4 id says which SHA-512 it is`() throws {
        for text in ["", "alfa", "abc"] {
            let digest = C4.digest(of: text.utf8)
            #expect(MediaHashList.digest(c4: MediaHashList.c4(digest)) == digest)
        }
        let longest = "c4" + String(repeating: "z", count: 88)
        for text in ["", "c4", longest, "c4" + String(repeating: "0", count: 88), "d4" + longest.dropFirst(2)] {
            #expect(MediaHashList.digest(c4: text) == nil, "\(text)")
        }
    }
}
