import InletTestSupport
import Testing

@testable import InletCore

/// Rates as people write them, and which limit holds why.
struct BandwidthPolicyTests {
    private static let mib: Int64 = 1 << 20
    private static let midnight = WallTime(milliseconds: 1_780_617_600_000)

    private static func at(_ hour: Int) -> WallTime { midnight + .seconds(hour * 3600) }

    @Test(
        arguments: [
            ("5MiB/s", 5 << 20), ("5 MiB/s", 5 << 20), ("800kB/s", 800_000), ("1.5GiB/s", 3 << 29),
            ("20Mbit/s", 2_500_000), ("20 mbit / s", 2_500_000), ("1Gbit/s", 125_000_000), ("8Kibit/s", 1024),
            ("0", 0), ("0MiB/s", 0), ("1KiB/s", 1024), ("1Mibit/s", 131_072),
        ] as [(String, Int64)])
    func `rates are read exactly`(text: String, rate: Int64) { #expect(RateText.parse(text) == .some(rate)) }

    @Test func `what is no rate is told how it would be written`() {
        #expect(RateText.parse("off") == .some(nil) && RateText.parse("unlimited") == .some(nil))
        #expect(RateText.fault(of: "5MiB") == "is not a rate; did you mean '5MiB/s'?")
        #expect(RateText.fault(of: "5MiB/h") == "is not a rate; write for example 5MiB/s, 20Mbit/s, 0, or off")
        #expect(RateText.fault(of: "20Mb/s") == "is ambiguous, bits or bytes; write for example 5MB/s or 40Mbit/s")
        #expect(RateText.fault(of: "100/s") == "is slower than 1KiB/s; write 0 to send nothing")
        for text in ["", "/s", "-5MiB/s", "5MiB/s/s", "fast", "5 parsecs/s", "9999999999GiB/s"] {
            #expect(RateText.parse(text) == nil, "\(text)")
        }
        #expect(RateText.format(nil) == "unlimited" && RateText.format(5 << 20) == "5 MiB/s")
        #expect(RateText.format(0) == "0 (nothing is sent)")
    }

    private func policy() -> BandwidthPolicy {
        let day = Timetable.Entry(DaySpan(from: 480, to: 1080), rate: 5 * Self.mib)
        return BandwidthPolicy(
            BandwidthLimits(
                all: Timetable(20 * Self.mib, [day], zone: "UTC"), destinations: ["a": Timetable(Self.mib)]),
            destinations: ["a", "b"])
    }

    @Test func `at the start those with a limit are told, then what changes at its edge`() {
        var policy = policy()
        let first = policy.changes(at: Self.at(7))
        #expect(
            first == [
                .init(destination: nil, rate: 20 * Self.mib, cause: .configuration, until: Self.at(8), zone: "UTC"),
                .init(destination: "a", rate: Self.mib, cause: .configuration),
            ])
        let none = policy.changes(at: Self.at(7))
        #expect(none.isEmpty && policy.nextChange(after: Self.at(7)) == Self.at(8))
        let edge = policy.changes(at: Self.at(8))
        #expect(
            edge == [.init(destination: nil, rate: 5 * Self.mib, cause: .schedule, until: Self.at(18), zone: "UTC")])
        // The machine slept over the edge, and the clock was set back.
        let slept = policy.changes(at: Self.at(20))
        let setBack = policy.changes(at: Self.at(9))
        #expect(slept.map(\.rate) == [20 * Self.mib] && setBack.map(\.rate) == [5 * Self.mib])
    }

    @Test func `who goes is named if it had a rate, and begins anew when it is back`() {
        var policy = policy()
        _ = policy.take(.rate(0), for: "b")
        _ = policy.changes(at: Self.at(7))
        #expect(Set(policy.replace(BandwidthLimits(), destinations: ["c"])) == ["a", "b"])
        #expect(policy.replace(BandwidthLimits(), destinations: ["a", "b", "c"]).isEmpty)
        #expect(policy.changes(at: Self.at(7)).map(\.destination) == [nil])
    }

    @Test func `a person's word holds over the schedule, until auto`() {
        var policy = policy()
        _ = policy.changes(at: Self.at(7))
        let taken = [
            policy.take(.rate(0), for: nil), policy.take(.rate(nil), for: "a"), policy.take(.rate(7), for: "b"),
        ]
        #expect(taken == [true, true, true])
        let changed = policy.changes(at: Self.at(7))
        #expect(changed.map(\.destination) == [nil, "a", "b"] && changed.map(\.rate) == [0, nil, 7])
        #expect(changed.allSatisfy { $0.cause == .command && $0.until == nil })
        let later = policy.changes(at: Self.at(9))
        #expect(later.isEmpty)
        for name in [nil, "a", "b"] { _ = policy.take(.auto, for: name) }
        let back = policy.changes(at: Self.at(9))
        #expect(back.map(\.rate) == [5 * Self.mib, Self.mib, nil])
        #expect(back.map(\.cause) == [.schedule, .configuration, .configuration])
        let isKnown = policy.take(.auto, for: "c")
        #expect(!isKnown)
    }
}

struct BandwidthShareTests {
    /// KiB/s and requests.
    private static let rates: [(Int64, Int)] = [
        (100, 1), (100, 64), (1024, 16), (5120, 64), (102_400, 16), (1_048_576, 1), (1_048_576, 4),
    ]

    /// From the first second on, whatever the number of requests and however late they ask.
    @Test(arguments: rates)
    func `ten seconds carry what the rate says`(kib: Int64, requests: Int) {
        let rate = kib * 1024
        for (isForAll, seed) in [(true, 1), (false, 2)] as [(Bool, UInt64)] {
            var line = BandwidthLine(seed: seed, delay: 0...20)
            line.limit(rate, of: isForAll ? nil : "a")
            for _ in 0..<requests { line.add(.max, to: "a") }
            line.run(for: 1)
            let first = line.total
            line.run(for: 10)
            let carried = Double(line.total - first) / Double(rate * 10)
            #expect((0.95...1.05).contains(carried), "\(carried) of \(rate)")
        }
    }

    @Test func `a burst after a pause is a tenth of a second of the rate`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        line.run(for: 60)
        line.add(.max, to: "a")
        line.ask()
        #expect(line.total <= 1 << 20 && line.total > 900_000)
    }

    @Test func `a rate can be changed, stopped and lifted while bytes move`() {
        var line = BandwidthLine()
        line.limit(5 << 20, of: "a")
        let flow = line.add(100 << 20, to: "a")
        line.run(for: 2)
        #expect((9 << 20...10 << 20).contains(line.total))
        line.limit(1 << 20, of: "a")
        let atChange = line.total
        line.run(for: 2)
        #expect((1_900_000...2_300_000).contains(line.total - atChange))
        line.limit(0, of: "a")
        let atStop = line.total
        line.run(for: 3600)
        #expect(line.total == atStop)
        #expect(line.next == nil && line.share.isClosed("a") && !line.share.isClosed("b"))
        line.limit(nil, of: "a")
        line.ask()
        #expect(line.left[flow] == 0)
    }

    @Test func `nothing is held where nothing is limited`() {
        var share = BandwidthShare()
        #expect(share.ask(BandwidthFlow(1), of: "a", wanted: 1 << 40, isSmall: false, at: .now) == 1 << 40)
        #expect(share.next(at: .now) == nil)
    }

    @Test func `one limit for all is shared evenly by destinations, not by requests`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        for _ in 0..<16 { line.add(.max, to: "many") }
        line.add(.max, to: "one")
        line.run(for: 10)
        #expect(abs(line.sent(to: "many") - line.sent(to: "one")) <= 4 * 105_000)
    }

    @Test
    func `what a slow destination leaves goes to the other, and lifting its limit gives it no more than its half`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        line.limit(1 << 20, of: "slow")
        line.add(.max, to: "slow")
        line.add(.max, to: "fast")
        line.run(for: 10)
        let (slow, fast) = (line.sent(to: "slow"), line.sent(to: "fast"))
        #expect((9_900_000...10_600_000).contains(slow))
        #expect((89_000_000...95_000_000).contains(fast))
        line.limit(nil, of: "slow")
        line.run(for: 1)
        #expect(abs((line.sent(to: "slow") - slow) - (line.sent(to: "fast") - fast)) < 600_000)
    }

    @Test func `a destination that was stopped for a minute has saved up no turns`() {
        var line = BandwidthLine()
        line.limit(10 << 20, of: nil)
        line.limit(0, of: "stopped")
        line.add(.max, to: "stopped")
        line.add(.max, to: "other")
        line.run(for: 60)
        #expect(line.sent(to: "stopped") == 0)
        let other = line.sent(to: "other")
        line.limit(nil, of: "stopped")
        line.run(for: 2)
        #expect(abs(line.sent(to: "stopped") - (line.sent(to: "other") - other)) < 600_000)
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `a small body has gone out before its destination has sent what is promised`(seed: UInt64) {
        var line = BandwidthLine(seed: seed, delay: 0...3)
        let rate = Int64.random(in: 100 << 10...50 << 20, using: &line.generator)
        line.limit(rate, of: Bool.random(using: &line.generator) ? nil : "a")
        for _ in 0..<Int.random(in: 1...32, using: &line.generator) { line.add(.max, to: "a") }
        line.run(for: 1)
        let before = line.total
        let size = Int64.random(in: 1...BandwidthShare.smallBody, using: &line.generator)
        let count = Int64.random(in: 1...8, using: &line.generator)
        let small = (0..<count).map { _ in line.add(size, to: "a") }
        let piece = min(max(rate / 100, 4 << 10), 256 << 10)
        let bound = 2 * count * (size + piece) + 4 * piece
        while small.contains(where: { line.left[$0] != 0 }), line.total - before <= bound { line.step() }
        #expect(small.allSatisfy { line.left[$0] == 0 })
    }

    @Test func `small bodies without end leave a large one its half`() {
        var line = BandwidthLine()
        line.limit(1 << 20, of: "a")
        let large = line.add(.max, to: "a")
        for _ in 0..<3000 {
            line.forgetEnded()
            while line.left.count < 9 { line.add(64 << 10, to: "a") }
            line.step()
        }
        let share = Double(.max - (line.left[large] ?? 0)) / Double(line.total)
        #expect(share > 0.45)
    }

    @Test func `bytes of a request that ends early go to the others`() {
        var share = BandwidthShare()
        let start = ContinuousClock.now
        share.limit(100 << 10, at: start)
        let (first, second) = (BandwidthFlow(1), BandwidthFlow(2))
        let later = start.advanced(by: .milliseconds(41))
        #expect(share.ask(first, of: "a", wanted: 4096, isSmall: true, at: later) == 4096)
        #expect(share.ask(second, of: "b", wanted: 4096, isSmall: true, at: later) == 0)
        share.leave(first, unused: 4096)
        #expect(share.ask(second, of: "b", wanted: 4096, isSmall: true, at: later) == 4096)
    }
}

/// Requests on a line without an end of its own, in a time of its own.
struct BandwidthLine {
    private(set) var share = BandwidthShare()
    var generator: SeededGenerator
    private(set) var now = ContinuousClock.now
    private(set) var left: [BandwidthFlow: Int64] = [:]
    private(set) var total: Int64 = 0
    private var places: [BandwidthFlow: (destination: String, isSmall: Bool)] = [:]
    private var totals: [String: Int64] = [:]
    private var count: UInt64 = 0
    private let delay: ClosedRange<Int>

    /// - Parameter delay: how many milliseconds late they wake up.
    init(seed: UInt64 = 0, delay: ClosedRange<Int> = 0...0) {
        generator = SeededGenerator(seed: seed)
        self.delay = delay
    }

    /// - Parameter destination: nil = all together.
    mutating func limit(_ rate: Int64?, of destination: String?) {
        if let destination { share.limit(rate, of: destination, at: now) } else { share.limit(rate, at: now) }
    }

    func sent(to destination: String) -> Int64 { totals[destination, default: 0] }

    var next: ContinuousClock.Instant? {
        var share = share
        return share.next(at: now)
    }

    @discardableResult
    mutating func add(_ length: Int64, to destination: String) -> BandwidthFlow {
        count += 1
        let flow = BandwidthFlow(count)
        places[flow] = (destination, length <= BandwidthShare.smallBody)
        left[flow] = length
        return flow
    }

    /// Everybody asks until nobody gets anything.
    mutating func ask() {
        var asking = left.filter { $0.value > 0 }.keys.sorted()
        while !asking.isEmpty {
            asking = asking.filter { flow in
                guard let place = places[flow], let rest = left[flow], rest > 0 else { return false }
                let given = share.ask(flow, of: place.destination, wanted: rest, isSmall: place.isSmall, at: now)
                left[flow] = rest - given
                total += given
                totals[place.destination, default: 0] += given
                return given > 0
            }
        }
    }

    mutating func forgetEnded() {
        for (flow, rest) in left where rest == 0 {
            share.leave(flow)
            left[flow] = nil
        }
    }

    /// Asks, and waits for the next turn, but not beyond `end`.
    mutating func step(until end: ContinuousClock.Instant? = nil) {
        ask()
        guard let next = share.next(at: now) else { return now = end ?? now }
        // Otherwise a loop would spin.
        #expect(next > now)
        let late = next.advanced(by: .milliseconds(Int.random(in: delay, using: &generator)))
        now = end.map { min($0, late) } ?? late
    }

    mutating func run(for seconds: Int) {
        let end = now.advanced(by: .seconds(seconds))
        while now < end { step(until: end) }
    }
}

/// When which rate holds. Times are given in UTC; the zones have other clocks.
struct TimetableTests {
    private static let mib: Int64 = 1 << 20

    private func at(_ text: String) throws -> WallTime { try #require(WallTime(rfc3339: text + ":00Z")) }

    private func span(_ from: String, _ to: String, _ days: [Weekday] = []) throws -> DaySpan {
        DaySpan(from: try #require(DaySpan.minute(from)), to: try #require(DaySpan.minute(to)), days: days)
    }

    private func table(_ from: String, _ to: String, _ days: [Weekday] = [], zone: String = "UTC") throws -> Timetable {
        Timetable(20 * Self.mib, [.init(try span(from, to, days), rate: 5 * Self.mib)], zone: zone)
    }

    @Test(
        arguments: [
            ("00:00", 0), ("8:05", 485), ("08:05", 485), ("23:59", 1439), ("24:00", 1440), ("24:01", nil), ("7", nil),
            ("12:60", nil), ("-1:00", nil), ("08:5", nil), ("008:05", nil), ("", nil), ("٠٨:٠٥", nil), ("8:00:00", nil),
        ] as [(String, Int?)])
    func `times of the day are read exactly`(text: String, minute: Int?) { #expect(DaySpan.minute(text) == minute) }

    // 2026-06-05 is a Friday.
    @Test func `an entry holds from its first minute up to its last, and the base outside`() throws {
        let table = try table("08:00", "18:00")
        for (time, rate) in [("07:59", 20), ("08:00", 5), ("17:59", 5), ("18:00", 20), ("00:00", 20)] {
            #expect(table.rate(at: try at("2026-06-05T\(time)")) == Int64(rate) * Self.mib, "\(time)")
        }
        #expect(table.nextChange(after: try at("2026-06-05T08:00")) == (try at("2026-06-05T18:00")))
        #expect(table.nextChange(after: try at("2026-06-05T07:00")) == (try at("2026-06-05T08:00")))
        #expect(table.nextChange(after: try at("2026-06-05T18:00")) == (try at("2026-06-06T08:00")))
    }

    @Test func `an entry that never holds is found, whatever days and nights those before it are`() throws {
        let night = Timetable.Entry(try span("22:00", "06:00"), rate: 1)
        let early = Timetable.Entry(try span("00:00", "05:00", [.sat]), rate: 2)
        let weekend = Timetable.Entry(try span("20:00", "23:00", [.sat, .sun]), rate: 3)
        let saturday = Timetable.Entry(try span("21:00", "22:30", [.sat]), rate: 4)
        #expect(Timetable(nil, [night, early, weekend, saturday]).hidden == [early, saturday])
        #expect(Timetable(nil, [early, saturday, weekend, night]).hidden.isEmpty)
        #expect(Timetable(5).hidden.isEmpty)
    }

    @Test func `one over midnight belongs to the day on which it begins`() throws {
        let table = try table("22:00", "06:00", [.fri])
        for (time, isSlow) in [
            ("05T21:59", false), ("05T22:00", true), ("06T05:59", true), ("06T06:00", false), ("06T22:00", false),
            ("05T05:00", false),
        ] {
            #expect(table.rate(at: try at("2026-06-\(time)")) == (isSlow ? 5 : 20) * Self.mib, "\(time)")
        }
        #expect(table.nextChange(after: try at("2026-06-06T06:00")) == (try at("2026-06-12T22:00")))
    }

    @Test func `of entries that overlap the first holds, and the end of a day is 24:00`() throws {
        let table = Timetable(
            nil, [.init(try span("12:00", "13:00"), rate: nil), .init(try span("00:00", "24:00"), rate: 0)],
            zone: "UTC")
        #expect(table.rate(at: try at("2026-06-05T12:30")) == nil)
        #expect(table.rate(at: try at("2026-06-05T23:59")) == 0)
        #expect(table.nextChange(after: try at("2026-06-05T13:00")) == (try at("2026-06-06T12:00")))
        #expect(table.isLimited && !table.isClosed)
        let noon = try at("2026-06-05T13:00")
        #expect(Timetable(0).isClosed && Timetable(0).nextChange(after: noon) == nil)
        #expect(!Timetable().isLimited)
    }

    @Test func `an hour that the clocks skip does not happen, one that comes twice counts twice`() throws {
        // Berlin, 2026-03-29: 02:00 becomes 03:00 at 01:00 UTC; 2026-10-25: 03:00 becomes 02:00 at 01:00 UTC.
        let table = try table("02:00", "03:00", zone: "Europe/Berlin")
        #expect(table.nextChange(after: try at("2026-03-28T02:00")) == (try at("2026-03-30T00:00")))
        #expect(table.nextChange(after: try at("2026-10-24T23:30")) == (try at("2026-10-25T00:00")))
        #expect(table.nextChange(after: try at("2026-10-25T00:00")) == (try at("2026-10-25T02:00")))
        let morning = try self.table("02:30", "08:00", zone: "Europe/Berlin")
        // It begins with the clock's jump.
        #expect(morning.nextChange(after: try at("2026-03-28T20:00")) == (try at("2026-03-29T01:00")))
        // 02:30 comes at 00:30 and at 01:30 UTC; between them the clock shows 02:00 again.
        #expect(morning.nextChange(after: try at("2026-10-25T00:30")) == (try at("2026-10-25T01:00")))
        #expect(morning.nextChange(after: try at("2026-10-25T01:00")) == (try at("2026-10-25T01:30")))
    }

    @Test func `the next change is the first minute with another rate`() throws {
        let starts = try ["2026-03-27T00:00", "2026-10-23T00:00", "2026-04-03T00:00", "2026-06-05T00:00"].map(at)
        let zones = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
        for seed in [1, 2, 3, 5, 8, 13, UInt64.random(in: 100 ... .max)] {
            var random = SeededGenerator(seed: seed)
            let table = Self.any(zone: zones[Int.random(in: 0..<zones.count, using: &random)], &random)
            let start = starts[Int.random(in: 0..<starts.count, using: &random)]
            let from = start + .seconds(60 * Int64.random(in: 0..<1440, using: &random))
            let rate = table.rate(at: from)
            let scanned = (1...(4 * 1440)).lazy.map { from + .seconds(60 * Int64($0)) }
                .first { table.rate(at: $0) != rate }
            let found = table.nextChange(after: from)
            if let scanned {
                #expect(found == scanned, "seed \(seed): \(table) from \(from.rfc3339)")
            } else if let found {
                #expect(found > from + .seconds(4 * 86_400), "seed \(seed)")
            }
        }
    }

    private static func any(zone: String, _ random: inout SeededGenerator) -> Timetable {
        let entries = (0..<Int.random(in: 1...4, using: &random)).map { _ -> Timetable.Entry in
            let from = Int.random(in: 0..<96, using: &random) * 15
            let length = Int.random(in: 1..<96, using: &random) * 15
            let end = from + length
            let days = Weekday.allCases.filter { _ in Bool.random(using: &random) }
            let rate = [nil, 0, mib, 5 * mib][Int.random(in: 0..<4, using: &random)]
            return Timetable.Entry(DaySpan(from: from, to: end > 1440 ? end - 1440 : end, days: days), rate: rate)
        }
        return Timetable(Bool.random(using: &random) ? nil : 20 * mib, entries, zone: zone)
    }

    @Test func `the week is told in words, a line for each kind of day`() throws {
        #expect(try table("08:00", "18:00").lines == ["20 MiB/s, from 08:00 5 MiB/s, from 18:00 20 MiB/s"])
        let workdays = try table("08:00", "18:00", [.mon, .tue, .wed, .thu, .fri])
        #expect(
            workdays.lines == [
                "mon to fri: 20 MiB/s, from 08:00 5 MiB/s, from 18:00 20 MiB/s", "sat, sun: 20 MiB/s",
            ])
        #expect(Timetable(nil).lines == ["unlimited"])
    }

    @Test func `a window opens and closes by its clock, and concerns big files only`() throws {
        let window = DeliveryWindow(try span("22:00", "06:00"), zone: "Europe/Berlin")
        #expect(window.concerns(size: 1 << 30) && !window.concerns(size: 1 << 30 - 1))
        #expect(window.opening(at: try at("2026-06-05T12:00")) == (try at("2026-06-05T20:00")))
        #expect(window.opening(at: try at("2026-06-05T20:00")) == nil)
        #expect(window.opening(at: try at("2026-06-06T03:59")) == nil)
        #expect(window.opening(at: try at("2026-06-06T04:00")) == (try at("2026-06-06T20:00")))
        #expect(window.nextChange(after: try at("2026-06-05T20:00")) == (try at("2026-06-06T04:00")))
        #expect(window.reason == "waits for its window (22:00 to 06:00)")
        #expect(window.text == "22:00 to 06:00, for files from 1 GiB")
        let weekend = DeliveryWindow(try span("00:00", "24:00", [.sat, .sun]), zone: "UTC")
        #expect(weekend.opening(at: try at("2026-06-05T12:00")) == (try at("2026-06-06T00:00")))
    }

    @Test func `a window knows for how long it has been closed, over a change of the clocks and over a week`() throws {
        let window = DeliveryWindow(try span("22:00", "06:00"), zone: "Europe/Berlin")
        #expect(window.closedTime(until: try at("2026-06-05T20:00")) == .zero)
        #expect(window.closedTime(until: try at("2026-06-06T04:00")) == .zero)
        #expect(window.closedTime(until: try at("2026-06-06T19:59")) == .seconds(15 * 3600 + 59 * 60))
        // On the last Sunday of March 06:00 comes an hour sooner.
        #expect(window.closedTime(until: try at("2026-03-29T12:00")) == .seconds(8 * 3600))
        #expect(window.closedTime(until: try at("2026-03-28T12:00")) == .seconds(7 * 3600))
        let weekend = DeliveryWindow(try span("00:00", "24:00", [.sat, .sun]), zone: "UTC")
        #expect(weekend.closedTime(until: try at("2026-06-12T12:00")) == .seconds(4 * 86_400 + 12 * 3600))
        #expect(weekend.closedTime(until: try at("2026-06-13T00:00")) == .zero)
    }

    @Test(arguments: [
        ("Europe/Berlin", "2026-06-05T12:00", "2026-06-05T14:00:00+02:00"),
        ("Europe/Berlin", "2026-11-22T23:30", "2026-11-23T00:30:00+01:00"),
        ("America/St_Johns", "2026-11-22T12:00", "2026-11-22T08:30:00-03:30"),
        ("UTC", "2026-11-22T12:00", "2026-11-22T12:00:00+00:00"),
    ])
    func `a time is told by the clock of a zone, with its offset`(zone: String, time: String, told: String) throws {
        #expect(try at(time).rfc3339(in: zone) == told)
    }
}
