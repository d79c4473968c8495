import InletCore
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Attempts that go on from the notes of another one, as after `queue retry`: what the server has confirmed is never sent
/// again, whatever it lists by then.
@Suite(.timeLimit(.minutes(8))) struct RoboscopeMarkerRetryTests {
    private static let empty = FaultReply(200, type: "application/json", body: "[]")

    /// Numbers of the markers that are there, sorted.
    private static func numbers(_ place: RoboscopePlace) -> [Int] {
        place.sandbox.markers().compactMap { marker in
            marker.customProps["ingest_id"]?.text?.split(separator: "#").last.flatMap { Int($0) }
        }.sorted()
    }

    /// An attempt that ends once so many requests of a kind have come.
    private static func stop(
        _ place: RoboscopePlace, _ order: DeliveryOrder, _ notes: Notes, after count: Int,
        _ operation: RoboscopeOperation
    ) async throws {
        let attempt = notes.attempt(isStopping: { place.count(operation) >= count })
        #expect(try await place.failure(order, attempt)?.verdict == .cancelled)
        notes.fail()
    }

    @Test func `markers that the server hides are not sent again by a retry`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let notes = Notes()
            try await Self.stop(place, order, notes, after: 2, .bulkMarkers)
            #expect(Self.numbers(place) == Array(0..<200))
            place.sandbox.faults.add(RoboscopeFault(.reply(Self.empty), at: .listMarkers, times: nil))
            let error = try await place.failure(order, notes.attempt())
            #expect(error?.verdict == .giveUp && error?.code == .badAnswer)
            #expect(error?.reason.contains("has taken 200 markers, but lists 0") == true)
            #expect(place.count(.bulkMarkers) == 2)
            notes.fail()
            // Listed again, the rest follows.
            place.sandbox.faults.clear()
            _ = try await place.deliver(order, notes)
            #expect(Self.numbers(place) == Array(0..<250) && place.count(.bulkMarkers) == 3)
        }
    }

    @Test func `markers that somebody has deleted there do not come back`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let notes = Notes()
            try await Self.stop(place, order, notes, after: 2, .bulkMarkers)
            let marker = try #require(place.sandbox.markers().first { $0.label == "crack 7" })
            try await place.admin.delete(.markers, marker.id)
            let error = try await place.failure(order, notes.attempt())
            #expect(error?.verdict == .giveUp)
            #expect(error?.reason.contains("has taken 200 markers, but lists 199") == true)
            #expect(Self.numbers(place) == (0..<200).filter { $0 != 7 } && place.count(.bulkMarkers) == 2)
        }
    }

    @Test func `markers whose answer was lost count once they have been listed`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let notes = Notes()
            place.sandbox.faults.add(RoboscopeFault(.loseAnswer, at: .bulkMarkers))
            // The first chunk is found in the list; nothing is sent after it.
            let attempt = notes.attempt(isStopping: { place.count(.listMarkers) >= 2 })
            #expect(try await place.failure(order, attempt)?.verdict == .cancelled)
            #expect(Self.numbers(place) == Array(0..<100) && place.count(.bulkMarkers) == 1)
            notes.fail()
            place.sandbox.faults.add(RoboscopeFault(.reply(Self.empty), at: .listMarkers, times: nil))
            #expect(try await place.failure(order, notes.attempt())?.verdict == .giveUp)
            #expect(place.count(.bulkMarkers) == 1)
            place.sandbox.faults.clear()
            _ = try await place.deliver(order, notes)
            #expect(Self.numbers(place) == Array(0..<250))
        }
    }

    @Test func `markers sent one by one are not sent again either`() async throws {
        try await withRoboscope(faults: RoboscopeFault(.status(405), at: .bulkMarkers, times: nil)) { place in
            let order = try place.order("atrium/markers.json", markerList(120))
            let notes = Notes()
            try await Self.stop(place, order, notes, after: 30, .createMarker)
            place.sandbox.faults.add(RoboscopeFault(.reply(Self.empty), at: .listMarkers, times: nil))
            let error = try await place.failure(order, notes.attempt())
            #expect(error?.reason.contains("has taken 30 markers, but lists 0") == true)
            #expect(place.count(.createMarker) == 30 && Self.numbers(place) == Array(0..<30))
        }
    }

    @Test func `a session that was made anew gets all markers`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let notes = Notes()
            try await Self.stop(place, order, notes, after: 2, .bulkMarkers)
            let first = try #require(place.sandbox.sessions().first?.id)
            try await place.admin.delete(.sessions, first)
            _ = try await place.deliver(order, notes)
            let second = try #require(place.sandbox.sessions().first?.id)
            #expect(first != second && Self.numbers(place) == Array(0..<250))
            #expect(place.sandbox.markers().allSatisfy { $0.sessionID == second })
        }
    }
}
