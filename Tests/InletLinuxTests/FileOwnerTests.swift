import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletLinux

@Suite(.enabled(if: ProcessSetup.userID == 0, "only root gives files away")) struct FileOwnerTests {
    private let directory: TemporaryDirectory
    private let folder: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        folder = directory.path.appending("theirs")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        #expect(chown(folder.string, 4711, 4712) == 0)
    }

    private func owner(_ name: String) throws -> UInt32 {
        var status = stat()
        try #require(lstat(folder.appending(name).string, &status) == 0)
        return status.st_uid
    }

    @Test func `what root made in another's folder is his`() throws {
        try directory.write("x".utf8, to: "theirs/file")
        try FileManager.default.createDirectory(
            atPath: folder.appending("sub").string, withIntermediateDirectories: true)
        for name in ["file", "sub"] {
            FileOwner.give(folder.appending(name), toOwnerOf: folder)
            #expect(try owner(name) == 4711)
        }
    }

    @Test func `a lock and folders that root makes there are his`() throws {
        let lock = try FileLock(folder.appending("lock"))
        let isOurs = lock != nil
        #expect(isOurs)
        try DurableFile.makeDirectories(
            folder.appending("a").appending("b"), mode: 0o750, asFolderOwner: true)
        for name in ["lock", "a", "a/b"] { #expect(try owner(name) == 4711, "\(name)") }
    }

    @Test func `what he put in its place is not given away`() throws {
        try directory.write("x".utf8, to: "ours")
        #expect(link(directory.path.appending("ours").string, folder.appending("hard").string) == 0)
        #expect(symlink(directory.path.appending("ours").string, folder.appending("soft").string) == 0)
        for name in ["hard", "soft", "missing"] { FileOwner.give(folder.appending(name), toOwnerOf: folder) }
        // Its other name is what the symlink leads to.
        #expect(try owner("hard") == 0)
    }
}

struct UserNameTests {
    @Test(
        arguments: [("root", .found(0)), ("nobody-has-this-name", .unknown), ("", .unknown)] as [(String, UserLookup)])
    func `users are found by name`(_ name: String, _ answer: UserLookup) {
        #expect(FileOwner.user(named: name) == answer)
    }
}
