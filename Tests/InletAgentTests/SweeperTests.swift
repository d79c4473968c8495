import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@testable import InletAgent

/// What given-up deliveries left at their destinations goes, soon; what a retry can use stays.
@Suite struct SweeperTests {
    @Test func `a leftover is tried again after ten seconds, then ever more rarely`() {
        var pace = SweepPace()
        #expect((1...7).map { _ in pace.wait(for: 1).components.seconds } == [10, 20, 40, 80, 160, 300, 300])
        #expect(pace.wait(for: 2) == .seconds(10))
        pace.forget(1)
        #expect(pace.wait(for: 1) == .seconds(10))
    }

    /// Drops `a`, and waits until its delivery hangs.
    private func stall(_ scene: Scene) async throws {
        scene.here.script("a", .stall)
        try scene.drop("a")
        try await eventually("it is under way") { scene.here.record.running == 1 }
    }

    @Test func `what a person cancels is let go at once, also where the destination is paused and down`() async throws {
        let scene = try Scene()
        scene.here.failProbes(.outage, .outage, .outage, .outage, .outage)
        try await scene.run { stage in
            try await stall(scene)
            scene.here.script("b", .fail(.outage))
            try scene.drop("b")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            let commands = stage.agent.control
            _ = try await commands.setPaused(true, "here", by: "test")
            let job = try await stage.job("a")
            #expect(try await commands.act(.cancel, on: job.file.id) == .done)
            try await eventually("it is let go") { scene.here.record.abandoned.map(\.key) == ["a"] }
            try await stage.finished("a", .cancelled)
        }
    }

    @Test func `a destination that cannot be asked is asked again ten seconds later`() async throws {
        let scene = try Scene()
        scene.here.failAbandons(.outage)
        try await scene.run { stage in
            try await stall(scene)
            let job = try await stage.job("a")
            let before = WallTime.now
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await eventually("it was asked") { scene.here.record.abandoned.count == 1 }
            var next: WallTime?
            try await eventually("it is put off") {
                next = try await stage.journal.nextLeftover()
                return next.map { $0 >= before + .seconds(10) } ?? false
            }
            #expect(try #require(next) <= .now + .seconds(10))
        }
    }

    @Test func `what was left where nobody is configured any more is looked at once a day`() async throws {
        let scene = try Scene()
        let journal = try Journal(
            path: scene.directory.path.appending("state").appending("journal.sqlite"), now: .now)
        let plan = Plan(route: "all", category: "other", key: "a", mediaType: "text/plain", destinations: ["gone"])
        let identity = FileIdentity(size: 1, modified: 1, changed: 1, inode: 1, device: 1)
        let admission = FileAdmission(
            Arrival(root: scene.root, path: "a", identity: identity), plan: plan, lanes: ["gone": .big], uptimes: [:])
        _ = try await journal.admit(admission, at: .now)
        let room = ClaimRoom(destination: "gone", limits: [.big: 1])
        _ = try await journal.withClaim(.big, rooms: [room], clock: { .now }) { claim in
            try await journal.checkpoint(claim.delivery.id, ["upload": [1]])
            return (.ended(.failed, code: .badRequest, reason: "no"), ())
        }
        journal.close()
        let before = WallTime.now
        try await scene.run { stage in
            try await eventually("it is put off") {
                let next = try await stage.journal.nextLeftover()
                return next.map { $0 >= before + .seconds(86_400) } ?? false
            }
        }
    }

    @Test(arguments: [(DeliveryError.serverFault, true), (DeliveryError.outage, true), (DeliveryError.passing, false)])
    func `a server in trouble drops no leftover, however often it is asked`(
        _ error: DeliveryError, _ isKept: Bool
    ) async throws {
        let scene = try Scene()
        scene.here.failAbandons(error)
        try await scene.run { stage in
            try await stall(scene)
            let job = try await stage.job("a")
            let before = WallTime.now
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await eventually("it is put off") {
                let next = try await stage.journal.nextLeftover()
                return scene.here.record.abandoned.count == 1 && next.map { $0 >= before + .seconds(10) } ?? false
            }
            // As many tries as it has, but one.
            let later = WallTime.now + .seconds(3600)
            let delivery = try #require(job.deliveries.first).id
            for _ in 1...15 { try await stage.journal.leftoverRemains(delivery, until: later) }
            #expect((try await stage.journal.nextLeftover() != nil) == isKept)
        }
    }

    @Test(arguments: [true, false])
    func `a retry goes on with the notes that are still good`(_ areGood: Bool) async throws {
        let scene = try Scene()
        if areGood { scene.here.keep("upload") }
        try await scene.run { stage in
            try await stall(scene)
            let job = try await stage.job("a")
            #expect(try await stage.agent.control.act(.cancel, on: job.file.id) == .done)
            try await eventually("the leftover is gone") { stage.events.count("transfer.aborted") == 1 }
            #expect(try await stage.journal.nextLeftover() == nil)
            try await stage.finished("a", .cancelled)
            #expect(try await stage.agent.control.act(.retry, on: job.file.id) == .done)
            try await stage.finished("a")
            #expect(scene.here.record.notes == [[:], areGood ? ["upload": [1]] : [:]])
        }
    }
}
