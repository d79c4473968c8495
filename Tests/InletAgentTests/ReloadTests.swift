import Foundation
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

/// Another configuration for an agent that runs, on real folders.
@Suite struct ReloadTests {
    @Test func `new routes take the next file, and what runs goes on as it began`() async throws {
        try await ReloadSite(ReloadSite.text()).run { site, stage in
            let (here, there) = (site.here, site.there)
            let gate = Gate()
            here.script("a", .hold(gate, .deliver))
            try stage.scene.drop("a")
            try await eventually("it runs") { here.record.running == 1 }
            let outcome = try await site.reload(ReloadSite.text(to: "[there]", key: "new/{name}"), in: stage)
            #expect(outcome.changes == ["routes[all].key", "routes[all].to"] && outcome.parked == 0)
            try await stage.process("b")
            #expect(there.record.stored.keys.sorted() == ["new/b"])
            #expect(here.record.running == 1)
            gate.open()
            try await stage.finished("a")
            #expect(here.attempts(at: "a") == 1 && here.record.stored.keys.sorted() == ["a"])
            #expect(stage.events.count("config.reloaded") == 1)
            #expect(try await stage.jobs().count == 2)
        }
    }

    @Test func `a folder that is added is watched, and one that is removed no more`() async throws {
        try await ReloadSite(ReloadSite.text()).run { site, stage in
            try await stage.process("a")
            try site.directory.write(Array("x".utf8), to: "second/b")
            #expect(try await site.reload(ReloadSite.text(roots: ["second"]), in: stage).changes.count == 2)
            try await stage.finished("b")
            try await eventually("one folder is watched") { stage.agent.control.live?.roots.count == 1 }
            try stage.scene.drop("late")
            try site.directory.write(Array("y".utf8), to: "second/c")
            try await stage.finished("c")
            #expect(try await stage.jobs().map(\.file.path.string).sorted() == ["a", "b", "c"])
            try await site.reload(ReloadSite.text(), in: stage)
            try await stage.finished("late")
            #expect(site.here.attempts(at: "a") == 1)
        }
    }

    @Test func `what waits for a destination that goes is parked, and goes on when it is back`() async throws {
        try await ReloadSite(ReloadSite.text(to: "[here, there]")).run { site, stage in
            let (here, there) = (site.here, site.there)
            let gate = Gate()
            there.script("running", .hold(gate, .deliver))
            try stage.scene.drop("running")
            try await eventually("it runs") { there.record.running == 1 }
            _ = try await stage.agent.control.setPaused(true, "there", by: "test")
            try stage.scene.drop("waiting")
            try await stage.job("waiting", "delivered here") { job in
                job.deliveries.contains { $0.destination == "here" && $0.state == .delivered }
            }
            #expect(try await site.reload(ReloadSite.text(destinations: ["here"]), in: stage).parked == 1)
            try await stage.job("waiting", "parked") { $0.deliveries.contains { $0.state == .parked } }
            gate.open()
            try await stage.finished("running")
            #expect(there.attempts(at: "running") == 1)
            try await stage.process("alone")

            try await site.reload(ReloadSite.text(to: "[here, there]"), in: stage)
            // Its pause is in the journal.
            #expect(there.attempts(at: "waiting") == 0)
            _ = try await stage.agent.control.setPaused(false, "there", by: "test")
            try await stage.finished("waiting")
            #expect(there.attempts(at: "waiting") == 1 && here.attempts(at: "waiting") == 1)
        }
    }

    @Test func `what comes back from a destination that is gone is parked too`() async throws {
        try await ReloadSite(ReloadSite.text(to: "[there]")).run { site, stage in
            let there = site.there
            let gate = Gate()
            there.script("a", .hold(gate, .fail(DeliveryError(.retry(after: nil), .serverError, "not now"))))
            try stage.scene.drop("a")
            try await eventually("it runs") { there.record.running == 1 }
            #expect(try await site.reload(ReloadSite.text(destinations: ["here"]), in: stage).parked == 0)
            gate.open()
            try await stage.job("a", "parked") { $0.deliveries[0].state == .parked }
            try await site.reload(ReloadSite.text(to: "[there]"), in: stage)
            try await stage.finished("a")
            #expect(there.attempts(at: "a") == 2)
        }
    }

    @Test func `a configuration that is wrong changes nothing, and is told with line, column and caret`() async throws {
        try await ReloadSite(ReloadSite.text()).run { site, stage in
            let before = stage.agent.control.live?.config
            site.write(ReloadSite.text(to: "[nowhere]", key: "new/{name}"))
            guard case .refused(let faults)? = await stage.agent.control.reload() else {
                throw Unexpected(description: "it was taken")
            }
            #expect(faults.count == 1 && faults[0].line == 4 && faults[0].excerpt.contains("^"), "\(faults)")
            let refused = stage.events.all.compactMap { event -> [String]? in
                if case .configRefused(_, let errors) = event { errors } else { nil }
            }
            #expect(refused == [faults.map(\.text)])
            #expect(stage.agent.control.live?.config == before)
            try await stage.process("a")
            #expect(site.here.record.stored.keys.sorted() == ["a"])
        }
    }

    @Test func `limits take effect, and what needs a restart is said and left`() async throws {
        try await ReloadSite(ReloadSite.text()).run { site, stage in
            let changes = try await site.reload(
                ReloadSite.text(top: "workers: 9\nlimits: { bandwidth: 0, queue_warning: 3 }"), in: stage
            ).changes
            #expect(changes.sorted() == ["limits.bandwidth", "limits.queue_warning", "workers"])
            #expect(stage.agent.control.live?.limits.first?.rate == 0)
            #expect(stage.agent.control.live?.destinations.allSatisfy(\.isShut) == true)
            let restart = stage.events.all.compactMap { event -> [String]? in
                if case .configReloaded(_, _, _, let restart, _) = event { restart } else { nil }
            }
            #expect(restart == [["workers"]])
            try await stage.admit("a")
            #expect(try await site.reload(ReloadSite.text(), in: stage).changes.count == 2)
            try await stage.finished("a")
        }
    }

    @Test func `files of a folder that left are archived where it said, also after a restart`() async throws {
        let site = try ReloadSite(
            ReloadSite.text(watch: ", archive_dir: .inlet/kept").replacing(
                "retry:", with: "on_success: archive, retry:"))
        let gate = Gate()
        site.here.script("a", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try stage.scene.drop("a")
            try await eventually("it runs") { site.here.record.running == 1 }
            try await site.reload(ReloadSite.text(roots: ["second"]), in: stage)
            gate.open()
            try await stage.finished("a")
        }
        #expect(isThere(scene.directory.path.appending("drop").pushing(".inlet/kept/a")))
        let former = FormerRoots(stateDirectory: scene.directory.path.appending("state"))
        #expect(try former.beside([]).roots.count == 2)
        let left = try former.beside([WatchSettings(path: scene.directory.path.appending("second"))])
        #expect(left.roots.map(\.archiveDirectory) == [".inlet/kept"])
    }
}

/// What runs beside the deliveries, by another configuration.
@Suite struct ReloadServiceTests {
    /// Takes whatever it is told.
    private final class Ear: Sendable {
        private let requests = Mutex<[ReceivedRequest]>([])

        func listen(_ connection: ServerConnection) throws {
            while true {
                let request = try connection.readRequest()
                requests.withLock { $0.append(request) }
                try connection.answer("204 No Content")
            }
        }

        func heard(_ path: String) -> [String] {
            requests.withLock { $0.filter { $0.line.contains(path) }.map { String(decoding: $0.body, as: UTF8.self) } }
        }
    }

    @Test func `another ping address is asked from then on, and the former no more`() async throws {
        let ear = Ear()
        let server = try ScriptedServer { try ear.listen($0) }
        let address = "ping_url: \"http://127.0.0.1:\(server.port)"
        let site = try ReloadSite(ReloadSite.text(top: "\(address)/old\""))
        try await site.scene().run { stage in
            try await eventually("the first is asked") { ear.heard(" /old").count >= 3 }
            #expect(try await site.reload(ReloadSite.text(top: "\(address)/new\""), in: stage).changes == ["ping_url"])
            try await eventually("the other is asked") { !ear.heard(" /new/start").isEmpty }
            let before = ear.heard(" /old").count
            try await eventually("it goes on") { ear.heard(" /new").count >= 20 }
            // One that was on its way may be read later.
            #expect(ear.heard(" /old").count <= before + 1)
            #expect(try await site.reload(ReloadSite.text(), in: stage).changes == ["ping_url"])
        }
    }

    @Test func `notices go to the receiver of the new file`() async throws {
        let ear = Ear()
        let server = try ScriptedServer { try ear.listen($0) }
        func text(_ path: String) -> String {
            ReloadSite.text(
                top: "notify: [{ name: ops, webhook: \"http://127.0.0.1:\(server.port)\(path)\", on: [delivered] }]")
        }
        try await ReloadSite(text("/old")).run { site, stage in
            try await stage.process("a")
            try await eventually("the first is told") {
                let backlog = try await stage.journal.outboxBacklog()
                return !ear.heard(" /old").isEmpty && backlog == (0, 0)
            }
            #expect(try await !site.reload(text("/new"), in: stage).changes.isEmpty)
            try await stage.process("b")
            try await eventually("the other is told") {
                let backlog = try await stage.journal.outboxBacklog()
                return !ear.heard(" /new").isEmpty && backlog == (0, 0)
            }
        }
        #expect(ear.heard(" /old").count == 1 && ear.heard(" /new").count == 1)
        #expect(
            ear.heard(" /new").allSatisfy { $0.replacing("\\", with: "").contains("drop/b\"") }, "\(ear.heard(" /new"))"
        )
    }

    @Test func `backups and the history begin with the file that asks for them`() async throws {
        try await ReloadSite(ReloadSite.text(top: "journal_history: { after: off }")).run { site, stage in
            try await stage.process("a")
            #expect(
                try await !site.reload(
                    ReloadSite.text(top: "journal_history: { after: off }\njournal_backup: { every: 1m }"), in: stage
                ).changes.isEmpty)
            try await eventually("it is backed up") { stage.events.count("journal.backup") > 0 }
            #expect(stage.events.count("journal.pruned") == 0)
            #expect(
                try await !site.reload(ReloadSite.text(top: "journal_history: { after: 1s }"), in: stage).changes
                    .isEmpty)
            try await eventually("it is history") { stage.events.count("journal.pruned") > 0 }
        }
    }

    @Test func `what runs while its destination leaves and comes back is neither parked nor begun twice`() async throws
    {
        try await ReloadSite(ReloadSite.text(to: "[there]")).run { site, stage in
            let there = site.there
            let gate = Gate()
            there.script("good", .hold(gate, .deliver))
            there.script("bad", .hold(gate, .fail(.serverFault)))
            try stage.scene.drop("good")
            try stage.scene.drop("bad")
            try await eventually("both run") { there.record.running == 2 }
            #expect(try await site.reload(ReloadSite.text(destinations: ["here"]), in: stage).parked == 0)
            #expect(try await site.reload(ReloadSite.text(to: "[there]"), in: stage).parked == 0)
            try await stage.process("next")
            #expect(there.record.running == 2)
            gate.open()
            try await stage.finished("good")
            try await stage.finished("bad")
            #expect(there.attempts(at: "good") == 1 && there.attempts(at: "bad") == 2)
        }
    }
}

/// The file that the agent reads, and its destinations.
final class ReloadSite: Sendable {
    let directory: TemporaryDirectory
    let here = ScriptedPipeline()
    let there = ScriptedPipeline()
    var pipelines: [String: ScriptedPipeline] { ["here": here, "there": there] }
    private let content: Mutex<String>
    private let factory = PipelineFactory(pool: BlockingPool(name: "site", threads: 1), userAgent: "inlet-tests/1")

    static let type = DestinationType(
        name: "scripted", summary: "A test's.", keys: [KeySpec("note", .string, "Any text.")])

    init(_ text: String) throws {
        directory = try TemporaryDirectory()
        try directory.makeDirectory("state")
        try directory.makeDirectory("drop")
        try directory.makeDirectory("second")
        content = Mutex(text)
    }

    func write(_ text: String) { content.withLock { $0 = text } }

    /// What may come no oftener than every few seconds comes at once.
    func load() throws(ConfigErrors) -> LoadedConfig { try load(Array(content.withLock(\.self).utf8)) }

    func load(_ text: [UInt8]) throws(ConfigErrors) -> LoadedConfig {
        var config = try ConfigFile.parse(
            text: text, file: directory.path.appending("inlet.yaml"), types: [Self.type],
            environment: [:],
            defaults: ConfigDefaults(
                stateDirectory: directory.path.appending("state"), home: nil, workingDirectory: directory.path))
        config.settings.ping?.interval = .milliseconds(20)
        config.settings.journalBackup?.every = .milliseconds(20)
        return config
    }

    private func notificationClients(_ config: LoadedConfig) -> NotificationClients {
        var notificationClients = NotificationClients()
        for receiver in config.settings.notify {
            notificationClients.webhooks[receiver.name] = try? factory.webhook(receiver)
        }
        notificationClients.ping = config.settings.ping.flatMap { try? factory.ping($0) }
        return notificationClients
    }

    func destinations(_ config: LoadedConfig) -> [Destination] {
        config.settings.destinations.compactMap { settings in
            pipelines[settings.name].map { .scripted(settings.name, $0) }
        }
    }

    func scene() throws -> Scene {
        let config = try load()
        var scene = try Scene(in: directory)
        scene.destinations = destinations(config)
        scene.notificationClients = notificationClients(config)
        scene.source = Source(config: config, site: self)
        return scene
    }

    /// Runs an agent by it, and `body` beside it.
    func run(_ body: (ReloadSite, Stage) async throws -> Void) async throws {
        try await scene().run { try await body(self, $0) }
    }

    private struct Source: ReloadSource {
        let config: LoadedConfig
        let site: ReloadSite
        var types: [DestinationType] { [ReloadSite.type] }

        func read() throws(ConfigErrors) -> PreparedReload {
            let config = try site.load()
            return (
                config: config, destinations: site.destinations(config),
                notificationClients: site.notificationClients(config)
            )
        }

        func check(_ text: [UInt8]) throws(ConfigErrors) -> PreparedReload {
            let config = try site.load(text)
            return (
                config: config, destinations: site.destinations(config),
                notificationClients: site.notificationClients(config)
            )
        }

        func restartReason(_ config: LoadedConfig) -> String? { nil }

        func renew(_ name: String, _ held: LoadedConfig) -> Destination? { nil }
    }
}

extension ReloadSite {
    static func text(
        roots: [String] = ["drop"], to: String = "[here]", key: String = "{name}",
        destinations: [String] = ["here", "there"], top: String = "", watch: String = ""
    ) -> String {
        """
        \(top)
        destinations: {\(destinations.map { " \($0): { type: scripted }" }.joined(separator: ",")) }
        watch: [\(roots.map { "{ path: \($0), settle: 0s, rescan: off\(watch) }" }.joined(separator: ", "))]
        routes: [{ name: all, to: \(to), key: "\(key)", retry: { backoff: 1ms } }]
        """
    }

    /// Has the agent take another text of its file.
    @discardableResult
    func reload(_ text: String, in stage: Stage) async throws -> (changes: [String], parked: Int) {
        write(text)
        return try Self.done(await stage.agent.control.reload())
    }

    private static func done(_ outcome: ReloadOutcome?) throws -> (changes: [String], parked: Int) {
        guard case .done(let changes, let parked, _)? = outcome else {
            throw Unexpected(description: "\(String(describing: outcome))")
        }
        return (changes.map(\.path), parked)
    }
}
