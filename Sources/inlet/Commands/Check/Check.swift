import ArgumentParser
import InletAgent
import InletConfig
import InletCore
import InletLinux
import InletPipelines
import SystemPackage

struct Check: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Checks the configuration, the folders and the destinations, and says what to do about what it finds.",
        discussion: """
            Exits with 0 when all is fine, 1 on warnings, 69 when a destination is unavailable, 78 when the
            configuration or a folder is wrong.

            Examples:
              inlet check --config inlet.yaml
              inlet check --upload
              inlet check --json | jq -r '.checks[] | select(.grade != "ok") | .text'
            """)

    @OptionGroup var options: ConfigOption
    @Flag(help: "Also deliver a small test object to every destination, and remove it where that is possible.")
    var upload = false
    @Flag(help: "Print one JSON object.") var json = false

    func run() async throws {
        let config = try options.load()
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = try config.makeDestinations(factory)
        let outlets = try config.makeOutlets(factory)
        var findings = Findings(isJSON: json)
        findings.add(.fine, "configuration", "\(config.file.display) is correct")
        for warning in config.warnings { findings.add(.warning, "configuration", warning.message) }
        findings.add(.fine, "time zone", "\(KeyTemplate.systemZone), for dates in keys without @ZONE")
        LimitCheck.run(config.settings, &findings)
        AdoptCheck.run(config.settings, destinations, &findings)
        checkFolders(config.settings, destinations, &findings)
        findings.begin(.destinations)
        await ProxyCheck.run(config, factory, &findings)
        for destination in destinations { await check(destination, &findings) }
        for destination in destinations { checkStorage(destination, config.settings.destinations, &findings) }
        checkSettings(config.settings, &findings)
        ReceiverCheck.run(config.settings.notify, outlets, &findings)
        findings.begin(.system)
        await DashboardCheck.run(config, &findings)
        await PrivilegeCheck.run(config, &findings)
        MediaTypeCheck.run(config.settings.routes, &findings)
        DeriveCheck.run(config.settings.routes, &findings)
        WatchLimitCheck.run(config.settings.watch, &findings)
        try findings.finish()
    }

    private func checkFolders(_ settings: Settings, _ destinations: [Destination], _ findings: inout Findings) {
        findings.begin(.folders)
        StateCheck.run(settings.stateDirectory, &findings)
        for destination in destinations {
            guard let results = destination.results else { continue }
            ResultsCheck.run(results, of: destination.name, settings.watch, &findings)
        }
        findings.begin(.watch)
        for watch in settings.watch { RootCheck(watch, settings).run(&findings) }
    }

    private func check(_ destination: Destination, _ findings: inout Findings) async {
        let name = "destination \(destination.name)"
        await checkKey(destination, &findings)
        do {
            findings.add(.fine, name, try await destination.pipeline.probe())
            if upload {
                for line in try await TestUpload(destination).run() { findings.add(line.0, name, line.1) }
            }
        } catch {
            let remedy = ProbeRemedy.text(error, destination: destination.name)
            findings.add(.unavailable, name, "\(error)", remedy: remedy)
        }
        if let warning = await destination.renewal?()?.warning(now: .now) { findings.add(.warning, name, warning) }
    }
}

extension Check {
    /// What the kinds themselves say of settings and routes.
    private func checkSettings(_ settings: Settings, _ findings: inout Findings) {
        for destination in settings.destinations {
            guard let kind = DestinationKinds.named(destination.type) else { continue }
            for remark in kind.remarks(on: destination, settings.routes) {
                findings.add(remark.isFine ? .fine : .warning, "destination \(destination.name)", remark.text)
            }
        }
    }

    /// Whether what a destination registers can be found by those who look there.
    private func checkStorage(
        _ destination: Destination, _ all: [DestinationSettings], _ findings: inout Findings
    ) {
        guard let name = destination.storage?.destination, let storage = all.first(where: { $0.name == name }),
            storage.values.string(DestinationSetup.publicURL.key) == nil
        else { return }
        findings.add(
            .warning, "destination \(destination.name)",
            "'\(name)' has no public_url: what is registered would refer to addresses that cannot be read without a login, "
                + "or to none",
            remedy: "give '\(name)' the address under which its files can be read: public_url")
    }

    /// Prints the public key of a server whose key can be pinned: what to write where its certificate is self-signed.
    /// Whether it is the right one, only its owner can tell. An unreachable server is the probe's to report.
    private func checkKey(_ destination: Destination, _ findings: inout Findings) async {
        // As said above.
        guard let pin = try? await destination.serverPin?() else { return }
        findings.add(.fine, "destination \(destination.name)", "the server's public key now is \(pin) (for 'pin:')")
    }
}
