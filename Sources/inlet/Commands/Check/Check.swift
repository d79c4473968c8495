import ArgumentParser
import InletConfig
import InletCore
import InletPipelines

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
        let settings = config.settings
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = try config.makeDestinations(factory)
        let outlets = try config.makeOutlets(factory)
        var findings = Findings(isJSON: json)
        findings.add(.fine, "configuration", "\(config.file.display) is correct")
        for warning in config.warnings { findings.add(.warning, "configuration", warning.message) }
        findings.add(.fine, "time zone", "\(KeyTemplate.systemZone), for dates in keys without @ZONE")
        findings.checkLimits(settings)
        findings.checkAdoption(settings, destinations)
        findings.begin(.folders)
        findings.checkState(settings.stateDirectory)
        for destination in destinations {
            guard let results = destination.results else { continue }
            findings.checkResults(results, of: destination.name, settings.watch)
        }
        findings.begin(.watch)
        for watch in settings.watch { findings.checkRoot(watch, settings) }
        findings.begin(.destinations)
        await findings.checkProxies(config, factory)
        for destination in destinations { await findings.check(destination, upload: upload) }
        for destination in destinations { findings.checkStorage(of: destination, settings.destinations) }
        findings.checkKinds(settings)
        findings.checkReceivers(settings.notify, outlets)
        findings.begin(.system)
        await findings.checkDashboard(config)
        await findings.checkConfinement(config)
        findings.checkMediaTypes(settings.routes)
        findings.checkDerivations(settings.routes)
        findings.checkWatchLimits(settings.watch)
        try findings.finish()
    }
}
