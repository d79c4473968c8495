import InletConfig
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage

@testable import InletAgent

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
    func load() throws(ConfigErrors) -> LoadedConfig {
        var config = try ConfigFile.parse(
            text: content.withLock(\.self), file: directory.path.appending("inlet.yaml"), types: [Self.type],
            environment: [:],
            defaults: ConfigDefaults(
                stateDirectory: directory.path.appending("state"), home: nil, workingDirectory: directory.path))
        config.settings.ping?.interval = .milliseconds(20)
        config.settings.journalBackup?.every = .milliseconds(20)
        return config
    }

    private func outlets(_ config: LoadedConfig) -> Outlets {
        var outlets = Outlets()
        for receiver in config.settings.notify { outlets.webhooks[receiver.name] = try? factory.webhook(receiver) }
        outlets.ping = config.settings.ping.flatMap { try? factory.ping($0) }
        return outlets
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
        scene.outlets = outlets(config)
        scene.source = Source(config: config, site: self)
        return scene
    }

    private struct Source: ReloadSource {
        let config: LoadedConfig
        let site: ReloadSite
        var types: [DestinationType] { [ReloadSite.type] }

        func read() throws(ConfigErrors) -> ReloadTrial {
            let config = try site.load()
            return ReloadTrial(
                config: config, destinations: site.destinations(config), outlets: site.outlets(config))
        }

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

    static func done(_ outcome: ReloadOutcome?) throws -> (changes: [String], parked: Int) {
        guard case .done(let changes, let parked, _)? = outcome else {
            throw Unexpected(description: "\(String(describing: outcome))")
        }
        return (changes.map(\.path), parked)
    }

    struct Unexpected: Error, CustomStringConvertible { let description: String }
}
