import Foundation
import Glibc
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

/// Symlinks in the place of a destination's folders: an administrator's are followed, nobody else's are.
@Suite(.timeLimit(.minutes(8))) struct FolderLinkTests {
    @Test func `a link to a folder is that folder`() async throws {
        let directory = try TemporaryDirectory()
        let (folder, link) = (try directory.makeDirectory("real"), directory.path.appending("link"))
        #expect(symlink(folder.string, link.string) == 0)
        try await withPlace(.folder("read-back"), settings: ["path": .string(link.string)]) { place in
            let (path, order) = try place.file(1000, key: "a.bin")
            _ = try await place.deliver(path, order).get()
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder.pushing("a.bin").string)) == content(1000))
        }
    }

    @Test(arguments: FolderPipelineTests.both)
    func `a symlink in the place of a folder, put there while a copy is made, leads no file away`(
        _ implementation: Implementation
    ) async throws {
        try await withPlace(implementation) { place in
            let outside = try TemporaryDirectory()
            let (path, order) = try place.file(1000, key: "sub/a.bin")
            let (sub, moved) = (place.target.pushing("sub"), place.target.pushing("moved"))
            let attempt = Notes().attempt { _ in
                _ = rename(sub.string, moved.string)
                _ = symlink(outside.path.string, sub.string)
            }
            _ = try await place.deliver(path, order, attempt).get()
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path.string) == [])
            #expect(try Data(contentsOf: URL(fileURLWithPath: moved.pushing("a.bin").string)) == content(1000))
        }
    }

    @Test(.enabled(if: getuid() == 0, "only root can make another's symlink"), arguments: ["sub", ""])
    func `a symlink that another user has made is not followed`(_ level: String) async throws {
        let directory = try TemporaryDirectory()
        let (folder, outside) = (directory.path.appending("folder"), try directory.makeDirectory("outside"))
        let link = level.isEmpty ? folder : folder.appending(level)
        if !level.isEmpty { try directory.makeDirectory("folder") }
        #expect(symlink(outside.string, link.string) == 0 && lchown(link.string, 65_534, 65_534) == 0)
        try await withPlace(.folder("read-back"), settings: ["path": .string(folder.string)]) { place in
            let (path, order) = try place.file(1000, key: "sub/a.bin")
            let error = try await place.failure(path, order)
            #expect(error?.code == .destinationUnwritable)
            // The whole destination is out of order, or only what goes there.
            #expect((error?.verdict == .outage(after: nil)) == level.isEmpty)
            #expect(error?.reason.contains("a symlink is on the way") == true, "\(error?.reason ?? "")")
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside.string) == [])
        }
    }
}
