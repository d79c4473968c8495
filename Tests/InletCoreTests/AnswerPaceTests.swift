import InletCore
import Testing

/// How many small files may be on their way to one store at once.
@Suite struct AnswerPaceTests {
    /// Answers that all come after `delay`, as many as are under way.
    private func waves(_ count: Int, after delay: Duration, _ pace: inout AnswerPace) -> [Int] {
        (0..<count).map { _ in
            pace.answered(pace.limit, after: delay)
            return pace.limit
        }
    }

    @Test func `a store that answers at once gets no more than it needs`() {
        var pace = AnswerPace()
        #expect(waves(3, after: .milliseconds(2), &pace) == [32, 32, 32])
    }

    @Test func `late answers call for more at once, up to a bound`() {
        var pace = AnswerPace()
        #expect(waves(2, after: .milliseconds(20), &pace) == [120, 120])
        #expect(waves(1, after: .milliseconds(1), &pace) == [32])
        pace = AnswerPace()
        #expect(waves(2, after: .milliseconds(100), &pace) == [384, 384])
    }

    @Test func `answers that waited here do not count: the quickest of some thousand tells`() {
        var pace = AnswerPace()
        pace.answered(1, after: .milliseconds(2))
        for _ in 0..<5000 { pace.answered(1, after: .milliseconds(50)) }
        #expect(pace.limit == 32)
        for _ in 0..<5000 { pace.answered(1, after: .milliseconds(50)) }
        #expect(pace.limit == 300, "a delay that stays is seen")
    }

    @Test func `a refusal halves it, and answers bring it back`() {
        var pace = AnswerPace()
        _ = waves(2, after: .milliseconds(100), &pace)
        for _ in 0..<384 { pace.refused() }
        #expect(pace.limit == 192, "those under way together are one refusal")
        pace.refused(192)
        #expect(pace.limit == 96)
        for _ in 0..<10 { pace.refused(384) }
        #expect(pace.limit == 8)
        let course = waves(200, after: .milliseconds(100), &pace)
        #expect(course == course.sorted() && course.last == 384)
    }
}
