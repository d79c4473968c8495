import InletCore
import SystemPackage
import Testing

struct UnsettledWatchTests {
    private static let start = ContinuousClock.now

    private func at(_ seconds: Int) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }

    private func file(
        _ path: FilePath, since seconds: Int = 0, busy: Bool = false, why: String? = nil, changes: Int = 0
    ) -> Settler.Waiting {
        Settler.Waiting(path: path, since: at(seconds), isBusy: busy, why: why, changes: changes)
    }

    @Test func `a file is told of once, when it has waited long enough`() {
        var watch = UnsettledWatch(after: .seconds(900))
        let waiting = [file("a", busy: true), file("b", since: 600, changes: 3)]
        #expect(watch.overdue(waiting, at: at(899)).isEmpty)
        #expect(watch.overdue(waiting, at: at(900)).map(\.path) == ["a"])
        #expect(watch.overdue(waiting, at: at(1500)).map(\.path) == ["b"])
        #expect(watch.overdue(waiting, at: at(90_000)).isEmpty)
    }

    @Test func `one that is done and comes again is told of again`() {
        var watch = UnsettledWatch(after: .seconds(10))
        #expect(watch.overdue([file("a", busy: true)], at: at(10)).count == 1)
        #expect(watch.overdue([], at: at(20)).isEmpty)
        #expect(watch.overdue([file("a", since: 30, busy: true)], at: at(40)).count == 1)
    }

    @Test func `what waits for others, or for room in the queue, is not told of`() {
        var watch = UnsettledWatch(after: .zero)
        let waiting = [file("a", why: "waiting for its file", changes: 2), file("b")]
        #expect(watch.overdue(waiting, at: at(1)).isEmpty)
    }

    @Test func `the reason says what keeps a file`() {
        #expect(file("a", busy: true, why: "x", changes: 9).reason == "open for writing")
        #expect(file("a", why: "waiting for its file", changes: 9).reason == "waiting for its file")
        #expect(file("a", changes: 9).reason == "it keeps changing: 9 times since it was seen")
        #expect(file("a", changes: 1).reason == nil)
    }
}
