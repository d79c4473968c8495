import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Checksum lists against the reference tool of ASC MHL and a verifier of classic MHL, which others wrote.
@Suite(
    .serialized, .timeLimit(.minutes(15)),
    .enabled(if: ReferenceTool.areThere(ReferenceTool.manifests), Comment(rawValue: ReferenceTool.manifestReason)))
struct ManifestInteropTests {
    /// Exit codes of `ascmhl-debug verify` and `simple-mhl verify`.
    private enum Code {
        static let fine: Int32 = 0
        static let missing: Int32 = 10
        static let mismatch: Int32 = 11
        static let unknownFiles: Int32 = 21
        static let changedList: Int32 = 31
        static let classicMissing: Int32 = 30
        static let classicMismatch: Int32 = 40
    }

    private static let names = ["a.txt", "empty", "day 1/c & <d>.mov", "day 1/caf\u{E9} 日本.wav", "x]]>y'\".bin"]

    /// A folder `R` with files, and the list's content for them.
    private static func offload(
        _ algorithm: Digest.Algorithm, _ names: [String] = names
    ) async throws -> (TemporaryDirectory, FilePath, ManifestContent) {
        let directory = try TemporaryDirectory()
        let pool = BlockingPool(name: "interop", threads: 1)
        var entries: [ManifestContent.Entry] = []
        for (index, name) in names.enumerated() {
            let content = name == "empty" ? Data() : Bucket.content(1000 * index + 1, seed: UInt64(index))
            let path = try directory.write(content, to: FilePath("R").pushing(FilePath(name)))
            let source = try SourceFile(opening: path)
            let digests = try await SourceDigests.digests([algorithm], of: source, on: pool)
            entries.append(
                ManifestContent.Entry(
                    path: FilePath(name), size: source.opened.size, modified: source.opened.modified,
                    digest: try #require(digests.first), hashedAt: .now))
        }
        let content = ManifestContent(
            startedAt: .now + .seconds(-60), endedAt: .now, host: "box", version: "1.0", entries: entries)
        return (directory, directory.path.appending("R"), content)
    }

    private static func verify(_ root: FilePath, list: FilePath? = nil) throws -> (code: Int32, said: String) {
        guard let list else { return try ReferenceTool.run("ascmhl-debug", "verify", root.string) }
        return try ReferenceTool.run("ascmhl-debug", "verify", "-pl", list.string, root.string)
    }

    /// The generation that was written; fails where none was.
    private static func write(
        _ content: ManifestContent, in folder: ManifestFolder, mayAppend: Bool = false
    ) throws -> ManifestFolder.Written {
        let generation = try folder.writeGeneration(content, name: "R", mayAppend: mayAppend)
        guard case .written(let written) = generation else { throw Refused(generation: generation) }
        return written
    }

    private struct Refused: Error { var generation: ManifestFolder.Generation }

    private static func flip(_ path: FilePath) throws {
        var content = try DurableFile.read(path, limit: 1 << 20)
        content[0] ^= 1
        try Data(content).write(to: URL(fileURLWithPath: path.string))
    }

    private static func remove(_ path: FilePath) throws { try DurableFile.remove(path) }

    private static func expect(_ code: Int32, _ result: (code: Int32, said: String)) {
        #expect(result.code == code, "\(result.said)")
    }

    @Test(arguments: [Digest.Algorithm.xxh64, .md5, .sha1])
    func `a history verifies, and what is damaged, missing or new is found`(_ algorithm: Digest.Algorithm) async throws
    {
        let (directory, root, content) = try await Self.offload(algorithm)
        defer { withExtendedLifetime(directory) {} }
        let folder = ManifestFolder(root)
        let written = try Self.write(content, in: folder)
        Self.expect(Code.fine, try Self.verify(root))
        Self.expect(Code.fine, try ReferenceTool.run("mhlver", "-s", root.string))
        try directory.write([1], to: "R/new")
        Self.expect(Code.unknownFiles, try Self.verify(root))
        try Self.remove(root.appending("new"))
        try Self.flip(root.appending("a.txt"))
        Self.expect(Code.mismatch, try Self.verify(root))
        try Self.flip(root.appending("a.txt"))
        Self.expect(Code.fine, try Self.verify(root))
        try Self.remove(root.appending("a.txt"))
        Self.expect(Code.missing, try Self.verify(root))
        try Self.flip(written.path)
        Self.expect(Code.changedList, try Self.verify(root))
    }

    @Test func `later generations, ours and the tool's own, go on in one history`() async throws {
        let (directory, root, all) = try await Self.offload(.xxh64)
        defer { withExtendedLifetime(directory) {} }
        let folder = ManifestFolder(root)
        var first = all
        first.entries.removeLast()
        _ = try Self.write(first, in: folder)
        Self.expect(Code.unknownFiles, try Self.verify(root))
        var second = all
        second.endedAt = all.endedAt + .seconds(1)
        _ = try Self.write(second, in: folder, mayAppend: true)
        Self.expect(Code.fine, try Self.verify(root))
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl", "create", "-h", "xxh64", root.string))
        // Another second than the tool's list has in its name: one that says the same would be taken for ours.
        var third = all
        third.endedAt = all.endedAt + .seconds(3600)
        let written = try Self.write(third, in: folder, mayAppend: true)
        #expect(written.path.lastComponent?.string.hasPrefix("0004_") == true)
        Self.expect(Code.fine, try Self.verify(root))
        try Self.flip(root.appending("a.txt"))
        Self.expect(Code.mismatch, try Self.verify(root))
    }

    /// The tool's own lists, in every kind of hash that it knows, as they come with a card.
    @Test(arguments: ["xxh64", "md5", "sha1", "xxh3", "xxh128", "c4"])
    func `a history of the tool's own goes on with a generation of ours, and is read from a card`(
        _ kind: String
    ) async throws {
        var (directory, root, content) = try await Self.offload(.xxh64)
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl", "create", "-h", kind, root.string))
        let history = root.appending("ascmhl")
        let entry = try #require(content.entries.first)
        for name in try FileManager.default.contentsOfDirectory(atPath: history.string) {
            var carried = entry
            carried.path = FilePath("ascmhl").appending(name)
            content.entries.append(carried)
        }
        let written = try Self.write(content, in: ManifestFolder(root))
        #expect(written.path.lastComponent?.string.hasPrefix("0002_R_") == true)
        Self.expect(Code.fine, try Self.verify(root))
        Self.expect(Code.fine, try ReferenceTool.run("mhlver", "-s", root.string))
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl", "create", "-h", kind, root.string))
        Self.expect(Code.fine, try Self.verify(root))
        let found = SourceManifest.all(on: directory.path)
        #expect(found.faults.isEmpty && found.lists.count == 1 && found.lists[0].entries.count == Self.names.count)
        let pool = BlockingPool(name: "interop", threads: 1)
        for entry in found.lists[0].entries {
            let source = try SourceFile(opening: directory.path.pushing(entry.path))
            let digests = try await SourceDigests.digests([entry.digest.algorithm], of: source, on: pool)
            #expect(ManifestCheck.judge(entry, size: source.opened.size, digests: digests) == .same, "\(entry)")
        }
        try Self.flip(root.appending("a.txt"))
        Self.expect(Code.mismatch, try Self.verify(root))
    }

    @Test func `a list that stands alone verifies beside its files and from elsewhere`() async throws {
        var (directory, root, content) = try await Self.offload(.xxh64)
        defer { withExtendedLifetime(directory) {} }
        let unlisted = ["DONE", "day 1/we[i]rd !#*?.xml", "#x", "!y", " z "]
        for name in unlisted { try directory.write([1], to: FilePath("R").pushing(FilePath(name))) }
        content.unlisted = unlisted.map { FilePath($0) }
        let elsewhere = try directory.makeDirectory("state")
        for folder in [root, elsewhere] {
            let list = try #require(try ManifestFolder(folder).writeList(content, .ascmhl, stem: "R [1]"))
            Self.expect(Code.fine, try Self.verify(root, list: list.path))
            try Self.flip(root.appending("a.txt"))
            Self.expect(Code.mismatch, try Self.verify(root, list: list.path))
            try Self.flip(root.appending("a.txt"))
        }
    }

    @Test(arguments: [Digest.Algorithm.xxh64, .md5, .sha1])
    func `a classic list verifies, and damage is found`(_ algorithm: Digest.Algorithm) async throws {
        let (directory, root, content) = try await Self.offload(algorithm)
        defer { withExtendedLifetime(directory) {} }
        let list = try #require(try ManifestFolder(root).writeList(content, .mhl, stem: "R_2026-11-22_120000Z"))
        Self.expect(Code.fine, try ReferenceTool.run("simple-mhl", "verify", list.path.string))
        Self.expect(Code.fine, try ReferenceTool.run("simple-mhl", "xsd-schema-check", list.path.string))
        try Self.flip(root.appending("a.txt"))
        Self.expect(Code.classicMismatch, try ReferenceTool.run("simple-mhl", "verify", list.path.string))
        try Self.remove(root.appending("a.txt"))
        Self.expect(Code.classicMissing, try ReferenceTool.run("simple-mhl", "verify", list.path.string))
    }
}
