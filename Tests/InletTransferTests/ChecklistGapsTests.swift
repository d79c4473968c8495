import InletCore
import InletTestSupport
import Synchronization
import Testing

@testable import InletTransfer

@Suite(.timeLimit(.minutes(8))) struct ChecklistGapsTests {
    @Test func `a body that is held back is not judged, and from its release on as any other`() {
        let start = ContinuousClock.now
        var deadlines = Deadlines(stall: .seconds(60), answer: .seconds(120), sendsBody: true, now: start)
        deadlines.held(at: start)
        let later = start.advanced(by: .seconds(86_400))
        #expect(deadlines.verdict(at: later) == nil && deadlines.next == nil)
        deadlines.released(at: later)
        #expect(deadlines.verdict(at: later) == nil && deadlines.next == later.advanced(by: .seconds(60)))
        #expect(deadlines.verdict(at: later.advanced(by: .seconds(60))) == .stalled)
        deadlines.held(at: later)
        deadlines.bodyEnded(at: later)
        #expect(deadlines.next == later.advanced(by: .seconds(60)))
    }

    @Test func `a transfer that moves has no total limit`() {
        let start = ContinuousClock.now
        var deadlines = Deadlines(stall: .seconds(60), answer: .seconds(120), sendsBody: true, now: start)
        var now = start
        for _ in 0..<2000 {
            now = now.advanced(by: .seconds(59))
            #expect(deadlines.verdict(at: now) == nil)
            deadlines.bodyMoved(at: now)
        }
        #expect(deadlines.verdict(at: now.advanced(by: .seconds(60))) == .stalled)
    }

    @Test(arguments: [(200, true), (201, true), (226, true), (299, true), (300, false), (304, false), (400, false)])
    func `a body counts as sent by any status from 200 to 299, and by no other`(status: Int, counts: Bool) async throws
    {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            try connection.answer("\(status) Some Words")
        }
        let meter = TransferMeter()
        let request = HTTPRequest("PUT", try server.url(), body: .bytes(pattern(100_000)))
        let answer = try await makeClient().send(request, meter: meter)
        #expect(answer.status == status)
        #expect(meter.bytesSent == (counts ? 100_000 : 0))
    }

    @Test func `bytes are counted while they are under way, and in the end all of them`() async throws {
        let goesOn = Atomic<Bool>(false)
        let size = 30_000_000
        try await withTransfer(of: size, goesOn: { goesOn.load(ordering: .acquiring) }) { meter in
            try await eventually("some bytes are out") { meter.bytesSent > 0 }
            #expect(meter.bytesSent < size)
            goesOn.store(true, ordering: .releasing)
            try await eventually("all bytes are out") { meter.bytesSent == size }
        }
    }

    /// Sends `size` bytes to a server that reads nothing before `goesOn` says so, with `body` beside it.
    private func withTransfer(
        of size: Int, goesOn: @escaping @Sendable () -> Bool, _ body: (TransferMeter) async throws -> Void
    ) async throws {
        let server = try ScriptedServer { connection in
            while !goesOn() { guard connection.linger(milliseconds: 5) else { return } }
            _ = try connection.readRequest()
            try connection.answer()
        }
        let meter = TransferMeter()
        let request = HTTPRequest("PUT", try server.url(), body: .bytes(pattern(size)))
        let client = makeClient()
        async let answer = client.send(request, meter: meter)
        try await body(meter)
        #expect(try await answer.status == 200)
    }
}
