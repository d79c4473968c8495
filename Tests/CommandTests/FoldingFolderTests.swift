import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// A destination that does not tell `IMG.JPG` from `img.jpg`: exFAT, through FUSE, in an image of its own.
private final class ExFAT {
    /// Removed after the disk is out.
    private let folder: TemporaryDirectory
    private let point: FilePath

    static let isAvailable: Bool = {
        let programs = ["/usr/sbin/mkfs.exfat", "/sbin/mount.exfat-fuse"]
        guard getuid() == 0, programs.allSatisfy({ FileManager.default.isExecutableFile(atPath: $0) }),
            let folder = try? TemporaryDirectory(), (try? folder.makeDirectory("disk")) != nil
        else { return false }
        return (try? ExFAT(in: folder, at: folder.path.appending("disk"))) != nil
    }()

    init(in folder: TemporaryDirectory, at point: FilePath) throws {
        self.folder = folder
        self.point = point
        let image = try folder.write(Data(), to: "exfat.img")
        try Tool.run("/bin/bash", "-c", Self.script, "bash", image.string, point.string)
    }

    /// The file system's daemon must keep nothing by which Foundation sees that this script has ended.
    private static let script = """
        for fd in /proc/$$/fd/*; do [ "${fd##*/}" -lt 3 ] || eval "exec ${fd##*/}>&-"; done
        truncate -s 16M "$1" && mkfs.exfat "$1" && mount -t exfat-fuse -o loop "$1" "$2"
        """

    deinit { try? Tool.run("/bin/umount", "-l", point.string) }
}

@Suite(.enabled(if: ExFAT.isAvailable, "needs root, exfatprogs and exfat-fuse")) struct FoldingFolderTests {
    @Test func `names that differ in case only all arrive in a folder that does not tell them apart`() async throws {
        let place = try Place()
        let disk = try ExFAT(in: place.folder, at: place.library)
        defer { withExtendedLifetime(disk) {} }
        let agent = try await place.run()
        let names: [FilePath] = ["IMG_1.JPG", "img_1.jpg", "Img_1.Jpg", "other.txt"]
        for (number, name) in names.enumerated() {
            try await place.deliver(name, bytes(1000, seed: UInt64(number)), by: agent)
        }
        let found = try FileManager.default.contentsOfDirectory(atPath: place.library.string).sorted()
        #expect(found == ["IMG_1.JPG", "Img_1_3.Jpg", "img_1_2.jpg", "other.txt"])
        for (name, number) in [("IMG_1.JPG", 0), ("img_1_2.jpg", 1), ("Img_1_3.Jpg", 2)] as [(String, UInt64)] {
            #expect(try place.content(place.library.appending(name)) == bytes(1000, seed: number), "\(name)")
        }
        let keys = agent.lines("job.delivered").map { $0["key"] }
        #expect(keys == ["IMG_1.JPG", "img_1_2.jpg", "Img_1_3.Jpg", "other.txt"])
        try await place.inlet("verify", "--all", code: 0)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a delivered file whose name changes its case only, in such a folder, is not sent again`() async throws {
        let place = try Place()
        let disk = try ExFAT(in: place.folder, at: place.drop)
        defer { withExtendedLifetime(disk) {} }
        let agent = try await place.run()
        try await agent.line("watch.mode") { $0["mode"] == "inotify" }
        try await agent.line("watch.added")
        let (old, new) = (place.drop.appending("IMG_1.JPG"), place.drop.appending("img_1.jpg"))
        try bytes(1000).write(to: URL(fileURLWithPath: old.string))
        try await agent.line("job.finished") { $0.isAbout("IMG_1.JPG") && $0["state"] == "delivered" }
        try #require(rename(old.string, new.string) == 0)
        let renamed = try await agent.line("job.renamed")
        #expect(renamed.isAbout("img_1.jpg") && renamed["from"] == old.string)
        // Both spellings lead there.
        #expect(try place.content(old) == bytes(1000) && place.content(new) == bytes(1000))
        try bytes(10).write(to: URL(fileURLWithPath: place.drop.appending("last").string))
        try await agent.line("job.finished") { $0.isAbout("last") }
        #expect(agent.lines("job.admitted").count == 2)
        #expect(try await agent.stop() == .code(0))
        // Nor is it new at the next start.
        let next = try await place.run()
        try await next.line("watch.added")
        try bytes(20).write(to: URL(fileURLWithPath: place.drop.appending("later").string))
        try await next.line("job.finished") { $0.isAbout("later") }
        #expect(next.lines("job.admitted").count == 1)
        #expect(try await next.stop() == .code(0))
    }
}
