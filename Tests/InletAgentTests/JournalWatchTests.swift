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

    private func names(_ folder: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.string)
    }

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
        let last = try #require(try names(state.appending("backups")).sorted().last)
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
        #expect(try names(state).contains("journal.sqlite") == isEmpty)
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
        #expect(try names(state).sorted() == ["journal.key", "journal.sqlite", "lock"])
    }
}
