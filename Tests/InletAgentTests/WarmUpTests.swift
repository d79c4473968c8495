import Testing

@testable import InletAgent

@Suite struct WarmUpTests {
    @Test func `code is given back soon, then ever more seldom: a million parts make it no more than seven times`() {
        let due = (1...1_000_000).filter(WarmUp.isDue)
        #expect((2...10).contains(due.first ?? 0))
        #expect((2...7).contains(due.count))
        // Each pause is longer than all that came before it.
        #expect(zip(due, due.dropFirst()).allSatisfy { $1 > 2 * $0 })
    }

    @Test func `one delivery alone gives nothing back`() {
        #expect(!WarmUp.isDue(0) && !WarmUp.isDue(1))
    }
}
