import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Sets the rates: at the start, at the edges of the timetable, and when a person says so.
@Suite struct BandwidthControlTests {
    /// What was set, in its order: `*` for all together.
    private final class Taps: Sendable {
        private let values = Mutex<[String]>([])
        var all: [String] { values.withLock(\.self) }
        var valve: BandwidthValve {
            { rate, name in
                self.values.withLock { $0.append("\(name ?? "*") \(rate.map { "\($0)" } ?? "off")") }
            }
        }
    }

    /// A quarter of an hour after the start of the virtual time the entry begins, and it ends after half an hour.
    private static func limits() -> BandwidthLimits {
        let minute = Int(VirtualTime.start.milliseconds / 60_000 % 1440)
        let entry = Timetable.Entry(
            DaySpan(from: (minute + 15) % 1440, to: (minute + 30) % 1440), rate: 5000)
        return BandwidthLimits(all: Timetable(20_000, [entry], zone: "UTC"), destinations: ["a": Timetable(7000)])
    }

    private let directory: TemporaryDirectory
    /// Nothing is asked of it.
    private let journal: Journal

    init() throws {
        directory = try TemporaryDirectory()
        journal = try Journal(path: directory.path.appending("journal.sqlite"), now: .now)
        journal.close()
    }

    private func control(
        of limits: BandwidthLimits, _ taps: Taps, _ time: VirtualTime, _ log: EventLog
    ) -> BandwidthControl {
        let destinations = ["a", "b"].map { Destination.scripted($0, ScriptedPipeline()) }
        let shared = Shared.test(journal, log, destinations, clock: time.clock) { $0.bandwidth = limits }
        return BandwidthControl(shared, taps.valve)
    }

    private static func lines(_ events: EventRecord) -> [String] {
        events.all.compactMap { event in
            guard case .limitChanged(let name, let rate, let cause, _) = event else { return nil }
            return "\(name ?? "*") \(rate.map { "\($0)" } ?? "off") \(cause)"
        }
    }

    @Test func `limits hold before anything is sent, and change at the edges of the timetable`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let events = EventRecord(log)
        let control = self.control(of: Self.limits(), taps, time, log)
        #expect(taps.all == ["* 20000", "a 7000"])
        try await whileRunning([control]) {
            time.advance(to: VirtualTime.start + .seconds(16 * 60))
            control.lookNow()
            try await eventually("the entry holds") { taps.all.count == 3 }
            // The machine slept over the other edge.
            time.advance(to: VirtualTime.start + .seconds(3 * 3600))
            control.lookNow()
            try await eventually("it holds no more") { taps.all.count == 4 }
        }
        #expect(taps.all.suffix(2) == ["* 5000", "* 20000"])
        #expect(Self.lines(events) == ["* 20000 start", "a 7000 start", "* 5000 schedule", "* 20000 schedule"])
    }

    @Test func `it wakes up for an edge by itself`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let control = self.control(of: Self.limits(), taps, time, log)
        // The edge is a moment away; the clock has passed it when it wakes up.
        time.advance(to: VirtualTime.start + .seconds(15 * 60) + .milliseconds(-20 - Self.intoMinute))
        try await whileRunning([control]) {
            time.advance(to: VirtualTime.start + .seconds(16 * 60))
            try await eventually("the entry holds") { taps.all.last == "* 5000" }
        }
    }

    /// How far the virtual time begins into its minute.
    private static let intoMinute = VirtualTime.start.milliseconds % 60_000

    @Test func `a person's word holds at once, and over the timetable, until auto`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let events = EventRecord(log)
        let control = self.control(of: Self.limits(), taps, time, log)
        #expect(control.take(.rate(0), for: nil)?.rate == 0)
        #expect(control.take(.rate(1234), for: "b")?.cause == .command)
        #expect(control.take(.rate(1), for: "unknown") == nil)
        time.advance(to: VirtualTime.start + .seconds(16 * 60))
        #expect(control.take(.rate(nil), for: "a")?.rate == .some(nil))
        #expect(control.statuses().map(\.rate) == [0, nil, 1234])
        #expect(control.take(.auto, for: nil)?.cause == .schedule)
        #expect(taps.all == ["* 20000", "a 7000", "* 0", "b 1234", "a off", "* 5000"])
        #expect(Self.lines(events).suffix(4) == ["* 0 command", "b 1234 command", "a off command", "* 5000 command"])
    }

    @Test func `with a limit of 0 nothing begins and no time runs out, but in folders`() throws {
        let time = VirtualTime()
        let log = try EventLog(nil)
        var folder = Destination.scripted("b", ScriptedPipeline())
        folder.folder = "/library"
        let board = DestinationRegistry(
            [.scripted("a", ScriptedPipeline()), folder], paused: [], uptimes: [:], workers: 1, log: log,
            clock: time.clock)
        func open() -> [String] { board.rooms().map(\.destination).sorted() }
        let shared = Shared(.test(), journal, board, log)
        let control = BandwidthControl(shared)
        #expect(open() == ["a", "b"])
        #expect(control.take(.rate(0), for: nil) != nil)
        #expect(open() == ["b"])
        time.advance(to: VirtualTime.start + .seconds(3600))
        #expect(board.uptimes() == ["a": 0, "b": 3_600_000])
        #expect(control.take(.rate(1), for: nil) != nil && control.take(.rate(0), for: "a") != nil)
        #expect(open() == ["b"])
        #expect(control.take(.auto, for: "a") != nil)
        #expect(open() == ["a", "b"])
    }

    @Test func `without limits nothing is set and nothing said`() async throws {
        let (taps, time, log) = (Taps(), VirtualTime(), try EventLog(nil))
        let events = EventRecord(log)
        let control = self.control(of: BandwidthLimits(), taps, time, log)
        #expect(taps.all.isEmpty && events.names.isEmpty)
        #expect(control.statuses().map(\.destination) == [nil, "a", "b"])
        #expect(control.statuses().allSatisfy { $0.rate == nil && $0.cause == .configuration })
    }
}
