import InletCore
import InletTestSupport
import Testing

struct LogLimitTests {
    private let start = ContinuousClock.now

    @Test func `some lines at once, then one a second, and the rest is counted`() {
        var limit = LogLimit()
        let first = (0..<500).count { _ in limit.takes("file.error", at: start) }
        #expect(first == LogLimit.burst)
        let later = [900, 1100, 1200].map { limit.takes("file.error", at: start + .milliseconds($0)) }
        #expect(later == [false, true, false])
        let told = [59, 60, 200].map { limit.gaps(at: start + .seconds($0)) }
        #expect(told == [[], [LogLimit.Gap(event: "file.error", lines: 402)], []])
    }

    @Test func `one event's flood leaves others alone`() {
        var limit = LogLimit()
        for _ in 0..<1000 { _ = limit.takes("file.error", at: start) }
        let isWritten = limit.takes("watch.lost", at: start)
        let gaps = limit.gaps(at: start, all: true)
        #expect(isWritten)
        #expect(gaps == [LogLimit.Gap(event: "file.error", lines: 900)])
    }

    @Test func `after a quiet while everything is written again`() {
        var limit = LogLimit()
        for _ in 0..<200 { _ = limit.takes("a", at: start) }
        let later = start + .seconds(100)
        let written = (0..<200).count { _ in limit.takes("a", at: later) }
        #expect(written == LogLimit.burst)
    }

    @Test(arguments: 0..<8)
    func `every line is written or counted, and no minute has more than it may`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var limit = LogLimit()
        var (now, written, told, said) = (start, [ContinuousClock.Instant](), 0, 0)
        for _ in 0..<5000 {
            now += .milliseconds(Int.random(in: 0...200, using: &random))
            said += 1
            if limit.takes("a", at: now) { written.append(now) }
            told += limit.gaps(at: now).reduce(0) { $0 + $1.lines }
        }
        told += limit.gaps(at: now, all: true).reduce(0) { $0 + $1.lines }
        #expect(written.count + told == said)
        for first in written { #expect(written.count { $0 >= first && $0 < first + .seconds(60) } <= 161) }
    }
}
