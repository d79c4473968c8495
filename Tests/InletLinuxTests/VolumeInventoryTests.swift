import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@Suite(.enabled(if: TestMount.isAllowed, "needs the right to mount"), .timeLimit(.minutes(15)))
struct VolumeInventoryTests {
    private let folder: TemporaryDirectory
    private let card: FilePath
    private let mount: TestMount

    init() throws {
        folder = try TemporaryDirectory()
        card = try folder.makeDirectory("card")
        mount = try TestMount("tmpfs", at: card)
    }

    private func write(_ count: Int, to name: FilePath) throws {
        try folder.write([UInt8](repeating: 7, count: count), to: FilePath("card").pushing(name))
    }

    private func walk(_ root: FilePath? = nil, limit: Int = 1 << 20) throws -> (VolumeInventory, [String: Int64]) {
        var files: [String: Int64] = [:]
        let found = try VolumeInventory.walk(around: root ?? card, limit: limit) { file in
            #expect(files.updateValue(file.kind == .regular ? file.size : -1, forKey: file.path.string) == nil)
        }
        return (found, files)
    }

    @Test func `all files of the file system are found from any of its folders`() throws {
        try write(5, to: "DCIM/100/a.jpg")
        try write(0, to: "DCIM/100/empty")
        try write(3, to: "notes.txt")
        try write(1, to: "A/B/C/D/.hidden")
        try #require(symlink("/etc", card.appending("link").string) == 0)
        try #require(mkfifo(card.pushing("A/fifo").string, 0o600) == 0)
        for root in [card, card.pushing("DCIM/100")] {
            let (found, files) = try walk(root)
            #expect(
                files == [
                    "DCIM/100/a.jpg": 5, "DCIM/100/empty": 0, "notes.txt": 3, "A/B/C/D/.hidden": 1, "link": -1,
                    "A/fifo": -1,
                ])
            #expect(found.top == card.resolved && found.folder == "/" && found.isWhole)
            #expect(found.files == 4 && found.bytes == 9 && found.others == 2)
        }
    }

    @Test func `what operating systems keep at the top is left out, and the same names below are not`() throws {
        let names = [
            ".Spotlight-V100", ".fseventsd", ".Trashes", ".Trash-1000", "System Volume Information", "$Recycle.Bin",
        ]
        for name in names {
            try write(1, to: FilePath(name).appending("x"))
            try write(1, to: FilePath("DCIM").appending(name).appending("x"))
        }
        try write(1, to: "lost+found/#12")
        try write(1, to: ".Trash-1000.txt")
        let (found, files) = try walk()
        #expect(Set(files.keys) == Set(names.map { "DCIM/\($0)/x" } + ["lost+found/#12", ".Trash-1000.txt"]))
        #expect(found.isWhole)
    }

    @Test func `what is mounted below is another file system, which hides what it covers`() throws {
        try write(1, to: "a")
        let other = try folder.makeDirectory("card/other")
        let (below, bound) = (try TestMount("tmpfs", at: other), try folder.makeDirectory("card/bound"))
        try write(2, to: "other/b")
        let again = try TestMount(folder: card, at: bound)
        let (found, files) = try walk()
        #expect(files == ["a": 1] && !found.isWhole)
        #expect(Set(found.unreadable.map(\.path)) == ["other", "bound"])
        #expect(try walk(other).1 == ["b": 2])
        withExtendedLifetime((below, again)) {}
    }

    @Test func `a part of the file system is not the whole`() throws {
        try write(1, to: "a")
        try write(2, to: "DCIM/b")
        let part = try folder.makeDirectory("part")
        let bound = try TestMount(folder: card.appending("DCIM"), at: part)
        let (found, files) = try walk(part)
        #expect(files == ["b": 2] && found.folder == "/DCIM" && !found.isWhole)
        withExtendedLifetime(bound) {}
    }

    @Test func `a missing folder does not stand for the file system above it`() throws {
        let error = #expect(throws: SystemError.self) { try walk(card.appending("none")) }
        #expect(error?.isMissing == true)
    }

    @Test func `a limit cuts the walk`() throws {
        for number in 0..<20 { try write(1, to: FilePath("f\(number)")) }
        let (cut, files) = try walk(limit: 19)
        #expect(cut.isCut && !cut.isWhole && cut.digest == nil && files.count == 19)
        #expect(try !walk(limit: 20).0.isCut)
    }

    @Test func `an unreadable folder is named, and the rest is found`() throws {
        try write(1, to: "bad/a")
        try write(1, to: "good/b")
        let number = KernelFaults.begin(
            KernelFaultPlan(below: [card.resolved.appending("bad")], seed: 3, count: 1000, every: 1))
        let (found, files) = try walk()
        KernelFaults.end(number)
        #expect(files == ["good/b": 1])
        #expect(found.unreadable.map(\.path) == ["bad"] && found.unreadableCount == 1)
        #expect(!found.isWhole && found.digest == nil)
        #expect(try walk().0.isWhole)
    }

    @Test func `the digest changes with a name, a size and a time, and with nothing else`() throws {
        for number in 0..<50 { try write(number, to: FilePath("d\(number % 7)/f\(number)")) }
        let first = try #require(try walk().0.digest)
        #expect(first.count == 32)
        #expect(try walk().0.digest == first)
        let file = card.pushing("d1/f1")
        func digest() throws -> String { try #require(try walk().0.digest) }
        func set(_ seconds: TimeInterval) throws {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: seconds)], ofItemAtPath: file.string)
        }
        try set(1000)
        let dated = try digest()
        #expect(dated != first)
        let moved = card.pushing("d2/f1")
        try #require(rename(file.string, moved.string) == 0)
        #expect(try digest() != dated)
        try #require(rename(moved.string, file.string) == 0)
        #expect(try digest() == dated)
        try write(2, to: "d1/f1")
        try set(1000)
        #expect(try digest() != dated)
        try write(1, to: "d1/f1")
        try set(1000)
        #expect(try digest() == dated)
        try write(0, to: "new")
        #expect(try digest() != dated)
    }

    @Test func `a walk shows that it is alive`() throws {
        for number in 0..<1000 { try write(0, to: FilePath("f\(number)")) }
        var beats = 0
        _ = try VolumeInventory.walk(around: card, limit: 1 << 20, beat: { beats += 1 }) { _ in }
        #expect(beats >= 1 + 1000 / 256)
    }
}

@Suite(.enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"))
struct CardInventoryTests {
    @Test func `a card has the same digest at another place, and another one after a change`() throws {
        let folder = try TemporaryDirectory()
        let (one, other) = (try folder.makeDirectory("one"), try folder.makeDirectory("other"))
        let disk = try DiskImage(label: "EOS")
        try disk.write([1, 2, 3], to: "DCIM/a.jpg")
        try disk.write([1], to: "b")
        func digest(at point: FilePath) throws -> String? {
            try disk.mount(at: point, readOnly: true)
            let found = try VolumeInventory.walk(around: point, limit: 100) { _ in }
            #expect(found.files == 2 && found.isWhole)
            try disk.unmount(point)
            return found.digest
        }
        let first = try #require(try digest(at: one))
        #expect(try digest(at: other) == first)
        try disk.write([1, 2], to: "b")
        #expect(try digest(at: one) != first)
    }
}
