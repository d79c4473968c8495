import Foundation
import InletAgent
import InletCore
import Synchronization
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
            "! /srv/a.mov → store: no answer (timed_out); retrying in 1m1s  #17"
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
            "  /a (5 bytes) queued for x, y, route all  #3"
        ),
        (
            #""level":"warning","event":"destination.down","destination":"store","reason":"refused","next_probe":"2026-11-22T20:01:00Z""#,
            "! store is down: refused; next check at 20:01:00"
        ),
        (#""level":"debug","event":"file.settling","path":"/a","busy":"yes""#, "· /a is still changing"),
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
        func isGrave(_ line: LogFields?) -> Bool { LogLineText.isWanted(line, level: .warning) }
        #expect(!isGrave(line("info", 1)) && isGrave(line("warning", 1)) && isGrave(line("error", 1)))
        #expect(isGrave(line("of tomorrow", 1)) && isGrave(nil))
        func isOfJob(_ line: LogFields?) -> Bool { LogLineText.isWanted(line, job: 7) }
        #expect(isOfJob(line("debug", 7)) && !isOfJob(line("error", 8)) && !isOfJob(nil))
    }
}

/// The log in an agent's stream of events, in whatever pieces it comes.
@Suite struct LogStreamTests {
    /// The numbers of the lines that are told, until one says that it is enough.
    private func told(_ text: String, piece: Int, enough: Int64 = .max) throws -> (jobs: [Int64?], hasEnough: Bool) {
        let found = Mutex<[Int64?]>([])
        let stream = LogStream { line in
            found.withLock { $0.append(line.job) }
            return line.job != enough
        }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty, !stream.hasEnough {
            do {
                try rest.prefix(piece).withUnsafeBytes { try stream.take($0) }
            } catch {
                #expect(stream.hasEnough)
            }
            rest = rest.dropFirst(piece)
        }
        return (found.withLock { $0 }, stream.hasEnough)
    }

    private static func event(_ name: String, job: Int) -> String {
        "event: \(name)\nid: 17\ndata: {\"ts\":\"x\",\"level\":\"info\",\"event\":\"e\",\"job\":\(job)}\n\n"
    }

    @Test(arguments: [1, 2, 3, 7, 1000])
    func `lines are the same however their bytes come`(_ piece: Int) throws {
        let text =
            Self.event("log", job: 1) + Self.event("status", job: 2) + Self.event("log", job: 3)
            + "event: log\ndata: no line of a log\n\n" + String(Self.event("log", job: 4).dropLast(9))
        let all = try told(text, piece: piece)
        #expect(all.jobs == [1, 3] && !all.hasEnough)
        let some = try told(text, piece: piece, enough: 1)
        #expect(some.jobs == [1] && some.hasEnough)
    }

    @Test func `a line without end takes no more room than is allowed, and the next is read`() throws {
        let text = "event: log\ndata: " + String(repeating: "x", count: 5 << 20) + "\n\n" + Self.event("log", job: 1)
        #expect(try told(text, piece: 1 << 16).jobs == [1])
    }
}
