import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// What `inlet check` says of watching.
@Suite struct WatchCheckTests {
    private func limit(_ name: String) throws -> String {
        try String(contentsOfFile: "/proc/sys/fs/inotify/\(name)", encoding: .utf8)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test func `the folders are counted, and compared with what the kernel allows`() async throws {
        let place = try Place()
        for name in ["a", "b/c", ".stfolder/ignored"] { try place.folder.makeDirectory(FilePath("drop/\(name)")) }
        let said = try await place.inlet("check").output
        #expect(said.contains("4 of \(try limit("max_user_watches")) needed (fs.inotify.max_user_watches)"))
        #expect(said.contains("1 of \(try limit("max_user_instances")) inotify instances needed"))
    }

    @Test func `what is polled needs no watch`() async throws {
        let place = try Place(watch: ["mode: poll", "poll: 3s"])
        let said = try await place.inlet("check").output
        #expect(said.contains("watch \(place.drop): polled, every 3s or less often (mode: poll, on "))
        #expect(said.contains("0 of \(try limit("max_user_watches")) needed"))
    }

    @Test func `a symlink is not taken for a folder that is to come`() async throws {
        let place = try Place()
        let real = place.folder.path.appending("real")
        try FileManager.default.moveItem(atPath: place.drop.string, toPath: real.string)
        try FileManager.default.createSymbolicLink(
            atPath: place.drop.string, withDestinationPath: real.string)
        let said = try await place.inlet("check").output
        #expect(said.contains("watch \(place.drop): a symlink to \(real), which is not followed"))
    }

    @Test(.enabled(if: TestMount.hasBindfs, "needs bindfs, /dev/fuse and the right to mount"))
    func `each mount below the folder has a line of its own`() async throws {
        let place = try Place()
        let share = try place.folder.makeDirectory("drop/share")
        let mount = try TestMount(bindfs: place.folder.makeDirectory("other"), at: share)
        defer { mount.unmount() }
        let said = try await place.inlet("check").output
        #expect(said.contains("watch \(share): polled, every 10s or less often (fuse"))
        #expect(said.contains("1 of \(try limit("max_user_watches")) needed"))
    }
}
