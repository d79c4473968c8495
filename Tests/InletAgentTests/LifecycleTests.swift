import Foundation
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@Suite struct LifecycleTests {
    @Test func `at the end running parts may end, and nothing new begins`() async throws {
        var scene = try Scene()
        scene.destinations = [.scripted("here", scene.here, connections: 1)]
        scene.here.script("a", .untilStopping(.deliver))
        try await scene.run { stage in
            try await stage.start("a")
            try await stage.admit("b")
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

    @Test func `a file that is sent twice at once is queued once`() async throws {
        let scene = try Scene()
        let file = try scene.directory.write([1], to: "elsewhere/a")
        let gate = Gate()
        scene.here.always(.hold(gate, .prove))
        try await scene.run { stage in
            let commands = stage.agent.control
            let answers = await withTaskGroup(of: SendResult.self) { group in
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
                #expect(what.contains(/: already at here as \S+ since 2\S+ \d\d:\d\d \(--again sends\)$/))
            }
            #expect(scene.here.record.stored.count == files.count - 1)
            #expect(try await stage.jobs().count == files.count - 1)
        }
    }

    @Test
    func `a file that was sent is known at that address only, and sent again where a person wants it`() async throws {
        var scene = try Scene()
        let file = try scene.directory.write([1, 2, 3], to: "elsewhere/film.mov")
        func send(_ address: String, again: Bool = false) async throws -> SendResult? {
            scene.destinations[0].address = address
            var answer: SendResult?
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
        #expect(try await send("one")?.knownJob == 1)
        #expect(try await send("two") == .queued(job: 1))
        #expect(try await send("two", again: true) == .queued(job: 1))
        #expect(scene.here.record.orders.map(\.key) == ["film.mov", "film.mov", "film.mov"])
    }

    @Test func `a file whose destination left the configuration is parked until it comes back`() async throws {
        let scene = try Scene()
        try await scene.run { stage in
            _ = try await stage.agent.control.setPaused(true, "here", by: "test")
            try await stage.admit("a")
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
            let first = try #require(await stage.agent.control.send(file, to: nil).job)
            try await eventually("it is sent") { try await stage.journal.job(first)?.file.finishedAt != nil }
            #expect(isThere(file))
            #expect(await stage.agent.control.send(file, to: "here").knownJob == first)
            try scene.directory.write([1, 2], to: "elsewhere/a")
            let second = try #require(await stage.agent.control.send(file, to: nil).job)
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
            let id = try #require(await stage.agent.control.send(file, to: nil).job)
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
                    == .refused("no destination is named 'hear'; did you mean 'here'?"))
            let reason = try #require(await commands.send(scene.directory.path, to: nil).refusal)
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

@Suite struct ChecklistGapsTests {
    @Test func `a long queue is warned of once, and what waits too long expires with its source untouched`()
        async throws
    {
        var scene = try Scene()
        scene.route.retry.expire = .seconds(8)
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
            let reason = try #require(await stage.agent.control.send(file, to: nil).refusal)
            #expect(reason.contains("--to"))
            let id = try #require(await stage.agent.control.send(file, to: "here").job)
            try await eventually("it is sent") { try await stage.journal.job(id)?.file.state == .delivered }
            #expect(scene.here.record.stored.values.map(\.self) == [[1, 2, 3]])
        }
    }
}

/// Many videos at a server that takes its time.
@Suite(.timeLimit(.minutes(15))) struct VOPIFlightTests {
    private static func section(_ values: [String: ConfigValue]) -> ConfigSection {
        ConfigSection(values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
    }

    /// Videos go to the server, everything else to a folder; one worker for all.
    private static func scene(
        _ sandbox: VOPISandbox, _ factory: PipelineFactory, in directory: TemporaryDirectory
    ) async throws -> Scene {
        var scene = try Scene(in: directory)
        let seed = try directory.write(sandbox.signIn().refreshToken.reveal().utf8, to: "seed")
        let products: [String: ConfigValue] = [
            "url": .string("http://127.0.0.1:\(try await sandbox.port())"),
            "auth": .section(section(["refresh_token_file": .string(seed.string)])),
            "results": .string(directory.path.appending("results").string),
            // Nothing is looked at a second time while the test runs.
            "poll": .duration(.seconds(600)),
        ]
        let library = try directory.makeDirectory("library")
        scene.destinations = [
            try factory.make(DestinationSettings(name: "products", type: "vopi", values: section(products))),
            try factory.make(
                DestinationSettings(
                    name: "library", type: "folder", values: section(["path": .string(library.string)]))),
        ]
        scene.route.match = RouteMatch(extensions: ["mp4"])
        scene.route.to = ["products"]
        scene.others = [Route(name: "rest", key: try KeyTemplate("{name}"), to: ["library"])]
        scene.workers = 1
        return scene
    }

    @Test func `thirty jobs in flight keep the one worker from nothing`() async throws {
        let directory = try TemporaryDirectory()
        let factory = PipelineFactory(
            pool: BlockingPool(name: "pipelines", threads: 4), userAgent: "inlet-tests/1",
            tokens: directory.path.appending("tokens"))
        defer { factory.shutdown() }
        let sandbox = try VOPISandbox(
            directory: directory.path.appending("server"), credits: 1000, rules: VOPIRules(pace: .manual))
        try await whileServing({ try await sandbox.run() }) {
            let scene = try await Self.scene(sandbox, factory, in: directory)
            try await scene.run { stage in
                for number in 1...30 { try scene.drop(FilePath("clip-\(number).mp4"), "video \(number)") }
                try await eventually("all have a job, and wait") {
                    try await stage.journal.waiting(limit: 200).count == 30
                }
                try await stage.process("note.txt", "meanwhile")
                #expect(try text(directory.path.appending("library").appending("note.txt")) == "meanwhile")
                let tally = sandbox.tally
                #expect((tally.presigns, tally.puts, tally.jobs, tally.cancels) == (30, 30, 30, 0))
                #expect(Set(sandbox.jobs().map(\.videoURL)).count == 30)
                #expect(stage.agent.control.live?.inFlight.isEmpty == true)
                #expect(try await stage.jobs().count { $0.file.state == .pending } == 30)
            }
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }
}
