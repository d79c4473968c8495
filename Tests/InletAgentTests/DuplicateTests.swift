import InletAgent
import InletCore
import InletJournal
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

/// Files whose content their destinations have.
@Suite struct DuplicateTests {
    private func scene(_ rule: DuplicateRule) throws -> Scene {
        var scene = try Scene()
        scene.route.dedupe = rule
        return scene
    }

    @Test(arguments: [(DuplicateRule.skip, FileState.duplicate), (.link, .delivered)])
    func `a second file of the same content is not sent`(rule: DuplicateRule, state: FileState) async throws {
        let scene = try scene(rule)
        try await scene.run { stage in
            try scene.drop("a")
            let first = try await stage.finished("a")
            try scene.drop("b")
            let job = try await stage.finished("b", state)
            #expect(scene.here.record.orders.map(\.key) == ["a"])
            #expect(job.deliveries.map { $0.proof?.key } == ["a"] && job.deliveries.map(\.key) == [nil])
            #expect(job.file.disposition == Disposition.kept)
            let line = try #require(stage.events.all.map(\.line).first { $0.name == "job.duplicate" })
            #expect(line.fields.first { $0.0 == "same_as" }?.1 == .number(first.file.id))
            let newest = try #require(try await stage.journal.receipts(limit: 1).first)
            let receipt = String(decoding: newest, as: UTF8.self)
            #expect(receipt.contains("\"state\":\"\(state.rawValue)\"") && receipt.contains("\"same_as\":\"1\""))
            #expect(receipt.contains("same content as job 1, \(stage.root.display)/a, which is there as a"))
            // The same file once more is no third one.
            #expect(try await stage.jobs().count == 2)
        }
    }

    @Test(arguments: [DuplicateRule.skip, .link])
    func `content that is at another address is sent, and source files are not taken for delivered`(
        rule: DuplicateRule
    ) async throws {
        var scene = try scene(rule)
        scene.route.onSuccess = .delete
        scene.destinations[0].address = "one"
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
        }
        scene.destinations[0].address = "two"
        try await scene.run { stage in
            try scene.drop("b")
            #expect(try await stage.finished("b").deliveries.map { $0.proof?.sameAs } == [nil])
            try scene.drop("c")
            try await stage.job("c", "a duplicate") { $0.deliveries.first?.proof?.sameAs != nil }
        }
        #expect(scene.here.record.orders.map(\.key) == ["a", "b"])
    }

    @Test(arguments: [DuplicateRule.skip, .link])
    func `only the destination that lacks it gets it`(rule: DuplicateRule) async throws {
        var scene = try scene(rule)
        let there = ScriptedPipeline()
        scene.destinations.append(.scripted("there", there))
        scene.route.match.paths = [try GlobPattern("one")]
        var both = scene.route
        (both.name, both.match, both.to) = ("both", RouteMatch(), ["here", "there"])
        scene.others = [both]
        let here = scene.here
        try await scene.run { [scene] stage in
            try scene.drop("one")
            try await stage.finished("one")
            try scene.drop("two")
            let job = try await stage.finished("two")
            #expect(here.record.orders.map(\.key) == ["one"] && there.record.orders.map(\.key) == ["two"])
            #expect(job.deliveries.map { $0.proof?.sameAs } == [1, nil])
        }
    }

    @Test(arguments: [true, false])
    func `the second waits for the first, and is sent when that fails`(arrives: Bool) async throws {
        let scene = try scene(.skip)
        let gate = Gate()
        scene.here.script("a", .hold(gate, arrives ? .deliver : .fail(.hopeless)))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("the first is under way") { scene.here.attempts(at: "a") == 1 }
            try scene.drop("b")
            try await stage.job("b", "waiting") { $0.deliveries.first?.reason?.hasPrefix("waits: job 1 ") == true }
            gate.open()
            let job = try await stage.finished("b", arrives ? .duplicate : .delivered)
            #expect(scene.here.attempts(at: "a") == 1 && scene.here.attempts(at: "b") == (arrives ? 0 : 1))
            #expect(job.deliveries.map(\.attempts) == [1])
            try await eventually("it is said") { stage.events.count("job.duplicate") == (arrives ? 1 : 0) }
        }
    }

    @Test func `cancelled by a person, the first lets the second go`() async throws {
        let scene = try scene(.skip)
        scene.here.script("a", .stall)
        try await scene.run { stage in
            try scene.drop("a")
            let first = try await stage.job("a")
            try await eventually("the first is under way") { scene.here.attempts(at: "a") == 1 }
            try scene.drop("b")
            try await stage.job("b", "waiting") { $0.deliveries.first?.reason?.hasPrefix("waits: ") == true }
            #expect(try await stage.agent.commands.act(.cancel, on: first.file.id) == .done)
            try await stage.finished("b")
            #expect(scene.here.attempts(at: "b") == 1)
        }
    }

    @Test func `what is forgotten is sent again`() async throws {
        let scene = try scene(.skip)
        try await scene.run { stage in
            try scene.drop("a")
            let first = try await stage.finished("a")
            #expect(try await stage.agent.commands.act(.forget, on: first.file.id) == .done)
            try scene.drop("b")
            try await stage.finished("b")
            #expect(scene.here.record.orders.map(\.key) == ["a", "b"])
        }
    }

    @Test(arguments: [(true, Disposition.deleted), (false, Disposition.kept)])
    func `a duplicate is deleted only where its content was proved, not its length`(
        isProved: Bool, disposition: String
    ) async throws {
        var scene = try scene(.skip)
        scene.route.onSuccess = .delete
        if isProved { scene.here.always(.prove) }
        try await scene.run { [scene] stage in
            try scene.drop("a")
            #expect(try await stage.finished("a").file.disposition == Disposition.deleted)
            let second = try scene.drop("b")
            #expect(try await stage.finished("b", .duplicate).file.disposition == disposition)
            #expect(isThere(second) != isProved)
            #expect(scene.here.record.orders.count == 1)
        }
    }

    @Test func `a duplicate of a unit is in its place among the others`() async throws {
        var scene = try scene(.skip)
        scene.route.match.paths = [try GlobPattern("gigs/**")]
        scene.route.unit = .folder
        scene.route.completion = .marker
        scene.route.key = try KeyTemplate("{dir}/{name}")
        try await scene.run { [scene] stage in
            try scene.drop("gigs/one/a")
            try await stage.job("gigs/one/a")
            try scene.drop("gigs/one/DONE", "")
            try await stage.finished("gigs/one/a")
            try scene.drop("gigs/two/a")
            try scene.drop("gigs/two/b", "another")
            let job = try await stage.job("gigs/two/a")
            #expect(job.file.state == .pending)
            try await stage.job("gigs/two/b")
            try scene.drop("gigs/two/DONE", "")
            try await stage.finished("gigs/two/a", .duplicate)
            try await stage.finished("gigs/two/b")
            try await eventually("both units have ended") { stage.events.count("batch.ended") == 2 }
            let batch = try #require(try await stage.journal.batch(of: job.file.id))
            #expect(batch.state == .delivered && batch.counts == [.delivered: 1, .duplicate: 1])
            #expect(scene.here.record.stored.keys.sorted() == ["gigs/one/a", "gigs/two/b"])
        }
    }
}
