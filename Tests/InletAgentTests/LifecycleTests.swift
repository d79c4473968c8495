import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import SystemPackage
import Testing

@Suite struct LifecycleTests {
    @Test func `at the end running parts may end, and nothing new begins`() async throws {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here, connections: 1)]
        scene.here.script("a", .untilStopping(.deliver))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("a is on its way") { scene.here.record.running == 1 }
            try scene.drop("b")
            try await stage.job("b")
        }
        #expect(scene.here.record.stored.keys.sorted() == ["a"])
        try await scene.run { stage in
            try await stage.finished("a")
            try await stage.finished("b")
        }
        #expect(scene.here.record.orders.map(\.key) == ["a", "b"])
    }

    @Test func `a transfer that does not end is ended after the grace, and goes on at the next start`() async throws {
        var scene = try Scene()
        scene.grace = .milliseconds(100)
        scene.here.script("a", .stall)
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("its note is durable") {
                let running = scene.here.record.running == 1
                return running && stage.agent.control.live?.inFlight.count == 1
            }
        }
        try await scene.run { stage in
            let job = try await stage.finished("a")
            #expect(job.deliveries[0].attempts == 1)
        }
        #expect(scene.here.record.orders.count == 2)
        #expect(scene.here.record.abandoned.isEmpty)
    }

    @Test func `services that end without being asked to leave what runs in the queue`() async throws {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        scene.here.script("a", .stall)
        struct Abandoned: Error {}
        await #expect(throws: Abandoned.self) {
            try await scene.run { stage in
                try scene.drop("a")
                try await eventually("a is on its way") { scene.here.record.running == 1 }
                throw Abandoned()
            }
        }
        try await scene.run { stage in
            let job = try await stage.finished("a")
            #expect(job.deliveries[0].attempts == 1)
        }
        #expect(scene.here.record.stored.keys.sorted() == ["a"])
    }

    @Test func `a file that is sent twice at once is queued once`() async throws {
        let scene = try Scene()
        let file = try scene.directory.write([1], to: "elsewhere/a")
        let gate = Gate()
        scene.here.always(.hold(gate, .prove))
        try await scene.run { stage in
            let commands = stage.agent.control
            let answers = await withTaskGroup(of: SendAnswer.self) { group in
                for _ in 0..<16 { group.addTask { await commands.send(file, to: nil) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            gate.open()
            #expect(answers.allSatisfy { $0 == answers[0] })
            try await eventually("it is sent") { scene.here.record.stored.count == 1 }
            #expect(try await stage.jobs().count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `of many files that are sent at once each has its answer, in their order`(isRead: Bool) async throws {
        var scene = try Scene()
        // By its name alone many are written together; for its checksum each is read.
        scene.route.key = try KeyTemplate(isRead ? "{sha256:8}-{name}" : "{name}")
        scene.route.validate.maxSize = 100
        let files = try (0..<150).map {
            try scene.directory.write(Array("\($0)".utf8), to: FilePath("elsewhere/\($0)"))
        }
        try scene.directory.write(Array(repeating: 1, count: 101), to: "elsewhere/70")
        // A file that is named twice has not arrived when it is looked at again.
        let (absent, gate) = (scene.directory.path.appending("absent"), Gate())
        scene.here.always(.hold(gate, .deliver))
        try await scene.run { stage in
            let answers = await stage.agent.control.send([files[3], absent] + files, to: nil)
            gate.open()
            try #require(answers.count == files.count + 2)
            #expect(answers[0] == answers[5])
            #expect(answers[1] == .refused("\(absent.display): not a regular file, or not there"))
            for (path, answer) in zip(files, answers.dropFirst(2)) {
                guard case .queued(let id) = answer else {
                    #expect(path == files[70], "\(answer)")
                    continue
                }
                #expect(try await stage.journal.job(id)?.file.path == path)
            }
            try await eventually("all are sent") {
                try await stage.journal.totals()[.delivered]?.files == files.count - 1
            }
            let again = await stage.agent.control.send(files, to: nil)
            for (before, now) in zip(answers.dropFirst(2), again) {
                guard case .queued(let id) = before, case .known(id, let what) = now else {
                    #expect(before == now)
                    continue
                }
                #expect(what.contains(": already delivered to here on "))
            }
            #expect(scene.here.record.stored.count == files.count - 1)
            #expect(try await stage.jobs().count == files.count - 1)
        }
    }

    @Test
    func `a file that was sent is known at that address only, and sent again where a person wants it`() async throws {
        var scene = try Scene()
        let file = try scene.directory.write([1, 2, 3], to: "elsewhere/film.mov")
        func send(_ address: String, again: Bool = false) async throws -> SendAnswer? {
            scene.destinations[0].address = address
            var answer: SendAnswer?
            try await scene.run { stage in
                answer = await stage.agent.control.send([file], to: nil, again: again).first
                try await eventually("it has ended") { try await stage.jobs().allSatisfy { $0.file.finishedAt != nil } }
                let job = try #require(try await stage.jobs().first)
                #expect(try await stage.jobs().count == 1 && job.deliveries.map(\.key) == ["film.mov"])
                #expect(job.deliveries.map { $0.proof?.address } == [address])
            }
            return answer
        }
        #expect(try await send("one") == .queued(job: 1))
        guard case .known(job: 1, _) = try await send("one") else { return #expect(Bool(false), "it is known there") }
        #expect(try await send("two") == .queued(job: 1))
        #expect(try await send("two", again: true) == .queued(job: 1))
        #expect(scene.here.record.orders.map(\.key) == ["film.mov", "film.mov", "film.mov"])
    }

    @Test func `a file whose destination left the configuration is parked until it comes back`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try scene.drop("a")
            try await stage.job("a")
            try await stage.journal.setPaused("here", false)
        }
        var other = scene
        other.destinations = []
        try await other.run { stage in
            let job = try await stage.job("a")
            #expect(job.deliveries[0].state == .parked)
        }
        try await scene.run { stage in try await stage.finished("a") }
    }

    @Test func `a file that is named by a person is sent once, stays, and is sent again only when it changes`()
        async throws
    {
        var scene = try Scene()
        scene.route.onSuccess = .delete
        let file = try scene.directory.write([1], to: "elsewhere/a")
        try await scene.run { stage in
            guard case .queued(let first) = await stage.agent.control.send(file, to: nil) else {
                Issue.record("not queued")
                return
            }
            try await eventually("it is sent") { try await stage.journal.job(first)?.file.finishedAt != nil }
            #expect(isThere(file))
            guard case .known(first, _) = await stage.agent.control.send(file, to: "here") else {
                Issue.record("not known")
                return
            }
            try scene.directory.write([1, 2], to: "elsewhere/a")
            guard case .queued(let second) = await stage.agent.control.send(file, to: nil) else {
                Issue.record("not queued")
                return
            }
            #expect(second != first)
            try await eventually("it is sent") { try await stage.journal.job(second)?.file.finishedAt != nil }
            #expect(scene.here.record.stored.count == 2)
        }
    }

    @Test func `sending a failed file again wakes the workers`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.hopeless))
        let file = try scene.directory.write([1], to: "elsewhere/a")
        try await scene.run { stage in
            guard case .queued(let id) = await stage.agent.control.send(file, to: nil) else {
                Issue.record("not queued")
                return
            }
            try await eventually("it has failed") { try await stage.journal.job(id)?.file.finishedAt != nil }
            #expect(await stage.agent.control.send(file, to: nil) == .queued(job: id))
            try await eventually("it is sent") { try await stage.journal.job(id)?.file.state == .delivered }
        }
    }

    @Test func `what cannot be sent is refused with the reason`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let commands = stage.agent.control
            let file = try scene.directory.write([1], to: "elsewhere/a")
            #expect(
                await commands.send(file, to: "hear")
                    == .refused("no destination is called 'hear'; did you mean 'here'?"))
            guard case .refused(let reason) = await commands.send(scene.directory.path, to: nil) else {
                Issue.record("a folder was taken")
                return
            }
            #expect(reason.hasSuffix("not a regular file, or not there"))
        }
    }

    @Test func `clear cancels what waits, and what is ended can be forgotten`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            let commands = stage.agent.control
            _ = try await commands.setPaused(true, "here", by: "test")
            for name in ["a", "b", "c"] as [FilePath] { try scene.drop(name) }
            try await eventually("all wait") { try await stage.jobs().count == 3 }
            #expect(try await commands.clear().files == 3)
            let job = try await stage.finished("a", .cancelled)
            #expect(try await commands.act(.forget, on: job.file.id) == .done)
            #expect(try await commands.act(.forget, on: job.file.id) != .done)
            #expect(try await commands.act(.cancel, on: job.file.id) != .done)
        }
    }
}
