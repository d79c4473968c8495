import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct EventLineTests {
    private static let hostile = "a\n\u{1B}[2J\"\\\u{202E}\u{7F}"
    private static let path = FilePath(bytes: Array("/in/".utf8) + [0xFF, 0x0A, 0x22, 0x5C, 0x1B])
    private static let ref = AgentEvent.JobRef(job: 1, delivery: 2, path: path, route: "r", destination: "d")
    private static let error = DeliveryError(.giveUp, .badRequest, hostile)
    private static let proof = Proof(key: hostile, size: 9, method: .size, url: hostile)

    private static func volumeEnd(unread: Int) -> VolumeReport {
        var end = VolumeReport(root: path, volume: Volume(name: hostile, key: hostile))
        end.unread = unread
        return end
    }

    /// Every event under the name that users' log filters rely on.
    static let events: [(AgentEvent, String)] = [
        (.agentStarted(version: "1", configuration: "c"), "agent.started"),
        (.agentConfined(landlock: 7, places: 20, calls: 0, reason: "no filters"), "agent.confined"),
        (.agentUnconfined(reason: "r"), "agent.unconfined"),
        (.agentHelperLost, "agent.helper_lost"),
        (.agentReady(roots: 1, destinations: 2), "agent.ready"),
        (.agentStopping, "agent.stopping"), (.agentFailed(reason: hostile), "agent.failed"),
        (.configWarning(file: path, warning: hostile), "config.warning"),
        (
            .configReloaded(file: path, changes: [hostile], parked: 2, restart: ["workers"], warnings: [hostile]),
            "config.reloaded"
        ),
        (.configRefused(file: path, errors: [hostile]), "config.refused"),
        (.watchAdded(root: path, directories: 3, writerCheck: "on"), "watch.added"),
        (.watchMode(root: path, path: path, mode: .fanotify, reason: hostile), "watch.mode"),
        (.watchLost(root: path, reason: hostile), "watch.lost"),
        (.watchOverflow(root: path), "watch.overflow"),
        (.watchLimit(root: path, reason: hostile), "watch.limit"),
        (.watchAdopted(root: path, files: 3, bytes: 9), "watch.adopted"),
        (.fileNotAdopted(path: path, reason: hostile), "file.not_adopted"),
        (.fileDerived(path: path, name: hostile, size: 9, duration: .seconds(1)), "file.derived"),
        (.fileNotDerived(path: path, name: hostile, reason: hostile), "file.not_derived"),
        (.watchPaused(root: path, reason: hostile), "watch.paused"),
        (.watchResumed(root: path, by: "user 0"), "watch.resumed"),
        (.watchStandby(root: path, holder: hostile), "watch.standby"),
        (.volumeAdded(root: path, volume: hostile, waiting: 2), "volume.added"),
        (.volumeRemoved(root: path, volume: hostile), "volume.removed"),
        (.volumeDone(volumeEnd(unread: 0)), "volume.done"),
        (.volumeDone(volumeEnd(unread: 1)), "volume.unverified"),
        (.fileSettling(path: path, busy: true), "file.settling"),
        (.fileUnsettled(path: path, reason: hostile, waiting: .seconds(900)), "file.unsettled"),
        (.fileIgnored(path: path, reason: hostile), "file.ignored"),
        (.fileAwaited(path: path, reason: hostile), "file.awaited"),
        (.fileRejected(job: 1, path: path, route: "r", reason: hostile), "file.rejected"),
        (.fileError(path: path, reason: hostile), "file.error"),
        (.journalFull(reason: "full"), "journal.full"),
        (.journalFailing(reason: hostile), "journal.failing"),
        (.journalRecovered, "journal.recovered"),
        (.journalBackup(path: path), "journal.backup"),
        (.journalBackupFailed(reason: hostile), "journal.backup_failed"),
        (.journalPruned(files: 3, duration: .seconds(1)), "journal.pruned"),
        (.jobAdmitted(job: 1, path: path, route: "r", size: 9, deliveries: ["d", "e"]), "job.admitted"),
        (.fileNote(job: 1, path: path, route: "r", note: hostile), "file.note"),
        (.jobUnchanged(job: 1, path: path), "job.unchanged"),
        (.jobRenamed(job: 1, path: path, from: path), "job.renamed"),
        (.jobDuplicate(job: 2, path: path, route: "r", destinations: ["d"], sameAs: 1), "job.duplicate"),
        (.jobStarted(ref, key: hostile, attempt: 1, size: 9), "job.started"),
        (.transferProgress(ref, sent: 1, size: 9), "transfer.progress"),
        (.jobCheckpoint(ref, notes: [hostile]), "job.checkpoint"),
        (.jobRetry(ref, error, attempt: 1, wait: .seconds(1)), "job.retry"),
        (.jobWaiting(ref, until: WallTime(milliseconds: 0)), "job.waiting"),
        (.jobDelivered(ref, proof, duration: .milliseconds(1500)), "job.delivered"),
        (.jobFailed(ref, state: .failed, error), "job.failed"),
        (.jobFinished(job: 1, path: path, state: .delivered, disposition: hostile, route: "r"), "job.finished"),
        (.jobRecovered(claims: 1, parked: 2, unparked: 3), "job.recovered"),
        (.batchClosed(batch: 1, path: path, route: "r", files: 3), "batch.closed"),
        (.dispositionFailed(job: 1, path: path, reason: hostile), "job.disposition_failed"),
        (.receiptElsewhere(root: path, folder: "/state/receipts", reason: hostile), "receipt.elsewhere"),
        (.uploadAborted(ref), "transfer.aborted"),
        (.agentError(reason: hostile), "agent.error"),
        (.serviceFailed(service: hostile, reason: hostile, wait: .seconds(1)), "agent.service_failed"),
        (.queueResuming(waiting: 9), "queue.resuming"),
        (.queueResumed(ResumeSummary(of: 9)), "queue.resumed"),
        (.queueWarning(waiting: 30, limit: 20), "queue.warning"),
        (.queueNormal(waiting: 3, limit: 20), "queue.normal"), (.queueFull(files: 5, bytes: 9), "queue.full"),
        (.queueRecovered, "queue.recovered"),
        (.jobExpired(job: 1, path: path, route: "r", destinations: ["d"]), "job.expired"),
        (.destinationDown(destination: "d", reason: hostile, probe: WallTime(milliseconds: 0)), "destination.down"),
        (.destinationUp(destination: "d"), "destination.up"),
        (
            .destinationThrottled(destination: "d", reason: hostile, until: WallTime(milliseconds: 0)),
            "destination.throttled"
        ),
        (.destinationError(destination: "d", reason: hostile), "destination.error"),
        (.loginExpiring(destination: "d", reason: hostile), "destination.login_expiring"),
        (.tokenGiven(destination: "d", to: "uid 0"), "destination.token_given"),
        (.limitChanged(destination: "d", rate: 5 << 20, cause: .command), "limit.changed"),
        (.destinationPaused(destination: "d", by: "user 0"), "destination.paused"),
        (.destinationResumed(destination: "d", by: "user 0"), "destination.resumed"),
        (.notificationSent(sink: "s", notice: "n", event: "failed", tries: 1), "notification.sent"),
        (.notificationFailed(sink: "s", notice: "n", reason: hostile, next: nil), "notification.failed"),
        (.notificationDropped(sink: "s", count: 1, reason: hostile), "notification.dropped"),
        (.dashboardReady(url: hostile), "dashboard.ready"),
        (.dashboardFailed(address: "127.0.0.1:8844", reason: hostile), "dashboard.failed"),
        (.dashboardRefused(address: hostile, wait: .seconds(60)), "dashboard.refused"),
        (.logLevel(.debug, by: "uid 0"), "log.level"), (.logError(reason: hostile), "log.error"),
        (.logLost(lines: 3), "log.lost"),
        (.logSuppressed(LogLimit.Gap(event: "file.error", lines: 3)), "log.suppressed"),
    ]

    /// Events about a unit, whose lines are held against units by other tests.
    static let elsewhere: Set<String> = ["batch.ended", "manifest.written", "manifest.failed", "manifest.skipped"]

    @Test func `every event has its own stable name`() {
        for (event, name) in Self.events { #expect(event.line.name == name) }
        #expect(Set(Self.events.map(\.1)).count == Self.events.count)
    }

    @Test func `no field holds anything that a terminal would act on`() {
        for (event, name) in Self.events {
            for case (let field, .text(let text)) in event.line.fields {
                #expect(
                    !text.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{7F}" || $0 == "\u{202E}" },
                    "\(name) \(field)")
            }
        }
    }

    @Test func `every line is one JSON object, in order, whatever names and servers say`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("log")
        let log = try EventLog(LogSettings(level: .debug, output: file.string, format: .json))
        for (event, _) in Self.events { log.emit(event) }
        log.flush(within: .seconds(60))
        let lines = try text(file).split(separator: "\n")
        #expect(lines.count == Self.events.count)
        for (line, (_, name)) in zip(lines, Self.events) {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect(object?["event"] as? String == name)
            #expect((object?["ts"] as? String)?.count == "2026-01-01T00:00:00.000Z".count)
            #expect(object?["level"] is String)
            if let path = object?["path"] as? String { #expect(path == #"/in/\xFF\x0A"\\x1B"#) }
        }
    }

    @Test func `numbers are numbers and lists are lists`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("log")
        let log = try EventLog(LogSettings(output: file.string, format: .json))
        log.emit(.jobAdmitted(job: 7, path: "/a", route: "r", size: 1 << 40, deliveries: ["d", "e"]))
        log.flush(within: .seconds(60))
        let line = try text(file)
        #expect(line.contains(#""job":7,"path":"/a","route":"r","size":1099511627776,"destinations":["d","e"]}"#))
    }

    @Test func `lines below the level are not written, and listeners hear them all the same`() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path.appending("log")
        let log = try EventLog(LogSettings(level: .warning, output: file.string, format: .text))
        let record = EventRecord(log)
        log.emit(.journalRecovered)
        log.emit(.journalFull(reason: "no room"))
        log.flush(within: .seconds(60))
        #expect(record.names == ["journal.recovered", "journal.full"])
        let lines = try text(file).split(separator: "\n")
        #expect(lines.count == 1)
        #expect(lines[0].hasSuffix(#" error journal.full reason="no room""#))
    }

    @Test func `a listener that ends hears nothing more`() throws {
        let log = try EventLog(nil)
        let record = EventRecord(log)
        let subscription = log.listen { _ in Issue.record("heard after its end") }
        subscription.end()
        log.emit(.journalRecovered)
        #expect(record.names == ["journal.recovered"])
    }

    @Test(arguments: [0x00, 0x1F, 0x22, 0x5C, 0x7F, 0x85, 0x2028, 0xFFFD, 0x1F600] as [UInt32])
    func `any scalar survives as JSON`(_ value: UInt32) throws {
        let scalar = try #require(Unicode.Scalar(value))
        let quoted = JSONString.quote("a\(Character(scalar))b")
        let list = try JSONSerialization.jsonObject(with: Data("[\(quoted)]".utf8)) as? [String]
        #expect(list == ["a\(Character(scalar))b"])
    }

    @Test func `trouble with the journal is said once, and its end once`() throws {
        let log = try EventLog(nil)
        let record = EventRecord(log)
        let health = JournalHealth(log: log)
        health.works()
        for _ in 0..<3 { health.fails(.full("/j")) }
        #expect(health.isFailing)
        for _ in 0..<3 { health.works() }
        #expect(!health.isFailing)
        health.fails(.ioError("/j", cause: "again"))
        health.fails(.ioError("/j", cause: "again"), for: .finisher)
        // Who can write it says nothing of who cannot read what he needs of it.
        health.works()
        #expect(health.isFailing)
        health.works(for: .finisher)
        #expect(record.names == ["journal.full", "journal.recovered", "journal.failing", "journal.recovered"])
    }
}
