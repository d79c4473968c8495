import Foundation
import Glibc
import InletCore
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

@Suite(.timeLimit(.minutes(15))) struct FolderPipelineTests {
    static let both: [Implementation] = [.folder("read-back"), .folder("size")]

    @Test(arguments: both) func `mode, mtime and attributes are kept`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            let path = try place.write(content(1000))
            #expect(chmod(path.string, 0o640) == 0)
            let hasAttributes = Attribute.set(path, "user.camera", "X100")
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)], ofItemAtPath: path.string)
            let order = try place.order(path, key: "2026/11/a.bin")
            let proof = try await place.deliver(path, order).get()
            let copy = place.target.pushing("2026/11/a.bin")
            #expect(proof.url == copy.string)
            let source = try SourceFile(opening: copy)
            #expect(source.mode == 0o640)
            #expect(source.opened.modified == order.source.modified)
            if hasAttributes { #expect(Attribute.get(copy, "user.camera") == "X100") }
        }
    }

    /// More than one piece of the copy, and of the hashing behind it.
    @Test func `the proof of a long file is the SHA-256 of all of it`() async throws {
        try await withPlace(.folder("read-back")) { place in
            let bytes = content((33 << 20) + 1)
            let path = try place.write(bytes)
            let proof = try await place.deliver(path, try place.order(path, key: "long.mov")).get()
            #expect(proof.content == ContentHash(digest: SHA256.digest(of: bytes), partSize: nil))
            #expect(try place.visible() == ["long.mov": bytes])
        }
    }

    @Test(arguments: both)
    func `a different file under the name is never overwritten`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            for other in [content(1000, seed: 9), content(999), Data()] {
                let taken = place.target.pushing("taken.bin")
                try other.write(to: URL(fileURLWithPath: taken.string))
                let (path, order) = try place.file(1000, key: "taken.bin")
                expectError(try await place.failure(path, order), .giveUp, code: .destinationExists)
                #expect(try place.visible() == ["taken.bin": other])
                #expect(try place.leftovers() == [])
            }
        }
    }

    @Test(arguments: both)
    func `a name that is taken while the copy is made is not overwritten`(_ implementation: Implementation) async throws
    {
        try await withPlace(implementation) { place in
            let (path, order) = try place.file(1000, key: "race.bin")
            let attempt = Notes().attempt { _ in
                try? Data("theirs".utf8).write(to: URL(fileURLWithPath: place.target.pushing("race.bin").string))
            }
            #expect(try await place.failure(path, order, attempt)?.code == .destinationExists)
            #expect(try place.visible() == ["race.bin": Data("theirs".utf8)])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: both)
    func `the same bytes that are there already are delivered`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            try content(1000).write(to: URL(fileURLWithPath: place.target.pushing("same.bin").string))
            let (path, order) = try place.file(1000, key: "same.bin")
            let notes = Notes()
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(notes.puts == [])
        }
    }

    /// The agent adds its own generation to a history that came with the files.
    @Test(arguments: both)
    func `a history's chain that got generations is still what was delivered`(
        _ implementation: Implementation
    ) async throws {
        try await withPlace(implementation) { place in
            let chain = try #require(MediaHashList.chain(nil, adding: [(1, "0001_A.mhl", "c4x")]))
            let changed = chain.map { $0 == UInt8(ascii: "x") ? UInt8(ascii: "y") : $0 }
            let path = try place.write(Data(chain))
            for key in ["A/ascmhl/ascmhl_chain.xml", "A/other.xml"] {
                let isChain = key.hasPrefix("A/ascmhl/")
                let order = try place.order(path, key: key)
                let proof = try await place.deliver(path, order).get()
                func continued(_ chain: [UInt8]) throws {
                    let longer = try #require(MediaHashList.chain(chain, adding: [(2, "0002_A.mhl", "c4y")]))
                    try Data(longer).write(to: URL(fileURLWithPath: place.target.pushing(FilePath(key)).string))
                }
                try continued(chain)
                for reads in [false, true] {
                    let found = try await place.verify(proof, reads).text
                    #expect(found.hasPrefix(isChain ? "same: " : "differs: "), "\(key): \(found)")
                }
                // As after a crash before the proof was in the journal.
                #expect((try await place.failure(path, order)?.code == .destinationExists) == !isChain)
                try continued(changed)
                let found = try await place.verify(proof, false).text
                // Without a checksum of what was delivered, only its length tells.
                #expect(found.hasPrefix(isChain && proof.content == nil ? "same: " : "differs: "), "\(key): \(found)")
                #expect(try await place.failure(path, order)?.code == .destinationExists)
            }
        }
    }

    @Test func `a folder, a link or a pipe under the name is a different file`() async throws {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000, key: "name")
            let name = place.target.pushing("name").string
            for make in [{ mkdir(name, 0o755) }, { symlink(path.string, name) }, { mkfifo(name, 0o600) }] {
                #expect(make() == 0)
                #expect(try await place.failure(path, order)?.code == .destinationExists)
                #expect(Glibc.remove(name) == 0)
            }
        }
    }

    @Test func `the temporary file of a killed attempt goes with the next one, before its space is asked for`()
        async throws
    {
        try await withPlace(.folder("read-back")) { place in
            let left = place.target.pushing(".clip.mp4.inlet-0a1b2c3d.tmp")
            let (path, order) = try place.file(1000, key: "clip.mp4")
            try content(500).write(to: URL(fileURLWithPath: left.string))
            let notes = Notes(["copying": []])
            _ = try await place.deliver(path, order, notes.attempt()).get()
            #expect(try place.leftovers() == [])
        }
    }

    @Test func `abandoning removes the temporary file, and only that`() async throws {
        try await withPlace(.folder("read-back")) { place in
            let (_, order) = try place.file(1000, key: "clip.mp4")
            for name in [".clip.mp4.inlet-0a1b2c3d.tmp", ".other.mp4.inlet-0a1b2c3d.tmp", ".clip.mp4.tmp"] {
                try Data("x".utf8).write(to: URL(fileURLWithPath: place.target.pushing(FilePath(name)).string))
            }
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: ["copying": []]) }
            #expect(try place.leftovers().sorted() == [".clip.mp4.tmp", ".other.mp4.inlet-0a1b2c3d.tmp"])
        }
    }

    @Test func `a folder that is not there is an outage and is not made`() async throws {
        let directory = try TemporaryDirectory()
        let missing = directory.path.appending("unmounted")
        try await withPlace(.folder("read-back"), settings: ["path": .string(missing.string)]) { place in
            let (path, order) = try place.file(1000)
            expectError(try await place.failure(path, order), .outage(after: nil), code: .destinationUnwritable)
            let probed = await #expect(throws: DeliveryError.self) { try await place.pipeline.probe() }
            #expect(probed?.verdict == .outage(after: nil))
            // What lies on it is still there.
            let left = await #expect(throws: DeliveryError.self) {
                try await place.pipeline.abandon(order, checkpoint: ["copying": []])
            }
            #expect(left?.verdict == .outage(after: nil))
        }
        #expect(!FileManager.default.fileExists(atPath: missing.string))
    }

    @Test func `min_free is kept, but for what is there already`() async throws {
        try await withPlace(.folder("size"), settings: ["min_free": .bytes(1 << 60)]) { place in
            let (path, order) = try place.file(1000, key: "a/b.bin")
            let error = expectError(try await place.failure(path, order), .outage(after: nil), code: .destinationFull)
            #expect(error?.reason.contains("min_free") == true)
            let copy = place.target.pushing("a")
            try FileManager.default.createDirectory(atPath: copy.string, withIntermediateDirectories: true)
            try content(1000).write(to: URL(fileURLWithPath: copy.pushing("b.bin").string))
            _ = try await place.deliver(path, order).get()
        }
    }

    @Test(arguments: ["/etc/inlet-test", "../outside", "a/../../outside", ""])
    func `a key that leaves the folder is refused`(_ key: String) async throws {
        try await withPlace(.folder("size")) { place in
            let (path, order) = try place.file(10, key: key)
            #expect(try await place.failure(path, order)?.verdict == .giveUp)
            #expect(try place.visible() == [:])
        }
    }

    @Test func `a folder above the name that is a file fails the delivery, not the destination`() async throws {
        try await withPlace(.folder("size")) { place in
            try Data("x".utf8).write(to: URL(fileURLWithPath: place.target.pushing("a").string))
            let (path, order) = try place.file(10, key: "a/b.bin")
            #expect(try await place.failure(path, order)?.verdict == .retry(after: nil))
        }
    }

    @Test(.enabled(if: SmallDisk.isPossible))
    func `a disk that fills up under way is an outage without a temporary file`() async throws {
        let disk = try SmallDisk(mebibytes: 8)
        defer { disk.unmount() }
        try await withPlace(.folder("read-back"), settings: ["path": .string(disk.path.string)]) { place in
            let (path, order) = try place.file(4 << 20)
            let filler = disk.path.appending("filler").string
            let attempt = Notes().attempt { _ in try? content(6 << 20).write(to: URL(fileURLWithPath: filler)) }
            expectError(try await place.failure(path, order, attempt), .outage(after: nil), code: .destinationFull)
            #expect(try FileManager.default.contentsOfDirectory(atPath: disk.path.appending("videos").string) == [])
            try FileManager.default.removeItem(atPath: filler)
            _ = try await place.deliver(path, order).get()
        }
    }
}

/// A file system of a few MiB, for filling up. Only root can mount one.
final class SmallDisk: Sendable {
    static let isPossible = (try? SmallDisk(mebibytes: 1)).map { $0.unmount() } != nil

    private let directory: TemporaryDirectory
    var path: FilePath { directory.path }

    init(mebibytes: Int) throws {
        directory = try TemporaryDirectory()
        guard mount("tmpfs", directory.path.string, "tmpfs", 0, "size=\(mebibytes)m") == 0 else {
            throw Errno(rawValue: errno)
        }
    }

    func unmount() { umount2(path.string, Int32(MNT_DETACH)) }
}

/// Extended attributes, whose calls the C library's module for Swift leaves out.
private enum Attribute {
    private typealias Set =
        @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer, Int, Int32) -> Int32
    private typealias Get =
        @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer, Int) -> Int

    /// False where the file system has none.
    static func set(_ path: FilePath, _ name: String, _ value: String) -> Bool {
        guard let symbol = dlsym(nil, "setxattr") else { return false }
        return unsafeBitCast(symbol, to: Set.self)(path.string, name, value, value.utf8.count, 0) == 0
    }

    static func get(_ path: FilePath, _ name: String) -> String? {
        guard let symbol = dlsym(nil, "getxattr") else { return nil }
        var value = [UInt8](repeating: 0, count: 64)
        let count = unsafeBitCast(symbol, to: Get.self)(path.string, name, &value, value.count)
        return count < 0 ? nil : String(decoding: value.prefix(count), as: UTF8.self)
    }
}

/// One file of a folder that cannot be looked at, among others that can.
@Suite(.timeLimit(.minutes(2))) struct FolderVerifyTests {
    @Test(arguments: [
        Errno.ioError, .permissionDenied, .notPermitted, .noSuchFileOrDirectory, .tooManySymbolicLinkLevels,
        .tooManyOpenFiles,
    ])
    func `an error that came with one file says nothing about the others`(_ code: Errno) {
        let error = SystemError(call: "read", path: "/library/b.bin", code: code)
        do throws(DeliveryError) {
            switch try Verification(error) {
            case .differs(let why): #expect(code == .ioError && why.hasPrefix("cannot be read: read /library/b.bin"))
            case .cannotTell(let why): #expect(error.isPermission && why.contains("/library/b.bin"))
            case .missing(let what): #expect(error.isMissing && what.contains("/library/b.bin"))
            case .same: Issue.record("nothing was compared")
            }
        } catch {
            // Asked again, and then unreachable alone: an outage would speak for the whole folder.
            #expect(error.verdict == .retry(after: nil))
            #expect([.tooManySymbolicLinkLevels, .tooManyOpenFiles].contains(code))
        }
    }

    @Test func `a loop of links in place of a folder leaves the other files to be looked at`() async throws {
        try await withPlace(.folder("size")) { place in
            let (path, order) = try place.file(1000)
            let proof = try await place.deliver(path, order).get()
            let verifier = try #require(place.pipeline as? any DeliveryVerifying)
            let loop = place.target.appending("loop").string
            try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
            var beyond = proof
            beyond.key = "loop/a.mp4"
            let question = VerifyOrder(proof: beyond)
            let error = await #expect(throws: DeliveryError.self) { _ = try await verifier.verify(question) }
            #expect(error?.verdict == .retry(after: nil))
            let other = try await verifier.verify(VerifyOrder(proof: proof))
            #expect(other == .same("length"))
        }
    }
}

/// Symlinks in the place of a destination's folders: an administrator's are followed, nobody else's are.
@Suite(.timeLimit(.minutes(15))) struct FolderLinkTests {
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
            let error = expectError(try await place.failure(path, order), code: .destinationUnwritable)
            // The whole destination is out of order, or only what goes there.
            #expect((error?.verdict == .outage(after: nil)) == level.isEmpty)
            #expect(error?.reason.contains("a symlink is on the way") == true, "\(error?.reason ?? "")")
            #expect(try FileManager.default.contentsOfDirectory(atPath: outside.string) == [])
        }
    }
}

@Suite(.timeLimit(.minutes(15))) struct FolderNameTests {
    private static let longest = String(repeating: "n", count: 251) + ".mov"

    @Test(arguments: [longest, String(repeating: "é", count: 127), "\(longest)/\(longest)"])
    func `names of 255 bytes are delivered`(_ key: String) async throws {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000, key: key)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.key == key)
            #expect(try place.visible().keys.sorted() == [key])
            #expect(try place.leftovers() == [])
        }
    }

    @Test(arguments: ["n\(longest)", "a/n\(longest)/b.mov", "a/\(longest)e\u{301}"])
    func `a longer name is shortened, keeps its extension, and is told from others by its checksum`(_ key: String)
        async throws
    {
        try await withPlace(.folder("read-back")) { place in
            let (path, order) = try place.file(1000, key: key)
            let proof = try await place.deliver(path, order).get()
            let name = try #require(key.split(separator: "/").first { $0.utf8.count > 255 })
            #expect(proof.key.contains("~\(SHA256.digest(of: name.utf8).hex.prefix(8))"))
            #expect(FilePath(key: proof.key).extension == FilePath(key).extension)
            #expect(try place.visible().keys.sorted() == [proof.key])
            // Another attempt finds its file.
            #expect(try await place.deliver(path, order).get().key == proof.key)
            #expect(try place.leftovers() == [])
        }
    }
}

/// In memory nothing is ever dropped.
private let isOnDisk: Bool = {
    guard let folder = try? TemporaryDirectory(), let kind = try? FileSystemKind.of(folder.path) else { return false }
    return kind.name != "tmpfs"
}()

@Suite(.enabled(if: isOnDisk, "the folder for temporary files is on a disk")) struct CacheVisitTests {
    private static let part: Range<Int64> = 8 << 20..<16 << 20

    private let folder: TemporaryDirectory

    init() throws { folder = try TemporaryDirectory() }

    /// A file without a written byte: what is read of it is in the page cache all the same.
    private func source(_ size: Int64) throws -> SourceFile {
        let path = folder.path.appending("source")
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
        try file.closeAfter { try file.resize(to: size) }
        return try SourceFile(opening: path)
    }

    private func read(_ source: SourceFile, _ range: Range<Int64>) throws {
        var room = [UInt8](repeating: 0, count: 1 << 20)
        for offset in stride(from: range.lowerBound, to: range.upperBound, by: room.count) {
            _ = try room.withUnsafeMutableBytes { try source.read(into: $0, at: offset) }
        }
    }

    private func isUncached(_ source: SourceFile) -> Bool {
        source.isUncached(offset: Self.part.lowerBound, length: Int64(Self.part.count))
    }

    @Test(
        arguments: [
            (CacheVisit.smallest + 1, false, true), (CacheVisit.smallest + 1, true, false),
            (CacheVisit.smallest, false, false),
        ] as [(Int64, Bool, Bool)])
    func `only of a large file, and only what nobody had read before, is given back`(
        size: Int64, wasCached: Bool, isGivenBack: Bool
    ) throws {
        let source = try source(size)
        #expect(isUncached(source))
        if wasCached { try read(source, Self.part) }
        let visit = CacheVisit(source, Self.part)
        try read(source, Self.part)
        #expect(!isUncached(source))
        visit.end()
        #expect(isUncached(source) == isGivenBack)
    }
}
