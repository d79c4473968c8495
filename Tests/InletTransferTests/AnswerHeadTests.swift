import InletCore
import InletTestSupport
import InletTransfer
import Testing

/// What servers say about an answer beside its body, against `AnswerBuffer`'s rules.
@Suite(.timeLimit(.minutes(4))) struct AnswerHeadTests {
    /// What a GET gets from a server that says `words` and then waits.
    private func answer(_ words: String...) async throws -> Result<HTTPResponse, TransferError> {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            for word in words { try connection.write(word) }
            connection.waitForEnd()
        }
        do throws(TransferError) {
            return .success(try await makeClient().send(HTTPRequest("GET", try url(server))))
        } catch { return .failure(error) }
    }

    private func url(_ server: ScriptedServer) throws(TransferError) -> HTTPURL {
        try HTTPURL("http://127.0.0.1:\(server.port)/", rules: .configured(allowHTTP: false))
    }

    private func error(_ words: String...) async throws -> TransferError? {
        guard case .failure(let error) = try await answer(words.joined()) else { return nil }
        return error
    }

    /// "a", deflated (RFC 1950), in bytes that are ASCII.
    private static let deflated = "\u{78}\u{01}\u{4B}\u{04}\u{00}\u{00}\u{62}\u{00}\u{62}"

    @Test(arguments: ["deflate", "gzip", "deflate, chunked", "chunked, chunked", "identity", "br"])
    func `a body that is coded on the way by more than chunks is refused`(coding: String) async throws {
        let body = coding.hasSuffix("chunked") ? "9\r\n\(Self.deflated)\r\n0\r\n\r\n" : Self.deflated
        let error = try await error("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\n\r\n", body)
        #expect(error?.code == .badAnswer && error?.isOutage == false)
        #expect(error?.reason.contains("Transfer-Encoding: \(coding)") == true)
    }

    @Test func `so is one whose codings come in fields of their own`() async throws {
        let error = try await error(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: deflate\r\ntransfer-encoding: chunked\r\n\r\n",
            "9\r\n\(Self.deflated)\r\n0\r\n\r\n")
        #expect(error?.code == .badAnswer)
        #expect(error?.reason.contains("Transfer-Encoding: deflate, chunked") == true)
    }

    @Test func `chunks are put together, and what the content is coded with stays`() async throws {
        let response = try await answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Encoding: deflate\r\n\r\n",
            "9\r\n\(Self.deflated)\r\n0\r\n\r\n"
        ).get()
        #expect(response.body == Array(Self.deflated.utf8))
    }

    @Test func `what follows a chunked body is no field of its head`() async throws {
        let response = try await answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"head\"\r\n\r\n",
            "5\r\nhello\r\n0\r\nETag: \"trailer\"\r\nContent-MD5: AAAA\r\n\r\n"
        ).get()
        #expect(response.body == Array("hello".utf8))
        #expect(response.headers.map(\.name) == ["Transfer-Encoding", "ETag"])
        #expect(response.header("ETag") == "\"head\"")
    }

    @Test func `it is counted against the head's bounds`() async throws {
        let lines = (0..<300).map { "X-\($0): y\r\n" }.joined()
        let error = try await error(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n0\r\n\(lines)\r\n")
        #expect(error?.code == .answerTooLarge)
    }

    @Test func `a few interim heads are passed over, a flood of them is refused`() async throws {
        let (hint, end) = ("HTTP/1.1 103 Early Hints\r\nETag: \"hint\"\r\n\r\n", "HTTP/1.1 204 Done\r\n\r\n")
        let response = try await answer(hint, hint, hint, end).get()
        #expect(response.status == 204 && response.headers.isEmpty)
        let error = try await error(String(repeating: hint, count: 500), end)
        #expect(error?.code == .answerTooLarge && error?.isOutage == false)
    }

    @Test func `a change of protocol that nobody asked for is refused`() async throws {
        let error = try await error(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n")
        #expect(error?.code == .badAnswer && error?.isOutage == false)
    }
}
