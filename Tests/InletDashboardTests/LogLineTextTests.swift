import Foundation
import InletAgent
import InletCore
import Testing

@testable import InletDashboard

/// Log lines as people read them.
@Suite struct LogLineTextTests {
    private func shown(_ lines: String..., zone: String = "UTC") -> [String] {
        var text = LogLineText(zone: zone)
        return lines.flatMap { text.lines(Array($0.utf8)) }.map { $0.text(hasColour: false) }
    }

    private static let head = #""ts":"2026-11-22T20:00:07.123Z","#

    /// A line's level and fields, and what is said.
    static let cases: [(String, String)] = [
        (
            #""level":"info","event":"job.delivered","job":17,"path":"/srv/a.mov","destination":"store","route":"r","key":"k/a.mov","size":12582912,"verified":"md5","url":"","duration_ms":3200"#,
            "✓ /srv/a.mov → store as k/a.mov, 12 MiB in 3s200ms, verified: md5  #17"
        ),
        (
            #""level":"warning","event":"job.retry","job":17,"path":"/srv/a.mov","destination":"store","route":"r","code":"timed_out","reason":"no answer","attempt":2,"wait_ms":61500"#,
            "! /srv/a.mov → store: no answer (timed_out); tried again in 1m1s  #17"
        ),
        (
            #""level":"error","event":"job.failed","job":3,"path":"/a","destination":"store","state":"failed","reason":"refused""#,
            "✗ /a → store failed: refused  #3"
        ),
        (
            #""level":"info","event":"transfer.progress","job":3,"path":"/a","destination":"store","sent":1024,"size":2048"#,
            "  /a → store: 1 KiB of 2 KiB  #3"
        ),
        (
            #""level":"info","event":"job.admitted","job":3,"path":"/a","route":"all","size":5,"destinations":["x","y"]"#,
            "  /a (5 bytes) goes to x, y, route all  #3"
        ),
        (
            #""level":"warning","event":"destination.down","destination":"store","reason":"refused","next_probe":"2026-11-22T20:01:00Z""#,
            "! store is down: refused; asked again at 20:01:00"
        ),
        (#""level":"debug","event":"file.settling","path":"/a","busy":"yes""#, "· /a is not quiet yet"),
        (
            #""level":"info","event":"some.day","b":true,"a":"x\u001b[2J","n":1.5,"seq":9"#,
            "  some.day a=x\\x1B[2J b=yes n=1.5"
        ),
        // A field that its pattern needs is not there.
        (#""level":"info","event":"destination.up""#, "✓ destination.up"),
    ]

    @Test(arguments: cases.indices)
    func `an event is said in words`(_ index: Int) {
        let (fields, words) = Self.cases[index]
        let found = shown("{" + Self.head + fields + "}")
        #expect(found == ["— 2026-11-22 —", "20:00:07 " + words])
    }

    @Test(arguments: EventTable.all.compactMap(\.formerName))
    func `a line of a log file of the version before is said in the same words`(_ old: String) throws {
        let new = try #require(EventTable.named[old]).name
        let fields = """
            "path":"/a","reason":"no","destination":"store","volume":"EOS","files":3,"unproved":1,"missing":0,\
            "unmarked":0,"unread":0,"others":0,"waiting":3,"limit":20,"job":7
            """
        func words(_ event: String, _ more: String = "") -> [String] {
            shown("{" + Self.head + #""level":"info","event":"\#(event)",\#(fields)\#(more)}"#)
        }
        #expect(words(old) == words(new, #","was":"\#(old)""#))
        #expect(!words(old).joined().contains(old) && !words(old).joined().contains(new))
    }

    @Test func `times are local, and a day is said once`() {
        let first = #"{"ts":"2026-11-22T22:59:59.000Z","level":"info","event":"agent.stopping"}"#
        let second = #"{"ts":"2026-11-22T23:00:00.000Z","level":"info","event":"agent.stopping"}"#
        #expect(
            shown(first, first, second, zone: "Europe/Berlin") == [
                "— 2026-11-22 —", "23:59:59   stopping", "23:59:59   stopping", "— 2026-11-23 —", "00:00:00   stopping",
            ])
    }

    @Test(arguments: [
        ("plain words", "plain words"), ("warning: \u{1B}[31mred", "warning: \\x1B[31mred"), ("", ""),
        ("[1,2]", "[1,2]"),
        (#"{"a":1}"#, #"{"a":1}"#), (#"{"ts":"x","level":"info"}"#, #"{"ts":"x","level":"info"}"#),
    ])
    func `what is no line of the log is shown as it is, escaped`(_ line: String, _ text: String) {
        #expect(shown(line) == [text])
    }

    @Test func `lines are chosen by level and by job`() throws {
        func line(_ level: String, _ job: Int) -> LogFields? {
            LogFields(Array(#"{"ts":"x","level":"\#(level)","event":"e","job":\#(job)}"#.utf8))
        }
        let grave = LogLineText.Filter(level: .warning)
        #expect(!grave.allows(line("info", 1)) && grave.allows(line("warning", 1)) && grave.allows(line("error", 1)))
        #expect(grave.allows(line("of tomorrow", 1)) && grave.allows(nil))
        let one = LogLineText.Filter(job: 7)
        #expect(one.allows(line("debug", 7)) && !one.allows(line("error", 8)) && !one.allows(nil))
    }
}

/// Server-sent events, in whatever pieces they come.
@Suite struct EventStreamParserTests {
    private func events(_ text: String, piece: Int) -> [StreamEvent] {
        var parser = EventStreamParser()
        var rest = Array(text.utf8)[...]
        var found: [StreamEvent] = []
        while !rest.isEmpty {
            found += parser.take(rest.prefix(piece))
            rest = rest.dropFirst(piece)
        }
        return found
    }

    @Test(arguments: [1, 2, 3, 7, 1000])
    func `events are the same however their bytes come`(_ piece: Int) {
        let text =
            ": a comment\n\nevent: log\nid: 17\ndata: {\"a\":1}\n\nevent:log\rdata:one\rdata: two\r\r"
            + "data: three\r\n\r\nevent: none\n\ndata: not ended\n"
        #expect(
            events(text, piece: piece) == [
                StreamEvent(name: "log", data: Array("{\"a\":1}".utf8), id: "17"),
                StreamEvent(name: "log", data: Array("one\ntwo".utf8), id: "17"),
                StreamEvent(name: "message", data: Array("three".utf8), id: "17"),
            ])
    }

    @Test func `an event without end takes no more room than is allowed, and the next is read`() {
        let text = "data: " + String(repeating: "x", count: 5 << 20) + "\n\ndata: next\n\n"
        #expect(events(text, piece: 1 << 16).map { String(decoding: $0.data, as: UTF8.self) } == ["next"])
    }
}
