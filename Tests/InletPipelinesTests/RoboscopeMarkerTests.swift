import Foundation
import InletCore
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Markers that arrive each exactly once, whatever becomes of requests and answers.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeMarkerTests {
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
            let proof = try await place.attempt(order, attempt).get().proof()
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
            expectError(try await place.failure(large), .giveUp, code: .tooLarge)
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
            expectError(try await place.failure(nowhere), .giveUp, code: .notFound)
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

/// Attempts that go on from the notes of another one, as after `queue retry`: what the server has confirmed is never sent
/// again, whatever it lists by then.
@Suite(.timeLimit(.minutes(15))) struct RoboscopeMarkerRetryTests {
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
            let error = expectError(try await place.failure(order, notes.attempt()), .giveUp, code: .badAnswer)
            #expect(error?.reason.contains("accepted 200 markers, but lists 0") == true)
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
            let error = expectError(try await place.failure(order, notes.attempt()), .giveUp)
            #expect(error?.reason.contains("accepted 200 markers, but lists 199") == true)
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
            #expect(error?.reason.contains("accepted 30 markers, but lists 0") == true)
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

/// What a file of markers may say, decided without a server.
struct RoboscopeMarkerRuleTests {
    private static let digest = Digest(.sha256, [UInt8](repeating: 0xAB, count: 32))

    private static func file(_ text: String) throws -> MarkerFile {
        try MarkerFile(Array(text.utf8), digest: digest)
    }

    private static let good = #"{"p1":[0,0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#

    static let files: [(String, Int, String?, String?)] = [
        ("[\(good)]", 1, nil, nil), (#"{"markers":[\#(good),\#(good)]}"#, 2, nil, nil),
        (#"{"space":"atrium","markers":[\#(good)]}"#, 1, "atrium", nil),
        (#"{"markers":[\#(good)],"space_key":"atrium","session":"6f1c-AB"}"#, 1, "atrium", "6f1c-AB"),
        (#"{"session":{"type":"repair"},"markers":[\#(good)],"exported":{"by":"x"}}"#, 1, nil, nil),
        ("\u{FEFF} [ \(good) , \(good) ]\n", 2, nil, nil),
    ]

    @Test(arguments: files) func `a list is read with what stands around it`(
        _ text: String, _ count: Int, _ space: String?, _ session: String?
    ) throws {
        let file = try Self.file(text)
        #expect(file.count == count && file.space == space && file.session == session)
    }

    static let wrong: [(String, String)] = [
        (#"{"p1":[0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#, "marker 2: p1 has 2 numbers; three are needed"),
        (#"{"p1":[0,0,0],"p2":[1,0,0],"p3":[1,1,0]}"#, "marker 2: p4 is missing"),
        (
            #"{"p1":[0,"0",0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#,
            "marker 2: p1 holds something else than finite numbers"
        ),
        (
            #"{"p1":[0,1e999,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#,
            "marker 2: p1 holds something else than finite numbers"
        ),
        (#"{"p1":"0,0,0","p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#, "marker 2: p1 is not a list of three numbers"),
        (and(#","color":"red"}"#), "marker 2: color is not like #FF8800"),
        (and(##","color":"#FF88"}"##), "marker 2: color is not like #FF8800"),
        (and(#","label":7}"#), "marker 2: label is not text"),
        (and(#","custom_props":[]}"#), "marker 2: custom_props is not an object"),
        ("7", "marker 2: value is not an object"),
    ]

    /// A good marker with more behind its corners.
    private static func and(_ more: String) -> String { good.dropLast() + more }

    @Test(arguments: wrong) func `one wrong marker refuses the file, by its number`(_ marker: String, _ reason: String)
    {
        let fault = #expect(throws: DeliveryError.self) { try Self.file("[\(Self.good),\(marker),\(Self.good)]") }
        #expect(fault?.reason == reason)
    }

    @Test(arguments: [
        ("", "line 1, column 1"), ("[", "line 1, column 2"), ("{\"markers\":[}", "line 1, column 13"),
        ("[]", "there are no markers in it"), ("{}", "there are no markers in it"), ("7", "is expected"),
        (#"{"markers":{}}"#, "'markers' is not a list"), (#"{"marker":[]}"#, "there are no markers in it"),
        (#"{"space":7,"markers":[]}"#, "'space' is not text"),
        (#"{"session":"../x","markers":[]}"#, "'session' is not an id"),
        (#"{"session":{"typ":"x"},"markers":[]}"#, "session: typ is not a field of a session"),
    ]) func `a file that is none is refused`(_ text: String, _ reason: String) {
        let fault = #expect(throws: DeliveryError.self) { try Self.file(text) }
        #expect(fault?.reason.contains(reason) == true, "\(String(describing: fault))")
    }

    @Test func `many faults are counted, and ten shown`() {
        let text = "[" + [String](repeating: "7", count: 25).joined(separator: ",") + "]"
        let fault = #expect(throws: DeliveryError.self) { try Self.file(text) }
        #expect(fault?.reason.hasSuffix("marker 10: value is not an object; and 15 more") == true)
    }

    @Test func `a marker goes out with everything but what the server gives`() throws {
        let marker =
            #"{"id":"x","version":3,"created_at":"t","details":{},"work_session_id":"old","label":"a","color":null,"#
            + #""p1":[0,0,1.250],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0],"extra":{"k":[1]},"custom_props":{"s":1}}"#
        let file = try Self.file("[\(Self.good),\(marker)]")
        let hex = String(repeating: "ab", count: 32)
        let sent = file.marker(1, session: "new")
        #expect(
            JSONValue.object(sent).text
                == #"{"custom_props":{"ingest_id":"\#(hex)#1","s":1},"extra":{"k":[1]},"label":"a","p1":[0,0,1.250],"#
                + #""p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0],"work_session_id":"new"}"#)
        #expect(file.ingestID(1) == "\(hex)#1" && file.index(of: "\(hex)#1") == 1)
        for other in ["\(hex)#2", "\(hex)#-1", "\(hex)#", "\(hex)", "x#1", "\(hex)#1x"] {
            #expect(file.index(of: other) == nil)
        }
    }

    @Test func `of equal copies the oldest stays, and what differs is nobody's copy`() {
        func copy(_ id: String, _ time: Int64?, _ corners: String = "c") -> MarkerUpload.Copy {
            (id, time.map { WallTime(milliseconds: $0) }, corners)
        }
        #expect(MarkerUpload.extras([copy("a", 1)]) == [])
        #expect(MarkerUpload.extras([copy("a", 5), copy("b", 1), copy("c", 9)]) == ["a", "c"])
        #expect(MarkerUpload.extras([copy("b", 1), copy("a", 1)]) == ["b"])
        #expect(MarkerUpload.extras([copy("a", nil), copy("b", 2)]) == ["a"])
        #expect(MarkerUpload.extras([copy("a", 1), copy("b", 2, "moved"), copy("c", 3)]) == ["c"])
    }
}
