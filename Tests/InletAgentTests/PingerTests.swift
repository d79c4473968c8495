import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct PingerTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private let lines = Words()

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
    }

    /// One that takes down what it is asked.
    private func server(_ status: String = "200 OK") throws -> ScriptedServer {
        try ScriptedServer { [lines] connection in
            while true {
                lines.add(try connection.readRequest().line)
                try connection.answer(status)
            }
        }
    }

    @Test func `a service that hears of us hears when we are well, and when we are not`() async throws {
        defer { journal.close() }
        let server = try server()
        let factory = PipelineFactory(pool: BlockingPool(name: "ping", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = PingSettings(url: Secret("http://127.0.0.1:\(server.port)/id"), interval: .milliseconds(30))
        let shared = Shared.test(journal, try EventLog(nil))
        let scheduler = Scheduler([.ping: Pinger(shared, try factory.ping(settings), settings)])
        try await whileRunning([scheduler]) {
            try await eventually("it is well") { lines.all.contains("GET /id HTTP/1.1") }
            shared.health.journal.fails(.full(journal.path))
            try await eventually("it is not") { lines.all.contains("POST /id/fail HTTP/1.1") }
        }
        #expect(lines.all.first == "GET /id/start HTTP/1.1")
    }

    @Test func `a loop that stands still is told, and a service that is away is said once`() async throws {
        defer { journal.close() }
        let server = try server("500 Oops")
        let factory = PipelineFactory(pool: BlockingPool(name: "ping", threads: 1), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let settings = PingSettings(
            url: Secret("http://127.0.0.1:\(server.port)/id-canary"), interval: .milliseconds(20))
        let log = try EventLog(nil)
        let events = EventRecord(log)
        let shared = Shared.test(journal, log)
        let scheduler = Scheduler([.ping: Pinger(shared, try factory.ping(settings), settings, patience: .zero)])
        try await whileRunning([scheduler]) {
            try await eventually("it is told") { lines.all.count { $0.contains("/fail") } >= 3 }
        }
        #expect(events.count("notification.failed") == 1)
        #expect(!"\(events.all)".contains("canary"))
    }
}

private final class Words: Sendable {
    private let words = Mutex<[String]>([])
    var all: [String] { words.withLock(\.self) }
    func add(_ word: String) { words.withLock { $0.append(word) } }
}
