import Foundation
import Hummingbird
import InletCore
import InletTestSupport
import NIOCore
import SystemPackage
import Testing

@testable import InletSandbox

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

@Suite struct RouteTests {
    static let table: [(pattern: String, request: String, places: [String: String]?)] = [
        ("GET /jobs/{id}", "GET /jobs/7", ["id": "7"]), ("GET /jobs/{id}", "GET /jobs/", ["id": ""]),
        ("GET /jobs/{id}", "GET /jobs", nil), ("GET /jobs/{id}", "GET /jobs/7/status", nil),
        ("GET /jobs/{id}", "POST /jobs/7", nil), ("GET|HEAD /a", "HEAD /a", [:]), ("* /a", "PATCH /a", [:]),
        ("GET /jobs/{id}/status", "GET /jobs/7/status", ["id": "7"]), ("*", "PUT /x//y", [:]),
        ("PUT /{bucket}/{key...}", "PUT /b/a//c/", ["bucket": "b", "key": "a//c/"]),
        ("PUT /{bucket}/{key...}", "PUT /b/", nil), ("PUT /{bucket}/{key...}", "PUT /b", nil),
        ("GET /{b}?uploads", "GET /b?x=1&uploads", ["b": "b"]), ("GET /{b}?uploads", "GET /b", nil),
        ("GET /{b}?list-type=2", "GET /b?list-type=2", ["b": "b"]), ("GET /{b}?list-type=2", "GET /b?list-type=1", nil),
    ]

    @Test(arguments: table) func `a row's pattern tells its requests and what stands at its places`(
        _ pattern: String, _ request: String, _ places: [String: String]?
    ) throws {
        let route = SandboxRoute<SpiralOperation>(pattern, .read) { _ in Response(status: .ok) }
        let words = request.split(separator: " ").map(String.init)
        let halves = words[1].split(separator: "?").map(String.init)
        let query = try #require(URIText.decodeQuery(halves.count > 1 ? halves[1] : ""))
        let address = DecodedRequest(method: words[0], path: halves[0], query: query, host: "h")
        let found = route.places(in: address, SandboxRouter<SpiralOperation>.components(address.path))
        #expect(found == places)
    }

    @Test func `a part has a number where its row is about one`() {
        let address = DecodedRequest(method: "PUT", path: "/a", query: [("partNumber", "3")], host: "h")
        let row = { SandboxRoute<SpiralOperation>($0, .part) { _ in Response(status: .ok) } }
        #expect(row("PUT /{key...}?partNumber").part(of: address) == 3 && row("PUT /{key...}").part(of: address) == nil)
    }
}

@Suite struct SigningTests {
    /// The example of AWS's own documentation ("Authenticating requests: using query parameters").
    @Test func `the signature is that of the published example`() throws {
        let signer = RequestSigner(
            secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), accessKey: "AKIAIOSFODNN7EXAMPLE",
            region: "us-east-1")
        let request = DecodedRequest(method: "GET", path: "/test.txt", host: "examplebucket.s3.amazonaws.com")
        let moment = WallTime(milliseconds: 1_369_353_600_000)
        let query = signer.presign(request, lifetime: 86_400, now: moment)
        #expect(query.hasSuffix("=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"))
        var arrived = request
        arrived.query = try #require(URIText.decodeQuery(query))
        try signer.verify(arrived, now: moment + .seconds(86_399))
        #expect(throws: SandboxRefusal.self) { try signer.verify(arrived, now: moment + .seconds(86_400)) }
    }

    @Test func `a URL is good for what it was made for and nothing else`() async throws {
        try await withSandbox { sandbox, client async throws in
            let upload = try await client.create(.r2, key: "a.bin", parts: 2)
            let url = upload.urls[0]
            let altered = [
                url.replacingOccurrences(of: "partNumber=1", with: "partNumber=2"),
                url.replacingOccurrences(of: "X-Amz-Expires=3600", with: "X-Amz-Expires=7200"),
                url.replacingOccurrences(of: "/sandbox/a.bin", with: "/sandbox/b.bin"),
                url.replacingOccurrences(of: "127.0.0.1", with: "localhost"),
                String(url.dropLast()) + (url.hasSuffix("0") ? "1" : "0"), url + "&extra=1", url + "zz",
                String(url.dropLast(64)) + String(repeating: "x", count: 64),
            ]
            for address in altered {
                let answer = try await client.send("PUT", address, Data("x".utf8))
                #expect(answer.status == 403 && answer.text.contains("SignatureDoesNotMatch"), "\(address)")
            }
            #expect(try await client.send("GET", url).status == 403)
            let bare = String(url.prefix { $0 != "?" }) + "?partNumber=1&uploadId=\(upload.id)"
            let unsigned = try await client.send("PUT", bare, Data("x".utf8))
            #expect(unsigned.status == 403 && unsigned.text.contains("AccessDenied"))
            #expect(try await client.send("PUT", url, Data("x".utf8)).status == 200)
            #expect(sandbox.openUploads() == [upload.id])
        }
    }

    @Test func `an expired URL is refused as S3 refuses it`() async throws {
        try await withSandbox(urlLifetime: .zero) { _, client async throws in
            let upload = try await client.create(.v1, key: "a", parts: 1)
            let answer = try await client.send("PUT", upload.urls[0], Data("x".utf8))
            #expect(answer.status == 403 && answer.headers["content-type"] == "application/xml")
            for text in ["<Code>AccessDenied</Code>", "<Message>Request has expired</Message>", "<X-Amz-Expires>0<"] {
                #expect(answer.text.contains(text))
            }
        }
    }

    @Test func `keys are compared by value`() {
        #expect(SigningSecret.areEqual("abc", "abc"))
        #expect(!SigningSecret.areEqual("abc", "abd") && !SigningSecret.areEqual("abc", "abcd"))
        #expect(!SigningSecret.areEqual("", "a"))
    }
}

@Suite struct FormReaderTests {
    /// The pieces of `body` when it comes in chunks of the given lengths, the last one again and again.
    private static func read(_ body: Data, type: String, chunks: [Int]) throws -> (pieces: [String], isFinished: Bool)?
    {
        guard var reader = FormReader(contentType: type) else { return nil }
        var pieces: [String] = []
        var content: [UInt8] = []
        var (rest, lengths) = (body, chunks[...])
        while !rest.isEmpty {
            let length = lengths.count > 1 ? lengths.removeFirst() : lengths.first ?? 1
            try reader.feed(ByteBuffer(bytes: rest.prefix(length))) { piece in
                switch piece {
                case .begin(let part): pieces.append("\(part.name)|\(part.fileName ?? "-")|\(part.contentType ?? "-")")
                case .content(let bytes): content += bytes
                case .end:
                    pieces.append(content.hex)
                    content = []
                }
            }
            rest = rest.dropFirst(length)
        }
        return (pieces, reader.isFinished)
    }

    private static let text = """
        --xYz\r\nContent-Disposition: form-data; name="label"\r\n\r\nA song\r\n\
        --xYz\r\ncontent-disposition: form-data; name="file"; filename="a \\"b\\" \\c.mp4"\r\n\
        Content-Type: video/mp4\r\n\r\n\r\n--xY\r\n--xYy\r\n\r\n--xYz\r\n\
        Content-Disposition: form-data; name=empty\r\n\r\n\r\n--xYz--\r\nepilogue
        """
    private static let pieces = [
        "label|-|-", Data("A song".utf8).hex, "file|a \"b\" \\c.mp4|video/mp4", Data("\r\n--xY\r\n--xYy\r\n".utf8).hex,
        "empty|-|-", "",
    ]

    @Test func `a form is read the same however it is cut`() throws {
        var generator = SeededGenerator(seed: 7)
        let body = Data(Self.text.utf8)
        let cuts =
            (1...body.count).map { [$0] }
            + (0..<200).map { _ in (0..<40).map { _ in .random(in: 1...9, using: &generator) } }
        for chunks in cuts {
            let read = try #require(try Self.read(body, type: "multipart/form-data; boundary=xYz", chunks: chunks))
            #expect(read.pieces == Self.pieces && read.isFinished, "\(chunks)")
        }
    }

    @Test func `a form that is cut off is not finished`() throws {
        let body = Data(Self.text.utf8)
        let end = body.count - "--\r\nepilogue".utf8.count
        for length in stride(from: 0, through: end, by: 7) {
            let read = try #require(
                try Self.read(body.prefix(length), type: "multipart/form-data; boundary=\"xYz\"", chunks: [16]))
            #expect(!read.isFinished)
        }
    }

    @Test(arguments: [nil, "application/json", "multipart/form-data", "multipart/form-data; boundary="])
    func `what names no boundary is no form`(_ type: String?) {
        #expect(FormReader(contentType: type) == nil)
    }

    @Test func `a head without end is refused, and a preamble is not kept`() throws {
        let head = Data("--x\r\nName: ".utf8) + Data(repeating: 97, count: 20_000)
        #expect(throws: SandboxReply.self) {
            try Self.read(head, type: "multipart/form-data; boundary=x", chunks: [999])
        }
        let preamble = Data(repeating: 97, count: 100_000) + Data("\r\n--x\r\n\r\nz\r\n--x--".utf8)
        let read = try Self.read(preamble, type: "multipart/form-data; boundary=x", chunks: [1000])
        #expect(read?.pieces == ["|-|-", "7a"] && read?.isFinished == true)
    }
}
