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
        // What a process left that died before its last rename.
        let left = folder.path.pushing(TemporaryFile.fixedName(for: name))
        try DurableFile.rename(try folder.write(Array("old".utf8), to: "x"), over: left)
        #expect(try file.place(at: folder.path.appending(name), in: folder.path, for: name))
        #expect(try names == ["receipt.json"])
        #expect(try DurableFile.read(folder.path.appending(name), limit: 100) == Array("whole".utf8))
    }

    @Test func `many who write one file leave one whole file, and nothing else`() async throws {
        let path = folder.path.appending("book")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 as Range<UInt8> {
                group.addTask {
                    for _ in 0..<20 {
                        try DurableFile.write([UInt8](repeating: number, count: 1000), to: path, mode: 0o600)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try names == ["book"])
        let content = try DurableFile.read(path, limit: 2000)
        #expect(content.count == 1000 && Set(content).count == 1)
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
