import ArgumentParser
import Foundation
import InletConfig
import InletCore
import InletDashboard
import InletLinux
import InletPipelines
import InletTransfer
import SystemPackage

struct Fetch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Download an object of a bucket, or a file from an https address.",
        discussion: """
            A stopped fetch keeps its bytes in a hidden file beside the new one. Repeat the command to continue from
            there, unless the object has changed. The file gets its name once it is complete: it has the length that the
            server announced, and the checksum of --sha256 or of the server. An existing file is replaced only with
            --force.

            An address needs no configuration. A key is looked up at a destination of type \(DestinationKinds.readable).

            Exits with 1 when there is no such object or it cannot be written, 69 when the server is unavailable.

            Examples:
              inlet fetch https://cdn.example.com/models/spaceship.glb
              inlet fetch videos/2026/song.mp4 --from archive -o ~/Videos
            """)

    @OptionGroup var options: ConfigOption
    @Argument(help: ArgumentHelp("An https address, or an object's key.", valueName: "URL|KEY")) var source: String
    @Option(
        help: ArgumentHelp("The destination that has the object.", valueName: "DEST"),
        completion: .destinations)
    var from: String?
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "The new file, or an existing folder; without it, the object's name in this folder.", valueName: "FILE"))
    var output: String?
    @Option(help: ArgumentHelp("The SHA-256 that the content must have.", valueName: "HEX")) var sha256: String?
    @Flag(help: "Replace an existing file.") var force = false

    private var isAddress: Bool { source.contains("://") }

    func validate() throws {
        if isAddress, from != nil { throw ValidationError("leave out --from: it is for keys, not for addresses") }
        if let sha256, Digest(.sha256, hex: sha256)?.bytes.count != 32 {
            throw ValidationError("'\(sha256)' is not a SHA-256: write 64 hexadecimal digits")
        }
        if Self.name(of: source) == nil, output == nil {
            throw ValidationError("'\(source)' has no name at its end; name the file with -o FILE")
        }
    }

    func run() async throws {
        let file = try free()
        let order = FetchOrder(file: file, sha256: sha256.flatMap { Digest(.sha256, hex: $0) }, replaces: force)
        if isAddress {
            // A configuration is optional; if there is one, its proxy applies. An invalid one is an error: without its
            // proxy the request might take another way than it should.
            let proxy = options.isFound ? try options.load().settings.proxy : nil
            let web = WebFetch(userAgent: "inlet/\(Inlet.version)", proxy: proxy)
            defer { web.shutdown() }
            return try await show(order) { [source] in try await web.fetch(source, order) }
        }
        let config = try options.load()
        let factory = PipelineFactory.standard(config)
        defer { factory.shutdown() }
        let store = try store(config, factory)
        try await show(order) { [source] in try await store.fetch(source, order) }
    }

    /// The named destination, or the only one that can be read from.
    private func store(_ config: LoadedConfig, _ factory: PipelineFactory) throws -> any ObjectReading {
        let readable = try config.makeDestinations(factory).compactMap { destination in
            (destination.pipeline as? any ObjectReading).map { (destination.name, $0) }
        }
        if let from {
            if let store = readable.first(where: { $0.0 == from })?.1 { return store }
            guard let known = config.settings.destinations.first(where: { $0.name == from }) else {
                throw config.noDestination(from)
            }
            throw ExitStatus.configuration.saying(
                "'\(from)' is of type \(known.type), whose objects cannot be fetched")
        }
        if readable.count == 1 { return readable[0].1 }
        let names = readable.map(\.0).joined(separator: ", ")
        guard readable.isEmpty else { throw ValidationError("choose one with --from: \(names)") }
        throw ExitStatus.configuration.saying(
            "no destination in \(config.file.display) has objects that can be fetched")
    }

    /// Fetches with a bar on a terminal, and prints the result.
    private func show(_ order: FetchOrder, _ fetch: @escaping @Sendable () async throws -> Downloaded) async throws {
        let shown = DisplayText.escape(Self.withoutQuery(source))
        let line = ProgressLine()
        do {
            let fetched = try await watched(fetch) {
                line.show(shown, sent: order.received, size: order.total ?? order.received + 1)
            }
            var facts = [ByteText.format(fetched.size)]
            if order.resumed > 0 { facts.append("\(ByteText.format(order.resumed)) of it from before") }
            facts += fetched.checked.map { "\($0.algorithm.rawValue) checked" }
            line.end(
                "\(Console.tint("✓", .good)) \(shown) → \(fetched.path.display) (\(facts.joined(separator: ", ")))")
            Console.print("  sha256 \(fetched.sha256.hex)")
        } catch let error as DeliveryError {
            line.erase()
            throw ExitStatus.of(error).saying("\(error)")
        }
    }
}

// The file that a fetch makes.
extension Fetch {
    /// Its path, if that is free; otherwise prints why not and exits.
    private func free() throws -> FilePath {
        let given = output.map { FilePath.absolute($0) } ?? .workingDirectory
        var isFolder: ObjCBool = false
        let isThere = FileManager.default.fileExists(atPath: given.string, isDirectory: &isFolder)
        let path = isThere && isFolder.boolValue ? given.appending(Self.name(of: source) ?? "") : given
        let folder = path.removingLastComponent()
        var trouble = "\(path.display) is there already, and is not a regular file"
        do throws(SystemError) {
            switch try FileLook.look(at: path) {
            case .missing:
                guard FileLook.glance(at: folder) == .missing else { return path }
                trouble = "the folder \(folder.display) is not there"
            case .regular:
                if force { return path }
                trouble = "\(path.display) is there already; --force replaces it"
            default: break
            }
        } catch {
            trouble = "\(error)"
        }
        throw ExitStatus.failed.saying(trouble)
    }

    /// The last segment of a key or of an address's path; nil where no file can have that name.
    private static func name(of source: String) -> String? {
        let isAddress = source.contains("://")
        let rest = isAddress ? withoutQuery(source).components(separatedBy: "://").dropFirst().joined() : source
        let segments = rest.split(separator: "/", omittingEmptySubsequences: false)
        guard !isAddress || segments.count > 1, let last = segments.last.map(String.init) else { return nil }
        let name = isAddress ? last.removingPercentEncoding ?? last : last
        let isUsable = !["", ".", ".."].contains(name) && !name.contains("/") && name.utf8.count <= 200
        return isUsable && !name.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F } ? name : nil
    }

    /// A presigned address is a credential: only the part before its query is shown.
    private static func withoutQuery(_ source: String) -> String { String(source.prefix { $0 != "?" && $0 != "#" }) }
}
