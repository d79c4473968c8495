import InletCore
import InletSandbox
import InletTestSupport
import InletTransfer
import SystemPackage
import Testing

@testable import InletPipelines

/// A whole unit through a bad line: whatever request is lost, each thing is there once in the end.
@Suite(.timeLimit(.minutes(8))) struct RoboscopeFaultTests {
    private static let member = OrderBatch(id: 9, name: "card", folder: "card")
    private static let closing = OrderBatch(id: 9, name: "card", folder: "card", role: .closing, files: 6)

    /// Every fourth request goes wrong in one of four ways.
    private static let line: [RoboscopeFault] = [
        RoboscopeFault(.loseAnswer, times: nil, probability: 0.08),
        RoboscopeFault(.reset(afterBytes: 0), times: nil, probability: 0.06),
        RoboscopeFault(.status(500), times: nil, probability: 0.06),
        RoboscopeFault(.truncateAnswer(afterBytes: 20), times: nil, probability: 0.06),
    ]

    @Test(arguments: [false, true]) func `a request ends when nothing comes, and when its answer drips on and on`(
        _ isDripping: Bool
    ) async throws {
        let server = try ScriptedServer { connection in
            _ = try connection.readRequest()
            guard isDripping else { return connection.waitForEnd() }
            try connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while connection.linger(milliseconds: 20) { try connection.write(" ") }
        }
        let client = HTTPClient(userAgent: "inlet-tests/1")
        defer { client.shutdown() }
        let settings = try RoboscopeSettings(
            section(["url": .string("http://127.0.0.1:\(server.port)/api/v1"), "storage": .string("spiral")]))
        // What the reference allows, of nothing and in all; too long for a test that looks on.
        let usual = RoboscopeAPI(settings: settings, client: client).request("GET", "spaces", limit: 1)
        #expect(usual.stallTimeout == .seconds(30) && usual.answerDeadline == .seconds(30))
        let api = RoboscopeAPI(settings: settings, client: client, patience: .milliseconds(300))
        let error = await failure { () throws(DeliveryError) in try await api.objects(.spaces) }
        #expect(error?.code == .timedOut || !isDripping && error?.code == .stalled, "\(String(describing: error))")
        try await eventually("it was asked once") { server.connections == 1 }
    }

    @Test(arguments: [UInt64(1), 2, 3]) func `a unit arrives once over a bad line`(_ seed: UInt64) async throws {
        let settings: [String: ConfigValue?] = ["locks": .boolean(false), "chunk": .integer(40)]
        try await withRoboscope(seed: seed, faults: Self.line, settings: settings) { place in
            let fields = ["space": "hall"]
            let clips = try (0..<4).map { index in
                try place.order(FilePath("card/\(index).mp4"), stored: "u:\(index)", fields: fields, batch: Self.member)
            }
            let model = try place.order("card/m.glb", stored: "u:m", fields: fields, batch: Self.member)
            let markers = try place.order("card/markers.json", markerList(300), fields: fields, batch: Self.member)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in clips + [model, markers] {
                    group.addTask { try await Self.insist(place, order) }
                }
                try await group.waitForAll()
            }
            try await Self.insist(place, try place.order("card/0.mp4", fields: fields, batch: Self.closing))
            #expect(try place.space("hall").modelGLBURL == "u:m")
            let session = try #require(place.sandbox.sessions().first)
            #expect(place.sandbox.sessions().count == 1 && session.status == "done")
            #expect(session.meta?["ingest_files"]?.number == 6)
            let stamps = place.sandbox.markers().compactMap { $0.customProps["ingest_id"]?.text }
            #expect(stamps.count == 300 && Set(stamps).count == 300)
            #expect(place.sandbox.markers().allSatisfy { $0.sessionID == session.id })
        }
    }

    @Test func `a server that lists only some markers is sent none of them twice`() async throws {
        var rules = RoboscopeRules()
        rules.longestList = 150
        try await withRoboscope(rules: rules) { place in
            let error = try await place.failure(try place.order("atrium/markers.json", markerList(420)))
            #expect(error?.verdict == .giveUp && error?.reason.contains("has taken 420 markers, but lists 150") == true)
            #expect(place.count(.bulkMarkers) == 5 && place.sandbox.markers().count == 420)
        }
    }

    @Test func `what a list shows late is waited for, not sent again`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let attempt = Notes().attempt()
            let late = FaultReply(200, type: "application/json", body: "[]")
            // The first list is empty anyway; the two after it are late.
            place.sandbox.faults.add(RoboscopeFault(.reply(late), at: .listMarkers, times: 3))
            guard case .delivered = try await place.attempt(order, attempt).get() else {
                Issue.record("not delivered")
                return
            }
            #expect(place.count(.bulkMarkers) == 3 && place.sandbox.markers().count == 250)
        }
    }

    @Test func `markers go to no second session while nobody can say whether the first is there`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(120))
            let notes = Notes()
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .bulkMarkers, times: nil))
            #expect(try await place.failure(order, notes.attempt())?.code == .serverError)
            place.sandbox.faults.clear()
            let first = try #require(place.sandbox.sessions().first)
            // Somebody takes the stamp away that it would be found by.
            _ = try await place.admin.update(.sessions, first.id, ["meta": .object(["ingest_batch": .string("mine")])])
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .session))
            #expect(try await place.failure(order, notes.attempt())?.code == .serverError)
            #expect(place.sandbox.sessions().count == 1)
            _ = try await place.deliver(order, notes)
            #expect(place.sandbox.sessions().count == 1 && place.sandbox.markers().count == 120)
            _ = try await place.admin.delete(.sessions, first.id)
            _ = try await place.deliver(order, notes)
            #expect(place.sandbox.sessions().count == 1 && place.sandbox.markers().count == 120)
        }
    }

    @Test func `the lock of an attempt that was killed is gone on with, not waited for`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(250))
            let notes = Notes()
            // As a killed agent: it never gives the lock back.
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .unlock, times: nil))
            place.sandbox.faults.add(RoboscopeFault(.status(500), at: .bulkMarkers, times: nil))
            #expect(try await place.failure(order, notes.attempt())?.code == .serverError)
            place.sandbox.faults.clear()
            guard case .delivered = try await place.attempt(order, notes.attempt()).get() else {
                Issue.record("not delivered")
                return
            }
            #expect(place.count(.lock) == 1 && place.count(.extendLock) == 1)
        }
    }

    /// Attempt after attempt, as the agent does it; nothing on this line is for good.
    private static func insist(_ place: RoboscopePlace, _ order: DeliveryOrder) async throws {
        let notes = Notes()
        for _ in 1...200 {
            switch try await place.attempt(order, notes.attempt()) {
            case .success(.delivered): return
            case .success(.waiting): continue
            case .failure(let error):
                switch error.verdict {
                case .retry, .outage: continue
                default: throw error
                }
            }
        }
        throw DeliveryError(.giveUp, .internalFault, "not delivered in 200 attempts")
    }
}
