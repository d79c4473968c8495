import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// Folders into which a file is to come every so often (`expect`).
@Suite struct QuietFolderTests {
    private static func scene(_ expect: Duration?, in directory: TemporaryDirectory? = nil) throws -> Scene {
        var scene = try Scene(in: directory)
        scene.watch[0].expect = expect
        return scene
    }

    @Test func `a folder from which nothing comes is quiet, and files that come again end that, each said once`()
        async throws
    {
        let scene = try Self.scene(.milliseconds(500))
        try await scene.run { stage in
            try await eventually("it is quiet") { stage.events.count("root.quiet") == 1 }
            #expect(stage.rootStatus?.quietSince != nil && stage.rootStatus?.expect == .milliseconds(500))
            try await stage.process("a")
            try await eventually("files come again") { stage.events.count("root.recovered") == 1 }
            #expect(stage.events.count("root.quiet") <= 2)
            try await eventually("it is quiet again") { stage.events.count("root.quiet") == 2 }
            // Counted from the file, not from the first quiet time.
            #expect(stage.rootStatus?.quietSince == stage.rootStatus?.lastFile)
            #expect(stage.events.count("root.recovered") == 1)
        }
    }

    @Test func `a folder that expects nothing is never quiet, and tells when its last file came`() async throws {
        let scene = try Self.scene(nil)
        try await scene.run { stage in
            let before = WallTime.now
            let job = try await stage.process("a")
            let status = try #require(stage.rootStatus)
            #expect(try #require(status.lastFile) >= before && status.quietSince == nil)
            #expect(stage.agent.control.live?.newest?.job == job.file.id)
            #expect(stage.agent.control.live?.newest?.path == job.file.fullPath)
            #expect(stage.events.count("root.quiet") == 0)
        }
    }

    @Test func `a restart knows the last file and the quiet folder, says neither again, and ends it with a file`()
        async throws
    {
        let scene = try Self.scene(.milliseconds(500))
        var last: WallTime?
        try await scene.run { stage in
            try await stage.process("a")
            last = stage.rootStatus?.lastFile
            try await eventually("it is quiet, and the journal knows") {
                try await stage.journal.arrivals(in: [stage.root]).folders[stage.root]?.quietSince == last
            }
        }
        let known = try #require(last)
        try await Self.scene(.milliseconds(500), in: scene.directory).run { stage in
            try await eventually("it is known as quiet") { stage.rootStatus?.quietSince == known }
            // The journal's time is that of the decision to admit, a moment before.
            let came = try #require(stage.rootStatus?.lastFile)
            #expect(came <= known && known - came < .seconds(60))
            #expect(stage.agent.control.live?.newest?.path == stage.root.appending("a"))
            try await stage.process("b")
            try await eventually("files come again") { stage.events.count("root.recovered") == 1 }
            try await eventually("it is quiet again") { stage.events.count("root.quiet") == 1 }
            let names = stage.events.names.filter { $0.hasPrefix("root.") }
            #expect(names == ["root.recovered", "root.quiet"], "what was said is not said again")
        }
    }

    @Test func `a folder that is missing is quiet too`() async throws {
        var scene = try Self.scene(.milliseconds(500))
        scene.watch[0].path = scene.directory.path.appending("nowhere")
        try await scene.run { stage in
            try await eventually("it is quiet") { stage.events.count("root.quiet") == 1 }
            #expect(stage.rootStatus?.state == .missing)
        }
    }

    @Test func `a reload starts to expect files, and stops`() async throws {
        let site = try ReloadSite(ReloadSite.text())
        try await site.scene().run { stage in
            #expect(stage.rootStatus?.expect == nil)
            try await site.reload(ReloadSite.text(watch: ", expect: 1s"), in: stage)
            try await eventually("it is quiet") { stage.events.count("root.quiet") == 1 }
            try await site.reload(ReloadSite.text(), in: stage)
            try await eventually("it is quiet no longer") { stage.rootStatus?.quietSince == nil }
            try await eventually("the journal knows") {
                try await stage.journal.arrivals(in: [stage.root]).folders[stage.root]?.quietSince == nil
            }
            #expect(stage.events.count("root.recovered") == 0, "no file came")
        }
    }

    @Test func `a receiver hears that a folder is quiet, and that files come again`() async throws {
        let directory = try TemporaryDirectory()
        let book = directory.path.appending("book")
        let program = #"["/bin/sh", "-c", "cat >> \#(book.string)"]"#
        let text = ReloadSite.text(
            top: "notify: [{ name: ops, exec: \(program), on: [root_quiet, root_recovered] }]", watch: ", expect: 1s")
        func told(_ event: String) -> String? {
            // There is no such file before the first.
            let lines = (try? String(contentsOfFile: book.string, encoding: .utf8))?.split(separator: "\n") ?? []
            return lines.first { $0.contains("\"event\":\"\(event)\"") }.map(String.init)
        }
        try await ReloadSite(text).run { _, stage in
            try await eventually("it hears that") { told("root_quiet") != nil }
            let quiet = try #require(told("root_quiet"))
            #expect(quiet.contains(#""state":"quiet""#) && quiet.contains(#""expect":"1s""#), "\(quiet)")
            #expect(told("root_recovered") == nil)
            try await stage.process("a")
            try await eventually("it hears of the end") { told("root_recovered") != nil }
            #expect(try #require(told("root_recovered")).contains(#""state":"active""#))
        }
    }

    @Test func `a quiet time is posted once, also by another process, and a new one again`() async throws {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        let settings = NotifySettings(
            name: "ops", receiver: .exec(["/bin/true"]), events: [.rootQuiet, .rootRecovered])
        let receiver = NotificationReceiver(settings, pool: BlockingPool(name: "hook", threads: 1))
        func waiting(after events: AgentEvent...) async throws -> Int {
            let sender = try await NotificationSender([receiver], journal: journal, log: log, listens: false)
            for event in events { sender.hear(event) }
            #expect(await sender.flush())
            return try await journal.outboxBacklog().waiting
        }
        let (first, second) = (WallTime(milliseconds: 1000), WallTime(milliseconds: 2000))
        func quiet(_ since: WallTime) -> AgentEvent { .rootQuiet(root: "/in", since: since, expect: .seconds(60)) }
        let recovered = AgentEvent.rootRecovered(root: "/in", since: first)
        #expect(try await waiting(after: recovered) == 0, "no message said that it is quiet")
        #expect(try await waiting(after: quiet(first)) == 1)
        #expect(try await waiting(after: quiet(first)) == 1)
        #expect(try await waiting(after: recovered, recovered) == 2)
        #expect(try await waiting(after: quiet(second)) == 3)
    }

    @Test func `a notice that is no longer true is taken back, and a new receiver hears of a quiet folder`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        let log = try EventLog(nil)
        func sender(_ names: String...) async throws -> NotificationSender {
            let receivers = names.map { name in
                NotificationReceiver(
                    NotifySettings(name: name, receiver: .exec(["/bin/true"]), events: [.rootQuiet]),
                    pool: BlockingPool(name: "hook", threads: 1))
            }
            return try await NotificationSender(receivers, journal: journal, log: log, listens: false)
        }
        func waiting(_ sender: NotificationSender) async throws -> Int {
            #expect(await sender.flush())
            return try await journal.outboxBacklog().waiting
        }
        let quiet = AgentEvent.rootQuiet(root: "/in", since: WallTime(milliseconds: 1000), expect: .seconds(60))
        let first = try await sender("ops")
        first.hear(quiet)
        #expect(try await waiting(first) == 1)
        first.withdrawQuiet("/in")
        #expect(try await waiting(first) == 0)
        first.hear(quiet)
        first.remind(quiet)
        #expect(try await waiting(first) == 1, "it may be said again, and once")
        let second = try await sender("ops", "new")
        second.remind(quiet)
        second.remind(quiet)
        #expect(try await waiting(second) == 3, "to the new one, and as a fault that lasts to the former one")
    }

    @Test func `a receiver that a reload adds hears of a folder that is quiet already`() async throws {
        let directory = try TemporaryDirectory()
        let book = directory.path.appending("book")
        let program = #"["/bin/sh", "-c", "cat >> \#(book.string)"]"#
        let site = try ReloadSite(ReloadSite.text(watch: ", expect: 1s"))
        try await site.scene().run { stage in
            try await eventually("it is quiet") { stage.events.count("root.quiet") == 1 }
            let top = "notify: [{ name: ops, exec: \(program), on: [root_quiet] }]"
            try await site.reload(ReloadSite.text(top: top, watch: ", expect: 1s"), in: stage)
            try await eventually("it hears that") {
                // There is no such file before the first.
                (try? String(contentsOfFile: book.string, encoding: .utf8))?.contains("root_quiet") ?? false
            }
            #expect(stage.events.count("root.quiet") == 1)
        }
    }

    @Test func `a folder that comes or goes wakes those who wait for that, and a look at it does not`() async throws {
        let signal = WakeSignal()
        let mailbox = try RootMailbox("/in", changed: signal)
        let wakes = Count()
        try await withThrowingTaskGroup { group in
            group.addTask {
                await signal.loop {
                    wakes.add()
                    return nil
                }
            }
            try await eventually("it waits") { wakes.value == 1 }
            for (index, state) in [RootStatus.State.starting, .watching, .missing].enumerated() {
                for _ in 0..<3 { mailbox.publish(RootStatus(root: "/in", state: state)) }
                try await eventually("it wakes") { wakes.value == index + 2 }
            }
            group.cancelAll()
        }
        #expect(wakes.value == 4)
    }
}

/// How files of the last 30 days ended.
@Suite struct RecentEndsTests {
    private static let now = WallTime(milliseconds: 1_800_000_000_000)

    private static func ago(days: Int) -> WallTime { now + .seconds(-86_400 * days) }

    @Test func `files count as well or badly ended, and cancelled ones not at all`() {
        var ends = RecentEnds()
        for (job, state) in FileState.allCases.enumerated() { ends.add(Int64(job), state, at: Self.now) }
        #expect(ends.sums(at: Self.now) == (ok: 2, failed: 4))
    }

    @Test func `after 30 days they no longer count`() {
        var ends = RecentEnds()
        for day in [0, 1, 29, 30, 31] {
            ends.add(Int64(day), .delivered, at: Self.ago(days: day))
            ends.add(Int64(100 + day), .failed, at: Self.ago(days: day))
        }
        #expect(ends.sums(at: Self.now) == (ok: 3, failed: 3))
        #expect(ends.sums(at: Self.now + .seconds(86_400)) == (ok: 2, failed: 2))
        #expect(
            RecentEnds.start(at: Self.now) > Self.ago(days: 30) && RecentEnds.start(at: Self.now) <= Self.ago(days: 29))
    }

    @Test func `a file that failed and is sent again counts by its newest end`() {
        var ends = RecentEnds()
        ends.add(7, .failed, at: Self.ago(days: 3))
        ends.add(7, .delivered, at: Self.now)
        ends.add(8, .expired, at: Self.now)
        ends.add(8, .cancelled, at: Self.now)
        #expect(ends.sums(at: Self.now) == (ok: 1, failed: 0))
    }

    @Test func `a year of days takes no more than 30 of them, and failures are bounded`() {
        var ends = RecentEnds()
        for day in (0..<365).reversed() { ends.add(Int64(day), .delivered, at: Self.ago(days: day)) }
        #expect(ends.sums(at: Self.now) == (ok: 30, failed: 0))
        for job in 0..<(RecentEnds.mostRemembered + 5) { ends.add(Int64(1000 + job), .failed, at: Self.now) }
        #expect(ends.sums(at: Self.now).failed == RecentEnds.mostRemembered + 5)
        #expect(ends.remembered == RecentEnds.mostRemembered)
    }

    @Test func `an agent counts what its journal has, once, and then what finishes`() async throws {
        var scene = try Scene()
        scene.here.script("bad", .fail(.hopeless))
        try await scene.run { stage in
            try await stage.process("a")
            try await stage.process("bad", as: .failed)
            try await eventually("both are counted") { stage.agent.control.live.map { $0.recent == (1, 1) } ?? false }
        }
        scene = try Scene(in: scene.directory)
        try await scene.run { stage in
            try await eventually("they are known") { stage.agent.control.live.map { $0.recent == (1, 1) } ?? false }
            try await stage.process("b")
            let bad = try #require(try await stage.jobs().first { $0.file.path == "bad" })
            try await stage.retry(bad)
            try await eventually("the newest ends count") {
                stage.agent.control.live.map { $0.recent == (3, 0) } ?? false
            }
        }
    }
}
