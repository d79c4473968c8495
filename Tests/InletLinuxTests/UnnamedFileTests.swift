import Foundation
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

struct UnnamedFileTests {
    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path.string).sorted() }
    }

    @Test func `what a process that dies has written is gone with it, until it has a name`() throws {
        guard let file = try UnnamedFile.make(in: folder.path) else {
            Issue.record("the temporary folder must be on a usual file system")
            return
        }
        let written = "whole".withCString { write(file.descriptor.number, $0, 5) }
        #expect(written == 5)
        #expect(try names.isEmpty)
        let name = try #require(FilePath("receipt.json").lastComponent)
        do {
            let temporary = try TemporaryFile(naming: file, in: folder.path, for: name)
            #expect(try names == [temporary.path.lastComponent?.string])
            #expect(try DurableFile.read(temporary.path, limit: 100) == Array("whole".utf8))
        }
        #expect(try names.isEmpty, "it goes with its owner")
    }

    @Test func `a name that is taken is not taken over`() throws {
        let path = try folder.write([1], to: "taken")
        let file = try UnnamedFile.make(in: folder.path)
        do throws(SystemError) {
            try file?.link(as: path)
            Issue.record("it has the name of another")
        } catch {
            #expect(error.isTaken)
        }
    }

    @Test func `where there are no such files there is none`() throws {
        let isThere = try UnnamedFile.make(in: "/proc") != nil
        #expect(!isThere)
    }
}
