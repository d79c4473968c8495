import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// Markers that arrive each exactly once, whatever becomes of requests and answers.
@Suite(.timeLimit(.minutes(8))) struct RoboscopeMarkerTests {
    /// Every marker of a file of `count`, exactly once and in the session.
    private static func expectAll(_ count: Int, _ place: RoboscopePlace, session: String?) {
        let markers = place.sandbox.markers()
        #expect(markers.count == count)
        let stamps = Set(markers.compactMap { $0.customProps["ingest_id"]?.text })
        #expect(stamps.count == count)
        let numbers = Set(stamps.compactMap { $0.split(separator: "#").last.flatMap { Int($0) } })
        #expect(numbers == Set(0..<count))
        #expect(markers.allSatisfy { $0.sessionID == session })
    }

    @Test func `a file becomes markers of a session of its own, with all they say`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let attempt = Notes().attempt()
            guard case .delivered(let proof) = try await place.attempt(order, attempt).get() else {
                Issue.record("not delivered")
                return
            }
            let session = try #require(place.sandbox.sessions().first)
            #expect(session.spaceID == (try place.space("atrium")).id && session.status == "active")
            #expect(session.type == "inspection")
            Self.expectAll(250, place, session: session.id)
            #expect(place.count(.bulkMarkers) == 3 && place.count(.createMarker) == 0)
            let marker = try #require(place.sandbox.markers().first { $0.label == "crack 249" })
            #expect(
                marker.corners == [[249, 0, 0], [1, 0, 0.5], [1, 1, -0.2], [0, 1, 0]] && marker.color == "#FF8800")
            #expect(marker.customProps["severity"]?.text == "high" && marker.meta?["row"]?.number == 249)
            #expect(proof.method == .registered && proof.details?["markers"] == "250")
            #expect(proof.details?["session_id"] == session.id)
            let sha = try #require(proof.content?.digest.hex)
            #expect(marker.customProps["ingest_id"]?.text == "\(sha)#249")
            #expect(attempt.progress?.percent == 100 && attempt.progress?.step == "250 of 250 markers")
        }
    }

    @Test func `ten thousand markers arrive once each, with the connection cut five times`() async throws {
        let cuts: [RoboscopeFault] = [
            RoboscopeFault(.loseAnswer, at: .bulkMarkers, times: 2),
            RoboscopeFault(.reset(afterBytes: 9000), at: .bulkMarkers, times: 1),
            RoboscopeFault(.loseAnswer, at: .bulkMarkers, times: 1),
            RoboscopeFault(.reset(afterBytes: 0), at: .bulkMarkers),
        ]
        try await withRoboscope { place in
            // Spread over the import: one more each time some hundreds have arrived.
            let order = try place.order("atrium/markers.json", markerList(10_000))
            let notes = Notes()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { _ = try await place.deliver(order, notes) }
                for (index, cut) in cuts.enumerated() {
                    let least = 400 + index * 2000
                    try await eventually("\(least) markers", within: .seconds(120)) {
                        place.count(.bulkMarkers) * 100 >= least
                    }
                    place.sandbox.faults.add(cut)
                }
                try await group.waitForAll()
            }
            #expect(place.sandbox.faults.injected(at: .bulkMarkers) == 5)
            Self.expectAll(10_000, place, session: place.sandbox.sessions().first?.id)
            #expect(place.sandbox.sessions().count == 1)
            let requests = place.count(.bulkMarkers)
            let again = try await place.deliver(order)
            #expect(again.details?["markers"] == "10000")
            Self.expectAll(10_000, place, session: place.sandbox.sessions().first?.id)
            #expect(place.count(.bulkMarkers) == requests)
        }
    }

    @Test func `an attempt that ends anywhere is gone on with by the next`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(500))
            let notes = Notes()
            // One chunk whose answer is lost, and then more failures than an attempt bears.
            for round in 1...2 {
                place.sandbox.faults.add(RoboscopeFault(.loseAnswer, at: .bulkMarkers))
                place.sandbox.faults.add(RoboscopeFault(.status(500), at: .bulkMarkers, times: nil))
                let error = try await place.failure(order, notes.attempt())
                #expect(error?.code == .serverError && place.sandbox.markers().count == round * 100)
                place.sandbox.faults.clear()
            }
            _ = try await place.deliver(order, notes)
            Self.expectAll(500, place, session: place.sandbox.sessions().first?.id)
            #expect(place.count(.createSession) == 1)
        }
    }

    @Test func `an attempt that is stopped between chunks leaves them whole`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(1000))
            let notes = Notes()
            let attempt = notes.attempt(isStopping: { place.count(.bulkMarkers) >= 3 })
            #expect(try await place.failure(order, attempt)?.verdict == .cancelled)
            #expect(place.sandbox.markers().count == 300)
            _ = try await place.deliver(order, notes)
            Self.expectAll(1000, place, session: place.sandbox.sessions().first?.id)
            #expect(place.count(.bulkMarkers) == 10)
        }
    }

    @Test func `one wrong marker and nothing is sent`() async throws {
        try await withRoboscope { place in
            let text = markerList(300).replacing("[299,0,0]", with: "[299,0]")
            let error = try await place.failure(try place.order("atrium/markers.json", text))
            #expect(error?.verdict == .giveUp && error?.code == .rejected)
            #expect(error?.reason.contains("marker 300: p1 has 2 numbers") == true)
            #expect(place.requests == 0)
        }
    }

    @Test func `a file of more than 64 MiB is refused before it is read`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", "[]")
            let file = place.root.path.pushing(order.path)
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file.string))
            try handle.truncate(atOffset: 64 << 20 + 1)
            try handle.close()
            var large = order
            large.source = try SourceFile(opening: file).opened
            let error = try await place.failure(large)
            #expect(error?.verdict == .giveUp && error?.code == .tooLarge)
        }
    }

    @Test func `the file may name its space and its session`() async throws {
        try await withRoboscope { place in
            let space = place.sandbox.addSpace(key: "hall")
            _ = try await place.deliver(try place.order("atrium/markers.json", markerList(3, space: "hall")))
            let session = try #require(place.sandbox.sessions().first)
            #expect(session.spaceID == space.id && place.sandbox.spaces().count == 1)
            let named = try place.order("atrium/markers.json", markerList(5, session: session.id.uppercased()))
            _ = try await place.deliver(named)
            #expect(place.sandbox.sessions().count == 1)
            #expect(
                place.sandbox.markers().count == 8 && place.sandbox.markers().allSatisfy { $0.sessionID == session.id })
            let nowhere = try place.order(
                "atrium/markers.json", markerList(2, session: "00000000-0000-0000-0000-000000000000"))
            let error = try await place.failure(nowhere)
            #expect(error?.verdict == .giveUp && error?.code == .notFound)
            #expect(place.sandbox.markers().count == 8)
        }
    }

    @Test func `YAML is read through what the factory was given`() async throws {
        let read: YAMLReading = { bytes, name in
            guard String(decoding: bytes, as: UTF8.self) == "markers: good", name == "markers.yaml" else {
                throw NotThisOne(description: "markers.yaml:1:1: not this one")
            }
            return Array(markerList(4).utf8)
        }
        try await withRoboscope(readYAML: read) { place in
            _ = try await place.deliver(try place.order("atrium/markers.yaml", "markers: good"))
            Self.expectAll(4, place, session: place.sandbox.sessions().first?.id)
            let error = try await place.failure(try place.order("atrium/markers.yaml", "markers: bad"))
            #expect(error?.verdict == .giveUp && error?.reason.contains("markers.yaml:1:1: not this one") == true)
        }
        try await withRoboscope { place in
            let error = try await place.failure(try place.order("atrium/markers.yml", "markers: good"))
            #expect(error?.verdict == .giveUp && error?.reason.contains("write it as JSON") == true)
        }
    }

    @Test func `the same content twice is one session with one set of markers`() async throws {
        try await withRoboscope { place in
            let orders = try ["a", "b"].map { try place.order(FilePath("atrium/\($0)/markers.json"), markerList(150)) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in orders { group.addTask { _ = try await place.deliver(order) } }
                try await group.waitForAll()
            }
            Self.expectAll(150, place, session: place.sandbox.sessions().first?.id)
            #expect(place.sandbox.sessions().count == 1)
        }
    }

    @Test func `a copy that a late request left behind goes, and a marker that somebody moved stays`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(20))
            _ = try await place.deliver(order)
            let made = try await place.admin.list(.markers).compactMap(\.object)
            var copy = made[7]
            for name in ["id", "version", "created_at", "updated_at", "label"] { copy[name] = nil }
            let late = try await place.admin.create(.markers, copy)
            copy["p1"] = .array([JSONValue(9), JSONValue(9), JSONValue(9)])
            let moved = try await place.admin.create(.markers, copy)
            _ = try await place.deliver(order)
            let ids = Set(place.sandbox.markers().map(\.id))
            #expect(ids.count == 21 && !ids.contains(late["id"]?.string ?? ""))
            #expect(ids.contains(moved["id"]?.string ?? "") && place.count(.bulkMarkers) == 1)
        }
    }

    @Test func `a server without the bulk call gets markers one by one`() async throws {
        try await withRoboscope(faults: RoboscopeFault(.status(405), at: .bulkMarkers, times: nil)) { place in
            let order = try place.order("atrium/markers.json", markerList(120))
            place.sandbox.faults.add(RoboscopeFault(.loseAnswer, at: .createMarker))
            _ = try await place.deliver(order)
            Self.expectAll(120, place, session: place.sandbox.sessions().first?.id)
            #expect(place.count(.bulkMarkers) == 1 && place.count(.createMarker) == 120)
        }
    }

    @Test func `a server that forgets stamps is sent one chunk, and no more`() async throws {
        try await withRoboscope { place in
            let nothing = FaultReply(200, type: "application/json", body: "[]")
            place.sandbox.faults.add(RoboscopeFault(.reply(nothing), at: .listMarkers, times: nil))
            let error = try await place.failure(try place.order("atrium/markers.json", markerList(250)))
            #expect(error?.verdict == .giveUp && error?.reason.contains("ingest_id") == true)
            #expect(place.count(.bulkMarkers) == 1 && place.sandbox.markers().count == 100)
        }
    }

    @Test func `requests that are too large become smaller`() async throws {
        var rules = RoboscopeRules()
        rules.bodyLimit = 8000
        try await withRoboscope(rules: rules, settings: ["chunk": .integer(64)]) { place in
            _ = try await place.deliver(try place.order("atrium/markers.json", markerList(100)))
            Self.expectAll(100, place, session: place.sandbox.sessions().first?.id)
        }
    }

    @Test func `the route says how a session of markers ends`() async throws {
        try await withRoboscope { place in
            let fields = ["session_status": "done", "session_type": "repair"]
            let order = try place.order("atrium/markers.json", markerList(3), fields: fields)
            _ = try await place.deliver(order)
            let session = try #require(place.sandbox.sessions().first)
            #expect(session.status == "done" && session.type == "repair" && session.completedAt != nil)
        }
    }
}

private struct NotThisOne: Error, CustomStringConvertible { let description: String }
