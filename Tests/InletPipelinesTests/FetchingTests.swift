import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(8))) struct FetchingTests {
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

    @Test(arguments: [("404 Not Found", ErrorCode.notFound), ("301 Moved", .redirected), ("418 Teapot", .badRequest)])
    func `what another request cannot mend is asked for once`(status: String, code: ErrorCode) async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer(status, "no")
            }
        }
        let directory = try TemporaryDirectory()
        let tries = Listing<Fetching.Try>()
        guard case .failure(let error) = try await fetch(directory.path.appending("file"), server, tries) else {
            Issue.record("fetched")
            return
        }
        #expect(error.code == code)
        #expect(tries.all.count == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path.string).isEmpty)
    }

    @Test func `other content than was wanted is fetched once more, and nothing of it is kept`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer("200 OK", headers: "ETag: \"v\"\r\n", "abc")
            }
        }
        let directory = try TemporaryDirectory()
        let tries = Listing<Fetching.Try>()
        let wanted = Digest(.sha256, [UInt8](repeating: 7, count: 32))
        let result = try await fetch(directory.path.appending("file"), server, tries, digest: wanted)
        let error = #expect(throws: DeliveryError.self) { try result.get() }
        #expect(error?.code == .corrupted && tries.all.count == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path.string).isEmpty)
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

    @Test func `five tries without a new byte are enough`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer("500 Oops", "")
            }
        }
        let directory = try TemporaryDirectory()
        let tries = Listing<Fetching.Try>()
        let result = try await fetch(directory.path.appending("file"), server, tries)
        #expect(throws: DeliveryError.self) { try result.get() }
        #expect(tries.all.count == 5)
    }
}
