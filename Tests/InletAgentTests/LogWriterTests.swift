import Dispatch
import Foundation
import InletCore
import InletLinux
import InletTestSupport
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
        private let events = Mutex<[String]>([])
        let silence = "nobody reads"
        var taken: [Int64] { jobs.withLock { $0 } }
        var names: [String] { events.withLock { $0 } }

        func open() { opening.signal() }

        /// Until the writer stands in front of it.
        func waitForWriter() { entering.wait() }

        func write(_ lines: [EventLine], _ style: LineStyle, at time: WallTime) -> LogWrite {
            entering.signal()
            opening.wait()
            defer { opening.signal() }
            let numbers = lines.compactMap { line in
                if case .number(let job)? = line.fields.first?.1 { job } else { nil }
            }
            jobs.withLock { $0 += numbers }
            events.withLock { $0 += lines.map(\.name) }
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

    @Test func `a warning that a full queue lost is written when it comes again`() throws {
        let gate = Gate()
        let writer = try LogWriter(gate, limit: 64 << 10) { _ in }
        let log = EventLog(LogSettings(level: .debug), through: writer)
        for job in 0..<2000 { log.emit(.jobUnchanged(job: Int64(job), path: "/in/a")) }
        let before = try #require(writer.status()).lost
        log.emit(.fileError(path: "/in/b", reason: "Permission denied"))
        #expect(writer.status()?.lost == before + 1)
        gate.open()
        #expect(writer.flush(within: .seconds(60)) && !gate.names.contains("file.error"))
        for _ in 1...2 { log.emit(.fileError(path: "/in/b", reason: "Permission denied")) }
        #expect(writer.flush(within: .seconds(60)) && gate.names.filter { $0 == "file.error" }.count == 1)
    }

    @Test func `an output that has had a line for ten seconds is said to stand still, though nothing is lost`() throws {
        let gate = Gate()
        let writer = try LogWriter(gate) { _ in }
        let (soon, later) = (ContinuousClock.now, ContinuousClock.now.advanced(by: .seconds(600)))
        writer.put([Self.line(1)], .json, at: .now)
        gate.waitForWriter()
        #expect(!writer.flush(within: .milliseconds(1)))
        #expect(writer.status(at: soon) == nil)
        #expect(writer.status(at: later) == LogStatus(reason: "nobody reads", lost: 0))
        writer.close()
        gate.open()
        #expect(writer.flush(within: .seconds(60)) && gate.taken == [1])
    }
}

/// Log files that are set aside, moved away, and full.
@Suite struct LogRotationTests {
    private let directory: TemporaryDirectory
    private let path: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path.appending("inlet.log")
    }

    @Test(
        arguments: [
            (0, 5000, false), (100, 924, false), (100, 925, true), (1024, 1, true),
        ] as [(Int64, Int, Bool)])
    func `a log is set aside before it would be too large, and never while it is empty`(
        _ size: Int64, _ count: Int, _ isDue: Bool
    ) {
        #expect(LogRotation(maxSize: 1024, keep: 1).isDue(size: size, adding: count) == isDue)
        #expect(!LogRotation(maxSize: nil, keep: 1).isDue(size: size, adding: count))
    }

    @Test(
        arguments: [
            (3, [], [.rename(from: 0, to: 1)]),
            (3, [1], [.rename(from: 1, to: 2), .rename(from: 0, to: 1)]),
            (3, [1, 2, 3], [.rename(from: 2, to: 3), .rename(from: 1, to: 2), .rename(from: 0, to: 1)]),
            // A process died between two renames: only what is before the gap moves.
            (3, [2, 3], [.rename(from: 0, to: 1)]), (3, [1, 3], [.rename(from: 1, to: 2), .rename(from: 0, to: 1)]),
            (1, [1], [.rename(from: 0, to: 1)]), (1, [1, 2, 3], [.rename(from: 0, to: 1), .remove(2), .remove(3)]),
            // A name of somebody else's that only looks like ours.
            (1, [1, 2024], [.rename(from: 0, to: 1)]),
        ] as [(Int, Set<Int>, [LogRotation.Step])])
    func `each rename frees the name of the next`(_ keep: Int, _ there: Set<Int>, _ steps: [LogRotation.Step]) {
        #expect(LogRotation(maxSize: 1, keep: keep).steps(there.contains) == steps)
    }

    @Test(arguments: 0...4)
    func `wherever a process dies, the next rotation loses only the oldest`(_ done: Int) {
        let rotation = LogRotation(maxSize: 1, keep: 4)
        var files = [0: "e", 1: "d", 2: "c", 3: "b", 4: "a"]
        func act(_ step: LogRotation.Step) {
            switch step {
            case .rename(let old, let new): (files[new], files[old]) = (files[old], nil)
            case .remove(let number): files[number] = nil
            }
        }
        for step in rotation.steps({ files[$0] != nil }).prefix(done) { act(step) }
        if files[0] == nil { files[0] = "f" }
        for step in rotation.steps({ files[$0] != nil }) { act(step) }
        let kept = files.sorted { $0.key < $1.key }.map(\.value).joined()
        // Without a death, and with one after the last rename, two rotations have gone over the file.
        #expect(["edcb", "fedc"].contains(kept), "\(kept)")
    }

    private func lines(_ path: FilePath) throws -> [String] {
        try text(path).split(separator: "\n").map(String.init)
    }

    @Test func `what was written is in the files, each line once and whole`() throws {
        let log = try EventLog(LogSettings(output: path.string, format: .json, maxSize: 64 << 10, keep: 3))
        for number in 0..<1500 { log.emit(.fileRejected(job: Int64(number), path: "/a", route: "r", reason: "x")) }
        log.flush(within: .seconds(60))
        let files = [3, 2, 1, 0].map { LogRotation.path(path, $0) }
        let sizes = try files.map { try AppendFile.status(at: $0)?.size ?? 0 }
        #expect(sizes.allSatisfy { $0 <= 64 << 10 } && sizes[2] > 0)
        let numbers = try files.filter { try AppendFile.status(at: $0) != nil }.flatMap { try lines($0) }.map {
            line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object?["job"] as? Int)
        }
        #expect(numbers == Array(0..<1500))
    }

    @Test func `a file that was moved away is followed by a new one`() throws {
        let clock = ContinuousClock()
        let start = clock.now
        var file = try LogFile(path, LogRotation(maxSize: nil, keep: 1), now: start)
        _ = file.write(Array("one\n".utf8), at: start)
        try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".moved")
        // Within the second nobody asks: the line is where the file is now.
        _ = file.write(Array("two\n".utf8), at: start)
        _ = file.write(Array("three\n".utf8), at: start.advanced(by: .seconds(1)))
        #expect(try lines(FilePath(path.string + ".moved")) == ["one", "two"])
        #expect(try lines(path) == ["three"])
    }

    @Test func `a reload asks for the name at once, and brings the configuration's level back`() throws {
        let settings = LogSettings(output: path.string, format: .text)
        let log = try EventLog(settings)
        #expect(log.setLevel(.error, by: "uid 7"))
        log.emit(.journalRecovered)
        log.flush(within: .seconds(60))
        try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".moved")
        log.take(try log.prepare(settings))
        #expect(log.level == .info)
        log.emit(.journalRecovered)
        log.flush(within: .seconds(60))
        #expect(
            try lines(FilePath(path.string + ".moved")).map { $0.hasSuffix("info log.level to=error by=\"uid 7\"") }
                == [true])
        #expect(try lines(path).count == 1)
    }

    @Test func `a line goes on after one that was cut off, on a line of its own`() throws {
        try Data("half a li".utf8).write(to: URL(fileURLWithPath: path.string))
        let log = try EventLog(LogSettings(output: path.string, format: .text))
        log.emit(.logLost(lines: 1))
        log.flush(within: .seconds(60))
        let lines = try lines(path)
        #expect(lines.count == 2 && lines[0] == "half a li" && lines[1].hasSuffix("log.lost lines=1"))
    }

    @Test func `a full disk stops nothing, is said once, and can be seen while it lasts`() throws {
        let log = try EventLog(LogSettings(output: "/dev/full", format: .text))
        let record = EventRecord(log)
        #expect(log.status == nil)
        for _ in 0..<3 { log.emit(.journalRecovered) }
        log.flush(within: .seconds(60))
        #expect(record.names.filter { $0 == "log.error" }.count == 1)
        // The line about it has no place either.
        #expect(log.status?.reason.contains("No space left") == true && log.status?.lost == 4)
        #expect(record.names.filter { $0 == "journal.recovered" }.count == 3)
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount a tmpfs"))
    func `a disk that becomes full leaves no half line`() throws {
        let disk = try TestMount("tmpfs", at: directory.makeDirectory("disk"), options: "size=16k")
        let path = disk.path.appending("inlet.log")
        let log = try EventLog(LogSettings(output: path.string, format: .json))
        for number in 0..<1000 { log.emit(.fileRejected(job: Int64(number), path: "/a", route: "r", reason: "x")) }
        log.flush(within: .seconds(60))
        let lines = try lines(path)
        #expect(lines.count > 50 && lines.allSatisfy { $0.hasSuffix("}") }, "\(lines.suffix(1))")
        #expect(log.status?.lost == 1001 - lines.count)
    }

    @Test func `of lines that were lost the number is told when there is room again`() throws {
        try makeSymlink(path, to: "/dev/full")
        let settings = LogSettings(output: path.string, format: .text)
        let log = try EventLog(settings)
        let record = EventRecord(log)
        log.emit([.journalRecovered, .journalRecovered])
        log.flush(within: .seconds(60))
        try FileManager.default.removeItem(atPath: path.string)
        log.take(try log.prepare(settings))
        for _ in 0..<2 { log.emit(.journalRecovered) }
        log.flush(within: .seconds(60))
        #expect(record.names.filter { $0.hasPrefix("log.") } == ["log.error", "log.lost"])
        #expect(log.status == nil)
        let told = try lines(path)
        #expect(told.count == 3 && told.contains { $0.hasSuffix("log.lost lines=3") }, "\(told)")
    }
}

/// Thousands of the same warning at once.
@Suite struct LogFloodTests {
    @Test func `a flood is cut off and counted, jobs' lines are not, and listeners hear all`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("inlet.log")
        let log = try EventLog(LogSettings(level: .info, output: path.string, format: .json))
        let heard = Mutex(0)
        let end = log.listen { _ in heard.withLock { $0 += 1 } }
        for number in 0..<2000 {
            log.emit(.fileError(path: FilePath("/srv/drop/\(number)"), reason: "Permission denied"))
            log.emit(.fileRejected(job: Int64(number), path: "/srv/drop/a", route: "r", reason: "too large"))
        }
        log.emit(.agentStopping)
        end()
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

/// The same warning again and again.
@Suite struct LogRepeatTests {
    private static let file = AgentEvent.fileError(path: "/in/a", reason: "Permission denied")

    @Test func `a warning is written once, its repeats are counted, and a job's changes are always written`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("inlet.log")
        let log = try EventLog(LogSettings(level: .info, output: path.string, format: .json))
        let all = Mutex(0)
        let news = Mutex(0)
        log.listen { _ in all.withLock { $0 += 1 } }
        log.listen(hearsRepeats: false) { _ in news.withLock { $0 += 1 } }
        let ref = AgentEvent.JobRef(job: 1, delivery: 2, path: "/in/a", route: "r", destination: "d")
        let error = DeliveryError(.retry(after: nil), .timedOut, "no answer")
        for attempt in 1...3 {
            for seconds in 1...4 {
                log.emit(.jobRetry(ref, error, attempt: attempt, wait: .seconds(seconds)))
                log.emit(Self.file)
                log.emit(.fileRejected(job: 1, path: "/in/a", route: "r", reason: "too large"))
            }
        }
        log.emit(.fileError(path: "/in/a", reason: "Input/output error"))
        log.emit(.agentStopping)
        log.flush(within: .seconds(60))
        let lines = try text(path).split(separator: "\n")
        func count(_ event: String) -> Int { lines.count { $0.contains("\"event\":\"\(event)\"") } }
        #expect(count("job.retry") == 3 && count("file.rejected") == 12 && count("file.error") == 2)
        let gaps = lines.filter { $0.contains("log.suppressed") }.map {
            $0.hasSuffix(#""of":"file.error","lines":11}"#)
        }
        #expect(gaps == [true, false])
        #expect(all.withLock { $0 } == 38 && news.withLock { $0 } == 18)
    }

    @Test func `with another level a warning is written again`() throws {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("inlet.log")
        let log = try EventLog(LogSettings(level: .error, output: path.string, format: .text))
        log.emit(Self.file)
        log.setLevel(.info, by: "uid 0")
        log.emit(Self.file)
        log.flush(within: .seconds(60))
        #expect(try text(path).split(separator: "\n").count { $0.contains("file.error") } == 1)
    }

    @Test func `after a reload with another level a warning is written again, and below the level none is counted`()
        throws
    {
        let folder = try TemporaryDirectory()
        let path = folder.path.appending("inlet.log")
        var settings = LogSettings(level: .error, output: path.string, format: .text)
        let log = try EventLog(settings)
        for _ in 1...3 { log.emit(Self.file) }
        log.emit(.agentStopping)
        log.flush(within: .seconds(60))
        #expect(try text(path).isEmpty)
        settings.level = .info
        log.take(try log.prepare(settings))
        for _ in 1...3 { log.emit(Self.file) }
        log.flush(within: .seconds(60))
        let lines = try text(path).split(separator: "\n")
        #expect(lines.count == 1 && lines[0].contains(" file.error ") && !lines[0].contains("repeats="))
    }

    @Test func `a line with left-out repeats says how many`() {
        var line = Self.file.line
        line.repeats = 59
        #expect(line.words == #"file.error path=/in/a reason="Permission denied" repeats=59 was=file.trouble"#)
        let shown = String(decoding: line.text(.terminal(hasColour: false), at: .now), as: UTF8.self)
        #expect(shown.hasSuffix("warning  /in/a: Permission denied (said 59 more times since)\n"))
    }
}

/// Lines for a person at a terminal.
@Suite struct TerminalLineTests {
    private let time = WallTime.now

    private func shown(_ event: AgentEvent, hasColour: Bool = false) -> String {
        String(decoding: event.line.text(.terminal(hasColour: hasColour), at: time), as: UTF8.self)
    }

    @Test func `columns line up, and colours change no column`() {
        let events: [AgentEvent] = [
            .jobUnchanged(job: 7, path: "/in/a"), .destinationUp(destination: "store"),
            .watchOverflow(root: "/in"), .journalFull(reason: "no room"),
        ]
        for event in events {
            let plain = shown(event)
            #expect(
                plain.prefixMatch(of: #/\d\d:\d\d:\d\d (debug|info|warning|error) +/#)?.output.0.count == 18, "\(plain)"
            )
            #expect(shown(event, hasColour: true).replacing(#/\u{1B}\[\d+m/#, with: "") == plain)
        }
        #expect(shown(events[0]).hasSuffix("  #7\n"))
    }

    @Test func `nothing of a name or a server's words reaches the terminal unescaped`() {
        for (event, name) in EventLineTests.events {
            let line = shown(event).dropLast()
            #expect(!line.unicodeScalars.contains { ($0.value < 0x20 && $0 != "\n") || $0.value == 0x7F }, "\(name)")
            #expect(!line.contains("\n") || ["config.refused", "config.reloaded"].contains(name), "\(name)")
        }
    }
}

/// Lines that go to systemd's journal.
@Suite struct JournalOutputTests {
    private static let line = AgentEvent.jobAdmitted(
        job: 7, path: "/in/a b.mp4", route: "all", size: 9, deliveries: ["d", "e"]
    ).line

    @Test func `each field of a line is a field of the entry`() throws {
        let fields = Set(String(decoding: Self.line.journalMessage.bytes, as: UTF8.self).split(separator: "\n"))
        #expect(
            fields == [
                #"MESSAGE=job.admitted job=7 path="/in/a b.mp4" route=all size=9 destinations=d,e"#, "PRIORITY=6",
                "SYSLOG_IDENTIFIER=inlet", "INLET_EVENT=job.admitted", "INLET_JOB=7", "INLET_PATH=/in/a b.mp4",
                "INLET_ROUTE=all", "INLET_SIZE=9", "INLET_DESTINATIONS=d,e",
            ])
    }

    @Test func `without a journal lines go elsewhere, which is said as long as it is so`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path.appending("journal")
        let output = JournalOutput(path)
        let first = output.write([Self.line], .text, at: .now)
        #expect(first.lost == 0 && first.trouble?.contains("standard error") == true)
        #expect(output.write([Self.line], .text, at: .now).trouble == first.trouble)
        var listener: DatagramSocket? = try DatagramSocket(at: path)
        let second = output.write([Self.line, Self.line], .text, at: .now)
        #expect(second.lost == 0 && second.trouble == nil)
        #expect(listener?.receive()?.contains("INLET_JOB=7\n") == true)
        #expect(listener?.receive()?.contains("INLET_JOB=7\n") == true)
        listener = nil
        #expect(output.write([Self.line], .text, at: .now).trouble != nil)
    }
}
