import Foundation
import InletCore
import InletLinux
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

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

    @Test func `a history of which a file did not arrive is left alone`() throws {
        var content = try content()
        #expect(try refusal(content) == "its file \(Self.first) is not here")
        content.unlisted.append("ascmhl/0002_A001.mhl")
        try carry(Self.list(try Self.hashes(.xxh64)))
        #expect(try refusal(content) == "its file 0002_A001.mhl is not here")
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
