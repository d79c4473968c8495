import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines

struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Asks the destinations whether they still have what was delivered to them.",
        discussion: """
            Compares length and tag with the proof in the journal; with --read every byte is read, where the destination
            lets us, and its checksum compared. Changes nothing, here or there.

            Exits with 0 when nothing is missing or different, 1 when something is, 69 when a destination could not be
            asked, and nothing else was found. What a destination has no way to tell counts as neither, and is said.
            Of jobs and batches that are named, what has not been delivered is said too, and exits with 1.

            Examples:
              inlet verify 17 18
              inlet verify --since 7d
              inlet verify --all --destination archive --read
              inlet verify --all --json | jq -r 'select(.verdict != "same") | .path'
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: ArgumentHelp("Numbers of jobs.", valueName: "JOB")) var jobs: [Int64] = []
    @Flag(help: "Everything that was delivered.") var all = false
    @Option(help: ArgumentHelp("What was delivered within this time, such as 12h or 7d.", valueName: "AGE"))
    var since: String?
    @Option(
        help: ArgumentHelp("Only what went there.", valueName: "DEST"), completion: ConfiguredNames.destinations)
    var destination: String?
    @Option(help: ArgumentHelp("The files of one batch, as 'inlet queue show' names it.", valueName: "ID"))
    var batch: Int64?
    @Flag(help: "Read every byte instead of taking the destination's word.") var read = false
    @Flag(help: "One JSON object a line: job, path, destination, key, verdict, said.") var json = false

    func validate() throws {
        if jobs.isEmpty, !all, since == nil, destination == nil, batch == nil {
            throw ValidationError("say what: numbers of jobs, --all, --since AGE, --destination DEST or --batch ID")
        }
        if all, !jobs.isEmpty { throw ValidationError("--all is for no jobs in particular; leave one of them out") }
        if let since, DurationText.parse(since) == nil {
            throw ValidationError("'\(since)' is no time; write it as 12h, 7d or 90m")
        }
    }

    func run() async throws {
        let config = try options.load()
        if let destination, !config.settings.destinations.contains(where: { $0.name == destination }) {
            Console.printError("inlet: no destination '\(DisplayText.escape(destination))' in \(config.file.display)")
            throw ExitStatus.configuration
        }
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let verifying = Verifying(try config.makeDestinations(factory), readsBytes: read)
        var wish = ProofRequest(
            jobs: jobs, since: since.flatMap { DurationText.parse($0) }.map { WallTime.now + (.zero - $0) },
            destination: destination, batch: batch)
        var tally = VerifyTally(isJSON: json)
        while true {
            // A page at a time: without a running agent the journal is open only that long, and one may start.
            let asked = wish
            let page = try await ControlAccess.use(config) { try await $0.ask(Endpoints.proofs, body: asked) }
            await verifying.run(page.proofs) { tally.add($0) }
            guard let next = page.next else { break }
            wish.after = next
        }
        let isNamed = !jobs.isEmpty || batch != nil
        if isNamed {
            let undelivered = Undelivered(wish: wish, seen: tally.seen)
            for finding in try await ControlAccess.use(config, { try await undelivered.find($0) }) {
                tally.add(undelivered: finding)
            }
        }
        try tally.finish(isNamed: isNamed)
    }
}
