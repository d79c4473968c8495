import Foundation
import InletConfig
import InletCore
import InletJournal
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent

/// Another configuration for an agent that runs, on real folders.
@Suite struct ReloadTests {
    /// The file that the agent reads, and its destinations.
    private final class Site: Sendable {
        let directory: TemporaryDirectory
        let here = ScriptedPipeline()
        let there = ScriptedPipeline()
        var pipelines: [String: ScriptedPipeline] { ["here": here, "there": there] }
        private let content: Mutex<String>

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

        func load() throws(ConfigErrors) -> LoadedConfig {
            try ConfigFile.parse(
                text: content.withLock(\.self), file: directory.path.appending("inlet.yaml"), types: [Self.type],
                environment: [:],
                defaults: ConfigDefaults(
                    stateDirectory: directory.path.appending("state"), home: nil, workingDirectory: directory.path))
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
            scene.source = ReloadSource(config: config, types: [Self.type]) { [self] () throws(ConfigErrors) in
                let config = try load()
                return ReloadTrial(config: config, destinations: destinations(config))
            }
            return scene
        }
    }

    private static func text(
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

    private static func done(_ outcome: ReloadOutcome?) throws -> (changes: [String], parked: Int) {
        guard case .done(let changes, let parked)? = outcome else {
            throw Unexpected(description: "\(String(describing: outcome))")
        }
        return (changes.map(\.path), parked)
    }

    private struct Unexpected: Error, CustomStringConvertible { let description: String }

    @Test func `new routes take the next file, and what runs goes on as it began`() async throws {
        let site = try Site(Self.text())
        let (here, there) = (site.here, site.there)
        let gate = Gate()
        here.script("a", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it runs") { here.record.running == 1 }
            site.write(Self.text(to: "[there]", key: "new/{name}"))
            let outcome = try Self.done(await stage.agent.commands.reload())
            #expect(outcome.changes == ["routes[all].key", "routes[all].to"] && outcome.parked == 0)
            try scene.drop("b")
            try await stage.finished("b")
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
        let site = try Site(Self.text())
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await stage.finished("a")
            try scene.directory.write(Array("x".utf8), to: "second/b")
            site.write(Self.text(roots: ["second"]))
            #expect(try Self.done(await stage.agent.commands.reload()).changes.count == 2)
            try await stage.finished("b")
            try await eventually("one folder is watched") { stage.agent.view.live?.roots().count == 1 }
            try scene.drop("late")
            try scene.directory.write(Array("y".utf8), to: "second/c")
            try await stage.finished("c")
            #expect(try await stage.jobs().map(\.file.path.string).sorted() == ["a", "b", "c"])
            site.write(Self.text())
            _ = try Self.done(await stage.agent.commands.reload())
            try await stage.finished("late")
            #expect(site.here.attempts(at: "a") == 1)
        }
    }

    @Test func `what waits for a destination that goes is parked, and goes on when it is back`() async throws {
        let site = try Site(Self.text(to: "[here, there]"))
        let (here, there) = (site.here, site.there)
        let gate = Gate()
        there.script("running", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("running")
            try await eventually("it runs") { there.record.running == 1 }
            _ = try await stage.agent.commands.setPaused(true, "there", known: ["there"], by: "test")
            try scene.drop("waiting")
            try await stage.job("waiting", "delivered here") { job in
                job.deliveries.contains { $0.destination == "here" && $0.state == .delivered }
            }
            site.write(Self.text(destinations: ["here"]))
            #expect(try Self.done(await stage.agent.commands.reload()).parked == 1)
            try await stage.job("waiting", "parked") { $0.deliveries.contains { $0.state == .parked } }
            gate.open()
            try await stage.finished("running")
            #expect(there.attempts(at: "running") == 1)
            try scene.drop("alone")
            try await stage.finished("alone")

            site.write(Self.text(to: "[here, there]"))
            _ = try Self.done(await stage.agent.commands.reload())
            // Its pause is in the journal.
            #expect(there.attempts(at: "waiting") == 0)
            _ = try await stage.agent.commands.setPaused(false, "there", known: ["there"], by: "test")
            try await stage.finished("waiting")
            #expect(there.attempts(at: "waiting") == 1 && here.attempts(at: "waiting") == 1)
        }
    }

    @Test func `what comes back from a destination that is gone is parked too`() async throws {
        let site = try Site(Self.text(to: "[there]"))
        let there = site.there
        let gate = Gate()
        there.script("a", .hold(gate, .fail(DeliveryError(.retry(after: nil), .serverError, "not now"))))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it runs") { there.record.running == 1 }
            site.write(Self.text(destinations: ["here"]))
            #expect(try Self.done(await stage.agent.commands.reload()).parked == 0)
            gate.open()
            try await stage.job("a", "parked") { $0.deliveries[0].state == .parked }
            site.write(Self.text(to: "[there]"))
            _ = try Self.done(await stage.agent.commands.reload())
            try await stage.finished("a")
            #expect(there.attempts(at: "a") == 2)
        }
    }

    @Test func `a configuration that is wrong changes nothing, and is told with line, column and caret`() async throws {
        let site = try Site(Self.text())
        let scene = try site.scene()
        try await scene.run { stage in
            let before = stage.agent.view.live?.config()
            site.write(Self.text(to: "[nowhere]", key: "new/{name}"))
            guard case .refused(let faults)? = await stage.agent.commands.reload() else {
                Issue.record("it was taken")
                return
            }
            #expect(faults.count == 1 && faults[0].line == 4 && faults[0].excerpt.contains("^"), "\(faults)")
            let refused = stage.events.all.compactMap { event -> [String]? in
                if case .configRefused(_, let errors) = event { errors } else { nil }
            }
            #expect(refused == [faults.map(\.text)])
            #expect(stage.agent.view.live?.config() == before)
            try scene.drop("a")
            try await stage.finished("a")
            #expect(site.here.record.stored.keys.sorted() == ["a"])
        }
    }

    @Test func `limits take effect, and what needs a restart is said and left`() async throws {
        let site = try Site(Self.text())
        let scene = try site.scene()
        try await scene.run { stage in
            site.write(Self.text(top: "workers: 9\nlimits: { bandwidth: 0, queue_warning: 3 }"))
            let changes = try Self.done(await stage.agent.commands.reload()).changes
            #expect(changes.sorted() == ["limits.bandwidth", "limits.queue_warning", "workers"])
            #expect(stage.agent.view.live?.limits().first?.rate == 0)
            #expect(stage.agent.view.live?.destinations().allSatisfy(\.isShut) == true)
            let restart = stage.events.all.compactMap { event -> [String]? in
                if case .configReloaded(_, _, _, let restart) = event { restart } else { nil }
            }
            #expect(restart == [["workers"]])
            try scene.drop("a")
            try await stage.job("a")
            site.write(Self.text())
            #expect(try Self.done(await stage.agent.commands.reload()).changes.count == 2)
            try await stage.finished("a")
        }
    }

    @Test func `files of a folder that left are archived where it said, also after a restart`() async throws {
        let site = try Site(
            Self.text(watch: ", archive_dir: .inlet/kept").replacing("retry:", with: "on_success: archive, retry:"))
        let gate = Gate()
        site.here.script("a", .hold(gate, .deliver))
        let scene = try site.scene()
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it runs") { site.here.record.running == 1 }
            site.write(Self.text(roots: ["second"]))
            _ = try Self.done(await stage.agent.commands.reload())
            gate.open()
            try await stage.finished("a")
        }
        #expect(isThere(scene.directory.path.appending("drop").pushing(".inlet/kept/a")))
        let former = FormerRoots(stateDirectory: scene.directory.path.appending("state"))
        #expect(former.beside([]).count == 2)
        let left = former.beside([WatchSettings(path: scene.directory.path.appending("second"))])
        #expect(left.map(\.archiveDirectory) == [".inlet/kept"])
    }
}
