import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

@Suite struct VolumeQuestionTests {
    private let start = ContinuousClock.now

    @Test func `how a volume stands is asked once, and not again before something has happened`() {
        var question = VolumeQuestion()
        #expect(question.isDue(at: start))
        question.asked(isAnswered: true, at: start)
        for second in 1...100 { #expect(!question.isDue(at: start + .seconds(second))) }
        #expect(question.deadline == nil)
        question.reopen()
        #expect(question.isDue(at: start + .seconds(100)))
    }

    @Test func `of files that end one after the other it is asked once a second, and after the last`() {
        var question = VolumeQuestion()
        var asked: [Duration] = []
        for tenth in 0..<100 {
            let now = start + .milliseconds(100 * tenth)
            question.reopen()
            guard question.isDue(at: now) else { continue }
            question.asked(isAnswered: true, at: now)
            asked.append(start.duration(to: now))
        }
        #expect(asked == (0..<10).map { .seconds($0) })
        // Nothing more comes: the loop must wake by itself.
        let deadline = question.deadline
        #expect(deadline == start + .seconds(10))
        #expect(deadline.map(question.isDue) == true)
    }

    @Test func `a journal that does not say is asked again`() {
        var question = VolumeQuestion()
        question.asked(isAnswered: false, at: start)
        #expect(!question.isDue(at: start))
        #expect(question.deadline == start + VolumeQuestion.pause)
        #expect(question.isDue(at: start + VolumeQuestion.pause))
    }

    @Test func `files that wait for their marker are counted once, and no longer when they have gone`() {
        var awaited = AwaitedFiles(most: 2)
        for _ in 0..<2 { for path in ["a", "b"] as [FilePath] { awaited.insert(path) } }
        #expect(awaited.count { _ in true } == 2)
        awaited.insert("c")
        #expect(awaited.count { _ in true } == 3)
        awaited.remove("a")
        #expect(awaited.count { _ in true } == 2)
        // Of what there was no room for, the next listing knows.
        #expect(awaited.count { _ in false } == 1)
    }

    @Test func `a volume with a file that waits for its marker is not done`() {
        func end(unmarked: Int) -> VolumeReport {
            var end = VolumeReport(root: "/media/A", volume: Volume(name: "A", key: "label:A/"))
            end.unmarked = unmarked
            return end
        }
        #expect(end(unmarked: 0).isDone && !end(unmarked: 1).isDone)
        #expect(AgentEvent.volumeDone(end(unmarked: 1)).line.name == "volume.unverified")
    }
}
