import ArgumentParser
import InletConfig
import InletCore
import InletLinux
import InletPipelines

struct Storage: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Looks into a destination that can be listed (type \(DestinationKinds.listable)).",
        discussion: "Example: inlet storage list archive",
        subcommands: [StorageList.self])
}

struct StorageList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Prints what a destination holds: length in bytes, time and key, one object a line.",
        discussion: """
            Exits with 69 when the destination is unavailable, 78 when the configuration has none of that name or one
            that cannot be listed.

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
            try await listing.list(prefix: prefix) { [json] objects in
                for object in objects { Console.print(json ? Self.jsonLine(object) : Self.line(object)) }
            }
        } catch {
            throw ExitStatus.unavailable.saying("\(destination): \(error)")
        }
    }

    /// Keys hold any character, and times what the store says: what would change the terminal is escaped.
    static func line(_ object: ListedObject) -> String {
        let (modified, key) = (DisplayText.escape(object.modified), DisplayText.escape(object.key))
        return "\(String(object.size).leftPadded(15))  \(modified)  \(key)"
    }

    static func jsonLine(_ object: ListedObject) -> String {
        "{\"key\":\(JSONString.quote(object.key)),\"size\":\(object.size),"
            + "\"modified\":\(JSONString.quote(object.modified)),\"etag\":\(JSONString.quote(object.etag))}"
    }
}
