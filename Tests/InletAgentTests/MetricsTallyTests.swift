import InletCore
import InletJournal
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// What is counted for `/metrics`.
@Suite struct MetricsTallyTests {
    private static func ref(_ destination: String) -> AgentEvent.JobRef {
        AgentEvent.JobRef(job: 1, delivery: 2, path: "/in/a", route: "r", destination: destination)
    }

    private static let proof = Proof(key: "k", size: 7, method: .size)
    private static let busy = DeliveryError(.retry(after: nil), .timedOut, "busy")
    private static let held = DeliveryError(.cancelled, .heldByLimit, "held")

    /// What one event does to the figures of destination `d`: by how each ended, bytes, durations, retries, resumed.
    private static let events: [(AgentEvent, FileState?, [Int])] = [
        (.jobDelivered(ref("d"), proof, duration: .milliseconds(1500)), .delivered, [7, 1, 0, 0]),
        (.jobFailed(ref("d"), state: .failed, busy), .failed, [0, 0, 0, 0]),
        (.jobFailed(ref("d"), state: .gone, busy), .gone, [0, 0, 0, 0]),
        (.jobFailed(ref("d"), state: .superseded, busy), .superseded, [0, 0, 0, 0]),
        (.jobFailed(ref("d"), state: .cancelled, busy), .cancelled, [0, 0, 0, 0]),
        (.jobExpired(job: 1, path: "/in/a", route: "r", destinations: ["d"]), .expired, [0, 0, 0, 0]),
        (
            .jobDuplicate(job: 1, path: "/in/a", route: "r", destinations: ["d"], sameAs: 3), .duplicate, [0, 0, 0, 0]
        ),
        (.jobRetry(ref("d"), busy, attempt: 1, wait: .zero), nil, [0, 0, 1, 0]),
        (.jobRetry(ref("d"), held, attempt: 1, wait: .zero), nil, [0, 0, 0, 0]),
        (.jobStarted(ref("d"), key: "k", attempt: 2, size: 7, isResumed: true), nil, [0, 0, 0, 1]),
        (.jobStarted(ref("d"), key: "k", attempt: 2, size: 7), nil, [0, 0, 0, 0]),
        (.transferProgress(ref("d"), sent: 3, size: 7), nil, [0, 0, 0, 0]),
    ]

    @Test(arguments: events.indices)
    func `an event is counted at its destination, and only there`(index: Int) {
        let (event, end, numbers) = Self.events[index]
        let tally = MetricsTally(destinations: ["d", "e"], routes: ["r"])
        tally.count(event)
        let figures = tally.figures
        let found = figures.destinations["d"] ?? .init()
        #expect(found.ends == (end.map { [$0: 1] } ?? [:]))
        #expect([Int(found.deliveredBytes), found.durations.count, found.retries, found.resumed] == numbers)
        #expect(figures.destinations["e"] == .init() && figures.destinations[MetricsTally.other] == .init())
        #expect(figures.files == [MetricsTally.other: [:], "r": [:]])
    }

    @Test func `what ends is counted by its route, and what names none with all that nobody knows`() {
        let tally = MetricsTally(destinations: ["d"], routes: ["r"])
        for route in ["r", "r", "", "of last year"] {
            tally.count(.jobFinished(job: 1, path: "/in/a", state: .delivered, disposition: "kept", route: route))
        }
        tally.count(.jobFinished(job: 2, path: "/in/b", state: .rejected, disposition: "kept", route: "r"))
        tally.count(.jobDelivered(Self.ref("gone"), Self.proof, duration: .seconds(1)))
        let figures = tally.figures
        #expect(figures.files == ["r": [.delivered: 2, .rejected: 1], MetricsTally.other: [.delivered: 2]])
        #expect(figures.destinations.keys.sorted() == ["d", MetricsTally.other])
        #expect(figures.destinations[MetricsTally.other]?.deliveredBytes == 7)
    }

    @Test func `a reload adds names and takes nothing back, up to a bound`() {
        let tally = MetricsTally(destinations: ["d"], routes: ["r"])
        tally.count(.jobDelivered(Self.ref("d"), Self.proof, duration: .seconds(1)))
        tally.add(destinations: ["d", "e"], routes: [])
        tally.count(.jobDelivered(Self.ref("e"), Self.proof, duration: .seconds(1)))
        #expect(tally.figures.destinations["d"]?.ends == [.delivered: 1])
        #expect(tally.figures.destinations["e"]?.ends == [.delivered: 1])
        let names = (0..<2 * MetricsTally.mostNames).map { "\($0)" }
        tally.add(destinations: names, routes: names)
        #expect(tally.figures.destinations.count == MetricsTally.mostNames)
        #expect(tally.figures.files.count == MetricsTally.mostNames)
    }

    @Test func `what concerns no destination is counted for all`() {
        let tally = MetricsTally(destinations: [], routes: [])
        tally.count(.watchOverflow(root: "/in"))
        tally.count(.jobRecovered(claims: 3, parked: 1, unparked: 1))
        tally.count(.queueResumed(ResumeSummary(of: 2, resumed: 2)))
        #expect(tally.figures.overflows == 1 && tally.figures.recovered == 3)
        #expect(tally.figures.resume == ResumeSummary(of: 2, resumed: 2))
    }

    @Test func `an agent counts what it delivers, tries again and gives up`() async throws {
        let scene = try Scene()
        scene.here.script("bad", .fail(.hopeless))
        scene.here.script("late", .fail(Self.busy))
        try await scene.run { stage in
            for name in ["a", "late", "bad"] { try scene.drop(FilePath(name)) }
            try await stage.finished("a")
            try await stage.finished("late")
            try await stage.finished("bad", .failed)
            let tally = try #require(stage.agent.control.live?.tally)
            // The journal has it a moment before it is said.
            try await eventually("all ends are counted") {
                tally.figures.files["all"] == [.delivered: 2, .failed: 1]
            }
            let here = try #require(tally.figures.destinations["here"])
            #expect(here.ends == [.delivered: 2, .failed: 1] && here.deliveredBytes == 14)
            #expect(here.retries == 1 && here.durations.count == 2 && here.durations.sum > 0)
            #expect(stage.journal.writeTimes.count > 0 && stage.journal.writeTimes.sum > 0)
        }
    }
}
