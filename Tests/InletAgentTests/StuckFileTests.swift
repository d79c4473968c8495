import Foundation
import Glibc
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

/// Files that somebody keeps open for ever, in a root with few places.
@Suite struct StuckFileTests {
    /// Mapped for writing and closed: busy, and nothing tells when that is over.
    private func map(_ path: FilePath) throws -> UInt {
        let descriptor = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        defer { try? descriptor.close() }
        let page = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), descriptor.rawValue, 0))
        return UInt(bitPattern: page)
    }

    @Test(arguments: [0, 3])
    func `they keep no others out, and none of them is forgotten`(stuck: Int) async throws {
        var scene = try Scene()
        scene.places = Settler.Places(settling: 4, stuck: stuck, folders: 1)
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let names = (0..<12).map { FilePath("held/\($0)") }
        let pages = try names.map { name in
            try map(scene.drop(name, String(repeating: "x", count: 4096)))
        }
        try await scene.run { stage in
            for number in 0..<8 {
                try scene.drop(FilePath("free/\(number)"))
                try await stage.finished(FilePath("free/\(number)"))
            }
            #expect(try await stage.jobs().allSatisfy { $0.file.path.starts(with: "free") })
            for page in pages { munmap(UnsafeMutableRawPointer(bitPattern: page), 4096) }
            for name in names { try await stage.finished(name) }
        }
    }

    /// A process of its own: what else runs here must not make it pause for as long as a file settles.
    @Test func `one that goes on growing is not sent, and is sent whole when it ends`() async throws {
        var scene = try Scene()
        scene.places = Settler.Places(settling: 2, stuck: 1, folders: 1)
        scene.watch[0].settle = .seconds(5)
        let path = try scene.drop("growing")
        let writer = Process()
        writer.executableURL = URL(fileURLWithPath: "/bin/sh")
        // Nobody holds it: only its size tells.
        writer.arguments = ["-c", "while echo more >>\"$1\"; do sleep 0.05; done", "sh", path.string]
        try writer.run()
        defer { if writer.isRunning { writer.terminate() } }
        Leash.hold(writer.processIdentifier)
        try await scene.run { stage in
            let names = (0..<6).map { FilePath("whole\($0)") }
            for name in names { try scene.drop(name) }
            for name in names { try await stage.finished(name) }
            #expect(try await stage.jobs().allSatisfy { $0.file.path != "growing" })
            writer.terminate()
            writer.waitUntilExit()
            let size = try DurableFile.read(path, limit: 1 << 20).count
            #expect(try await stage.finished("growing").file.identity.size == size)
            #expect(try await stage.jobs().count == 7)
        }
    }

    @Test func `a file that waits for what is on its way keeps no others out`() async throws {
        var scene = try Scene()
        scene.places = Settler.Places(settling: 2, stuck: 1, folders: 1)
        let gate = Gate()
        let names = (0..<6).map { FilePath("old\($0)") }
        for name in names { scene.here.script(name.string, .hold(gate, .deliver)) }
        scene.workers = 8
        try await scene.run { stage in
            for name in names { try scene.drop(name) }
            try await eventually("they are on their way") { scene.here.record.running == names.count }
            for name in names { try scene.drop(name, "another content") }
            for number in 0..<4 {
                try scene.drop(FilePath("new\(number)"))
                try await stage.finished(FilePath("new\(number)"))
            }
            gate.open()
            for name in names {
                try await stage.job(name, "sent as it is now") { job in
                    job.file.identity.size == 15 && job.file.state == .delivered
                }
            }
        }
    }
}
