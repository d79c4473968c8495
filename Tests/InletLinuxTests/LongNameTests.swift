import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

struct LongNameTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func name(_ count: Int, ending: String = "") throws -> FilePath.Component {
        try #require(FilePath.Component(String(repeating: "n", count: count) + ending))
    }

    @Test func `a name that no file can have is missing, a path that is too long is not known to be`() throws {
        #expect(try FileLook.look(at: place.path.appending(name(256))) == .missing)
        #expect(try FileLook.look(at: RootedPath(place.path, FilePath(root: nil, [name(256)]))) == .missing)
        var deep = place.path
        while deep.length < 4200 { deep.append(try name(200)) }
        let path = deep
        #expect(throws: SystemError.self) { try FileLook.look(at: path.appending(name(200))) }
        #expect(try FileLook.look(at: path.appending(name(256))) == .missing)
    }

    @Test func `a folder says how long its names may be`() throws {
        let folder = try Folder(place.path)
        #expect(folder.longestName == 255)
        #expect(try folder.canHold(name(255)))
        #expect(try !folder.canHold(name(256)))
    }

    @Test func `a file is made under a name of 255 bytes, and never over another`() throws {
        let folder = try Folder(place.path)
        try folder.create([1], as: name(255), mode: 0o600)
        let error = #expect(throws: SystemError.self) { try folder.create([2], as: name(255), mode: 0o600) }
        #expect(error?.isTaken == true)
        #expect(try folder.read(name(255), limit: 9) == [1])
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.path.string).count == 1)
    }

    @Test func `copies of two long names that begin alike do not take each other for leftovers`() throws {
        let source = try SourceFile(opening: place.write([1], to: "source"))
        let target = try place.makeDirectory("target")
        for ending in ["1", "2"] {
            _ = try FileCopy.copy(
                source, toTemporaryIn: target, name: name(254, ending: ending), isCancelled: { false },
                progress: { _ in })
        }
        let left = { try FileManager.default.contentsOfDirectory(atPath: target.string) }
        #expect(try left().count == 2)
        #expect(try left().allSatisfy { $0.utf8.count <= 143 })
        FileCopy.removeLeftovers(of: try name(254, ending: "1"), in: target)
        #expect(try left().count == 1)
        FileCopy.removeLeftovers(of: try name(254, ending: "2"), in: target)
        #expect(try left().isEmpty)
    }
}
