import Foundation
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// A log file that others write, rotate and cut.
@Suite struct FollowedFileTests {
    private func append(_ text: String, to path: FilePath) throws {
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path.string))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
    }

    private func next(_ file: inout FollowedFile) throws -> String { String(decoding: try file.next(), as: UTF8.self) }

    @Test func `what is written before and after a rotation comes once, in its order`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("old\n".utf8, to: "inlet.log")
        var file = try FollowedFile(path, tail: 1 << 20)
        let isCut = file.isCut
        #expect(!isCut)
        #expect(try next(&file) == "old\n")
        #expect(try next(&file) == "")
        try append("last of the old\n", to: path)
        try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".1")
        #expect(try next(&file) == "last of the old\n")
        #expect(try next(&file) == "")
        try append("later still\n", to: FilePath(path.string + ".1"))
        try folder.write("new\n".utf8, to: "inlet.log")
        #expect(try next(&file) == "later still\n")
        #expect(try next(&file) == "new\n")
        try append("more\n", to: path)
        #expect(try next(&file) == "more\n")
    }

    @Test func `a file that is cut to nothing is read from its beginning again`() throws {
        let folder = try TemporaryDirectory()
        let path = try folder.write("a long line\n".utf8, to: "inlet.log")
        var file = try FollowedFile(path, tail: 5)
        let isCut = file.isCut
        #expect(isCut)
        #expect(try next(&file) == "line\n")
        try FileHandle(forWritingTo: URL(fileURLWithPath: path.string)).truncate(atOffset: 0)
        try append("new\n", to: path)
        #expect(try next(&file) == "new\n")
        #expect(throws: SystemError.self) { _ = try FollowedFile(folder.path.appending("none"), tail: 1) }
    }
}
