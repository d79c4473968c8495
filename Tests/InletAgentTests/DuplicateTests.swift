import InletAgent
import InletCore
import InletJournal
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
