import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct FoundRootsTests {
    /// A mount that is only said to be: nothing is asked of it.
    private func table(_ mounts: [(point: FilePath, type: String)]) -> MountTable {
        let text = mounts.enumerated().map { number, mount in
            "\(number + 2) 1 0:\(number + 40) / \(mount.point.string) rw - \(mount.type) x:/y rw"
        }
        return MountTable(parsing: Array(text.joined(separator: "\n").utf8))
    }

    @Test func `a pattern does not reach into other machines' folders, at any of its levels`() throws {
        let directory = try TemporaryDirectory()
        for folder in ["media/card/DCIM", "media/nas/DCIM", "media/disk/DCIM", "media/old/DCIM"] as [FilePath] {
            try directory.makeDirectory(folder)
        }
        let media = directory.path.appending("media")
        let mounts = table([
            (media.appending("card"), "vfat"), (media.appending("nas"), "nfs4"), (media.appending("disk"), "fuseblk"),
            (media.pushing("old/DCIM"), "cifs"),
        ])
        let found = FoundRoots(try RootPattern(media.pushing("*/DCIM")), mounts: mounts)
        #expect(Set(found.roots.keys) == [media.pushing("card/DCIM"), media.pushing("disk/DCIM")])
        #expect(found.servers == [media.appending("nas"), media.pushing("old/DCIM")])
        // Nor is it asked to tell of what comes there.
        #expect(!found.parents.contains(media.appending("nas")) && found.parents.contains(media.appending("card")))
        let whole = FoundRoots(try RootPattern(media.appending("*")), mounts: mounts)
        #expect(Set(whole.roots.keys) == Set(["card", "disk", "old"].map { media.pushing(FilePath($0)) }))
    }

    @Test func `a pattern that begins on another machine's folder is followed there`() throws {
        let directory = try TemporaryDirectory()
        let slot = try directory.makeDirectory("share/A/DCIM")
        let share = directory.path.appending("share")
        let found = FoundRoots(try RootPattern(share.pushing("*/DCIM")), mounts: table([(share, "nfs4")]))
        #expect(Set(found.roots.keys) == [slot] && found.servers.isEmpty)
    }

    @Test func `a folder that cannot be looked at for the moment is not gone`() throws {
        let directory = try TemporaryDirectory()
        for card in ["A", "B"] { try directory.makeDirectory(FilePath("media/\(card)/DCIM")) }
        let media = directory.path.appending("media")
        let pattern = try RootPattern(media.pushing("*/DCIM"))
        let lame = media.pushing("A/DCIM")
        var hidden = 0
        for seed in 0..<8 as Range<UInt64> {
            let number = KernelFaults.begin(KernelFaultPlan(below: [lame], seed: seed, count: 1, every: 1))
            let found = FoundRoots(pattern, mounts: table([]))
            let code = try #require(KernelFaults.end(number)?.injected.first?.code)
            #expect(found.roots[media.pushing("B/DCIM")] != nil)
            // A folder that this user may not see is none of his.
            if code == .permissionDenied { continue }
            #expect(found.isUnanswered(lame) && !found.isUnanswered(media.pushing("B/DCIM")), "\(code)")
            hidden += 1
        }
        #expect(hidden > 0)
    }
}
