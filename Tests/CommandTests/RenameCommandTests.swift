import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// A file that is renamed while its bytes leave, with a destination that looks whether it is still there.
@Suite struct RenameCommandTests {
    /// Before Linux 5.17 fanotify does not tell the two names together.
    private static let modes =
        ProcessInfo.processInfo.isOperatingSystemAtLeast(
            OperatingSystemVersion(majorVersion: 5, minorVersion: 17, patchVersion: 0))
        ? ["auto", "fanotify"] : ["auto"]

    private func place(_ mode: String) throws -> Place {
        return try Place(watch: ["mode: \(mode)"])
    }

    @Test(arguments: modes)
    func `a folder that is moved into one so new that nobody watches it is not sent again`(_ mode: String) async throws
    {
        let place = try place(mode)
        let agent = try await place.run()
        for name in ["1.bin", "2.bin"] {
            try place.put(FilePath("card/\(name)"), bytes(100))
            try await agent.line("job.finished") { $0.isAbout(name) }
        }
        // While it does not look.
        agent.signal(SIGSTOP)
        try place.folder.makeDirectory("drop/new")
        try #require(rename(place.drop.appending("card").string, place.drop.appending("new/card").string) == 0)
        agent.signal(SIGCONT)
        try await agent.line("job.renamed", number: 2)
        try await place.deliver("last.bin", bytes(100), by: agent)
        #expect(agent.lines("job.admitted").count == 3)
        #expect(try await agent.stop() == .code(0))
    }

    @Test(arguments: modes)
    func `a file that was renamed is known, though another has its old name by then`(_ mode: String) async throws {
        let place = try place(mode)
        let agent = try await place.run()
        try await place.deliver("live.bin", bytes(100), by: agent)
        agent.signal(SIGSTOP)
        try #require(rename(place.drop.appending("live.bin").string, place.drop.appending("old.bin").string) == 0)
        try place.put("live.bin", bytes(200))
        agent.signal(SIGCONT)
        try await agent.line("job.renamed") { $0.isAbout("old.bin") }
        try await agent.line("job.finished", number: 2) { $0.isAbout("live.bin") }
        #expect(agent.lines("job.admitted").count == 2)
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `a file that is renamed while it is sent begins anew under its new name, and leaves nothing of the old`()
        async throws
    {
        try await withSpiral("parallel_parts: 1") { place, sandbox in
            // Its first part arrives, the second one hangs.
            sandbox.faults.add(Fault(.stall, at: .part, part: 2, times: nil))
            let agent = try await place.run()
            let content = bytes(11 << 20)
            try place.put("one.mov", content)
            // All of it has been read: the rename is seen by who looks whether the file is there, not by who reads it.
            try await agent.line("transfer.progress") { $0.isAbout("one.mov") && $0.number("sent") == 10 << 20 }
            try #require(rename(place.drop.appending("one.mov").string, place.drop.appending("two.mov").string) == 0)
            try await agent.wait("the rename is seen, and waits") {
                try await place.inlet("status").output.contains("two.mov\twaiting for its delivery: it was renamed")
            }
            #expect(agent.lines("job.admitted").count == 1)
            sandbox.faults.clear()
            try await agent.line("job.finished") { $0.isAbout("one.mov") && $0["state"] == "gone" }
            try await agent.line("job.finished") { $0.isAbout("two.mov") && $0["state"] == "delivered" }
            #expect(sandbox.objects().map(\.key) == ["two.mov"])
            #expect(try place.content(#require(sandbox.objects().first).path) == content)
            try await agent.wait("the first upload is given up") { sandbox.openUploads().isEmpty }
            #expect(agent.lines("job.admitted").count == 2 && agent.lines("job.renamed").isEmpty)
            let balance = try await place.balance()
            #expect(balance["delivered"] == 1 && balance["gone"] == 1, "\(balance)")
            #expect(try await agent.stop() == .code(0))
        }
    }
}

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

/// Files in the journal's history, as users meet them.
@Suite struct HistoryCommandTests {
    @Test func `a file that stays in its folder is not sent again after it went to the history and a restart`()
        async throws
    {
        let place = try Place(top: ["journal_history: { after: 1s }"])
        try place.put("a.bin", bytes(100))
        try await place.runUntil("job.finished") { $0.isAbout("a.bin") }
        // It looks a second after its start; what had finished before is old enough then.
        let second = try await place.run()
        #expect(try await second.line("journal.pruned").number("files") == 1)
        #expect(try await second.stop() == .code(0))
        let third = try await place.run()
        try await place.deliver("b.bin", bytes(200), by: third)
        #expect(third.lines("job.admitted").allSatisfy { $0.isAbout("b.bin") })
        #expect(try await place.balance()["delivered"] == 2)
        try await place.inlet("queue", "show", "1", code: 0, says: "a.bin")
        // Dropped anew, with other bytes, it gets a key of its own.
        try await place.deliver("a.bin", bytes(300), by: third)
        #expect(try await third.stop() == .code(0))
        let files = Place.files(below: place.library)
        #expect(files == ["a.bin": bytes(100), "b.bin": bytes(200), "a_2.bin": bytes(300)])
        // Forgotten, it is seen no more in the queue.
        try await place.inlet("queue", "forget", "1", code: 0)
        #expect(try await place.inlet("queue", "show", "1").ending != .code(0))
    }
}

/// `existing: adopt` with real destinations.
@Suite struct AdoptTests {
    private static let adopting = ["existing: ingest", "existing: adopt\n    adopt_check: true"]

    /// Sends two files, forgets that it did, changes those of `changed` and adds another, and watches all as a stranger's. Only
    /// what was not there is sent.
    private static func adoptAfterSending(_ place: Place, changed: Set<String>) async throws {
        let old: Set = ["same.bin", "other.bin"]
        for name in old { try place.put(FilePath(name), bytes(1000)) }
        let first = try await place.run()
        for name in old { try await first.line("job.finished") { $0.isAbout(name) } }
        #expect(try await first.stop() == .code(0))
        try FileManager.default.removeItem(atPath: place.state.string)
        for name in changed { try place.put(FilePath(name), bytes(1001)) }
        try place.put("new.bin", bytes(7))
        try place.configure(replacing: adopting[0], with: adopting[1])
        let second = try await place.run()
        let expected = changed.union(["new.bin"])
        for name in expected { try await second.line("job.finished") { $0.isAbout(name) } }
        let adopted = try await second.line("watch.adopted")
        #expect(adopted.number("files") == Int64(old.subtracting(changed).count))
        #expect(try await place.status().files == ["delivered": 3])
        #expect(try await second.stop() == .code(0))
        let sent = second.lines("job.admitted").compactMap { $0["path"]?.split(separator: "/").last }
        #expect(Set(sent.map(String.init)) == expected && second.lines("file.not_adopted").count == expected.count)
    }

    @Test func `a bucket is asked for each file, and gets what it has not`() async throws {
        try await withS3("if_exists: overwrite") { place, sandbox in
            try place.configure(replacing: "settle: 0s", with: "settle: 0s\n    \(Self.adopting[0])")
            try await Self.adoptAfterSending(place, changed: ["other.bin"])
            #expect(sandbox.traffic.counts[.putObject] == 4)
            #expect(sandbox.objects().count == 3)
        }
    }

    @Test func `a folder is asked for each file, and gets what it has not`() async throws {
        let place = try Place(watch: [Self.adopting[0]])
        try await Self.adoptAfterSending(place, changed: [])
        #expect(
            Place.files(below: place.library) == [
                "same.bin": bytes(1000), "other.bin": bytes(1000), "new.bin": bytes(7),
            ])
    }

    @Test(.timeLimit(.minutes(15)))
    func `an agent that is killed while it adopts goes on, and sends nothing of what was there`() async throws {
        let place = try Place(watch: ["existing: adopt"])
        for folder in 0..<20 {
            for file in 0..<150 { try place.put(FilePath("d\(folder)/f\(file).bin"), bytes(8, seed: UInt64(file))) }
        }
        // The first look at the folder decides what was there: not the millisecond of the last file.
        try place.put("last", Data([1]))
        var delivered = 0
        for _ in 0..<3 where delivered < 3001 {
            let agent = try await place.run()
            try await agent.wait("it has adopted more") {
                let now = try await place.balance()["delivered"] ?? 0
                defer { delivered = max(delivered, now) }
                return now > delivered
            }
            try await agent.kill()
        }
        try place.put("d0/new.bin", bytes(9))
        let last = try await place.run()
        try await last.line("job.finished") { $0.isAbout("new.bin") }
        try await last.wait("all is known") { try await place.balance()["delivered"] == 3002 }
        let balance = try await place.balance()
        #expect(balance.values.reduce(0, +) == 3002, "\(balance)")
        #expect(try await last.stop() == .code(0))
        #expect(Place.files(below: place.library) == ["d0/new.bin": bytes(9)])
    }
}

/// What `inlet check` says of adoption that could find nothing.
@Suite struct AdoptCheckTests {
    private static func said(_ key: String) async throws -> String {
        try await Place(key: key, watch: ["existing: adopt", "adopt_check: true"]).inlet("check").output
    }

    @Test(arguments: ["{epoch_ms}_{name}", "{now:yyyy}/{name}", "{now:HH}/{name}", "{now:ss}-{name}", "{seq}-{name}"])
    func `a key that is another one each time is warned of`(_ key: String) async throws {
        #expect(try await Self.said(key).contains("adopt_check, route all: the key '\(key)' changes each time"))
    }

    @Test func `a key that lasts, at a folder, is fine`() async throws {
        #expect(try await !Self.said("{mtime:yyyy}/{dir}/{name}").contains("adopt_check"))
    }
}
