import Foundation
import InletCore
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct FolderNameTests {
    private static let longest = String(repeating: "n", count: 251) + ".mov"

    @Test(arguments: [longest, String(repeating: "é", count: 127), "\(longest)/\(longest)"])
    func `names of 255 bytes are delivered`(_ key: String) async throws {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000, key: key)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.key == key)
            #expect(try place.visible().keys.sorted() == [key])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: ["n\(longest)", "a/n\(longest)/b.mov", "a/\(longest)e\u{301}"])
    func `a key with a longer name fails at once, and says which name and how long it may be`(_ key: String)
        async throws
    {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000, key: key)
            let error = try #require(try await place.failure(path, order))
            #expect(error.verdict == .giveUp)
            #expect(error.code == .nameTooLong)
            let name = try #require(key.split(separator: "/").first { $0.utf8.count > 255 })
            #expect(error.reason.contains("'\(name)' of \(name.utf8.count) bytes"), "\(error)")
            #expect(error.reason.contains("takes 255"), "\(error)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: place.target.string) == [])
        }
    }
}
