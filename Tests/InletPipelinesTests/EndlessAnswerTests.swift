import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// Servers that send more than they should, or never all of it.
@Suite(.timeLimit(.minutes(15))) struct EndlessAnswerTests {
    private func url(_ server: ScriptedServer) throws -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(server.port)/x", rules: .configured(allowHTTP: false))
    }

    @Test(arguments: [0, 1000]) func `a check ends where there is more than was delivered`(size: Int64) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while true { try connection.write("400\r\n\(String(repeating: "x", count: 1024))\r\n") }
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let order = VerifyOrder(proof: Proof(key: "k", size: size, method: .size), readsBytes: true)
        let found = try await client.check(HTTPRequest("GET", url(server)), order)
        #expect(found.verification == .differs("it has more than \(size) bytes"))
    }

    @Test(arguments: [(100_000, 1, false), (160_000, 20_000, true)])
    func `a server that gives a piece at a time is asked on only where the pieces are good`(
        whole: Int, piece: Int, isGood: Bool
    ) async throws {
        let asked = Listing<String?>()
        let server = try ScriptedServer { connection in
            let range = try connection.readRequest().headers["range"]
            asked.add(range)
            let from = range.flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let part = "206 Partial Content\r\nContent-Range: bytes \(from)-\(whole - 1)/\(whole)"
            let (head, body) = (from == 0 ? "200 OK" : part, String(repeating: "x", count: piece))
            try connection.write("HTTP/1.1 \(head)\r\nETag: \"v\"\r\nContent-Length: \(whole - from)\r\n\r\n\(body)")
        }
        let directory = try TemporaryDirectory()
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let (base, target) = (try url(server), directory.path.appending("file"))
        let fetching = Fetching(client: client, pool: BlockingPool(name: "endless", threads: 1))
        var size: Int64?
        do throws(DeliveryError) {
            size = try await fetching.run(Download(target: target)) { next throws(DeliveryError) in
                HTTPRequest("GET", base, headers: next.headers)
            }.size
        } catch {
            #expect(error.code == .connectionLost)
            #expect(asked.all == [nil, "bytes=1-", "bytes=2-", "bytes=3-", "bytes=4-"])
        }
        #expect(size == (isGood ? Int64(whole) : nil))
    }

    @Test(
        arguments: [
            // One file, then what the job has left.
            (0, 500 * gib, 0, VOPIDiskQuota.Limit(bytes: 4 * gib, isOfDisk: false)),
            (63 * gib, 500 * gib, 0, VOPIDiskQuota.Limit(bytes: gib, isOfDisk: false)),
            (64 * gib, 500 * gib, 0, VOPIDiskQuota.Limit(bytes: 0, isOfDisk: false)),
            // Three quarters of what the disk has, but for a gibibyte, and of what others may not write yet.
            (0, 5 * gib, 0, VOPIDiskQuota.Limit(bytes: 3 * gib, isOfDisk: true)),
            (0, 5 * gib, 3 * gib, VOPIDiskQuota.Limit(bytes: 768 * mib, isOfDisk: true)),
            // A picture may come beside the largest of others: what stays free is for that.
            (0, 5 * gib, 4 * gib, VOPIDiskQuota.Limit(bytes: 64 * mib, isOfDisk: true)),
            (0, gib + 8 * mib, 0, VOPIDiskQuota.Limit(bytes: 8 * mib, isOfDisk: true)),
            (0, gib, 0, VOPIDiskQuota.Limit(bytes: 0, isOfDisk: true)),
        ] as [(Int64, Int64, Int64, VOPIDiskQuota.Limit)])
    func `a job's results fill neither the disk nor more than their share`(
        taken: Int64, available: Int64, promised: Int64, limit: VOPIDiskQuota.Limit
    ) {
        #expect(
            VOPIDiskQuota.limit(taken: taken, available: available, total: 1000 * gib, promised: promised) == limit)
    }

    @Test func `of a small disk a twentieth stays free`() {
        let limit = VOPIDiskQuota.limit(taken: 0, available: 100 * mib, total: 200 * mib, promised: 0)
        #expect(limit == VOPIDiskQuota.Limit(bytes: 90 * mib / 4 * 3, isOfDisk: true))
        #expect(VOPIDiskQuota.limit(taken: 0, available: 5 * mib, total: 200 * mib, promised: 0).bytes <= 0)
    }

    @Test func `however many fetch at once, they are promised less than the disk has`() {
        for (available, total) in [(10 * gib, 1000 * gib), (500 * mib, gib), (90 * mib, 100 * mib)] {
            for files in [1, 4, 16] {
                var promised: Int64 = 0
                for _ in 0..<files {
                    promised += max(
                        0, VOPIDiskQuota.limit(taken: 0, available: available, total: total, promised: promised).bytes)
                }
                #expect(promised <= available, "\(files): \(promised)")
            }
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `jobs share what one disk has, and give it back`() throws {
        let folder = try TemporaryDirectory()
        let disk = try TestMount("tmpfs", at: folder.makeDirectory("disk"), options: "size=200m")
        defer { disk.unmount() }
        let (one, other) = (VOPIDiskQuota(disk.path, taken: 0), VOPIDiskQuota(disk.path, taken: 0))
        let (first, second) = (try one.begin(), try other.begin())
        #expect(first.isOfDisk && first.bytes > 100 * mib && second.bytes < first.bytes / 2)
        one.end(first)
        other.end(second)
        #expect(try other.begin() == first)
        other.end(first)
    }

    @Test func `a file that does not fit the disk waits for room, one that is too large is given up`() {
        let room = VOPIDiskQuota("/", taken: 0)
        let error = DeliveryError(.giveUp, .answerTooLarge, "too large")
        #expect(room.judged(error, VOPIDiskQuota.Limit(bytes: 1, isOfDisk: false)) == error)
        let full = room.judged(error, VOPIDiskQuota.Limit(bytes: 1, isOfDisk: true))
        #expect(full.code == .destinationFull && full.verdict == .outage(after: nil))
        let other = DeliveryError(.retry(after: nil), .connectionLost, "lost")
        #expect(room.judged(other, VOPIDiskQuota.Limit(bytes: 1, isOfDisk: true)) == other)
    }
}

private let (mib, gib): (Int64, Int64) = (1 << 20, 1 << 30)

/// Servers that repeat what they were sent, credentials and all, in their answers.
@Suite(.timeLimit(.minutes(15))) struct EchoTests {
    private static let canaries = [
        Place.apiKey, GigHivePlace.password, VOPIPlace.apiKey, RoboscopePlace.token, S3Account.accessKey,
    ].map(Canary.init)
    /// How JSON Web Tokens begin, the sandbox's access and refresh tokens among them.
    private static let tokens = [Canary("eyJhbGciOiJIUzI1NiI")]

    /// What is answered in the place of the work, and how it writes the request.
    private static let replies: [FaultReply] = {
        let echo = Echo.mark
        func padded(_ count: Int) -> String { String(repeating: "x ", count: count / 2) + echo }
        let refusal = #"{"error":"\#(echo)","message":"\#(echo)","details":[{"message":"\#(echo)"}]}"#
        func xml(_ code: String, _ text: String) -> String {
            "<Error><Code>\(code)</Code><Message>\(text)</Message><Region>\(echo)</Region>"
                + "<Endpoint>\(echo)</Endpoint></Error>"
        }
        return [0, 130, 170, 190].map { FaultReply(400, body: padded($0)) } + [
            FaultReply(400, type: "text/html", body: "<html><p>\(echo)</p></html>"),
            FaultReply(400, type: "application/json", body: refusal),
            FaultReply(400, type: "application/json", body: #"{"error":"NO","message":"\#(padded(180))"}"#),
            FaultReply(400, type: "application/xml", body: xml("InvalidArgument", padded(180))),
            FaultReply(400, type: "application/xml", body: xml("AuthorizationHeaderMalformed", "no")),
            FaultReply(400, type: "application/xml", body: xml(echo, "no")),
            FaultReply(200, type: "application/json", body: #"{"message":"\#(echo)","uploadId":"\#(echo)"}"#),
        ]
    }()

    private static let contenders: [Implementation] = [
        .r2("v1"), .s3(), .gigHive("multipart"), .gigHive("tus"), .vopi("api-key"), .vopi("bearer"), .roboscope,
    ]

    @Test(arguments: contenders)
    func `no credential comes back in an error, a note or a probe`(_ implementation: Implementation) async throws {
        try await withPlace(implementation) { place in
            var said: [String] = []
            for operation in [SpiralOperation.presign, .single, .create, .part, .complete, .objectURL] {
                for reply in Self.replies {
                    place.misbehave(.echo(reply), at: operation, times: 3)
                    let isLarge = [.create, .part, .complete].contains(operation) && implementation.sendsBytes
                    let (path, order) = try place.file(isLarge ? Place.part + 1 : 1000, key: "\(said.count).bin")
                    let notes = Notes()
                    do throws(DeliveryError) {
                        _ = try await place.pipeline.probe()
                    } catch {
                        said.append(error.reason)
                    }
                    if let error = try await place.failure(path, order, notes.attempt()) { said.append(error.reason) }
                    said += notes.entries.values.map { String(decoding: $0, as: UTF8.self) }
                    place.behave()
                }
            }
            #expect(said.contains { $0.contains("***") }, "no answer was repeated")
            for text in said {
                for canary in Self.canaries + Self.tokens { #expect(canary.trace(in: text) == nil, "\(text)") }
            }
        }
    }

    @Test func `no credential comes back in a proof`() async throws {
        try await withPlace(.r2("v1")) { place in
            let (path, order) = try place.file(Place.part + 1)
            let body = #"{"object_url":"https://cdn.example/\#(Place.apiKey)/x?k=\#(Place.apiKey)"}"#
            place.misbehave(.reply(FaultReply(200, type: "application/json", body: body)), at: .complete)
            let proof = try await place.deliver(path, order).get()
            #expect(proof.url == "https://cdn.example/***/x")
        }
        try await withPlace(.gigHive("multipart")) { place in
            let (path, order) = try place.file(1000)
            let digest = Checksum.sha256(content(1000)).hex
            let body =
                #"{"asset_id":7,"checksum_sha256":"\#(digest)","delete_token":"token-canary","note":"\#(Echo.mark)"}"#
            place.misbehave(.echo(FaultReply(201, type: "application/json", body: body)), at: .single)
            let proof = try await place.deliver(path, order).get()
            let answer = try #require(proof.details?["answer"])
            #expect(answer.contains("***") && !answer.contains("token-canary"))
            for canary in Self.canaries { #expect(canary.trace(in: answer) == nil, "\(answer)") }
        }
    }

    @Test func `what a server says of an object is held to two kibibytes without control characters`() {
        let long = String(repeating: "é", count: 3000)
        let proof = Proof(
            key: "k", size: 1, method: .size, etag: long, url: "https://h/\u{1B}[2J",
            details: ["a": long, "b": "x\n\u{7}"])
        #expect(proof.etag == nil && proof.url == nil)
        #expect(proof.details?["a"]?.utf8.count == Proof.longestText && proof.details?["b"] == "x\\x0A\\x07")
        let fine = Proof(key: "k", size: 1, method: .size, etag: "e", url: "https://h/ü", details: ["a": "ü"])
        #expect(fine.etag == "e" && fine.url == "https://h/ü" && fine.details == ["a": "ü"])
    }
}

@Suite(.timeLimit(.minutes(15))) struct FetchingTests {
    private func fetch(
        _ target: FilePath, _ server: ScriptedServer, _ tries: Listing<Fetching.Try>, digest: Digest? = nil
    ) async throws -> Result<Downloaded, DeliveryError> {
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let base = try HTTPURL("http://127.0.0.1:\(server.port)/x", rules: .configured(allowHTTP: false))
        let fetching = Fetching(client: client, pool: BlockingPool(name: "fetching", threads: 2))
        do throws(DeliveryError) {
            return .success(
                try await fetching.run(Download(target: target, digest: digest)) { next throws(DeliveryError) in
                    tries.add(next)
                    return HTTPRequest("GET", base, headers: next.headers)
                })
        } catch {
            return .failure(error)
        }
    }

    @Test func `a request is made anew for each try, and told why`() async throws {
        let count = Listing<Int>()
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            count.add(1)
            switch count.all.count {
            case 1: try connection.write("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 6\r\n\r\nabc")
            case 2: try connection.answer("403 Forbidden", "expired")
            case 3: try connection.answer("503 Busy", "")
            default:
                let fields = "ETag: \"v\"\r\nContent-Range: bytes 3-5/6\r\n"
                try connection.answer("206 Partial Content", headers: fields, "def")
            }
        }
        let directory = try TemporaryDirectory()
        let target = directory.path.appending("file")
        let tries = Listing<Fetching.Try>()
        #expect(try await fetch(target, server, tries).get().size == 6)
        #expect(try String(contentsOfFile: target.string, encoding: .utf8) == "abcdef")
        #expect(tries.all.map(\.refusal) == [nil, nil, 403, 503])
        #expect(tries.all.map { $0.headers.first?.value } == [nil, "bytes=3-", "bytes=3-", "bytes=3-"])
    }

    /// The error of a fetch from a server that gives one answer to all, how many requests there were, and what is left.
    private func failure(
        at status: String, headers: String = "", _ body: String, digest: Digest? = nil
    ) async throws -> (code: ErrorCode?, tries: Int, left: [String]) {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer(status, headers: headers, body)
            }
        }
        let directory = try TemporaryDirectory()
        let tries = Listing<Fetching.Try>()
        let result = try await fetch(directory.path.appending("file"), server, tries, digest: digest)
        let error = #expect(throws: DeliveryError.self) { try result.get() }
        return (
            error?.code, tries.all.count, try FileManager.default.contentsOfDirectory(atPath: directory.path.string)
        )
    }

    @Test(arguments: [("404 Not Found", ErrorCode.notFound), ("301 Moved", .redirected), ("418 Teapot", .badRequest)])
    func `what another request cannot mend is asked for once`(status: String, code: ErrorCode) async throws {
        #expect(try await failure(at: status, "no") == (code, 1, []))
    }

    @Test func `other content than was wanted is fetched once more, and nothing of it is kept`() async throws {
        let wanted = Digest(.sha256, [UInt8](repeating: 7, count: 32))
        #expect(
            try await failure(at: "200 OK", headers: "ETag: \"v\"\r\n", "abc", digest: wanted) == (.corrupted, 2, []))
    }

    @Test func `five tries without a new byte are enough`() async throws {
        #expect(try await failure(at: "500 Oops", "").tries == 5)
    }

    @Test func `a server that takes back what it sent is not asked for ever`() async throws {
        let count = Listing<Int>()
        // Three bytes and a cut, then an answer that does not fit them, and so on.
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            count.add(1)
            if count.all.count.isMultiple(of: 2) {
                try connection.answer("416 No", "")
            } else {
                try connection.write("HTTP/1.1 200 OK\r\nETag: \"v\"\r\nContent-Length: 6\r\n\r\nabc")
            }
        }
        let directory = try TemporaryDirectory()
        let tries = Listing<Fetching.Try>()
        let result = try await fetch(directory.path.appending("file"), server, tries)
        #expect(throws: DeliveryError.self) { try result.get() }
        #expect(tries.all.count == 5)
    }
}

@Suite(.timeLimit(.minutes(15))) struct ChecklistGapsTests {
    @Test(
        arguments: [(200, .badAnswer), (201, .badAnswer), (299, .badAnswer), (400, .badRequest)] as [(Int, ErrorCode)])
    func `an answer of any 2xx is judged by what it says, any other by its number`(
        _ status: Int, _ code: ErrorCode
    ) async throws {
        try await withPlace(.r2("v1"), faults: Fault(.status(status), at: .create)) { place in
            let (path, order) = try place.file(Place.part + 1)
            #expect(try await place.failure(path, order)?.code == code)
        }
    }
}
