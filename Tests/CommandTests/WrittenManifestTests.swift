import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// The checksum lists that the agent has written, against the reference tool of ASC MHL and a verifier of classic MHL, which
/// others wrote.
@Suite(
    .serialized, .timeLimit(.minutes(8)),
    .enabled(
        if: ReferenceTool.areThere(ReferenceTool.manifests), Comment(rawValue: ReferenceTool.manifestReason)))
struct WrittenManifestTests {
    /// Exit codes of `ascmhl-debug verify` and `simple-mhl verify`.
    private enum Code {
        static let fine: Int32 = 0
        static let mismatch: Int32 = 11
        static let classicMismatch: Int32 = 40
    }

    /// A card that has been offloaded, with its lists.
    private static func offloaded(_ manifest: String) async throws -> Place {
        let place = try ManifestTests.place(manifest: manifest)
        let agent = try await place.run()
        try ManifestTests.offload(place)
        // One at home, one in the library.
        try await agent.line("manifest.written", number: 2)
        #expect(try await agent.stop() == .code(0))
        return place
    }

    private static func expect(_ code: Int32, _ result: (code: Int32, said: String)) {
        #expect(result.code == code, "\(result.said)")
    }

    private static func damage(_ file: FilePath) throws {
        try Data("0ne\n".utf8).write(to: URL(fileURLWithPath: file.string))
    }

    @Test(arguments: ["xxh64", "md5", "sha1"])
    func `the history in the library and the list at home verify, and damage is found`(_ hash: String) async throws {
        let place = try await Self.offloaded("{ format: ascmhl, hash: \(hash) }")
        let (card, copy) = (place.drop.appending("A001"), place.library.appending("A001"))
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
        Self.expect(Code.fine, try ReferenceTool.run("mhlver", "-s", copy.string))
        let manifests = place.state.appending("manifests")
        let home = manifests.appending(try #require(try ManifestTests.lists(manifests).first))
        let list = home.appending(try #require(try ManifestTests.lists(home).first))
        Self.expect(Code.fine, try ReferenceTool.run("ascmhl-debug", "verify", "-pl", list.string, card.string))
        try Self.damage(copy.appending("a.mov"))
        Self.expect(Code.mismatch, try ReferenceTool.run("ascmhl-debug", "verify", copy.string))
        try Self.damage(card.appending("a.mov"))
        Self.expect(Code.mismatch, try ReferenceTool.run("ascmhl-debug", "verify", "-pl", list.string, card.string))
    }

    @Test(arguments: ["xxh64", "md5", "sha1"])
    func `the classic list in the library verifies, and damage is found`(_ hash: String) async throws {
        let place = try await Self.offloaded("{ format: mhl, hash: \(hash) }")
        let copy = place.library.appending("A001")
        let list = copy.appending(try #require(try ManifestTests.lists(copy).first { $0.hasSuffix(".mhl") })).string
        Self.expect(Code.fine, try ReferenceTool.run("simple-mhl", "verify", list))
        Self.expect(Code.fine, try ReferenceTool.run("simple-mhl", "xsd-schema-check", list))
        try Self.damage(copy.appending("a.mov"))
        Self.expect(Code.classicMismatch, try ReferenceTool.run("simple-mhl", "verify", list))
    }
}
