import Glibc
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Files that the journal knows cost a look and nothing else: no disk is woken for their bytes, and nobody's lease is broken.
@Suite struct KnownFileTests {
    @Test func `a listing of 10,000 known files opens none of them`() async throws {
        var scene = try Scene()
        scene.route.match.extensions = ["mp4"]
        scene.route.sidecars = SidecarRule(metadata: true, extensions: ["xmp"], wait: .seconds(3600))
        var known: [FileAdoption] = []
        for number in 0..<5000 {
            for ending in ["mp4", "xmp"] {
                let name = FilePath("clip\(number).\(ending)")
                let identity = try #require(try FileLook.look(at: try scene.drop(name, "")).identity)
                known.append(FileAdoption(Arrival(root: scene.root, path: name, identity: identity), plan: nil))
            }
        }
        let journal = try Journal(path: scene.directory.path.appending("state/journal.sqlite"), now: .now)
        _ = try await journal.adopt(known, at: .now)
        journal.close()
        let opened = try OpenedFiles(in: scene.root)
        try await scene.run { stage in
            try await eventually("all are listed") { stage.events.names.contains("watch.added") }
            // What comes after the listing has been looked at when it is through.
            for name in ["new.mp4.yaml", "new.xmp", "new.mp4"] as [FilePath] { try scene.drop(name, "label: x") }
            try await eventually("the new one is delivered") {
                try await stage.journal.newest(scene.root, ["new.mp4"]).first??.state == .delivered
            }
        }
        let names = try opened.take()
        #expect(names.subtracting(["new.mp4", "new.mp4.yaml", "new.xmp"]).isEmpty)
        #expect(names.contains("new.mp4"), "nothing would be seen to be opened")
    }

    @Test func `what was read of a file that found no room is not read again while it is the same`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        var files = try AdmissionStage.alone(in: directory.path, journal, limit: QueueLimit(files: 1))
        let one = try #require(try FileLook.look(at: try directory.write([1], to: "one")).identity)
        let two = try #require(try FileLook.look(at: try directory.write([2], to: "two")).identity)
        func admit(_ path: FilePath, _ identity: FileIdentity) async -> [AdmissionResult.Outcome] {
            let results = await files.admission.admit([files.candidate(path, identity)], .found, files.hashing)
            for result in results { files.remember(result) }
            return results.map(\.outcome)
        }
        #expect(await admit("one", one) == [.journal(.admitted(id: 1))])
        #expect(await admit("two", two) == [.journal(.full)])
        #expect(files.candidate("two", two).facts.sha256 != nil)
        var edited = two
        edited.changed += 1
        #expect(files.candidate("two", edited).facts.sha256 == nil)
    }
}

/// Which files of a folder anybody opens, as the kernel tells.
private final class OpenedFiles {
    private let descriptor: CInt

    init(in folder: FilePath) throws {
        descriptor = inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC))
        guard descriptor >= 0, inotify_add_watch(descriptor, folder.string, UInt32(IN_OPEN)) >= 0 else {
            throw Errno(rawValue: errno)
        }
    }

    deinit { close(descriptor) }

    /// Their names, since the last call.
    func take() throws -> Set<String> {
        var names: Set<String> = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return names }
            buffer.withUnsafeBytes { bytes in
                var offset = 0
                while offset < count {
                    let mask = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
                    let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
                    let name = bytes[(offset + 16)..<(offset + 16 + length)].prefix { $0 != 0 }
                    #expect(mask & UInt32(IN_Q_OVERFLOW) == 0, "the kernel has lost some")
                    if mask & UInt32(IN_ISDIR) == 0, !name.isEmpty {
                        names.insert(String(decoding: name, as: UTF8.self))
                    }
                    offset += 16 + length
                }
            }
        }
    }
}
