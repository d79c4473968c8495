import InletCore
import InletTestSupport
import Synchronization
import Testing

@testable import InletTransfer

/// Bytes that move and would never end.
@Suite(.timeLimit(.minutes(15))) struct PaceTests {
    private let start = ContinuousClock.now
    private let total: Int64 = 100 << 20

    private func after(_ seconds: Double) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }

    private func deadlines(sendsBody: Bool = true) -> Deadlines {
        Deadlines(stall: .seconds(60), answer: .seconds(365 * 86_400), sendsBody: sendsBody, now: start)
    }

    /// The seconds after which a body of which `perSecond` bytes are taken, a piece each ten seconds, is given up.
    private func end(sending perSecond: Int64, of total: Int64, within hours: Int = 24) -> Int? {
        var deadlines = deadlines()
        for second in stride(from: 0, to: hours * 3600, by: 10) {
            let count = min(perSecond * Int64(second), total)
            deadlines.bodyMoved(at: after(Double(second)))
            deadlines.sent(count, of: total, at: after(Double(second)))
            if count == total { return nil }
            if let verdict = deadlines.verdict(at: after(Double(second))) {
                #expect(verdict == .tooSlow)
                return second
            }
        }
        return nil
    }

    @Test(
        arguments: [
            // 32 connections on a line of 512 kbit/s, of 64 and of 16; a limit of 1 KiB/s that they share.
            (2048, nil), (256, nil), (62, nil), (1024, nil),
            // What a server takes that wants to be waited for.
            (50, 300), (1, 300), (0, 300),
        ] as [(Int64, Int?)])
    func `a slow line is waited for, a trickle is not`(perSecond: Int64, expected: Int?) {
        #expect(end(sending: perSecond, of: total) == expected)
    }

    @Test func `a rest that is shorter than the least has as long`() {
        #expect(end(sending: 4, of: 1000) == nil)
        #expect(end(sending: 3, of: 1000) == 300)
        // The last 984 bytes have a window of their own.
        #expect(end(sending: 164, of: 17_384) == nil)
    }

    @Test func `one that became slow is given up from there on`() {
        var deadlines = deadlines()
        for second in 0..<600 {
            deadlines.bodyMoved(at: after(Double(second)))
            deadlines.sent(Int64(second) * 100_000, of: total, at: after(Double(second)))
            #expect(deadlines.verdict(at: after(Double(second))) == nil)
        }
        deadlines.bodyMoved(at: after(898))
        deadlines.sent(59_900_001, of: total, at: after(898))
        #expect(deadlines.verdict(at: after(898)) == nil && deadlines.next == after(899))
        #expect(deadlines.verdict(at: after(899)) == .tooSlow)
    }

    @Test func `time in which our own limit holds the body back is not the peer's`() {
        var deadlines = deadlines()
        deadlines.sent(0, of: total, at: start)
        // A second of each hour is its turn, in which it sends nothing to speak of.
        for hour in 0..<299 {
            deadlines.held(at: after(Double(hour) * 3600 + 1))
            #expect(deadlines.next == nil)
            deadlines.released(at: after(Double(hour + 1) * 3600))
            deadlines.bodyMoved(at: after(Double(hour + 1) * 3600))
            deadlines.sent(Int64(hour), of: total, at: after(Double(hour + 1) * 3600))
            #expect(deadlines.verdict(at: after(Double(hour + 1) * 3600)) == nil)
        }
        #expect(deadlines.verdict(at: after(299 * 3600 + 0.5)) == nil)
        #expect(deadlines.verdict(at: after(299 * 3600 + 1)) == .tooSlow)
    }

    @Test func `between the body and the answer there is nothing to be slow with`() {
        var deadlines = Deadlines(
            stall: .seconds(60), silence: .seconds(1000), answer: .seconds(2000), sendsBody: true, now: start)
        deadlines.sent(0, of: 1000, at: start)
        deadlines.bodyEnded(at: after(1))
        deadlines.sent(1000, of: nil, at: after(1))
        #expect(deadlines.verdict(at: after(999)) == nil)
        // A body that curl begins anew is judged anew.
        deadlines.bodyRestarted(at: after(999))
        deadlines.sent(0, of: total, at: after(999))
        deadlines.bodyMoved(at: after(1298))
        #expect(deadlines.verdict(at: after(1298)) == nil && deadlines.verdict(at: after(1299)) == .tooSlow)
    }

    @Test func `an answer is held to the same, also one that does not say how long it is`() {
        for total in [nil, self.total] {
            var deadlines = deadlines(sendsBody: false)
            for second in 0..<300 {
                deadlines.answerMoved(at: after(Double(second)))
                deadlines.received(Int64(second), of: total, at: after(Double(second)))
                #expect(deadlines.verdict(at: after(Double(second))) == nil)
            }
            deadlines.answerMoved(at: after(300))
            #expect(deadlines.verdict(at: after(300)) == .tooSlow)
        }
    }

    // MARK: - Over the wire

    private final class Nothing: ResponseSink {
        func begins(_ head: HTTPResponse) throws(TransferError) -> Bool { true }
        func take(_ piece: UnsafeRawBufferPointer) throws(TransferError) {}
    }

    @Test(arguments: [true, false]) func `a download that drips is ended`(isChunked: Bool) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            let how = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: 100000000"
            try connection.write("HTTP/1.1 200 OK\r\n\(how)\r\n\r\n")
            while connection.linger(milliseconds: 20) { try connection.write(isChunked ? "1\r\nx\r\n" : "x") }
        }
        var request = HTTPRequest(
            "GET", try server.url(), answerDeadline: .seconds(86_400), stallTimeout: .seconds(240))
        request.paceWindow = .seconds(1)
        let client = makeClient()
        let error = await #expect(throws: TransferError.self) { try await client.send(request, into: Nothing()) }
        #expect(error?.code == .stalled && error?.reason.contains("16384 bytes") == true)
    }

    @Test func `an upload that is taken a byte at a time is ended`() async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readHead()
            while connection.linger(milliseconds: 20) { _ = try connection.read(1) }
        }
        var request = HTTPRequest(
            "PUT", try server.url(), body: .bytes(pattern(30_000_000)), stallTimeout: .seconds(240))
        request.paceWindow = .seconds(1)
        let error = await failure(makeClient(), request)
        #expect(error?.code == .stalled && error?.isOutage == true)
        #expect(error?.reason.contains("16384 bytes") == true)
    }
}
