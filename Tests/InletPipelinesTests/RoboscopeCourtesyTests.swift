import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What other people at a session are told while it is written to: presence and the lock, for as long as it takes, and not
/// longer.
@Suite(.timeLimit(.minutes(8))) struct RoboscopeCourtesyTests {
    /// Cancels an attempt whose markers are never answered, once `body` has looked.
    private static func whileStalled(
        _ place: RoboscopePlace, _ body: (_ session: String) async throws -> Void
    ) async throws {
        place.sandbox.faults.add(RoboscopeFault(.stall, at: .bulkMarkers, times: nil))
        let order = try place.order("atrium/markers.json", markerList(20))
        let attempt = Notes().attempt()
        let task = Task { try await place.failure(order, attempt) }
        do {
            try await eventually("markers are under way") { place.count(.bulkMarkers) == 1 }
            try await body(try #require(place.sandbox.sessions().first?.id))
        } catch {
            task.cancel()
            throw error
        }
        task.cancel()
        #expect(try await task.value?.verdict == .cancelled)
    }

    @Test func `an attempt that is cancelled gives the lock back and leaves`() async throws {
        try await withRoboscope { place in
            try await Self.whileStalled(place) { session in
                #expect(place.sandbox.isLocked(session: session) && place.sandbox.present(in: session).count == 1)
            }
            let session = try #require(place.sandbox.sessions().first?.id)
            try await eventually("the lock is given back") { !place.sandbox.isLocked(session: session) }
            try await eventually("nobody is present") { place.sandbox.present(in: session).isEmpty }
            #expect(place.sandbox.visitors(of: session).count == 1 && place.sandbox.markers().isEmpty)
            // So that the next one need not wait for it.
            place.sandbox.faults.clear()
            _ = try await place.deliver(try place.order("atrium/markers.json", markerList(20)))
            #expect(place.count(.lock) == 2 && place.sandbox.markers().count == 20)
        }
    }

    @Test func `a cancelled attempt does not wait for a server that is silent`() async throws {
        try await withRoboscope { place in
            place.sandbox.faults.add(RoboscopeFault(.stall, at: .unlock, times: nil))
            place.sandbox.faults.add(RoboscopeFault(.stall, at: .leave, times: nil))
            // A request that is waited for takes 30 s.
            let clock = ContinuousClock()
            var start = clock.now
            try await Self.whileStalled(place) { _ in start = clock.now }
            #expect(clock.now - start < .seconds(15))
            try await eventually("both were said") { place.count(.unlock) == 1 && place.count(.leave) == 1 }
        }
    }

    @Test func `presence and lock last as long as the work`() async throws {
        let clock = HandClock()
        try await withRoboscope(beat: .milliseconds(20), clock: clock) { place in
            try await Self.whileStalled(place) { session in
                // Each round is shorter than what the server grants at once; together they are much longer.
                for round in 1...4 {
                    clock.advance(.seconds(25))
                    let (signs, extensions) = (place.count(.enter), place.count(.extendLock))
                    try await eventually("signs of life in round \(round)") {
                        place.count(.enter) >= signs + 2 && place.count(.extendLock) >= extensions + 2
                    }
                    #expect(place.sandbox.isLocked(session: session), "round \(round)")
                    #expect(place.sandbox.present(in: session).count == 1, "round \(round)")
                }
                #expect(place.count(.lock) == 1)
            }
        }
    }

    @Test func `a lock that is met later is waited for anew, however long another one was`() async throws {
        try await withRoboscope { place in
            let order = try place.order("atrium/markers.json", markerList(20))
            let notes = Notes(["locked": Array(String(WallTime.now.milliseconds - 700_000).utf8)])
            _ = try await place.deliver(order, notes)
            let session = try #require(place.sandbox.sessions().first?.id)
            place.sandbox.lock(session: session, for: .seconds(3600))
            guard case .waiting(_, let saying) = try await place.attempt(order, notes.attempt()).get() else {
                Issue.record("does not wait")
                return
            }
            #expect(saying?.contains("locked") == true)
        }
    }

    @Test func `a server without locks is still told who is there`() async throws {
        let beat = Duration.milliseconds(20)
        try await withRoboscope(rules: RoboscopeRules(hasLocks: false), beat: beat) { place in
            try await Self.whileStalled(place) { session in
                try await eventually("signs of life") { place.count(.enter) >= 4 }
                #expect(place.count(.extendLock) == 0 && place.sandbox.present(in: session).count == 1)
            }
        }
    }
}
