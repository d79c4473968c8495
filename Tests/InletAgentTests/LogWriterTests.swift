import Dispatch
import InletCore
import InletLinux
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Whoever says something, and an output that stands still.
@Suite struct LogWriterTests {
    /// Takes nothing until it may, and then all.
    private final class Gate: LogOutput {
        private let opening = DispatchSemaphore(value: 0)
        private let entering = DispatchSemaphore(value: 0)
        private let jobs = Mutex<[Int64]>([])
        let silence = "nobody reads"
        var taken: [Int64] { jobs.withLock { $0 } }

        func open() { opening.signal() }

        /// Until the writer stands in front of it.
        func waitForWriter() { entering.wait() }

        func write(_ lines: [EventLine], _ format: LogSettings.Format, at time: WallTime) -> LogWrite {
            entering.signal()
            opening.wait()
            defer { opening.signal() }
            let numbers = lines.compactMap { line in
                if case .number(let job)? = line.fields.first?.1 { job } else { nil }
            }
            jobs.withLock { $0 += numbers }
            return (0, nil)
        }
    }

    private static func line(_ job: Int) -> EventLine { AgentEvent.jobUnchanged(job: Int64(job), path: "/in/a").line }

    @Test func `nobody waits for a reader that stands still, and what does not fit is counted and told`() throws {
        let gate = Gate()
        let said = Mutex<[AgentEvent]>([])
        let writer = try LogWriter(gate, limit: 64 << 10) { event in said.withLock { $0.append(event) } }
        defer { writer.close() }
        for job in 0..<2000 { writer.put([Self.line(job)], .json, at: .now) }
        let status = try #require(writer.status())
        #expect(status.reason == "nobody reads" && (1000..<2000).contains(status.lost))
        #expect(said.withLock { $0.map(\.line.name) } == ["log.error"])
        #expect(!writer.flush(within: .milliseconds(1)))
        gate.open()
        #expect(writer.flush(within: .seconds(60)))
        #expect(gate.taken == Array(0..<Int64(2000 - status.lost)))
        let last = try #require(said.withLock { $0.last })
        #expect(last.line.name == "log.lost" && last.line.fields.first?.1 == .number(Int64(status.lost)))
        #expect(writer.status() == nil)
    }

    @Test func `an output that has had a line for ten seconds is said to stand still, though nothing is lost`() throws {
        let gate = Gate()
        let writer = try LogWriter(gate) { _ in }
        writer.put([Self.line(1)], .json, at: .now)
        gate.waitForWriter()
        let (soon, later) = (ContinuousClock.now, ContinuousClock.now.advanced(by: .seconds(60)))
        #expect(!writer.flush(within: .milliseconds(1)))
        #expect(writer.status(at: soon) == nil)
        #expect(writer.status(at: later) == LogStatus(reason: "nobody reads", lost: 0))
        writer.close()
        gate.open()
        #expect(writer.flush(within: .seconds(60)) && gate.taken == [1])
    }
}
