import InletAgent
import InletCore
import InletJournal
import InletTestSupport
import SystemPackage
import Testing

@Suite struct ChecklistGapsTests {
    @Test func `a long queue is warned of once, and what waits too long expires with its source untouched`()
        async throws
    {
        var scene = try Scene()
        scene.route.retry.expire = .seconds(3)
        scene.route.onSuccess = .delete
        scene.destinations = [.scripted("here", scene.here, connections: 1)]
        let gate = Gate()
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            for number in 0..<30 { try scene.drop(FilePath("\(number)")) }
            try await eventually("all are admitted") { try await stage.jobs().count == 30 }
            try await stage.journal.setPaused("here", false)
        }
        let before = try names(in: scene.root).count
        try await scene.run { stage in
            try await eventually("what waits has expired") {
                try await stage.journal.totals()[.expired]?.files ?? 0 >= 29
            }
            try await eventually("it was said") { stage.events.count("queue.warning") >= 1 }
            gate.open()
            try await eventually("all have ended") { try await stage.jobs().allSatisfy { $0.file.finishedAt != nil } }
            for job in try await stage.jobs() where job.file.state == .expired {
                #expect(try text(stage.root.pushing(job.file.path)) == "content")
            }
            #expect(try names(in: stage.root).count >= before - 1)
            #expect(stage.events.count("queue.warning") == 1)
        }
    }

    @Test func `a file that no route takes goes where a person sends it`() async throws {
        var scene = try Scene()
        scene.route.match.extensions = ["jpg"]
        let file = try scene.directory.write([1, 2, 3], to: "elsewhere/measurements.odd")
        try await scene.run { stage in
            guard case .refused(let reason) = await stage.agent.control.send(file, to: nil) else {
                Issue.record("taken without a route")
                return
            }
            #expect(reason.contains("--to"))
            guard case .queued(let id) = await stage.agent.control.send(file, to: "here") else {
                Issue.record("not queued")
                return
            }
            try await eventually("it is sent") { try await stage.journal.job(id)?.file.state == .delivered }
            #expect(scene.here.record.stored.values.map(\.self) == [[1, 2, 3]])
        }
    }
}
