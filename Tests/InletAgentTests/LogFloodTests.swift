import Foundation
import InletCore
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Thousands of the same warning at once.
@Suite struct LogFloodTests {
    @Test func `a flood is cut off and counted, jobs' lines are not, and listeners hear all`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("inlet.log")
        let log = try EventLog(LogSettings(level: .info, output: path.string, format: .json))
        let heard = Mutex(0)
        let subscription = log.listen { _ in heard.withLock { $0 += 1 } }
        for number in 0..<2000 {
            log.emit(.fileError(path: FilePath("/srv/drop/\(number)"), reason: "Permission denied"))
            log.emit(.fileRejected(job: Int64(number), path: "/srv/drop/a", route: "r", reason: "too large"))
        }
        log.emit(.agentStopping)
        subscription.end()
        log.flush(within: .seconds(60))
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path.string)), as: UTF8.self)
        let events = text.split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
        let counts = Dictionary(grouping: events) { $0["event"] as? String ?? "" }.mapValues(\.count)
        let shown = try #require(counts["file.error"])
        #expect((LogLimit.burst...LogLimit.burst + 60).contains(shown))
        #expect(counts["file.rejected"] == 2000)
        #expect(heard.withLock { $0 } == 4001)
        let told = events.filter { $0["event"] as? String == "log.suppressed" }
        #expect(told.allSatisfy { $0["of"] as? String == "file.error" })
        #expect(told.compactMap { $0["lines"] as? Int }.reduce(0, +) == 2000 - shown)
        #expect(events.last?["event"] as? String == "agent.stopping")
    }
}
