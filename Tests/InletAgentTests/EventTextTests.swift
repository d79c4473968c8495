import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

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
            (.jobRecovered(claims: 1, parked: 2, unparked: 3), "job.recovered claims=1 parked=2 unparked=3"),
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
