import Foundation
import InletCore
import InletJournal
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// A journal that is gone is said to be gone: neither the running agent nor a start takes it for a new one.
@Suite struct JournalWatchTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var state: FilePath { directory.path.appending("state") }

    private func open() throws(any Error) -> Journal { try StateDirectory(state).openJournal(now: .now) }

    private func remove(_ suffix: String) throws {
        try FileManager.default.removeItem(atPath: StateDirectory.journal(in: state).string + suffix)
    }

    @Test(arguments: [["", "-wal", "-shm"], ["-wal"]], [false, true])
    func `a journal that is removed or replaced while it is used is said and saved`(
        suffixes: [String], isReplaced: Bool
    ) async throws {
        let journal = try open()
        defer { journal.close() }
        let log = try EventLog(nil)
        let record = EventRecord(log)
        let shared = Shared.test(journal, log)
        let health = shared.health.journal
        let watch = JournalMonitor(shared: shared, interval: .milliseconds(1))
        try await whileRunning([watch]) {
            for suffix in suffixes {
                try remove(suffix)
                if isReplaced { try directory.write("other".utf8, to: FilePath("state/journal.sqlite" + suffix)) }
            }
            try await eventually("it is saved") { record.count("journal.backup") > 0 }
            let reason = try #require(health.reason)
            #expect(reason.contains(journal.path.string) && reason.contains("queue restore"), "\(reason)")
            // It is saved again while it stays lost.
            let copies = record.count("journal.backup")
            try await eventually("it is saved again") { record.count("journal.backup") > copies }
            // Known to no file that has a name, but for the last copy.
            try await journal.setPaused("r2", true)
        }
        #expect(record.count("journal.failing") == 1)
        let last = try #require(try names(in: state.appending("backups")).last)
        let again = directory.path.appending("again.sqlite")
        _ = try Journal.restore(state.appending("backups").appending(last), to: again, now: .now)
        let restored = try Journal(path: again, now: .now)
        defer { restored.close() }
        #expect(try await restored.paused() == ["r2"])
    }

    @Test func `a journal in its place is well, also after its log was taken in`() async throws {
        let journal = try open()
        try await journal.setPaused("r2", true)
        try journal.requirePlace()
        try FileManager.default.moveItem(atPath: journal.path.string, toPath: journal.path.string + ".away")
        #expect(throws: JournalError.self) { try journal.requirePlace() }
        try FileManager.default.moveItem(atPath: journal.path.string + ".away", toPath: journal.path.string)
        try journal.requirePlace()
        try FileHandle(forWritingTo: URL(fileURLWithPath: journal.path.string)).truncate(atOffset: 0)
        #expect(throws: JournalError.self) { try journal.requirePlace() }
    }

    @Test(arguments: ["journal.key", "roots.json"], [false, true])
    func `a start without a journal, or with an empty one, is refused where one was`(
        trace: String, isEmpty: Bool
    ) throws {
        try open().close()
        try remove("")
        if isEmpty { try directory.write("".utf8, to: "state/journal.sqlite") }
        try directory.write("[]".utf8, to: FilePath("state").appending(trace))
        if trace != "journal.key" {
            try FileManager.default.removeItem(atPath: state.appending("journal.key").string)
        }
        for _ in 0..<2 {
            #expect {
                try open().close()
            } throws: { error in
                let text = "\(error)"
                return text.contains(state.appending(trace).string) && text.contains("queue restore")
                    && text.contains("queue reset")
            }
        }
        let path = StateDirectory.journal(in: state)
        #expect(try names(in: state).contains("journal.sqlite") == isEmpty)
        _ = try Journal.reset(path, now: .now)
        try open().close()
        try remove("")
        #expect(throws: JournalError.self) { try open().close() }
    }

    @Test func `a first start that ended before its journal was there is repeated`() throws {
        let path = StateDirectory.journal(in: state)
        try FileManager.default.createDirectory(atPath: state.string, withIntermediateDirectories: true)
        try Journal.requireNotLost(path, traces: [state.appending("journal.key")])
        try directory.write(Data(count: 32), to: "state/journal.key")
        try directory.write("".utf8, to: "state/journal.sqlite")
        try open().close()
        #expect(try names(in: state) == ["journal.key", "journal.sqlite", "lock"])
    }
}

/// Agents with state directories of their own that watch one folder.
@Suite struct StandbyTests {
    @Test func `of two agents one takes the files, and the other one says that it waits`() async throws {
        let first = try Scene()
        var second = try Scene()
        second.watch[0].path = first.root
        try await first.run { a in
            try await second.run { b in
                try await eventually("it stands by") { b.events.count("watch.standby") == 1 }
                for name in ["x", "y", "z"] as [FilePath] {
                    try first.drop(name)
                    try await a.finished(name)
                }
                #expect(try await b.jobs().isEmpty)
                let said = try #require(b.agent.control.live?.roots.first?.state)
                guard case .standby(let holder) = said else { throw Unexpected(description: "\(said)") }
                #expect(holder.contains("state_dir \(first.directory.path.appending("state").display)"))
                #expect(try RootOwnership(first.watch[0], stateDirectory: "/elsewhere").stranger() == holder)
                let own = RootOwnership(first.watch[0], stateDirectory: first.directory.path.appending("state"))
                #expect(try own.stranger() == nil)
            }
        }
    }

    @Test func `one that stands by takes over once the other one has ended and does not come back`() async throws {
        let scene = try Scene()
        var lock = try ours(scene.root)
        #expect(lock != nil)
        try scene.drop("a")
        try await scene.run { stage in
            try await eventually("it stands by") { stage.events.count("watch.standby") == 1 }
            lock = nil
            try await stage.finished("a")
            #expect(stage.events.count("watch.standby") == 1)
        }
        // It was let go of at the end.
        #expect(try WatchLock.holder(in: scene.root) == nil)
    }

    private func ours(_ root: FilePath) throws -> WatchLock? {
        if case .ours(let lock) = try WatchLock.take(in: root, as: "the other") { lock } else { nil }
    }

    @Test func `where several are meant to watch a folder, nobody waits and nothing is locked`() async throws {
        var scene = try Scene()
        scene.watch[0].isShared = true
        let taken = try WatchLock.take(in: scene.root, as: "the other")
        try await scene.run { stage in
            try await stage.process("a")
            #expect(stage.events.count("watch.standby") == 0)
        }
        withExtendedLifetime(taken) {}
    }

    @Test func `a folder whose lock cannot be had is watched without, and that is said`() async throws {
        let scene = try Scene()
        try scene.directory.makeDirectory("drop/.inlet/lock")
        try await scene.run { stage in
            try await stage.process("a")
            let said = stage.events.all.compactMap {
                if case .fileError(scene.root, let why) = $0 { why } else { nil }
            }
            #expect(said.count == 1 && said[0].contains(".inlet/lock"), "\(said)")
        }
    }

    @Test func `where somebody removed only its lock, a folder is locked anew and goes on`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            try await stage.process("a")
            try FileManager.default.removeItem(atPath: scene.root.appending(".inlet").string)
            try await eventually("it has a lock again") {
                try stage.events.count("watch.added") == 2 && WatchLock.holder(in: scene.root) != nil
            }
            try await stage.process("b")
        }
    }

    @Test func `an answer that does not come in time is done without, and what comes of it later is let go`()
        async throws
    {
        let root = try TemporaryDirectory()
        let (begins, ends) = (try Waker(), try Waker())
        let late = try LoopThread.result(name: "lock", within: .milliseconds(1)) { () throws(SystemError) in
            _ = try begins.wait(until: nil)
            defer { ends.wake() }
            return try WatchLock.take(in: root.path, as: "late")
        }
        #expect(late == nil)
        begins.wake()
        #expect(try ends.wait(until: .now.advanced(by: .seconds(30))))
        try await eventually("it is let go") { try WatchLock.holder(in: root.path) == nil }
    }
}
