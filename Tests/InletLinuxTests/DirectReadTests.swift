import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// A card that is asked past the caches, with a medium that can fail.
@Suite(
    .enabled(if: DiskImage.isAvailable, "needs the right to mount, a loop device and mkfs.ext4"),
    .timeLimit(.minutes(15)))
struct DirectReadTests {
    private let folder: TemporaryDirectory
    private let point: FilePath
    private let disk: DiskImage
    private let content = [UInt8](repeating: 7, count: 20_000)

    init() throws {
        folder = try TemporaryDirectory()
        point = try folder.makeDirectory("point")
        disk = try DiskImage(label: "EOS")
    }

    private func insert(_ files: [FilePath]) throws {
        for file in files { try disk.write(content, to: file) }
        try disk.mount(at: point, readOnly: true)
    }

    /// As a program does that knows nothing of caches.
    private func read(_ file: FilePath) throws -> [UInt8] {
        try SourceFile(opening: point.pushing(file)).content(limit: 1 << 20)
    }

    @Test(arguments: ["DCIM/a.jpg", nil] as [FilePath?])
    func `a medium that fails is noticed although the cache still answers`(_ file: FilePath?) throws {
        try insert(["DCIM/a.jpg"])
        #expect(DirectRead.probe(point, file: file) == .answers)
        #expect(try read("DCIM/a.jpg") == content)
        try disk.fail()
        #expect(try read("DCIM/a.jpg") == content)
        guard case .failed(let error) = DirectRead.probe(point, file: file) else {
            Issue.record("it answers")
            return
        }
        #expect(error.isDeviceFault)
    }

    @Test func `an empty card is asked by its device`() throws {
        try insert([])
        #expect(DirectRead.probe(point) == .answers)
        #expect(DirectRead.probe(point, file: "gone") == .answers)
        try disk.fail()
        guard case .failed = DirectRead.probe(point) else {
            Issue.record("it answers")
            return
        }
    }

    @Test func `the folder of a card that was taken out is none`() throws {
        try insert(["a"])
        let device = try #require(FileLook.folder(at: point)).device
        #expect(DirectRead.probe(point, device: device) == .answers)
        try disk.unmount(point)
        guard case .failed = DirectRead.probe(point, file: "a", device: device) else {
            Issue.record("the folder below answers")
            return
        }
        guard case .failed(let error) = DirectRead.probe(point.appending("none")) else {
            Issue.record("a missing folder answers")
            return
        }
        #expect(error.isMissing)
    }

    @Test func `one bad or forbidden file does not stand for the medium`() throws {
        try insert(["bad", "good"])
        var seen: Set<Errno> = []
        for seed in 0..<40 {
            let plan = KernelFaultPlan(below: [point.resolved.appending("bad")], seed: UInt64(seed), count: 1, every: 1)
            let number = KernelFaults.begin(plan)
            let answer = DirectRead.probe(point.resolved, file: "bad")
            let code = try #require(KernelFaults.end(number)?.injected.first).code
            seen.insert(code)
            switch code {
            case .ioError, .permissionDenied: #expect(answer == .answers)
            case .noMemory: #expect(answer == .unknown)
            default:
                guard case .failed(let error) = answer, error.code == code else {
                    Issue.record("\(code): \(answer)")
                    return
                }
            }
        }
        #expect(seen == [.ioError, .permissionDenied, .noMemory, .staleNFSFileHandle])
    }

    @Test func `a second read comes from the medium, and tells the identity and no pace of a short file`() throws {
        try insert(["a"])
        func reread() throws -> [UInt8] {
            var reader = try UncachedReader(point.appending("a"))
            var bytes: [UInt8] = []
            while try reader.next({ bytes += $0 }) {}
            #expect(reader.opened.size == 20_000 && reader.isDirect && reader.pace.slowest == nil)
            return bytes
        }
        #expect(try reread() == content)
        #expect(try read("a") == content)
        try disk.fail()
        #expect(try read("a") == content)
        let error = #expect(throws: SystemError.self) { try reread() }
        #expect(error?.isDeviceFault == true)
    }
}

@Suite(.enabled(if: TestMount.hasBindfs, "needs bindfs")) struct ServedReadTests {
    @Test func `a server in user space may answer from its cache, and one that has died answers no more`() throws {
        let folder = try TemporaryDirectory()
        try folder.write([UInt8](repeating: 7, count: 20_000), to: "other/a")
        let point = try folder.makeDirectory("point")
        let mount = try TestMount(bindfs: folder.path.appending("other"), at: point)
        #expect(DirectRead.probe(point, file: "a") == .unknown)
        mount.end()
        // Until the kernel has noticed.
        while DirectRead.probe(point, file: "a") == .unknown { usleep(1000) }
        guard case .failed = DirectRead.probe(point, file: "a") else {
            Issue.record("it answers")
            return
        }
    }
}
