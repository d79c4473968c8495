import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// What the expiry clocks wake up for.
@Suite struct ExpiryClockTests {
    private let directory: TemporaryDirectory
    private let journal: Journal
    private let board: DestinationRegistry
    private let events: EventRecord
    private let clocks: ExpiryClocks

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        let log = try EventLog(nil)
        events = EventRecord(log)
        board = DestinationRegistry(
            [.scripted("here", ScriptedPipeline())], paused: [], uptimes: [:], workers: 1, log: log)
        let shared = Shared(.test { $0.queueWarning = 1 }, journal, board, log)
        clocks = ExpiryClocks(shared: shared)
    }

    private func admit(_ name: String, expire: Duration?, window: DeliveryWindow? = nil) async throws {
        var plan = Plan(
            route: "all", category: "other", key: name, mediaType: "text/plain", destinations: ["here"],
            retry: RetryPolicy(expire: expire))
        plan.window = window
        let identity = FileIdentity(size: 10, modified: 1, changed: 1, inode: 1, device: 1)
        let arrival = Arrival(root: "/in", path: FilePath(name), identity: identity)
        _ = try await journal.admit(
            FileAdmission(arrival, plan: plan, lanes: ["here": .big], uptimes: ["here": 0]), at: .now)
    }

    /// One that is closed now, for an hour at least.
    private func closed() -> DeliveryWindow {
        let minute = Int(WallTime.now.milliseconds / 60_000 % 1440)
        return DeliveryWindow(
            DaySpan(from: (minute + 60) % 1440, to: (minute + 120) % 1440), above: 1, zone: "UTC")
    }

    @Test func `what waits for its window, or cannot expire, keeps no clock running, but is counted`() async throws {
        defer { journal.close() }
        try await admit("windowed", expire: .seconds(60), window: closed())
        try await admit("forever", expire: nil)
        let waiting = try await clocks.waiting()
        #expect(waiting.total == 2 && waiting.clocks.isEmpty)
        #expect(await clocks.pass(waiting, false))
        #expect(events.names == ["queue.warning"])
        try await admit("plain", expire: .seconds(60))
        #expect(try await clocks.waiting().clocks == ["here"])
        // Nor does the clock of a destination that is paused, or whose limit is 0.
        #expect(board.setPaused("here", true))
        #expect(try await clocks.waiting().clocks.isEmpty)
        #expect(board.setPaused("here", false))
        board.setShut(["here"])
        #expect(try await clocks.waiting().clocks.isEmpty)
        board.setShut([])
        #expect(try await clocks.waiting().clocks == ["here"])
    }
}
