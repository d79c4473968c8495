import Foundation
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

struct DirectoryStreamTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    private func entries(_ path: FilePath) throws -> Set<DirectoryEntry> {
        var stream = try DirectoryStream(path)
        var found: Set<DirectoryEntry> = []
        while let entry = try stream.next() { found.insert(entry) }
        return found
    }

    @Test func `a missing folder, a file and a symlink to a folder are refused`() throws {
        let file = try folder.write([1], to: "file")
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: folder.path.string)
        for path in [folder.path.appending("none"), file, link] {
            let error = try #require(throws: SystemError.self) { try entries(path) }
            #expect(error.isMissing, "\(error)")
            #expect(error.call == "opendir")
        }
    }

    @Test func `names that are not UTF-8, that hold newlines or have 255 bytes come through unchanged`() throws {
        let names: [[UInt8]] = [
            [0xFF, 0xFE, 0x41], Array("new\nline".utf8), [0xC3], [UInt8](repeating: 0xE9, count: 255),
            Array(" ".utf8), Array("...".utf8), Array("é😀".utf8),
        ]
        for name in names {
            let path = folder.path.pushing(FilePath(bytes: name))
            try FileDescriptor.open(path, .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
                .close()
        }
        let found = try entries(folder.path)
        #expect(Set(found.map { FilePath(root: nil, [$0.name]).bytes }) == Set(names))
        #expect(found.allSatisfy { $0.kind == .regular })
        for entry in found {
            #expect(try FileLook.look(at: folder.path.appending(entry.name)).identity != nil)
        }
    }

    @Test func `the kinds are told apart`() throws {
        try folder.write([1], to: "file")
        try folder.makeDirectory("folder")
        try FileManager.default.createSymbolicLink(
            atPath: folder.path.appending("link").string, withDestinationPath: "nowhere")
        try run("/usr/bin/mkfifo", folder.path.appending("fifo").string)
        let kinds = Dictionary(uniqueKeysWithValues: try entries(folder.path).map { ($0.name.string, $0.kind) })
        #expect(kinds == ["file": .regular, "folder": .directory, "link": .symlink, "fifo": .other])
    }

    @Test func `a large folder is read whole, name by name`() throws {
        for number in 0..<3000 {
            try FileDescriptor.open(
                folder.path.appending("\(number)"), .writeOnly, options: [.create, .closeOnExec],
                permissions: .ownerReadWrite
            ).close()
        }
        #expect(try entries(folder.path).count == 3000)
    }

    @Test func `streams give their descriptors back`() throws {
        let before = try openDescriptors()
        for _ in 0..<50 {
            var stream = try DirectoryStream(folder.path)
            _ = try stream.next()
            _ = try SourceFile(opening: folder.write([1], to: "a"))
        }
        // Other tests open and close descriptors meanwhile, but not by the hundred.
        #expect(try openDescriptors() < before + 90)
    }

    private func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}
