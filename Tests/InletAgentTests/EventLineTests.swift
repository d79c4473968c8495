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
        var end = VolumeReport(root: path, volume: hostile)
        (end.unread, end.isSafe, end.headline) = (unread, unread == 0, hostile)
        return end
    }

    /// Every event under the name that users' log filters rely on.
    static let events: [(AgentEvent, String)] =
        [
            (.agentStarted(version: "1", configuration: "c"), "agent.started"),
            (.agentConfined(landlock: 7, places: 20, calls: 0, reason: "no filters"), "agent.confined"),
            (.agentUnconfined(reason: "r"), "agent.unconfined"),
            (.agentHelperLost, "agent.helper_lost"),
            (.agentReady(roots: 1, destinations: 2), "agent.ready"),
            (.agentStopping, "agent.stopping"), (.agentFailed(reason: hostile), "agent.failed"),
            (.configWarning(file: path, warning: hostile), "config.warning"),
            (.configEdited(file: path, by: hostile, changes: [hostile], isUndo: true), "config.edited"),
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
            (.rootQuiet(root: path, since: WallTime(milliseconds: 0), expect: .seconds(86_400)), "root.quiet"),
            (.rootRecovered(root: path, since: WallTime(milliseconds: 0)), "root.recovered"),
            (.watchStandby(root: path, holder: hostile), "watch.standby"),
            (.volumeAdded(root: path, volume: hostile, waiting: 2), "volume.added"),
            (.volumeRemoved(root: path, volume: hostile), "volume.removed"),
            (.reportWritten(volume: hostile, destination: "d", file: path), "report.written"),
            (.reportFailed(volume: hostile, destination: "d", reason: hostile), "report.failed"),
            (.volumeDone(volumeEnd(unread: 0)), "volume.done"),
            (.volumeDone(volumeEnd(unread: 1)), "volume.unverified"),
            (.volumeUnknown(path: path, volume: hostile, files: 3), "volume.unknown"),
            (.cardLabelled(volume: hostile, labels: hostile, by: hostile), "card.labelled"),
            (.cardOthersLeft(volume: hostile, files: 3, by: hostile), "card.others_left"),
            (.cardResent(volume: hostile, files: 3, by: hostile), "card.resent"),
            (.cardEjected(volume: hostile, result: hostile, by: hostile), "card.ejected"),
            (.cardNotEjected(volume: hostile, reason: hostile), "card.not_ejected"),
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
            (.jobAnswered(job: 1, path: path, disposition: hostile, route: "r"), "job.answered"),
            (.jobRecovered(claims: 1, parked: 2, unparked: 3), "job.recovered"),
            (.batchClosed(batch: 1, path: path, route: "r", files: 3), "batch.closed"),
            (.dispositionFailed(job: 1, path: path, reason: hostile), "job.disposition_failed"),
            (.namesKept(destinations: [hostile]), "names.kept"),
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
            (.destinationRecovered(destination: "d", files: 3), "destination.recovered"),
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
            (.logSuppressed((event: "file.error", lines: 3)), "log.suppressed"),
        ] + fleetEvents

    /// Events about a unit, whose lines are held against units by other tests.
    static let elsewhere: Set<String> = [
        "batch.ended", "manifest.written", "manifest.failed", "manifest.skipped", "manifest.standalone",
    ]

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
        let end = log.listen { _ in Issue.record("heard after its end") }
        end()
        log.emit(.journalRecovered)
        #expect(record.names == ["journal.recovered"])
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

/// The log as text: `name field=value field="a value"`.
@Suite struct EventTextTests {
    /// The fields as a reader takes a line apart; nil where it is no such line.
    private static func fields(_ words: String) -> [(name: String, value: String)]? {
        var rest = words[...]
        guard let space = rest.firstIndex(of: " ") else { return [] }
        rest = rest[space...]
        var fields: [(name: String, value: String)] = []
        while !rest.isEmpty {
            guard rest.removeFirst() == " ", let equals = rest.firstIndex(of: "=") else { return nil }
            let name = String(rest[..<equals])
            rest = rest[rest.index(after: equals)...]
            guard let value = rest.first == "\"" ? quoted(&rest) : plain(&rest) else { return nil }
            fields.append((name, value))
        }
        return fields
    }

    private static func plain(_ rest: inout Substring) -> String? {
        let value = rest.prefix { $0 != " " }
        rest = rest[value.endIndex...]
        return value.contains("\"") ? nil : String(value)
    }

    private static func quoted(_ rest: inout Substring) -> String? {
        rest.removeFirst()
        var value = ""
        while let next = rest.popFirst() {
            if next == "\"" { return value }
            guard next != "\\" else {
                guard let escaped = rest.popFirst() else { return nil }
                value.append(escaped)
                continue
            }
            value.append(next)
        }
        return nil
    }

    private static func expected(_ value: EventValue) -> String { DisplayText.escape(value.plain) }

    @Test func `each line is taken apart into the fields that it was made of, whatever names and servers say`() throws {
        for (event, name) in EventLineTests.events {
            let line = event.line
            let found = try #require(Self.fields(line.words), "\(line.words)")
            #expect(line.words.hasPrefix(name))
            #expect(found.map(\.name) == line.fields.map(\.0), "\(line.words)")
            #expect(found.map(\.value) == line.fields.map { Self.expected($0.1) }, "\(line.words)")
            #expect(!line.words.unicodeScalars.contains { $0.properties.generalCategory == .control })
        }
    }

    /// Events with several fields of one kind, which could be mistaken for one another.
    private static let lines: [(AgentEvent, String)] = {
        let ref = AgentEvent.JobRef(job: 1, delivery: 2, path: "/a", route: "r", destination: "d")
        let error = DeliveryError(.giveUp, .badRequest, "no")
        return [
            (
                .agentConfined(landlock: 7, places: 20, calls: 3, reason: nil),
                "agent.confined landlock=7 places=20 calls=3"
            ),
            (
                .watchMode(root: "/a", path: "/a/b", mode: .fanotify, reason: "r"),
                "watch.mode root=/a path=/a/b mode=fanotify reason=r"
            ),
            (.watchAdopted(root: "/a", files: 3, bytes: 9), "watch.adopted path=/a files=3 bytes=9"),
            (
                .fileDerived(path: "/a", name: "n", size: 9, duration: .seconds(1)),
                "file.derived path=/a name=n size=9 duration_ms=1000"
            ),
            (.jobRenamed(job: 1, path: "/b", from: "/a"), "job.renamed job=1 path=/b from=/a"),
            (
                .jobDuplicate(job: 2, path: "/a", route: "r", destinations: ["d", "e"], sameAs: 1),
                "job.duplicate job=2 path=/a route=r destinations=d,e same_as=1"
            ),
            (
                .jobStarted(ref, key: "k", attempt: 3, size: 9, isResumed: true),
                "job.started job=1 path=/a destination=d route=r key=k attempt=3 size=9 resumed=yes"
            ),
            (
                .transferProgress(ref, sent: 1, size: 9),
                "transfer.progress job=1 path=/a destination=d route=r sent=1 size=9"
            ),
            (
                .jobRetry(ref, error, attempt: 3, wait: .seconds(1)),
                "job.retry job=1 path=/a destination=d route=r code=\(error.code.rawValue) reason=no attempt=3 wait_ms=1000"
            ),
            (
                .jobFailed(ref, state: .failed, error),
                "job.failed job=1 path=/a destination=d route=r state=failed code=\(error.code.rawValue) reason=no"
            ),
            (
                .jobFinished(job: 1, path: "/a", state: .delivered, disposition: "kept", route: "r"),
                "job.finished job=1 path=/a route=r state=delivered disposition=kept"
            ),
            (
                .jobAnswered(job: 1, path: "/a", disposition: "kept", route: "r"),
                "job.answered job=1 path=/a route=r disposition=kept"
            ),
            (.jobRecovered(claims: 1, parked: 2, unparked: 3), "job.recovered claims=1 parked=2 unparked=3"),
            (.namesKept(destinations: ["d", "e"]), "names.kept destinations=d,e"),
            (
                .receiptElsewhere(root: "/a", folder: "/b", reason: "r"),
                "receipt.elsewhere path=/a folder=/b reason=r"
            ),
            (.queueWarning(waiting: 30, limit: 20), "queue.warning waiting=30 limit=20"),
            (
                .notificationSent(sink: "s", notice: "n", event: "failed", tries: 1),
                "notification.sent sink=s notice=n of=failed tries=1"
            ),
            (
                .notificationFailed(sink: "s", notice: "n", reason: "r", next: nil),
                "notification.failed sink=s notice=n reason=r next_try=never"
            ),
        ]
    }()

    @Test(arguments: lines.indices)
    func `each value stands under the name of its field`(_ index: Int) {
        let (event, words) = Self.lines[index]
        #expect(event.line.words == words)
    }

    @Test(arguments: [
        (#"lost job=9 path="/etc""#, #"reason="lost job=9 path=\"/etc\"""#), (#"x"job=9"#, #"reason="x\"job=9""#),
        ("x\"\u{301} job=9", "reason=\"x\\\"\u{301} job=9\""), (#"a\b"#, #"reason=a\b"#),
        (#"a b\"#, #"reason="a b\\""#), ("", #"reason="""#),
        ("a\u{3000}job=9", "reason=\"a\u{3000}job=9\""), ("a\njob=9", #"reason=a\x0Ajob=9"#),
        ("a\u{9B}2J\u{202E}", #"reason=a\xC2\x9B2J\xE2\x80\xAE"#),
    ])
    func `no value can pass for another field`(_ reason: String, _ shown: String) {
        let words = AgentEvent.watchLost(root: "/in/a", reason: reason).line.words
        #expect(words == "watch.lost path=/in/a \(shown)")
    }
}

/// The table of events against what is really written.
@Suite struct LogSchemaTests {
    @Test func `every event is in the table once, and the table has no others`() {
        let names = EventTable.all.map(\.name)
        #expect(Set(names).count == names.count && names.count > 80)
        let written = Set(EventLineTests.events.map(\.0.line.name))
        #expect(written.subtracting(names).isEmpty, "not in the table: \(written.subtracting(names))")
        #expect(Set(names).subtracting(written).subtracting(EventLineTests.elsewhere).isEmpty)
    }

    @Test func `every line has the fields that the table says, and no others`() throws {
        for line in EventLineTests.events.map(\.0.line) {
            let spec = try #require(EventTable.named[line.name])
            #expect(spec.levels.contains(line.level), "\(line.name) \(line.level)")
            for (name, value) in line.fields {
                if name == "was", value == spec.formerName.map({ .text($0) }) { continue }
                let field = try #require(spec.fields.first { $0.name == name }, "\(line.name) has \(name)")
                #expect(field.schema == value.schema, "\(line.name) \(name)")
            }
            for field in spec.fields where !field.isOptional {
                #expect(line.fields.contains { $0.0 == field.name }, "\(line.name) lacks \(field.name)")
            }
        }
    }

    /// Events that had another name before, and that name first.
    private static let renamed = EventTable.all.compactMap { event in event.formerName.map { [$0, event.name] } }

    private static func rules() throws -> [[String: Any]] {
        let schema = try #require(
            JSONSerialization.jsonObject(with: Data(EventTable.schema.utf8)) as? [String: Any])
        return try #require(schema["allOf"] as? [[String: Any]])
    }

    @Test func `the schema is JSON, with a rule for each event`() throws {
        let rules = try Self.rules()
        #expect(rules.count == EventTable.all.count)
        let first = try #require(rules.first?["then"] as? [String: Any])
        #expect(first["required"] as? [String] == ["version", "configuration"])
    }

    @Test func `an old name is that of one event, and of none any more`() {
        let former = EventTable.all.compactMap(\.formerName)
        #expect(Set(former).count == former.count && Set(former).isDisjoint(with: EventTable.all.map(\.name)))
    }

    @Test(arguments: renamed)
    func `who looks for an old name finds the event's lines, in every output`(names: [String]) throws {
        let line = try #require(EventLineTests.events.map(\.0.line).first { $0.name == names[1] })
        #expect(line.fields.filter { $0.0 == "was" }.map(\.1) == [.text(names[0])])
        #expect(line.words.hasPrefix("\(names[1]) ") || line.words == names[1])
        #expect(line.words.hasSuffix(" was=\(names[0])"))
        let json = String(decoding: line.text(.json, at: WallTime(milliseconds: 0)), as: UTF8.self)
        #expect(json.contains(#""event":"\#(names[1])""#) && json.hasSuffix(#""was":"\#(names[0])"}\#n"#))
        let entry = String(decoding: line.journalMessage.bytes, as: UTF8.self).split(separator: "\n")
        #expect(
            entry.filter { $0.hasPrefix("INLET_EVENT=") } == ["INLET_EVENT=\(names[1])", "INLET_EVENT=\(names[0])"])
    }

    @Test(arguments: renamed)
    func `the schema takes lines of a renamed event under both names, with the old one in them and without`(
        names: [String]
    ) throws {
        let rule = try #require(
            Self.rules().first { rule in
                let properties = (rule["if"] as? [String: Any])?["properties"] as? [String: [String: Any]]
                return properties?["event"]?["enum"] as? [String] == [names[1], names[0]]
            })
        let then = try #require(rule["then"] as? [String: Any])
        let was = (then["properties"] as? [String: Any])?["was"] as? [String: String]
        #expect(was == ["type": "string"])
        #expect((then["required"] as? [String])?.contains("was") == false)
    }

    @Test func `an event that kept its name says nothing of an old one`() {
        for line in EventLineTests.events.map(\.0.line) where line.spec.formerName == nil {
            #expect(!line.fields.contains { $0.0 == "was" }, "\(line.name)")
        }
    }

    @Test func `the manual's reference has every event, in order, with its levels, fields and sentence`() throws {
        let entries = try #require(EventTable.reference.array)
        #expect(entries.map { $0["name"]?.string } == EventTable.all.map(\.name))
        for (entry, event) in zip(entries, EventTable.all) {
            let fields = entry["fields"]?.array ?? []
            #expect(fields.map { $0["name"]?.string } == event.fields.map(\.name), "\(event.name)")
            #expect(fields.map { $0["optional"]?.boolean } == event.fields.map(\.isOptional), "\(event.name)")
            #expect(fields.allSatisfy { $0["schema"]?["type"] != nil }, "\(event.name)")
            let levels = (entry["levels"]?.array ?? []).map(\.string)
            #expect(levels == event.levels.map(\.rawValue), "\(event.name)")
            #expect(entry["sentence"]?.string == event.sentence, "\(event.name)")
            #expect(entry["was"]?.string == event.formerName, "\(event.name)")
        }
    }

    @Test func `each sentence is whole, and names only fields that its event has`() {
        for event in EventTable.all {
            #expect(!event.sentence.isEmpty)
            #expect(event.sentence.count { $0 == "[" } == event.sentence.count { $0 == "]" }, "\(event.name)")
            let names = event.sentence.matches(of: /\{([^}]*)\}/).map { String($0.1) }
            #expect(event.sentence.count { $0 == "{" } == names.count, "\(event.name)")
            #expect(Set(names).isSubset(of: event.fields.map(\.name)), "\(event.name)")
        }
    }
}
