import InletCore
import InletTestSupport
import Testing

@testable import InletPipelines

@Suite struct RoboscopeTallyTests {
    @Test(arguments: 1...30) func `what was noted is read again`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var tally = MarkerTally(session: "S-1")
        var known: Set<Int> = []
        for _ in 0..<20 {
            let first = Int.random(in: 0..<900, using: &generator)
            let numbers = first..<first + Int.random(in: 1...100, using: &generator)
            let isNews = tally.add(MarkerTally.set(numbers))
            #expect(isNews == !known.isSuperset(of: numbers))
            known.formUnion(numbers)
        }
        let listed = known.filter { _ in Bool.random(using: &generator) }
        #expect(tally.count == known.count)
        #expect(tally.missing(from: MarkerTally.set(listed.sorted())) == known.count - listed.count)
        let notes = [MarkerTally.note: tally.bytes]
        #expect(MarkerTally(notes, session: "S-1", count: 1000) == tally)
        #expect(MarkerTally(notes, session: "s-1", count: 1000).count == known.count)
        #expect(MarkerTally(notes, session: "S-2", count: 1000).count == 0)
    }

    @Test(arguments: [
        ("", 0), ("S", 0), ("S 0-9", 10), ("S 0-9 10-10 20-29", 21), ("S 5-4 x-1 3 1-2-3 0-0", 1), ("S 90-100", 0),
        ("T 0-9", 0),
    ]) func `a note that nobody can have written is nothing`(_ text: String, _ count: Int) {
        #expect(MarkerTally([MarkerTally.note: Array(text.utf8)], session: "S", count: 100).count == count)
    }
}
