import InletCore
import Testing

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
    func `rates are read exactly`(text: String, rate: Int64) { #expect(RateText.read(text) == .rate(rate)) }

    @Test func `what is no rate is told how it would be written`() {
        #expect(RateText.read("off") == .rate(nil) && RateText.read("unlimited") == .rate(nil))
        #expect(RateText.fault(of: "5MiB") == "is not a rate; did you mean '5MiB/s'?")
        #expect(RateText.fault(of: "5MiB/h") == "is not a rate; write for example 5MiB/s, 20Mbit/s, 0, or off")
        #expect(RateText.fault(of: "20Mb/s") == "says bits or bytes? Write for example 5MB/s or 40Mbit/s")
        #expect(RateText.fault(of: "100/s") == "is slower than 1KiB/s; 0 sends nothing at all")
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
