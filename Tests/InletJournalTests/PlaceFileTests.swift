import InletCore
import InletJournal
import InletJournalSupport
import InletTestSupport
import SystemPackage
import Testing

/// What an agent remembers of versions in shares.
@Suite(.seated) struct PlaceFileTests {
    private let bench: Bench
    init() throws { bench = try Bench() }

    private static let share = PlaceWork.share

    private var journal: Journal { bench.journal }

    private static func row(_ ref: Int, _ key: String = "k") -> [UInt8] {
        Array(#"{"key":"\#(key)","ref":\#(ref)}"#.utf8)
    }

    private func reports(after mark: Int64 = 0) async throws -> [PlaceFileReport] {
        try await journal.placeFilesToReport(Self.share, after: mark, from: nil, limit: 100)
    }

    private func isKnown(_ names: String...) async throws -> [Bool] {
        try await journal.knownInPlace(Self.share, names.map { .test($0) })
    }

    @Test func `a version is known once the fleet has admitted it, by whichever agent`() async throws {
        try await journal.keepAdmittedInPlace(Self.share, [(.test("asked"), [Self.row(1)])], mark: nil)
        try await journal.keepAdmittedInPlace(Self.share, [(.test("ours"), [Self.row(2)])], mark: nil)
        try await journal.keepAdmittedInPlace(Self.share, [(.test("ours"), [Self.row(2)])], mark: 5)
        try await journal.keepKnownInPlace(Self.share, [.test("theirs")])
        try await bench.take(.test("claimed"))
        #expect(
            try await isKnown("asked", "ours", "theirs", "claimed", "nobody's") == [false, true, true, true, false])
        let elsewhere = try await journal.knownInPlace("another", [.test("ours")])
        #expect(elsewhere == [false])
        let other = try await journal.knownInPlace(Self.share, [.test("ours", .test(size: 11))])
        #expect(other == [false])
    }

    @Test func `what only others have said is forgotten after a loss`() async throws {
        try await journal.keepAdmittedInPlace(Self.share, [(.test("ours"), [Self.row(1)])], mark: 5)
        try await journal.keepKnownInPlace(Self.share, [.test("theirs"), .test("ours")])
        try await bench.take(.test("claimed"))
        try await journal.forgetKnownInPlaces()
        #expect(try await isKnown("ours", "theirs", "claimed") == [true, false, true])
    }

    @Test func `a report has what came after a mark, and all that is unconfirmed`() async throws {
        for (name, mark) in [("a", 3), ("b", 7), ("c", nil)] as [(String, Int64?)] {
            try await journal.keepAdmittedInPlace(Self.share, [(.test(name), [Self.row(1, name)])], mark: mark)
        }
        try await journal.keepKnownInPlace(Self.share, [.test("d")])
        let found = try await reports(after: 3)
        #expect(Set(found.map(\.version)) == [.test("b"), .test("c")])
        #expect(Set(found.flatMap(\.rows)) == [Self.row(1, "b"), Self.row(1, "c")])
        #expect(found.allSatisfy { !$0.isFinished })
        #expect(try await reports(after: 0).count == 3)
        let elsewhere = try await journal.placeFilesToReport("another", after: 0, from: nil, limit: 9)
        #expect(elsewhere.isEmpty)
        #expect(try await journal.fleetSeen() == 7)
    }

    @Test func `a report comes in pages`() async throws {
        let names = (0..<25).map { "file-\($0)" }
        try await journal.keepAdmittedInPlace(
            Self.share, names.map { (.test($0), [Self.row(2), Self.row(1)]) }, mark: 4)
        var (found, last) = ([PlaceFileReport](), nil as PlaceVersion?)
        while true {
            let page = try await journal.placeFilesToReport(Self.share, after: 0, from: last, limit: 10)
            if page.isEmpty { break }
            (found, last) = (found + page, page.last?.version)
        }
        #expect(found.count == 25 && Set(found.map(\.version)) == Set(names.map { .test($0) }))
        #expect(found.allSatisfy { $0.rows == [Self.row(1), Self.row(2)] })
    }

    @Test func `what another agent has admitted first is not this agent's to report`() async throws {
        try await journal.keepAdmittedInPlace(Self.share, [(.test("a"), [Self.row(1)])], mark: nil)
        try await journal.keepKnownInPlace(Self.share, [.test("a")])
        #expect(try await reports().isEmpty)
        #expect(try await isKnown("a") == [true])
        // As its claimer it knows its row.
        try await bench.take(.test("a", row: Self.row(2)))
        #expect(try await reports(after: 100).map(\.rows) == [[Self.row(2)]])
    }

    @Test func `a claim is reported until an end of it is confirmed, and its newest row counts`() async throws {
        try await journal.keepAdmittedInPlace(Self.share, [(.test("a"), [Self.row(1, "a"), Self.row(2)])], mark: 3)
        #expect(try await reports(after: 3).isEmpty)
        let id = try await bench.take(.test("a", row: Self.row(1, "a_2")))
        #expect(try await reports(after: 2).map(\.rows) == [[Self.row(1, "a_2"), Self.row(2)]])
        let other = try await bench.take(.test("b", number: 8, row: Self.row(3)))
        #expect(try await reports(after: 100).map(\.version) == [.test("b")])
        for _ in [id, other] { try await bench.settle(.test(.delivered)) }
        try await journal.placeWorkSettled([(id, nil, false), (other, nil, false)], mark: 9, at: Bench.start)
        #expect(try await reports(after: 9).isEmpty)
        #expect(try await reports(after: 8).map(\.version) == [.test("b")])
        #expect(try await journal.fleetSeen() == 9)
    }

    @Test func `a source is reported as finished from its end on, and by the mark of that later`() async throws {
        let id = try await bench.settled(.test("a", row: Self.row(1)), finish: 9, mark: 5)
        #expect(try await reports(after: 100).map(\.isFinished) == [false])
        try await bench.finishAll(Disposition.deleted)
        #expect(try await reports(after: 100).map(\.isFinished) == [true])
        try await journal.placeWorkFinished([id], mark: 20)
        #expect(try await reports(after: 20).isEmpty)
        let found = try await reports(after: 19)
        #expect(found.map(\.isFinished) == [true] && found.map(\.rows) == [[Self.row(1)]])
        #expect(try await isKnown("a") == [true])
    }

    @Test func `of dropped work its version and its keys are remembered, as the fleet had it then`() async throws {
        try await journal.saw(mark: 6)
        let id = try await bench.take(.test("a", row: Self.row(1)))
        try await journal.dropPlaceWork([id])
        #expect(try await isKnown("a") == [true])
        #expect(try await reports(after: 6).isEmpty)
        #expect(try await reports(after: 5).map(\.rows) == [[Self.row(1)]])
    }

    @Test(arguments: [DeliveryState.gone, .superseded])
    func `the fleet is asked again about a version of which nothing was delivered`(state: DeliveryState) async throws {
        let id = try await bench.take(.test("a", row: Self.row(1)))
        try await bench.settle(.test(state))
        try await journal.placeWorkSettled([(id, nil, false)], mark: 5, at: Bench.start)
        #expect(try await isKnown("a") == [false])
        try await journal.keepAdmittedInPlace(Self.share, [(.test("a"), [Self.row(1)])], mark: 9)
        #expect(try await isKnown("a") == [true])
        try await bench.finishAll()
        // A gone one continues under its key; the key of the other was free again.
        let next = try await bench.take(.test("a", number: 30, session: 2))
        #expect((next == id) == (state == .gone))
        #expect(try await bench.due() == ["a"])
    }

    @Test func `another identity of the fleet reports nothing of the former's, and another fleet knows nothing`()
        async throws
    {
        func identity(_ fleet: String) -> FleetIdentity {
            FleetIdentity(agent: 3, name: "n", tag: "k3f9q2", token: [1], journal: "j", fleet: fleet)
        }
        try await journal.keepFleetIdentity(identity("f"), isFresh: true)
        try await journal.keepAdmittedInPlace(Self.share, [(.test("a"), [Self.row(1)])], mark: 5)
        try await journal.keepAdmittedInPlace(Self.share, [(.test("b"), [Self.row(2)])], mark: nil)
        try await journal.keepFleetIdentity(identity("f"), isFresh: true)
        #expect(try await reports().map(\.version) == [.test("b")])
        #expect(try await isKnown("a") == [true])
        try await journal.keepFleetIdentity(identity("g"), isFresh: true)
        #expect(try await isKnown("a") == [false])
        #expect(try await reports().isEmpty)
    }

    @Test func `versions are forgotten ninety days after they were kept or finished`() async throws {
        let id = try await bench.settled(.test("done", row: Self.row(1)), finish: 9)
        try await bench.finishAll()
        try await journal.placeWorkFinished([id], mark: 6)
        let names = (0..<300).map { "theirs-\($0)" }
        try await journal.keepKnownInPlace(Self.share, names.map { .test($0) })
        try await bench.prune(at: Bench.start + .seconds(89 * 86_400))
        #expect(try await isKnown("done", "theirs-0") == [true, true])
        try await bench.prune(at: Bench.start + .seconds(90 * 86_400))
        #expect(try await isKnown("done", "theirs-0") == [false, true])
        try await bench.prune(at: Bench.start + .seconds(50 * 365 * 86_400))
        #expect(try await isKnown("theirs-0", "theirs-299") == [false, false])
    }

    @Test func `own files of a folder are told once, without those that may be sent again`() async throws {
        let root: FilePath = "/in"
        _ = try await bench.bury("old")
        try await bench.settled("gone", .gone, finishes: true)
        try await bench.settled("back", .superseded, finishes: true)
        try await bench.settled("deleted", .delivered)
        try await bench.finishAll(Disposition.deleted)
        try await bench.settled("failed", .failed)
        _ = try await bench.reject(.refused("rejected"))
        try await bench.take(.test("work"))
        let last = try await bench.admit("waits")
        let page = try #require(try await journal.ownInPlace(root, after: 0, limit: 100))
        #expect(Set(page.versions) == [.test("old"), .test("failed"), .test("waits")] && page.last == last)
        var (found, from) = ([PlaceVersion](), Int64(0))
        while let some = try await journal.ownInPlace(root, after: from, limit: 2) {
            (found, from) = (found + some.versions, some.last)
        }
        #expect(Set(found) == Set(page.versions) && found.count == 3)
        #expect(try await journal.ownInPlace("/elsewhere", after: 0, limit: 9)?.last == nil)
        try await journal.keepPlaceMarker("media", Self.share, isMade: true)
        try await journal.keepOwnInPlace(("media", Self.share, root), [.test("old")], upTo: last, mark: 7)
        #expect(try await journal.toldInPlace("media", root) == last)
        #expect(try await journal.toldInPlace("media", "/elsewhere") == 0)
        #expect(try await journal.isFinishedInPlace(Self.share, .test("old")))
        #expect(try await !journal.isFinishedInPlace(Self.share, .test("waits")))
        #expect(try await reports(after: 6).filter(\.isFinished).map(\.version) == [.test("old")])
        #expect(try await reports(after: 7).filter(\.isFinished).isEmpty)
        try await journal.forgetInPlace(Self.share, [.test("old")])
        #expect(try await isKnown("old") == [false])
        let back = try await bench.admit("back")
        let both: [PlaceVersion] = [.test("gone"), .test("back")]
        try await journal.keepOwnInPlace(("media", Self.share, root), both, upTo: back, mark: 8)
        let lost = try await journal.lostOwnInPlace("media", Self.share, root)
        #expect(lost == [.test("gone")])
        try await journal.forgetInPlace(Self.share, lost)
        #expect(try await journal.lostOwnInPlace("media", Self.share, root).isEmpty)
        try await journal.keepPlaceMarker("media", "another", isMade: true)
        #expect(try await journal.toldInPlace("media", root) == 0)
    }

    @Test func `markers are kept by the names of their shares`() async throws {
        #expect(try await journal.placeMarker("media") == nil)
        try await journal.keepPlaceMarker("media", "m1", isMade: false)
        #expect(try await journal.placeMarker("media").map { $0 == ("m1", false) } == true)
        try await journal.keepPlaceMarker("media", "m1", isMade: true)
        try await journal.keepPlaceMarker("raw", "m2", isMade: true)
        let reopened = try bench.reopen()
        defer { reopened.close() }
        #expect(try await reopened.placeMarker("media").map { $0 == ("m1", true) } == true)
        #expect(try await reopened.placeMarkers() == ["media": "m1", "raw": "m2"])
    }
}
