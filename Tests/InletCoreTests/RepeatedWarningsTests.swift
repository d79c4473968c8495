import InletCore
import Testing

@testable import InletCore

@Suite struct RepeatedWarningsTests {
    private let start = ContinuousClock.now

    @Test func `a warning is written once an hour, with the count of its repeats`() {
        var warnings = RepeatedWarnings()
        let written = (0...120).map { warnings.repeats(1, of: "a", at: start + .seconds($0 * 60)) }
        #expect(written.indices.filter { written[$0] != nil } == [0, 60, 120])
        #expect(written.compactMap(\.self) == [0, 59, 59])
    }

    @Test func `a warning with another cause is written at once`() {
        var warnings = RepeatedWarnings()
        let written = [1, 2, 1, 2].map { warnings.repeats($0, of: "a", at: start) }
        #expect(written == [0, 0, nil, nil])
    }

    @Test func `the count of a warning that ended is reported, once`() {
        var warnings = RepeatedWarnings()
        for _ in 0..<5 { _ = warnings.repeats(1, of: "a", at: start) }
        let times = [0, 3600, 7199, 7300, 9000]
        #expect(times.map { warnings.gaps(at: start + .seconds($0)) } == [[:], [:], [:], ["a": 4], [:]])
    }

    @Test func `the last word reports every count`() {
        var warnings = RepeatedWarnings()
        for cause in [1, 1, 2, 2, 2, 3] { _ = warnings.repeats(cause, of: cause == 1 ? "a" : "b", at: start) }
        #expect(warnings.gaps(at: start, all: true) == ["a": 1, "b": 2])
        #expect(warnings.gaps(at: start, all: true).isEmpty)
    }

    @Test(arguments: 0..<8)
    func `every warning is written, reported or remembered, however many there are`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var warnings = RepeatedWarnings()
        var (now, written, reported, said) = (start, 0, 0, 0)
        for _ in 0..<20_000 {
            now += .milliseconds(Int.random(in: 0...2000, using: &random))
            said += 1
            let cause = Int.random(in: 0..<RepeatedWarnings.most * 2, using: &random)
            if let repeats = warnings.repeats(cause, of: "a", at: now) {
                written += 1
                reported += repeats
            }
            reported += warnings.gaps(at: now)["a"] ?? 0
        }
        reported += warnings.gaps(at: now, all: true)["a"] ?? 0
        #expect(written + reported == said)
    }
}
