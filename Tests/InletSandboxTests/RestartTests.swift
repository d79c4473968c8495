import Foundation
import InletSandbox
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@Suite struct RestartTests {
    /// The port of the first sandbox may be another program's by the time of the second.
    @Test func `an open upload and its URLs outlive the sandbox`() async throws {
        for _ in 0..<4 {
            do {
                return try await restart()
            } catch {
                guard error is SandboxStopped else { throw error }
            }
        }
        try await restart()
    }

    private func restart() async throws {
        let folder = try TemporaryDirectory()
        let (first, second) = (noise(5 << 20, seed: 1), noise(77, seed: 2))
        let kept = Mutex<(upload: SandboxClient.Upload, port: Int)?>(nil)
        try await withSandbox(directory: folder.path) { _, client async throws in
            let upload = try await client.create(.v1, key: "a/b.bin", parts: 2)
            _ = try await client.send("PUT", upload.urls[0], Data("replaced".utf8))
            _ = try await client.send("PUT", upload.urls[0], first)
            kept.withLock { $0 = (upload, client.port) }
        }
        let (upload, port) = try #require(kept.withLock { $0 })
        try await withSandbox(directory: folder.path, port: port) { sandbox, client async throws in
            #expect(sandbox.openUploads() == [upload.id])
            #expect(try await client.send("PUT", upload.urls[1], second).status == 200)
            let answer = try await client.complete(.v1, upload, etags: [(1, md5(first)), (2, md5(second))])
            #expect(answer.status == 200)
        }
        try await withSandbox(directory: folder.path) { sandbox, client async throws in
            #expect(sandbox.openUploads().isEmpty)
            let object = try #require(sandbox.objects().first)
            #expect(try content(of: object.path) == first + second)
            #expect(try await client.upload(.v1, key: "a/b.bin", [second]).status == 200)
            #expect(sandbox.objects().map(\.versions) == [2])
        }
    }

    @Test func `an upload that was committed but not moved is moved at the next start`() async throws {
        let folder = try TemporaryDirectory()
        let body = noise(1000, seed: 1)
        try await withSandbox(directory: folder.path) { _, client async throws in
            let answer = try await client.upload(.r2, key: "a/b.bin", [body])
            #expect(answer.status == 200)
        }
        // What a kill between the commit and the two moves leaves behind.
        let upload = try folder.makeDirectory("uploads/some-id")
        let records = folder.path.appending("records")
        let record = try #require(try FileManager.default.contentsOfDirectory(atPath: records.string).first)
        try FileManager.default.moveItem(
            atPath: records.appending(record).string, toPath: upload.appending("commit.json").string)
        try FileManager.default.moveItem(
            atPath: folder.path.appending("objects/a/b.bin").string, toPath: upload.appending("object").string)
        let sandbox = try SpiralSandbox(directory: folder.path, apiKey: nil)
        #expect(sandbox.openUploads().isEmpty)
        let object = try #require(sandbox.objects().first)
        #expect(try content(of: object.path) == body)
    }

    @Test func `a port in use ends the run and those who wait for it`() async throws {
        try await withSandbox { _, client async throws in
            let folder = try TemporaryDirectory()
            let second = try SpiralSandbox(directory: folder.path, apiKey: nil, port: client.port)
            await #expect(throws: (any Error).self) { try await second.run() }
            await #expect(throws: SandboxStopped.self) { try await second.port() }
        }
    }
}
