import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct RefusalTests {
    @Test(arguments: [
        "../x", "a/../../x", "/etc/x", "a//b", "a/./b", "", "a\u{0}b", String(repeating: "k", count: 1025),
    ])
    func `a key that leaves the bucket is refused`(_ key: String) async throws {
        let outer = try TemporaryDirectory()
        let inner = try outer.makeDirectory("store")
        try await withSandbox(directory: inner) { sandbox, client async throws in
            let body: [String: Any] = ["key": key, "parts": 1]
            #expect(try await client.post("/v1/multipart/create", body).status == 400)
            let presign = ["key": key, "content_type": "text/plain"]
            #expect(try await client.post("/v1/presign/upload", presign).status == 400)
            #expect(sandbox.openUploads().isEmpty)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: outer.path.string) == ["store"])
    }

    @Test func `long components and keys that are folders of others do not harm`() async throws {
        try await withSandbox { sandbox, client async throws in
            let long = String(repeating: "n", count: 300) + "/" + String(repeating: "m", count: 300)
            #expect(try await client.upload(.r2, key: long, [Data("x".utf8)]).status == 200)
            #expect(try await client.upload(.r2, key: "a/b", [Data("x".utf8)]).status == 200)
            #expect(try await client.upload(.r2, key: "a", [Data("x".utf8)]).status == 409)
            #expect(try await client.upload(.r2, key: "a/b/c", [Data("x".utf8)]).status == 409)
            #expect(sandbox.objects().map(\.key) == ["a/b", long])
        }
    }

    @Test(arguments: [0, -1, 10_001])
    func `an upload of too few or too many parts is refused`(_ count: Int) async throws {
        try await withSandbox { _, client async throws in
            let body: [String: Any] = ["key": "a", "parts": count]
            #expect(try await client.post("/r2/multipart/create", body).status == 400)
        }
    }

    @Test func `what is not the JSON of the call is refused`() async throws {
        try await withSandbox { _, client async throws in
            for path in ["/r2/multipart/create", "/v1/multipart/complete", "/v1/multipart/abort", "/v1/presign/upload"]
            {
                #expect(try await client.send("POST", client.origin + path, Data("{".utf8)).status == 400)
                #expect(try await client.post(path, ["key": "a"]).status == 400)
            }
            #expect(try await client.send("GET", client.origin + "/v1/health").status == 404)
            let large = Data(repeating: UInt8(ascii: " "), count: 9 << 20)
            #expect(try await client.send("POST", client.origin + "/r2/multipart/create", large).status == 413)
        }
    }

    @Test func `parts but the last are equal and at least five mebibytes`() async throws {
        try await withSandbox { sandbox, client async throws in
            let five = noise(5 << 20, seed: 1)
            let small = try await client.upload(.r2, key: "small", [noise(1000, seed: 1), noise(1000, seed: 2)])
            #expect(small.status == 400 && small.text.contains("EntityTooSmall"))
            let uneven = try await client.upload(.r2, key: "uneven", [five, five + Data([1]), Data([2])])
            #expect(uneven.status == 400 && uneven.text.contains("InvalidPart"))
            #expect(sandbox.objects().isEmpty && sandbox.openUploads().count == 2)
        }
    }

    @Test func `a list of parts must be the one that was stored`() async throws {
        try await withSandbox { sandbox, client async throws in
            let upload = try await client.create(.v1, key: "a", parts: 3)
            let five = noise(5 << 20, seed: 1)
            let first = try await client.send("PUT", upload.urls[0], five).headers["etag"] ?? ""
            let second = try await client.send("PUT", upload.urls[1], five).headers["etag"] ?? ""
            let other = String(repeating: "0", count: 32)
            for (list, code) in [
                ([], "InvalidRequest"), ([(2, second), (1, first)], "InvalidPartOrder"),
                ([(1, first), (1, first)], "InvalidPartOrder"), ([(1, other)], "InvalidPart"),
                ([(1, first), (3, other)], "InvalidPart"),
            ] {
                let answer = try await client.complete(.v1, upload, etags: list)
                #expect(answer.status == 400 && answer.text.contains(code), "\(list)")
            }
            let bare = first.replacingOccurrences(of: "\"", with: "")
            #expect(try await client.complete(.v1, upload, etags: [(1, "W/\(first)"), (2, bare)]).status == 200)
            #expect(sandbox.objects().map(\.size) == [10 << 20])
        }
    }

    @Test func `a body that ends early is not a part`() async throws {
        try await withSandbox { sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a", parts: 1)
            let target = upload.urls[0].dropFirst(client.origin.count)
            let head = "PUT \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(client.port)\r\nContent-Length: 1000\r\n\r\nshort"
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/bin/bash")
            shell.arguments = ["-c", "printf %s \"$1\" > /dev/tcp/127.0.0.1/\(client.port)", "send", head]
            try shell.run()
            try await eventually("the short part") {
                sandbox.traffic.bytesReceived >= 5 && sandbox.traffic.partOrder == [1]
            }
            let answer = try await client.complete(.r2, upload, etags: [(1, md5(Data("short".utf8)))])
            #expect(answer.status == 400 && answer.text.contains("never received"))
        }
    }

    @Test func `of parts sent at once one wins wholly`() async throws {
        try await withSandbox(faults: Fault(.slowRead(bytesPerSecond: 4 << 20), at: .part, times: nil)) {
            sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a", parts: 1)
            let bodies = (1...6).map { noise(1 << 20, seed: UInt64($0)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for body in bodies { group.addTask { _ = try await client.send("PUT", upload.urls[0], body) } }
                try await group.waitForAll()
            }
            var winners: [Data] = []
            for body in bodies where try await client.complete(.r2, upload, etags: [(1, md5(body))]).status == 200 {
                winners.append(body)
            }
            #expect(winners.count == 1)
            let object = try #require(sandbox.objects().first)
            #expect(try content(of: object.path) == winners.first)
            #expect(sandbox.traffic.peakParallelParts > 1)
        }
    }
}
