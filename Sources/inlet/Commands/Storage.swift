import ArgumentParser
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import Synchronization

struct Storage: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storage", abstract: "Show the objects of a destination of type \(DestinationKinds.listable)).",
        discussion: "Example: inlet storage list archive",
        subcommands: [StorageList.self])
}

struct StorageList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List a destination's objects: length in bytes, time and key.",
        discussion: """
            Exits with 69 when the destination is unavailable, 78 when the configuration has no such destination, or its
            type cannot be listed.

            Examples:
              inlet storage list archive
              inlet storage list archive videos/2026/
              inlet storage list archive --json | jq -r .key
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: "The destination's name in the configuration.", completion: .destinations)
    var destination: String
    @Argument(help: "Only keys that begin with this.") var prefix = ""
    @Flag(help: "One JSON object a line: key, size, modified, etag.") var json = false

    func run() async throws {
        let config = try options.load()
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let destinations = try config.makeDestinations(factory)
        guard let found = destinations.first(where: { $0.name == destination }) else {
            throw config.noDestination(destination)
        }
        guard let listing = found.pipeline as? any ObjectListing else {
            throw ExitStatus.configuration.saying("'\(destination)' is of type \(found.type), which cannot be listed")
        }
        do {
            let isFirst = Mutex(true)
            try await listing.list(prefix: prefix) { [json] objects in
                if json {
                    for object in objects { Console.print(try Self.jsonLine(object)) }
                } else if !objects.isEmpty {
                    Console.print(Self.table(objects, hasHeader: isFirst.withLock { exchange(&$0, with: false) }))
                }
            }
        } catch {
            throw ExitStatus.unavailable.saying("\(destination): \(error)")
        }
    }

    /// One page of the listing. The columns' least widths keep pages aligned.
    private static func table(_ objects: [ListedObject], hasHeader: Bool) -> String {
        Console.table(
            [.number("BYTES").width(13), .text("MODIFIED").width(24), .name("KEY")],
            objects.map { ["\($0.size)", StyledText($0.modified), StyledText($0.key)] }, hasHeader: hasHeader)
    }

    private static func jsonLine(_ object: ListedObject) throws -> String {
        try Console.json(
            StoredObjectReport(key: object.key, size: object.size, modified: object.modified, etag: object.etag))
    }
}
