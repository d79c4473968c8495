import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

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
        try folder.writeGeneration(content, name: "R", mayAppend: mayAppend)
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
        #expect(try generation(content(["b"], later: 5)) == nil)
        var changed = content(["a"], later: 5)
        changed.entries[0].digest = Digest(.xxh64, [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(try generation(changed, mayAppend: true) == nil)
        try directory.write("<hashlist>".utf8, to: "ascmhl/0002_cut.mhl")
        #expect(try generation(content(["b"], later: 5), mayAppend: true) == nil)
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
        #expect(try generation(content(["a"])) == nil)
        #expect(try generation(content(["a", "b"], later: 5), mayAppend: true) == nil)
        #expect(try names("ascmhl") == [name])
    }

    @Test func `two ends within a second are two generations`() throws {
        try generation(content(["a"]))
        for isNew in [true, false] {
            let second = try #require(try generation(content(["a", "b"]), mayAppend: true))
            #expect(second.path.lastComponent == "0002_R_2026-11-22_120000Z.mhl" && second.isNew == isNew)
        }
        #expect(try names("ascmhl").count == 3)
    }

    @Test func `files in a folder ascmhl keep a history from beginning`() throws {
        #expect(try generation(content(["a", "ascmhl/0001_card.mhl"])) == nil)
        #expect(try names() == [])
    }
}
