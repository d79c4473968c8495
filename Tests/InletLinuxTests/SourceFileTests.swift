import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

struct SourceFileTests {
    let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    @Test func `a symlink, a FIFO, a socket, a device and a folder are refused as not regular`() throws {
        let file = try folder.write([1], to: "file")
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: file.string)
        let fifo = folder.path.appending("fifo")
        try run("/usr/bin/mkfifo", fifo.string)
        let socket = try DatagramSocket(at: folder.path.appending("socket"))
        for path in [link, fifo, socket.path, "/dev/null", folder.path] {
            let error = try #require(throws: SystemError.self) { try SourceFile(opening: path) }
            #expect(error.isNotRegular, "\(path)")
            #expect(error.description.contains("not a regular file"), "\(error)")
        }
    }

    @Test func `a missing file is missing, with path and cause in the text`() throws {
        let error = try #require(throws: SystemError.self) {
            try SourceFile(opening: folder.path.appending("gone\u{1B}"))
        }
        #expect(error.isMissing)
        #expect(error.description == "stat \(folder.path)/gone\\x1B: No such file or directory")
    }

    @Test func `a small file is read whole, a larger one refused`() throws {
        for count in [0, 1, 10] {
            let content = [UInt8](repeating: 7, count: count)
            #expect(try SourceFile(opening: folder.write(content, to: "a")).content(limit: 10) == content)
        }
        let large = try SourceFile(opening: folder.write([UInt8](repeating: 7, count: 11), to: "a"))
        let error = #expect(throws: SystemError.self) { try large.content(limit: 10) }
        #expect(error?.code == .fileTooLarge && error?.refusal == .tooLarge(limit: 10))
    }

    @Test func `a small content keeps no room for a large one`() throws {
        let content = try SourceFile(opening: folder.write([7, 8], to: "a")).content(limit: 1 << 20)
        #expect(content == [7, 8] && content.capacity < 4096)
    }

    @Test func `reads by offset and stops at the end`() throws {
        let source = try SourceFile(opening: folder.write(0..<100, to: "a"))
        var bytes = [UInt8](repeating: 0, count: 30)
        let middle = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 50) }
        #expect(middle == 30)
        #expect(bytes == Array(50..<80))
        let last = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 90) }
        #expect(last == 10)
        let end = try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 100) }
        #expect(end == 0)
    }

    @Test func `growth shows in the identity, a replacement in the name`() throws {
        let path = try folder.write([1, 2, 3], to: "a")
        let source = try SourceFile(opening: path)
        #expect(source.opened.size == 3)
        #expect(try source.identity() == source.opened)
        #expect(try source.naming() == .it)

        let handle = try #require(FileHandle(forWritingAtPath: path.string))
        try handle.seekToEnd()
        try handle.write(contentsOf: [4])
        try handle.close()
        #expect(try source.identity().size == 4)
        #expect(try !source.identity().isUntouched(since: source.opened))
        #expect(try source.naming() == .it)

        try FileManager.default.removeItem(atPath: path.string)
        #expect(try source.naming() == .nothing)
        try FileManager.default.createSymbolicLink(atPath: path.string, withDestinationPath: "/etc/hostname")
        #expect(try source.naming() == .nothing)
        try FileManager.default.removeItem(atPath: path.string)
        try folder.write([1, 2, 3], to: "a")
        #expect(try source.naming() == .another(try #require(FileLook.look(at: path).identity)))
        #expect(try source.identity().inode == source.opened.inode)
    }

    @Test func `numbers that a file system gives out anew are no other file, and a ctime is`() throws {
        let source = try SourceFile(opening: try folder.write([1, 2, 3], to: "a"))
        var other = source.opened
        (other.inode, other.device) = (other.inode + 1, other.device + 1)
        #expect(source.isRenumbered(other, since: source.opened))
        other.changed += 1
        #expect(!source.isRenumbered(other, since: source.opened))
    }

    @Test func `what keeps from looking at a name says nothing of its file`() throws {
        let path = try folder.write([1, 2, 3], to: "a")
        let source = try SourceFile(opening: path)
        let number = KernelFaults.begin(KernelFaultPlan(below: [path], seed: 1, count: 3, every: 1))
        for _ in 0..<3 { #expect(throws: SystemError.self) { try source.naming() } }
        KernelFaults.end(number)
        #expect(try source.naming() == .it)
    }

    @Test func `reading leaves the access time alone`() throws {
        let path = try folder.write([1], to: "a")
        try run("/usr/bin/touch", "-a", "-d", "2001-01-01T00:00:00Z", path.string)
        let source = try SourceFile(opening: path)
        var byte: [UInt8] = [0]
        _ = try byte.withUnsafeMutableBytes { try source.read(into: $0, at: 0) }
        #expect(try run("/usr/bin/stat", "-c", "%X", path.string) == "978307200")
    }

    @Test func `a look tells the kinds apart`() throws {
        let file = try folder.write([1, 2], to: "file")
        try FileManager.default.linkItem(atPath: file.string, toPath: folder.path.appending("second").string)
        let link = folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: "nowhere")
        guard case .regular(let identity, let owner, let links) = try FileLook.look(at: file) else {
            Issue.record("not regular")
            return
        }
        #expect(identity.size == 2)
        #expect(owner == ProcessSetup.userID)
        #expect(links == 2)
        #expect(try FileLook.look(at: link) == .symlink)
        #expect(try FileLook.look(at: "/dev/null") == .other)
        #expect(try FileLook.look(at: folder.path.appending("none")) == .missing)
        #expect(try FileLook.look(at: file.appending("below")) == .missing)
        #expect(try FileLook.look(at: folder.path).identity == nil)
    }
}
